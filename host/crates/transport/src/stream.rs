//! Makes chunks and a response of an answer's body.
//!
//! Pure: the caller passes bytes with the read they came from; [`AnswerStream::finish`] gives the verdict. Rules that are not
//! obvious:
//!
//! * **Success needs a finish reason.** `[DONE]` alone proves nothing (vLLM and dynamo send it after an error); an answer with a
//!   finish reason is complete, even if the connection is lost afterwards.
//! * **Only choice 0 counts.** With `n = 2` the events of the other choices are recorded with kind `role` (nothing was
//!   generated for this answer). Servers do not agree whether usage counts one choice or all; what they say is taken as it is.
//! * **Chunks are not tokens.** [`Response::output_tokens`] is the server's `completion_tokens`, else 0; the caller counts with
//!   the tokenizer where [`Response::usage`] is `None`.
//! * **The last usage wins**, wherever it stands: in an event of its own, in the finish event, in every event.
//! * **After `[DONE]` nothing counts.** The body is still read to its end, because the connection is to be used again.

use serde_json::Value;
use veeksha_model::{Chunk, ChunkKind, ErrorClass, Nanos, Response, ToolCall, Usage};

use crate::Failure;
use crate::dialect::{ChoiceDelta, Event, ServerError, ToolCallDelta, UsageWire, error_in};
use crate::failure::{one_line, shorten};
use crate::sse::{SseDecoder, SseItem};

/// Characters of an unreadable answer that are quoted.
const QUOTED_CHARS: usize = 200;

/// One read of the socket: bytes that came out of it share its time and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadStamp {
    /// When the read returned.
    pub at: Nanos,
    /// Its number on the connection.
    pub read: u64,
}

/// How a body ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    /// As HTTP says it ends.
    Complete,
    /// Before that, with the reason.
    Broken(Failure),
}

/// The state of one streamed answer.
#[derive(Debug, Default)]
pub struct AnswerStream {
    decoder: SseDecoder,
    answer: Answer,
    /// The read that completed the last event.
    last_read: Option<u64>,
    /// The first bytes, for the message about an answer that is no event stream.
    beginning: Vec<u8>,
}

/// What has been understood so far.
#[derive(Debug, Default)]
struct Answer {
    chunks: Vec<Chunk>,
    response: Response,
    /// Server indices of `response.tool_calls`.
    tool_indices: Vec<u32>,
    finished: bool,
    done: bool,
    /// The failure and when it was known.
    failure: Option<(Failure, Nanos)>,
    /// At least one event with data was seen.
    any_event: bool,
}

/// What came of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Every event, in order.
    pub chunks: Vec<Chunk>,
    /// The answer, or why there is none.
    pub result: Result<Response, Failure>,
    /// When the last event was read or the failure was known; `None`: when the body ended.
    pub completed_at: Option<Nanos>,
}

