//! Conversion and validation of the parts that a codec returns for events.

use veeksha_model::{AnswerPart, TokenProbabilities, Usage};

use crate::bindings::endpoint_codec as wit;
use crate::text::{cut, grouped};

/// Maximum number of tool calls in one answer: their pieces are joined in one slot each.
const CALLS: u32 = 1024;
/// Maximum length of a finish reason, a call's id, or a function's name, in bytes.
const NAME_BYTES: usize = 4 << 10;
/// Maximum length of a server's error message, in characters; the rest is cut.
const MESSAGE: usize = 2000;

/// Remaining bytes of an answer's parts. Lifting bounds each call; this bounds all calls about one
/// answer.
pub(crate) struct PartAllowance {
    left: usize,
    whole: usize,
}

impl PartAllowance {
    pub(crate) fn new(bytes: usize) -> Self {
        PartAllowance {
            left: bytes,
            whole: bytes,
        }
    }

    fn take(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.left.checked_sub(bytes + size_of::<AnswerPart>());
        self.left = left.ok_or_else(|| {
            format!(
                "the parts of one answer exceed the limit ({} MiB)",
                self.whole >> 20
            )
        })?;
        Ok(())
    }
}

/// Appends the parts of each of `events` events to `said`.
pub(crate) fn append(
    parts: wit::Parts,
    events: usize,
    allowance: &mut PartAllowance,
    said: &mut Vec<Vec<AnswerPart>>,
) -> Result<(), String> {
    if parts.ends.len() != events {
        return Err(format!(
            "given {} events, it returned `ends` for {}",
            grouped(events as u64),
            grouped(parts.ends.len() as u64)
        ));
    }
    let returned = parts.parts.len();
    let mut rest = parts.parts.into_iter();
    let mut before = 0;
    for (event, &end) in parts.ends.iter().enumerate() {
        let of_this = end
            .checked_sub(before)
            .map(|count| count as usize)
            .filter(|count| *count <= rest.len());
        let Some(count) = of_this else {
            return Err(format!(
                "`ends` is {} for event {event} after {} for the one before it, and there are {} parts",
                grouped(end.into()),
                grouped(before.into()),
                grouped(returned as u64)
            ));
        };
        before = end;
        let mut of_event = Vec::with_capacity(count);
        for part in rest.by_ref().take(count) {
            allowance.take(bytes(&part))?;
            of_event.push(self::part(part)?);
        }
        said.push(of_event);
    }
    if rest.len() > 0 {
        return Err(format!(
            "it returned {} parts, and `ends` gives only {} of them to events",
            grouped(returned as u64),
            grouped(before.into())
        ));
    }
    Ok(())
}

fn bytes(part: &wit::Part) -> usize {
    match part {
        wit::Part::Reasoning(text)
        | wit::Part::Content(text)
        | wit::Part::Finish(text)
        | wit::Part::Signature(text)
        | wit::Part::ResponseId(text) => text.len(),
        wit::Part::LogProbabilities(tokens) => size_of_val(&tokens.logarithms[..]) + tokens.greedy.len(),
        wit::Part::Tool(piece) => piece.id.len() + piece.name.len() + piece.arguments.len(),
        wit::Part::Error(refusal) => refusal.message.len(),
        wit::Part::Role | wit::Part::Usage(_) | wit::Part::Done | wit::Part::Comment => 0,
    }
}

fn part(part: wit::Part) -> Result<AnswerPart, String> {
    Ok(match part {
        wit::Part::Role => AnswerPart::Role,
        wit::Part::Reasoning(text) => AnswerPart::Reasoning(text),
        wit::Part::Content(text) => AnswerPart::Content(text),
        wit::Part::Tool(piece) => tool(piece)?,
        wit::Part::Finish(word) => AnswerPart::Finish(name("the finish reason", word)?),
        wit::Part::Usage(usage) => AnswerPart::Usage(Usage {
            prompt: usage.prompt,
            completion: usage.completion,
            cached: usage.cached,
            reasoning: usage.reasoning,
        }),
        wit::Part::Signature(piece) => AnswerPart::Signature(piece),
        wit::Part::LogProbabilities(tokens) => AnswerPart::LogProbabilities(probabilities(tokens)?),
        wit::Part::ResponseId(id) => AnswerPart::ResponseId(name("the answer's id", id)?),
        wit::Part::Done => AnswerPart::Done,
        wit::Part::Comment => AnswerPart::Comment,
        wit::Part::Error(refusal) => AnswerPart::Error {
            message: cut(&refusal.message, MESSAGE),
            code: refusal.code,
        },
    })
}

