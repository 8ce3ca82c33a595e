//! A section of a prompt, identified by its source instead of its text.

use std::hash::{DefaultHasher, Hash, Hasher};

use veeksha_model::{Message, ReasoningContent, RecordedAnswer, Role, Segment, ToolCall, ToolDefinitions};

/// Text of some tokens. Of two pieces of one identity, the shorter is the beginning of the longer.
/// A piece without tokens is a mark: nothing is counted for it, but what follows different marks is
/// different.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PrefixPiece {
    /// Equal for equal text.
    pub identity: u64,
    /// Length in tokens.
    pub tokens: u32,
}

/// The piece of a text as a whole, for an answer whose length is known.
pub fn text_piece(text: &str, tokens: u32) -> PrefixPiece {
    PrefixPiece {
        identity: identity(&("text", text)),
        tokens,
    }
}

/// The mark that begins a message.
pub fn role_piece(role: Role) -> PrefixPiece {
    PrefixPiece {
        identity: identity(&("role", role)),
        tokens: 0,
    }
}

/// The pieces of messages: for each its role's mark, then its segments.
///
/// `count` gives the tokens of verbatim text. Such text is cut into stretches of about 32 bytes at
/// spaces, so that texts which begin alike share pieces; tokens are counted for each stretch. Media
/// count for nothing, but what follows different media is different. The tokens that a chat
/// template adds are not in it.
pub fn pieces_of<'a>(
    messages: impl IntoIterator<Item = &'a Message>,
    count: &dyn Fn(&str) -> u32,
) -> Vec<PrefixPiece> {
    messages
        .into_iter()
        .flat_map(|message| {
            let reasoning = message.reasoning.as_ref();
            message_pieces(
                message.role,
                reasoning,
                &message.content,
                &message.tool_calls,
                count,
            )
        })
        .collect()
}

/// The pieces of a recorded answer, as the assistant's message that it becomes in a conversation; a
/// tool call counts as its name and arguments. The reasoning is among them if it is kept.
pub fn answer_pieces(
    answer: &RecordedAnswer,
    keeps_reasoning: bool,
    count: &dyn Fn(&str) -> u32,
) -> Vec<PrefixPiece> {
    let reasoning = answer.reasoning.as_ref().filter(|_| keeps_reasoning);
    message_pieces(
        Role::Assistant,
        reasoning,
        &answer.content,
        &answer.tool_calls,
        count,
    )
}

/// The pieces of definitions of functions, which chat templates put before the conversation: their
/// JSON text. The tokens of generated ones are known only as a whole.
pub fn tool_pieces(tools: &ToolDefinitions, count: &dyn Fn(&str) -> u32) -> Vec<PrefixPiece> {
    let mut pieces = Vec::new();
    match tools {
        ToolDefinitions::Definitions(text) if text.trim_matches(['[', ']', ' ']).is_empty() => {}
        ToolDefinitions::Definitions(text) | ToolDefinitions::Verbatim(text) => {
            push_text(&mut pieces, text, count);
        }
        ToolDefinitions::Synthetic { tokens, .. } => pieces.push(PrefixPiece {
            identity: identity(&("tools", tools)),
            tokens: *tokens,
        }),
    }
    pieces
}

/// The pieces of one message: its role's mark, then its reasoning, its segments and its calls. See
/// [`pieces_of`].
fn message_pieces(
    role: Role,
    reasoning: Option<&ReasoningContent>,
    content: &[Segment],
    calls: &[ToolCall],
    count: &dyn Fn(&str) -> u32,
) -> Vec<PrefixPiece> {
    let mut pieces = vec![role_piece(role)];
    let reasoning = reasoning.iter().flat_map(|reasoning| &reasoning.content);
    push_segments(&mut pieces, reasoning, count);
    push_segments(&mut pieces, content, count);
    for words in calls.iter().flat_map(|call| [&call.name, &call.arguments]) {
        push_text(&mut pieces, words, count);
    }
    pieces
}

fn push_segments<'a>(
    pieces: &mut Vec<PrefixPiece>,
    content: impl IntoIterator<Item = &'a Segment>,
    count: &dyn Fn(&str) -> u32,
) {
    for segment in content {
        match segment {
            Segment::Text(text) => push_text(pieces, text, count),
            // An empty segment is skipped: a mark here would separate what follows.
            Segment::Synthetic { tokens: 0, .. } => {}
            Segment::Synthetic { seed, tokens } => pieces.push(PrefixPiece {
                identity: identity(&("synthetic", seed)),
                tokens: *tokens,
            }),
            Segment::Media { kind, source } => pieces.push(PrefixPiece {
                identity: identity(&("media", kind, source)),
                tokens: 0,
            }),
            Segment::TokenIds(ids) => pieces.extend(ids.iter().map(|id| PrefixPiece {
                identity: identity(&("token", id)),
                tokens: 1,
            })),
            Segment::ToolResult(_) => {}
        }
    }
}

fn push_text(pieces: &mut Vec<PrefixPiece>, text: &str, count: &dyn Fn(&str) -> u32) {
    let stretches = PrefixStretches { rest: text };
    pieces.extend(
        stretches
            .map(|stretch| text_piece(stretch, count(stretch)))
            .filter(|piece| piece.tokens > 0),
    );
}