impl AnswerStream {
    /// Takes the next bytes of the body. Returns false once the rest is of no use: the answer cannot be understood and the
    /// connection is better given up.
    pub fn on_bytes(&mut self, stamp: ReadStamp, bytes: &[u8]) -> bool {
        let room = (4 * QUOTED_CHARS).saturating_sub(self.beginning.len());
        if room > 0 && !self.answer.any_event {
            self.beginning.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        let AnswerStream {
            decoder,
            answer,
            last_read,
            ..
        } = self;
        let fed = decoder.feed(bytes, |item| {
            let merged = *last_read == Some(stamp.read);
            *last_read = Some(stamp.read);
            answer.on_item(stamp.at, merged, item);
        });
        if let Err(error) = fed {
            self.answer
                .fail(stamp.at, Failure::new(ErrorClass::Protocol, error.to_string()));
            return false;
        }
        !matches!(&self.answer.failure, Some((failure, _)) if failure.class == ErrorClass::Protocol)
    }

    /// Whether the answer is complete although the body has not ended.
    pub fn is_answered(&self) -> bool {
        self.answer.finished && self.answer.failure.is_none()
    }

    /// The events seen so far.
    pub fn chunks(&self) -> &[Chunk] {
        &self.answer.chunks
    }

    /// The body has ended. `stamp` is the connection's last read.
    pub fn finish(mut self, stamp: ReadStamp, content_type: Option<&str>, end: BodyEnd) -> Verdict {
        if end == BodyEnd::Complete {
            // A server that ends without the last blank line; half an event is no event.
            let AnswerStream {
                decoder,
                answer,
                last_read,
                ..
            } = &mut self;
            let mut items: Vec<Vec<u8>> = Vec::new();
            // What is left is at most what `feed` accepted.
            let _ = decoder.finish(|item| {
                if let SseItem::Data(data) = item {
                    items.push(data.to_vec());
                }
            });
            for data in items.iter().filter(|data| is_whole(data)) {
                let merged = *last_read == Some(stamp.read);
                answer.on_item(stamp.at, merged, SseItem::Data(data));
            }
        }
        self.answer.verdict(content_type, end, &self.beginning)
    }
}

/// Whether the data of an event without a blank line is a whole event.
fn is_whole(data: &[u8]) -> bool {
    data == b"[DONE]" || serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok()
}

/// Makes a response of an answer that was not streamed although a stream was asked for: one chunk of content, at the time
/// of the last read.
pub fn whole_answer(stamp: ReadStamp, body: &[u8]) -> Verdict {
    let mut answer = Answer::default();
    answer.on_item(stamp.at, false, SseItem::Data(body));
    if answer.failure.is_none() && !answer.finished && answer.response == Response::default() {
        let text = shorten(&String::from_utf8_lossy(body), QUOTED_CHARS);
        answer.fail(
            stamp.at,
            Failure::new(
                ErrorClass::Protocol,
                format!("the JSON answer has no choices: {text}"),
            ),
        );
    }
    answer.verdict(Some("application/json"), BodyEnd::Complete, body)
}

impl Answer {
    fn fail(&mut self, at: Nanos, failure: Failure) {
        if self.failure.is_none() {
            self.failure = Some((failure, at));
        }
    }

    fn on_item(&mut self, at: Nanos, merged: bool, item: SseItem<'_>) {
        if self.done || self.failure.is_some() {
            return;
        }
        let (bytes, kind) = match item {
            SseItem::Comment(text) => (text.len(), Some(ChunkKind::Comment)),
            SseItem::Data(data) if data.trim_ascii().is_empty() => (data.len(), Some(ChunkKind::Comment)),
            SseItem::Data(data) => {
                self.any_event = true;
                (data.len(), self.on_data(at, data))
            }
        };
        if let Some(kind) = kind {
            self.chunks.push(Chunk {
                at,
                bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
                kind,
                merged,
            });
        }
    }

    /// Understands an event's data; `None`: it is no event, and the failure is set.
    fn on_data(&mut self, at: Nanos, data: &[u8]) -> Option<ChunkKind> {
        if data.trim_ascii() == b"[DONE]" {
            self.done = true;
            return Some(ChunkKind::Done);
        }
        // A server may cut a character in two; the standard then wants U+FFFD, not an error.
        let text = String::from_utf8_lossy(data);
        let event: Event<'_> = match serde_json::from_str(&text) {
            Ok(event) => event,
            Err(error) => {
                let failure = match serde_json::from_str::<Value>(&text)
                    .ok()
                    .as_ref()
                    .and_then(error_in)
                {
                    Some(error) => in_stream(error),
                    None => {
                        let quoted = shorten(&text, QUOTED_CHARS);
                        Failure::new(
                            ErrorClass::Protocol,
                            one_line(&format!(
                                "an event of the stream is not what the API describes ({error}): {quoted}"
                            )),
                        )
                    }
                };
                self.fail(at, failure);
                return None;
            }
        };
        if event.has_error() || (event.choices.is_none() && event.usage.is_none()) {
            if let Some(error) = serde_json::from_str::<Value>(&text)
                .ok()
                .as_ref()
                .and_then(error_in)
            {
                self.fail(at, in_stream(error));
                return None;
            }
        }
        Some(self.on_event(event))
    }

