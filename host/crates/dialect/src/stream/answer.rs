//! What the events of one answer add up to.

use serde_json::Value;
use veeksha_model::{Chunk, ChunkKind, ErrorClass, Nanos, Response, ToolCall, Usage};

use super::{BodyEnd, QUOTED_CHARS, ReadStamp, Verdict};
use crate::Failure;
use crate::error_body::{ServerError, error_in};
use crate::failure::{one_line, shorten};
use crate::sse::SseItem;
use crate::wire::{ChoiceDelta, Event, ToolCallDelta, UsageWire};

/// What has been understood so far.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) chunks: Vec<Chunk>,
    pub(super) response: Response,
    /// Server indices of `response.tool_calls`.
    tool_indices: Vec<u32>,
    pub(super) finished: bool,
    done: bool,
    /// The failure and when it was known.
    pub(super) failure: Option<(Failure, Nanos)>,
    /// At least one event with data was seen.
    pub(super) any_event: bool,
}

impl Answer {
    pub(super) fn fail(&mut self, at: Nanos, failure: Failure) {
        if self.failure.is_none() {
            self.failure = Some((failure, at));
        }
    }

    pub(super) fn on_item(&mut self, stamp: ReadStamp, merged: bool, item: SseItem<'_>) {
        let at = stamp.at;
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
                lag: stamp.lag,
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
                let failure = match error_of(&text) {
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
        let may_be_error = event.has_error() || (event.choices.is_none() && event.usage.is_none());
        if may_be_error && let Some(error) = error_of(&text) {
            self.fail(at, in_stream(error));
            return None;
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

    pub(super) fn verdict(self, content_type: Option<&str>, end: BodyEnd, beginning: &[u8]) -> Verdict {
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

fn error_of(text: &str) -> Option<ServerError> {
    error_in(&serde_json::from_str::<Value>(text).ok()?)
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