/// A stretch has at least this many bytes, but for the last one.
const STRETCH_BYTES: usize = 32;

/// A stretch without a space is cut here.
const LONGEST_STRETCH_BYTES: usize = 64;

/// Splits a text by its content alone, so that texts with a common beginning are split alike. A
/// space begins the next stretch, as byte-pair tokenizers attach it to the following word.
struct PrefixStretches<'a> {
    rest: &'a str,
}

impl<'a> Iterator for PrefixStretches<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let cut = self
            .rest
            .char_indices()
            .find(|(at, char)| (*at >= STRETCH_BYTES && char.is_whitespace()) || *at >= LONGEST_STRETCH_BYTES)
            .map_or(self.rest.len(), |(at, _)| at);
        let (stretch, rest) = self.rest.split_at(cut);
        self.rest = rest;
        Some(stretch)
    }
}

fn identity(value: &impl Hash) -> u64 {
    // Keyed with zeros: the same in every process.
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use veeksha_model::{MediaKind, Seed};

    use super::*;
    use crate::PrefixLedger;

    fn words(text: &str) -> u32 {
        text.split_whitespace().count() as u32
    }

    fn message(role: Role, content: Vec<Segment>) -> Message {
        Message::new(role, content)
    }

    fn synthetic(seed: u64, tokens: u32) -> Segment {
        Segment::Synthetic {
            seed: Seed::from(seed),
            tokens,
        }
    }

    fn hits(first: &[Message], second: &[Message]) -> u64 {
        let mut ledger = PrefixLedger::new();
        ledger.see(&pieces_of(first, &words));
        ledger.see(&pieces_of(second, &words))
    }

    #[test]
    fn equal_seeds_share_text_under_equal_roles() {
        let of = |role, seed, tokens| [message(role, vec![synthetic(seed, tokens)])];
        assert_eq!(hits(&of(Role::User, 1, 30), &of(Role::User, 1, 20)), 20);
        assert_eq!(hits(&of(Role::User, 1, 30), &of(Role::User, 2, 20)), 0);
        assert_eq!(hits(&of(Role::System, 1, 30), &of(Role::User, 1, 20)), 0);
    }

    #[test]
    fn verbatim_texts_share_common_prefix() {
        // 2,000 bytes of document, then two questions: 200 words of ten bytes.
        let document = "nine char ".repeat(200);
        let ask = |question: &str| {
            [message(
                Role::User,
                vec![Segment::Text(format!("{document}{question}"))],
            )]
        };
        let shared = hits(&ask("why so?"), &ask("since when is that?"));
        // All but the last stretch, which is at most 260 bytes and so 52 words: at least 348 of
        // 400.
        assert!((348..=400).contains(&shared), "{shared}");
        assert_eq!(hits(&ask("why so?"), &ask("why so?")), 402);
    }

    #[test]
    fn media_separate_and_have_no_tokens() {
        let of = |source: &str| {
            let picture = Segment::Media {
                kind: MediaKind::Image,
                source: source.into(),
            };
            [message(
                Role::User,
                vec![synthetic(1, 7), picture, synthetic(2, 5)],
            )]
        };
        assert_eq!(hits(&of("a.png"), &of("a.png")), 12);
        assert_eq!(hits(&of("a.png"), &of("b.png")), 7);
    }

    #[test]
    fn empty_content_adds_no_piece() {
        let with = [message(
            Role::User,
            vec![synthetic(9, 0), Segment::Text(String::new()), synthetic(1, 7)],
        )];
        let without = [message(Role::User, vec![synthetic(1, 7)])];
        assert_eq!(pieces_of(&with, &words), pieces_of(&without, &words));
    }

    #[test]
    fn answer_pieces_equal_message_pieces() {
        let answer = RecordedAnswer {
            reasoning: None,
            content: vec![Segment::Text("it is so".into())],
            tool_calls: vec![ToolCall {
                id: "call_1".into(),
                name: "look_up".into(),
                arguments: "{\"word\": \"so\"}".into(),
            }],
        };
        let pieces = answer_pieces(&answer, false, &words);
        let expected = pieces_of(
            &[message(Role::Assistant, vec![Segment::Text("it is so".into())])],
            &words,
        );
        assert_eq!(pieces[..2], expected[..]);
        // "it is so", then the name, then two words of arguments.
        assert_eq!(pieces.iter().map(|piece| piece.tokens).sum::<u32>(), 3 + 1 + 2);
    }

    proptest! {
        #[test]
        fn stretches_cover_text_and_share_prefix(text in "[a-c ä\n]{0,3000}", more in "[a-c ä]{0,900}") {
            let cut: Vec<&str> = PrefixStretches { rest: &text }.collect();
            prop_assert_eq!(cut.concat(), text.as_str());
            prop_assert!(cut.iter().all(|stretch| stretch.len() < LONGEST_STRETCH_BYTES + 4));
            let longer = format!("{text}{more}");
            let longer: Vec<&str> = PrefixStretches { rest: &longer }.collect();
            let whole = cut.len().saturating_sub(1);
            prop_assert_eq!(&longer[..whole], &cut[..whole]);
        }
    }
}