    fn on_event(&mut self, event: Event<'_>) -> ChunkKind {
        let mut usage = event.usage;
        let mut kind = None;
        for choice in event.choices.into_iter().flatten() {
            usage = usage.or(choice.usage);
            if choice.index.unwrap_or(0) == 0 {
                kind = Some(self.on_choice(choice));
            } else {
                kind = kind.or(Some(ChunkKind::Role));
            }
        }
        let has_usage = usage.is_some();
        self.set_usage(usage);
        match kind {
            // LiteLLM's usage event: a choice with an empty delta.
            Some(ChunkKind::Role) if has_usage && self.finished => ChunkKind::Usage,
            Some(kind) => kind,
            None if has_usage => ChunkKind::Usage,
            None => ChunkKind::Role,
        }
    }

    fn set_usage(&mut self, usage: Option<UsageWire>) {
        if let Some(usage) = usage.map(Usage::from) {
            self.response.output_tokens = usage.completion;
            self.response.usage = Some(usage);
        }
    }

    fn on_choice(&mut self, choice: ChoiceDelta<'_>) -> ChunkKind {
        let delta = choice.delta.unwrap_or_default();
        let mut kind = ChunkKind::Role;
        let reasoning = delta.reasoning();
        if !reasoning.is_empty() {
            self.response.reasoning.push_str(reasoning);
            kind = ChunkKind::Reasoning;
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.on_tool_call(call);
            kind = ChunkKind::Tool;
        }
        for text in [delta.content, delta.refusal, choice.text].into_iter().flatten() {
            if !text.is_empty() {
                self.response.text.push_str(&text);
                kind = ChunkKind::Content;
            }
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            self.response.finish_reason = reason.into_owned();
            self.finished = true;
            if kind == ChunkKind::Role {
                kind = ChunkKind::Finish;
            }
        }
        kind
    }

    /// Pieces of a call belong together by their index. Without one, a new id begins a new call.
    fn on_tool_call(&mut self, piece: ToolCallDelta<'_>) {
        let id = piece.id.unwrap_or_default();
        let calls = &mut self.response.tool_calls;
        let place = match piece.index {
            Some(index) => self.tool_indices.iter().position(|known| *known == index),
            None if id.is_empty() => calls.len().checked_sub(1),
            None => calls.iter().position(|call| call.id == id),
        };
        let place = place.unwrap_or_else(|| {
            let fresh = self
                .tool_indices
                .iter()
                .max()
                .map_or(0, |last| last.saturating_add(1));
            self.tool_indices.push(piece.index.unwrap_or(fresh));
            calls.push(ToolCall::default());
            calls.len() - 1
        });
        let call = &mut calls[place];
        if call.id.is_empty() {
            call.id = id.into_owned();
        }
        let function = piece.function.unwrap_or_default();
        // Some servers repeat the whole name with every piece.
        if let Some(name) = function.name.filter(|name| *name != call.name) {
            call.name.push_str(&name);
        }
        call.arguments.push_str(&function.arguments.unwrap_or_default());
    }

    fn verdict(self, content_type: Option<&str>, end: BodyEnd, beginning: &[u8]) -> Verdict {
        let last_event = self.chunks.last().map(|chunk| chunk.at);
        let (result, completed_at) = match (self.failure, end) {
            (Some((failure, at)), _) => (Err(failure), Some(at)),
            (None, _) if self.finished => (Ok(self.response), last_event),
            (None, BodyEnd::Broken(failure)) => (Err(failure), None),
            (None, BodyEnd::Complete) if !self.any_event => (Err(no_event(content_type, beginning)), None),
            (None, BodyEnd::Complete) => {
                let done = if self.done {
                    ", although it sent [DONE]"
                } else {
                    ""
                };
                let count = self
                    .chunks
                    .iter()
                    .filter(|chunk| chunk.kind.is_generated())
                    .count();
                let message =
                    format!("the stream ended without a finish reason after {count} generated chunks{done}");
                (Err(Failure::new(ErrorClass::Truncated, message)), None)
            }
        };
        Verdict {
            chunks: self.chunks,
            result,
            completed_at,
        }
    }
}

fn in_stream(error: ServerError) -> Failure {
    Failure::with_status(ErrorClass::InStream, error.code, one_line(&error.message))
}

