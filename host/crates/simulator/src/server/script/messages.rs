//! Anthropic's messages.
//!
//! `message_start` contains the prompt's token counts (`input_tokens` are those not found in the
//! cache) and is sent when the request is admitted, long before the first text. `message_delta`
//! contains the count of output tokens.

use serde_json::{Value, json};
use veeksha_model::{ChunkKind, Usage};

use super::answer_script::{EndMarker, EventBuffer, Script};
use crate::engine::FinishReason;
use crate::server::script::content::{AnswerContent, Part};

pub(super) struct Messages {
    content: AnswerContent,
    /// The open content block: its part and its index.
    open: Option<(Part, u32)>,
    /// Number of blocks opened so far.
    blocks: u32,
    /// Bytes before the text of a delta of the open block.
    before: Vec<u8>,
}

impl Messages {
    pub(super) fn new(content: AnswerContent) -> Self {
        Messages {
            content,
            open: None,
            blocks: 0,
            before: Vec::new(),
        }
    }

    fn id(&self) -> String {
        format!("msg_sim_{}", self.content.ordinal)
    }

    fn tool_id(&self) -> String {
        format!("toolu_sim_{}", self.content.ordinal)
    }

    fn open(&mut self, out: &mut EventBuffer, part: Part) {
        let index = self.blocks;
        self.blocks += 1;
        self.open = Some((part, index));
        let (block, delta, field) = match part {
            Part::Reasoning => (
                json!({ "type": "thinking", "thinking": "", "signature": "" }),
                "thinking_delta",
                "thinking",
            ),
            Part::Text => (json!({ "type": "text", "text": "" }), "text_delta", "text"),
            Part::Tool => (
                json!({ "type": "tool_use", "id": self.tool_id(), "name": self.content.tool, "input": {} }),
                "input_json_delta",
                "partial_json",
            ),
        };
        let start = json!({ "type": "content_block_start", "index": index, "content_block": block });
        let kind = match part {
            Part::Tool => ChunkKind::Tool,
            Part::Reasoning | Part::Text => ChunkKind::Role,
        };
        out.named("content_block_start", &start, kind);
        self.before = format!(
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":{index},\
             \"delta\":{{\"type\":\"{delta}\",\"{field}\":\""
        )
        .into_bytes();
    }

    fn close(&mut self, out: &mut EventBuffer) {
        let Some((part, index)) = self.open.take() else {
            return;
        };
        if part == Part::Reasoning {
            let signature = json!({
                "type": "content_block_delta",
                "index": index,
                "delta": { "type": "signature_delta", "signature": "c2ltdWxhdGVk" },
            });
            out.named("content_block_delta", &signature, ChunkKind::Role);
        }
        let stop = json!({ "type": "content_block_stop", "index": index });
        out.named("content_block_stop", &stop, ChunkKind::Role);
    }

    fn reason(&self, reason: FinishReason) -> &'static str {
        match reason {
            FinishReason::Length => "max_tokens",
            FinishReason::Stop if self.content.tool.is_some() => "tool_use",
            FinishReason::Stop => "end_turn",
        }
    }

    fn usage(usage: &Usage, output: u32) -> Value {
        json!({
            "input_tokens": AnswerContent::fresh(usage),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": usage.cached.unwrap_or(0),
            "output_tokens": output,
        })
    }

    fn message(&self, content: Value, reason: Option<&str>, usage: Value) -> Value {
        json!({
            "id": self.id(),
            "type": "message",
            "role": "assistant",
            "model": self.content.model_value(),
            "content": content,
            "stop_reason": reason,
            "stop_sequence": null,
            "usage": usage,
        })
    }
}

impl Script for Messages {
    fn begin(&mut self, out: &mut EventBuffer, usage: &Usage) {
        let message = self.message(json!([]), None, Messages::usage(usage, 1));
        let start = json!({ "type": "message_start", "message": message });
        out.named("message_start", &start, ChunkKind::Role);
        // The name of a tool is generated: its block begins with the first token.
        let first = self.content.part(0);
        if first != Part::Tool {
            self.open(out, first);
        }
        out.named("ping", &json!({ "type": "ping" }), ChunkKind::Comment);
    }

    fn token(&mut self, out: &mut EventBuffer, index: u32, last: bool) {
        let part = self.content.part(index);
        if self.open.is_none_or(|(open, _)| open != part) {
            self.close(out);
            self.open(out, part);
        }
        out.bytes.extend_from_slice(&self.before);
        self.content.push_piece(&mut out.bytes, index, last);
        out.text("\"}}\n\n");
        out.end(part.chunk_kind());
    }

    fn finish(&mut self, out: &mut EventBuffer, reason: FinishReason, usage: &Usage, marker: EndMarker) {
        self.close(out);
        let delta = json!({
            "type": "message_delta",
            "delta": { "stop_reason": self.reason(reason), "stop_sequence": null },
            "usage": { "output_tokens": usage.completion },
        });
        out.named("message_delta", &delta, ChunkKind::Finish);
        if marker == EndMarker::Sent {
            out.named(
                "message_stop",
                &json!({ "type": "message_stop" }),
                ChunkKind::Done,
            );
        }
    }

    fn error(&mut self, out: &mut EventBuffer, message: &str) {
        let data = error(500, message);
        out.text("event: error\ndata: ");
        out.text(&data.to_string());
        out.text("\n\n");
    }

    fn whole(&self, reason: Option<FinishReason>, usage: &Usage) -> Vec<u8> {
        let content: Vec<Value> = self
            .content
            .parts(usage.completion)
            .into_iter()
            .map(|(part, text)| match part {
                Part::Reasoning => {
                    json!({ "type": "thinking", "thinking": text, "signature": "c2ltdWxhdGVk" })
                }
                Part::Text => json!({ "type": "text", "text": text }),
                Part::Tool => json!({
                    "type": "tool_use",
                    "id": self.tool_id(),
                    "name": self.content.tool,
                    "input": serde_json::from_str::<Value>(&text).unwrap_or_default(),
                }),
            })
            .collect();
        self.message(
            content.into(),
            reason.map(|reason| self.reason(reason)),
            Messages::usage(usage, usage.completion),
        )
        .to_string()
        .into_bytes()
    }
}

/// Returns the body of an error, which is also the data of an error event.
pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        400 | 405 => "invalid_request_error",
        401 => "authentication_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 => "overloaded_error",
        _ => "api_error",
    };
    json!({ "type": "error", "error": { "type": kind, "message": message } })
}
