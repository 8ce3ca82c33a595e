//! OpenAI's responses.
//!
//! Every event has a name, a type and a number. An answer that reached its limit ends with
//! `response.incomplete`, one that ended by itself with `response.completed`, one that failed with
//! `response.failed`. There is no `[DONE]`.

use serde_json::{Value, json};
use veeksha_model::{ChunkKind, Usage};

use super::answer_script::{EndMarker, EventBuffer, Script};
use crate::engine::FinishReason;
use crate::server::script::content::{AnswerContent, Part};

pub(super) struct Responses {
    content: AnswerContent,
    sequence: u64,
    /// The open output item.
    open: Option<Part>,
    /// Number of items opened so far.
    items: u32,
    tokens: u32,
    /// Bytes between the number of a delta event and its text.
    before: Vec<u8>,
    /// The type of the open part's delta events.
    kind: &'static str,
}

impl Responses {
    pub(super) fn new(content: AnswerContent) -> Self {
        Responses {
            content,
            sequence: 0,
            open: None,
            items: 0,
            tokens: 0,
            before: Vec::new(),
            kind: "",
        }
    }

    fn event(&mut self, out: &mut EventBuffer, name: &str, mut data: Value, kind: ChunkKind) {
        data["type"] = name.into();
        data["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        out.named(name, &data, kind);
    }

    fn item_id(&self, part: Part) -> String {
        let prefix = match part {
            Part::Reasoning => "rs",
            Part::Text => "msg",
            Part::Tool => "fc",
        };
        format!("{prefix}_sim_{}", self.content.ordinal)
    }

    fn content_part(part: Part, text: &str) -> Value {
        match part {
            Part::Reasoning => json!({ "type": "reasoning_text", "text": text }),
            Part::Text | Part::Tool => {
                json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
            }
        }
    }

    /// Returns an item of the output; without a text it has only begun.
    fn item(&self, part: Part, text: Option<&str>) -> Value {
        let status = match text {
            Some(_) => "completed",
            None => "in_progress",
        };
        let content: Vec<Value> = text
            .map(|text| Self::content_part(part, text))
            .into_iter()
            .collect();
        match part {
            Part::Reasoning => json!({
                "id": self.item_id(part),
                "type": "reasoning",
                "summary": [],
                "content": content,
                "status": status,
            }),
            Part::Text => json!({
                "id": self.item_id(part),
                "type": "message",
                "role": "assistant",
                "content": content,
                "status": status,
            }),
            Part::Tool => json!({
                "id": self.item_id(part),
                "type": "function_call",
                "call_id": format!("call_sim_{}", self.content.ordinal),
                "name": self.content.tool,
                "arguments": text.unwrap_or_default(),
                "status": status,
            }),
        }
    }

    fn response(&self, status: &str, tokens: u32, usage: Option<&Usage>) -> Value {
        let output: Vec<Value> = match usage {
            Some(_) => self
                .content
                .parts(tokens)
                .into_iter()
                .map(|(part, text)| self.item(part, Some(&text)))
                .collect(),
            None => Vec::new(),
        };
        let incomplete = (status == "incomplete").then(|| json!({ "reason": "max_output_tokens" }));
        json!({
            "id": format!("resp_sim_{}", self.content.ordinal),
            "object": "response",
            "created_at": self.content.created_seconds(),
            "status": status,
            "error": null,
            "incomplete_details": incomplete,
            "instructions": null,
            "max_output_tokens": self.content.max_tokens,
            "model": self.content.model_value(),
            "output": output,
            "parallel_tool_calls": true,
            "previous_response_id": null,
            "usage": usage.map(|usage| json!({
                "input_tokens": usage.prompt,
                "input_tokens_details": { "cached_tokens": usage.cached.unwrap_or(0) },
                "output_tokens": usage.completion,
                "output_tokens_details": { "reasoning_tokens": usage.reasoning.unwrap_or(0) },
                "total_tokens": u64::from(usage.prompt) + u64::from(usage.completion),
            })),
        })
    }

    fn open(&mut self, out: &mut EventBuffer, part: Part) {
        let index = self.items;
        self.items += 1;
        self.open = Some(part);
        let item = json!({ "output_index": index, "item": self.item(part, None) });
        // The item of a call contains the tool's name, which is generated.
        let kind = match part {
            Part::Tool => ChunkKind::Tool,
            Part::Reasoning | Part::Text => ChunkKind::Role,
        };
        self.event(out, "response.output_item.added", item, kind);
        let id = self.item_id(part);
        let content = r#""content_index":0,"#;
        let (name, content) = match part {
            Part::Reasoning => ("response.reasoning_text.delta", content),
            Part::Text => ("response.output_text.delta", content),
            Part::Tool => ("response.function_call_arguments.delta", ""),
        };
        if part == Part::Text {
            let added = json!({
                "item_id": id,
                "output_index": index,
                "content_index": 0,
                "part": Self::content_part(part, ""),
            });
            self.event(out, "response.content_part.added", added, ChunkKind::Role);
        }
        self.kind = name;
        self.before = format!(r#","item_id":"{id}","output_index":{index},{content}"delta":""#).into_bytes();
    }

    fn close(&mut self, out: &mut EventBuffer) {
        let Some(part) = self.open.take() else { return };
        let (id, index) = (self.item_id(part), self.items - 1);
        let text = self.content.text(part, self.tokens);
        let place = json!({ "item_id": id, "output_index": index, "content_index": 0 });
        let with = |key: &str, value: Value| {
            let mut event = place.clone();
            event[key] = value;
            event
        };
        let role = ChunkKind::Role;
        match part {
            Part::Reasoning => {
                let done = with("text", text.as_str().into());
                self.event(out, "response.reasoning_text.done", done, role);
            }
            Part::Text => {
                let mut done = with("text", text.as_str().into());
                done["logprobs"] = json!([]);
                self.event(out, "response.output_text.done", done, role);
                let done = with("part", Self::content_part(part, &text));
                self.event(out, "response.content_part.done", done, role);
            }
            Part::Tool => {
                let done = json!({
                    "item_id": id,
                    "output_index": index,
                    "name": self.content.tool,
                    "arguments": text,
                });
                self.event(out, "response.function_call_arguments.done", done, role);
            }
        }
        let item = json!({ "output_index": index, "item": self.item(part, Some(&text)) });
        self.event(out, "response.output_item.done", item, role);
    }

    fn last(reason: Option<FinishReason>) -> (&'static str, &'static str) {
        match reason {
            Some(FinishReason::Stop) => ("response.completed", "completed"),
            Some(FinishReason::Length) => ("response.incomplete", "incomplete"),
            None => ("", "in_progress"),
        }
    }
}

impl Script for Responses {
    fn begin(&mut self, out: &mut EventBuffer, _usage: &Usage) {
        for name in ["response.created", "response.in_progress"] {
            let response = self.response("in_progress", 0, None);
            self.event(out, name, json!({ "response": response }), ChunkKind::Role);
        }
    }

    fn token(&mut self, out: &mut EventBuffer, index: u32, last: bool) {
        let part = self.content.part(index);
        if self.open != Some(part) {
            self.close(out);
            self.open(out, part);
        }
        self.tokens = index + 1;
        out.text("event: ");
        out.text(self.kind);
        out.text("\ndata: {\"type\":\"");
        out.text(self.kind);
        out.text("\",\"sequence_number\":");
        out.text(&self.sequence.to_string());
        self.sequence += 1;
        out.bytes.extend_from_slice(&self.before);
        self.content.push_piece(&mut out.bytes, index, last);
        out.text(match part {
            Part::Text => "\",\"logprobs\":[]}\n\n",
            Part::Reasoning | Part::Tool => "\"}\n\n",
        });
        out.end(part.chunk_kind());
    }

    fn finish(&mut self, out: &mut EventBuffer, reason: FinishReason, usage: &Usage, marker: EndMarker) {
        self.close(out);
        if marker == EndMarker::Sent {
            let (name, status) = Self::last(Some(reason));
            let response = self.response(status, usage.completion, Some(usage));
            self.event(out, name, json!({ "response": response }), ChunkKind::Finish);
        }
    }

    fn error(&mut self, out: &mut EventBuffer, message: &str) {
        let mut response = self.response("failed", 0, None);
        response["error"] = json!({ "code": "server_error", "message": message });
        self.event(
            out,
            "response.failed",
            json!({ "response": response }),
            ChunkKind::Role,
        );
        // It is the failure, not a chunk of the answer.
        out.marks.pop();
    }

    fn whole(&self, reason: Option<FinishReason>, usage: &Usage) -> Vec<u8> {
        let (_, status) = Self::last(reason);
        self.response(status, usage.completion, Some(usage))
            .to_string()
            .into_bytes()
    }
}