fn no_event(content_type: Option<&str>, beginning: &[u8]) -> Failure {
    let stream = content_type.is_some_and(|kind| kind.starts_with("text/event-stream"));
    let beginning = shorten(&String::from_utf8_lossy(beginning), QUOTED_CHARS);
    if stream && beginning.trim().is_empty() {
        return Failure::new(ErrorClass::Truncated, "the stream ended before its first event");
    }
    let kind = content_type.unwrap_or("of no stated type");
    let message = if beginning.is_empty() {
        format!("the answer is empty ({kind}), not an event stream")
    } else {
        format!("the answer is not an event stream ({kind}): {beginning}")
    };
    Failure::new(ErrorClass::Protocol, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses `data: ` lines, one read each.
    fn parse(lines: &[&str]) -> Verdict {
        let mut stream = AnswerStream::default();
        for (index, line) in lines.iter().enumerate() {
            let stamp = ReadStamp {
                at: index as u64 + 1,
                read: index as u64 + 1,
            };
            stream.on_bytes(stamp, format!("data: {line}\n\n").as_bytes());
        }
        let last = lines.len() as u64;
        stream.finish(
            ReadStamp { at: last, read: last },
            Some("text/event-stream"),
            BodyEnd::Complete,
        )
    }

    fn kinds(verdict: &Verdict) -> Vec<&'static str> {
        verdict.chunks.iter().map(|chunk| chunk.kind.name()).collect()
    }

    /// transformers 5.17: the role alone at admission, no `finish_reason` key before the end, usage in the finish event whatever
    /// was asked, no `[DONE]`.
    #[test]
    fn transformers_ends_without_done() {
        let verdict = parse(&[
            r#"{"choices":[{"delta":{"role":"assistant"},"index":0}]}"#,
            r#"{"choices":[{"delta":{"content":"a"},"index":0}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop","index":0}],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#,
        ]);
        assert_eq!(kinds(&verdict), ["role", "content", "finish"]);
        assert_eq!(verdict.completed_at, Some(3));
        let response = verdict.result.unwrap();
        assert_eq!((response.text.as_str(), response.output_tokens), ("a", 1));
    }

    /// LiteLLM 1.106: `reasoning_content`, no `finish_reason` key before the end, usage after the finish event in an event
    /// with a choice whose delta is empty; completions end with an event without `text`.
    #[test]
    fn litellm_sends_usage_with_an_empty_delta() {
        let verdict = parse(&[
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"reasoning_content":"hm","reasoning":"hm"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#,
            r#"{"choices":[{"finish_reason":"stop","index":0,"delta":{}}]}"#,
            r#"{"choices":[{"index":0,"delta":{}}],"usage":{"prompt_tokens":5,"completion_tokens":2,"completion_tokens_details":{"reasoning_tokens":1}}}"#,
            "[DONE]",
        ]);
        assert_eq!(
            kinds(&verdict),
            ["role", "reasoning", "content", "finish", "usage", "done"]
        );
        let response = verdict.result.unwrap();
        assert_eq!((response.reasoning.as_str(), response.text.as_str()), ("hm", "a"));
        assert_eq!(
            response.usage,
            Some(Usage {
                prompt: 5,
                completion: 2,
                cached: None,
                reasoning: Some(1)
            })
        );

        let verdict = parse(&[
            r#"{"choices":[{"index":0,"text":"a"}]}"#,
            r#"{"choices":[{"index":0,"finish_reason":"length"}]}"#,
            r#"{"choices":[{"index":0}],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#,
            "[DONE]",
        ]);
        assert_eq!(kinds(&verdict), ["content", "finish", "usage", "done"]);
        assert_eq!(verdict.result.unwrap().text, "a");
    }

    #[test]
    fn tool_calls_are_put_together_by_index() {
        let verdict = parse(&[
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"look","arguments":""}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"q\":"}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"ask","arguments":"{}"}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"look","arguments":"1}"}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        ]);
        assert_eq!(kinds(&verdict), ["tool", "tool", "tool", "tool", "finish"]);
        let call = |id: &str, name: &str, arguments: &str| ToolCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        };
        assert_eq!(
            verdict.result.unwrap().tool_calls,
            [call("a", "look", r#"{"q":1}"#), call("b", "ask", "{}")]
        );

        let without_index = parse(&[
            r#"{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"1"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"2"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"id":"b","function":{"name":"g","arguments":"3"}}]},"finish_reason":"tool_calls"}]}"#,
        ]);
        assert_eq!(
            without_index.result.unwrap().tool_calls,
            [call("a", "f", "12"), call("b", "g", "3")]
        );
    }

    #[test]
    fn an_empty_text_is_not_generated_and_a_refusal_is() {
        let verdict = parse(&[
            r#"{"choices":[{"delta":{"content":""}}]}"#,
            r#"{"choices":[{"delta":{"refusal":"no"}}]}"#,
            r#"{"choices":[{"delta":{"content":"","reasoning":"","tool_calls":[]},"finish_reason":"stop"}]}"#,
        ]);
        assert_eq!(kinds(&verdict), ["role", "content", "finish"]);
        assert_eq!(verdict.result.unwrap().text, "no");
    }

    #[test]
    fn an_error_event_counts_in_every_form_and_even_after_a_finish_reason() {
        let finish = r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
        for (event, status, message) in [
            (r#"{"error":{"message":"m","code":503}}"#, Some(503), "m"),
            (r#"{"error":{"message":"m","code":"500"}}"#, Some(500), "m"),
            (r#"{"error":"m"}"#, None, "m"),
            (r#"{"choices":[],"error":{"message":"m"}}"#, None, "m"),
            (r#"{"message":"m","type":"t","code":400}"#, Some(400), "m"),
            (
                r#"{"object":"error","message":"m","code":40303}"#,
                Some(40303),
                "m",
            ),
        ] {
            for events in [&[event, "[DONE]"][..], &[finish, event, "[DONE]"]] {
                let verdict = parse(events);
                let failure = verdict.result.unwrap_err();
                assert_eq!(
                    (failure.class, failure.status),
                    (ErrorClass::InStream, status),
                    "{event}"
                );
                assert_eq!(failure.message, message, "{event}");
                assert_eq!(
                    verdict.completed_at,
                    Some(events.len() as u64 - 1),
                    "when the error was known"
                );
            }
        }
        let no_error =
            parse(&[r#"{"error":null,"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#]);
        assert_eq!(no_error.result.unwrap().text, "a");
    }

    #[test]
    fn usage_is_found_inside_a_choice_and_the_last_one_wins() {
        let verdict = parse(&[
            r#"{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":1,"completion_tokens":4,"prompt_tokens_details":null}}]}"#,
            r#"{"choices":[],"usage":null}"#,
        ]);
        assert_eq!(verdict.result.unwrap().output_tokens, 4);
    }

    #[test]
    fn a_lost_connection_matters_only_before_the_finish_reason() {
        let lost = Failure::new(ErrorClass::Truncated, "lost");
        for (event, answered) in [
            (
                r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#,
                true,
            ),
            (r#"{"choices":[{"delta":{"content":"a"}}]}"#, false),
        ] {
            let mut stream = AnswerStream::default();
            let stamp = ReadStamp { at: 5, read: 1 };
            stream.on_bytes(stamp, format!("data: {event}\n\n").as_bytes());
            let verdict = stream.finish(stamp, None, BodyEnd::Broken(lost.clone()));
            assert_eq!(verdict.result.is_ok(), answered);
            assert_eq!(verdict.completed_at, answered.then_some(5));
            assert_eq!(verdict.chunks.len(), 1);
        }
    }

    #[test]
    fn a_split_character_and_a_missing_blank_line_are_forgiven() {
        let mut stream = AnswerStream::default();
        let stamp = ReadStamp { at: 1, read: 1 };
        stream.on_bytes(
            stamp,
            b"data: {\"choices\":[{\"delta\":{\"content\":\"a\xF0\x9F\"}}]}\n\n",
        );
        stream.on_bytes(
            stamp,
            b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}",
        );
        let verdict = stream.finish(stamp, Some("text/event-stream"), BodyEnd::Complete);
        assert_eq!(kinds(&verdict), ["content", "finish"]);
        assert_eq!(verdict.result.unwrap().text, "a\u{fffd}");
    }
}