fn probabilities(tokens: wit::TokenProbabilities) -> Result<TokenProbabilities, String> {
    let wit::TokenProbabilities { logarithms, greedy } = tokens;
    if !greedy.is_empty() && greedy.len() != logarithms.len() {
        return Err(format!(
            "the log-probabilities of {} tokens have {} entries in `greedy`",
            grouped(logarithms.len() as u64),
            grouped(greedy.len() as u64)
        ));
    }
    if let Some(logarithm) = logarithms.iter().find(|logarithm| logarithm.is_nan()) {
        return Err(format!("a log-probability is {logarithm}"));
    }
    Ok(TokenProbabilities { logarithms, greedy })
}

fn tool(piece: wit::ToolPiece) -> Result<AnswerPart, String> {
    if piece.index >= CALLS {
        return Err(format!(
            "a piece of call {}; an answer has at most {} calls (was it negative?)",
            grouped(piece.index.into()),
            grouped(CALLS.into())
        ));
    }
    Ok(AnswerPart::Tool {
        index: piece.index,
        id: name("a call's id", piece.id)?,
        name: name("a function's name", piece.name)?,
        arguments: piece.arguments,
    })
}

fn name(what: &str, name: String) -> Result<String, String> {
    if name.len() > NAME_BYTES {
        return Err(format!(
            "{what} has {} bytes, at most {} are taken",
            grouped(name.len() as u64),
            grouped(NAME_BYTES as u64)
        ));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(
        parts: Vec<wit::Part>,
        ends: &[u32],
        events: usize,
        bytes: usize,
    ) -> Result<Vec<Vec<AnswerPart>>, String> {
        let parts = wit::Parts {
            parts,
            ends: ends.to_vec(),
        };
        let mut said = Vec::new();
        append(parts, events, &mut PartAllowance::new(bytes), &mut said).map(|()| said)
    }

    fn roles(count: usize) -> Vec<wit::Part> {
        vec![wit::Part::Role; count]
    }

    #[test]
    fn parts_go_to_their_events() {
        let counts = |parts, ends: &[u32]| {
            let said = admit(roles(parts), ends, ends.len(), 1 << 20)?;
            Ok::<_, String>(said.iter().map(Vec::len).collect::<Vec<_>>())
        };
        assert_eq!(counts(3, &[1, 1, 3]), Ok(vec![1, 0, 2]));
        assert_eq!(counts(0, &[0, 0]), Ok(vec![0, 0]));
        assert_eq!(
            counts(3, &[2, 1, 3]).unwrap_err(),
            "`ends` is 1 for event 1 after 2 for the one before it, and there are 3 parts"
        );
        assert_eq!(
            counts(3, &[1, u32::MAX]).unwrap_err(),
            "`ends` is 4,294,967,295 for event 1 after 1 for the one before it, and there are 3 parts"
        );
        assert_eq!(
            counts(3, &[1, 2]).unwrap_err(),
            "it returned 3 parts, and `ends` gives only 2 of them to events"
        );
        assert_eq!(
            admit(roles(2), &[1, 2], 64, 1 << 20).unwrap_err(),
            "given 64 events, it returned `ends` for 2"
        );
    }

    /// An allowance of exactly two parts, and one byte less.
    #[test]
    fn all_parts_of_an_answer_are_bounded() {
        let parts = || vec![wit::Part::Content("abcd".into()), wit::Part::Role];
        let enough = 2 * size_of::<AnswerPart>() + 4;
        assert!(admit(parts(), &[1, 2], 2, enough).is_ok());
        assert_eq!(
            admit(parts(), &[1, 2], 2, enough - 1).unwrap_err(),
            "the parts of one answer exceed the limit (0 MiB)"
        );
    }

    #[test]
    fn names_and_calls_are_bounded_and_messages_cut() {
        let one = |part| admit(vec![part], &[1], 1, 1 << 20);
        let piece = |index, id: &str| {
            wit::Part::Tool(wit::ToolPiece {
                index,
                id: id.into(),
                name: "f".into(),
                arguments: "{}".into(),
            })
        };
        assert_eq!(
            one(piece(1023, "a")),
            Ok(vec![vec![AnswerPart::Tool {
                index: 1023,
                id: "a".into(),
                name: "f".into(),
                arguments: "{}".into()
            }]])
        );
        assert_eq!(
            one(piece(u32::MAX, "a")).unwrap_err(),
            "a piece of call 4,294,967,295; an answer has at most 1,024 calls (was it negative?)"
        );
        assert_eq!(
            one(piece(0, &"i".repeat(4097))).unwrap_err(),
            "a call's id has 4,097 bytes, at most 4,096 are taken"
        );
        assert!(one(wit::Part::Finish("w".repeat(4096))).is_ok());
        assert!(one(wit::Part::Finish("w".repeat(4097))).is_err());
        let refusal = wit::Refusal {
            message: "m".repeat(3000),
            code: Some(529),
        };
        let said = one(wit::Part::Error(refusal)).unwrap().remove(0);
        assert!(
            matches!(&said[..], [AnswerPart::Error { message, code: Some(529) }] if message.chars().count() == 2001)
        );
    }
}
