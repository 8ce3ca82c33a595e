//! OpenAI's chat completions and completions, in the shape of vLLM's streams.
//!
//! A chat's first token follows the role event; reasoning is `delta.reasoning`, as in vLLM.

use std::io::Write as _;

use serde_json::{Value, json};
use veeksha_model::{ChunkKind, Usage};

use super::answer_script::{EndMarker, EventBuffer, Script};
use crate::engine::FinishReason;
use crate::server::delivery_mode::DeliveryMode;
use crate::server::script::content::{AnswerContent, Part};
use crate::server::served_api::ServedApi;

/// Writes the events of one answer.
pub(super) struct OpenAi {
    chat: bool,
    content: AnswerContent,
    /// `{"id":...,"object":...,"created":...,"model":...`: the beginning of every event.
    head: String,
    /// Bytes before the text of a token's event, by part.
    before: [Vec<u8>; 3],
    after: [&'static str; 3],
}

const NO_REASON: &str = r#","logprobs":null,"finish_reason":null}]}"#;

impl OpenAi {
    pub(super) fn new(api: ServedApi, content: AnswerContent) -> Self {
        let chat = api == ServedApi::Chat;
        let (id, object) = match (chat, content.delivery) {
            (true, DeliveryMode::Whole) => ("chatcmpl", "chat.completion"),
            (true, _) => ("chatcmpl", "chat.completion.chunk"),
            (false, _) => ("cmpl", "text_completion"),
        };
        let head = format!(
            r#"{{"id":"{id}-sim-{}","object":"{object}","created":{},"model":{}"#,
            content.ordinal,
            content.created_seconds(),
            content.model
        );
        let before = |inner: &str| format!(r#"data: {head},"choices":[{{"index":0,{inner}"#).into_bytes();
        let (before, after) = if chat {
            (
                [
                    before(r#""delta":{"reasoning":""#),
                    before(r#""delta":{"content":""#),
                    before(r#""delta":{"tool_calls":[{"index":0,"function":{"arguments":""#),
                ],
                [
                    "\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n",
                    "\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n",
                    "\"}}]},\"logprobs\":null,\"finish_reason\":null}]}\n\n",
                ],
            )
        } else {
            let text = before(r#""text":""#);
            let after = "\",\"logprobs\":null,\"finish_reason\":null}]}\n\n";
            ([text.clone(), text.clone(), text], [after; 3])
        };
        OpenAi {
            chat,
            content,
            head,
            before,
            after,
        }
    }

    fn choice(&self, out: &mut EventBuffer, inner: &str, kind: ChunkKind) {
        out.text("data: ");
        out.text(&self.head);
        out.text(r#","choices":[{"index":0,"#);
        out.text(inner);
        out.text("\n\n");
        out.end(kind);
    }

    fn call_id(&self) -> String {
        format!("call_sim_{}", self.content.ordinal)
    }

    fn reason(&self, reason: FinishReason) -> &'static str {
        match reason {
            FinishReason::Stop if self.chat && self.content.tool.is_some() => "tool_calls",
            other => other.name(),
        }
    }
}

impl Script for OpenAi {
    fn token(&mut self, out: &mut EventBuffer, index: u32, last: bool) {
        if index == 0 && self.chat {
            let role = format!(r#""delta":{{"role":"assistant","content":""}}{NO_REASON}"#);
            self.choice(out, &role, ChunkKind::Role);
        }
        let part = if self.chat {
            self.content.part(index)
        } else {
            Part::Text
        };
        let (place, kind) = match part {
            Part::Reasoning => (0, ChunkKind::Reasoning),
            Part::Text => (1, ChunkKind::Content),
            Part::Tool => (2, ChunkKind::Tool),
        };
        if part == Part::Tool && index == self.content.reasoning {
            let name = Value::from(self.content.tool.as_deref().unwrap_or_default());
            let call = format!(
                r#""delta":{{"tool_calls":[{{"id":"{}","type":"function","index":0,"function":{{"name":{name},"arguments":""}}}}]}}{NO_REASON}"#,
                self.call_id()
            );
            self.choice(out, &call, ChunkKind::Tool);
        }
        out.bytes.extend_from_slice(&self.before[place]);
        self.content.push_piece(&mut out.bytes, index, last);
        out.text(self.after[place]);
        out.end(kind);
    }

    fn finish(&mut self, out: &mut EventBuffer, reason: FinishReason, usage: &Usage, marker: EndMarker) {
        let inner = if self.chat {
            r#""delta":{}"#
        } else {
            r#""text":"""#
        };
        let inner = format!(
            r#"{inner},"logprobs":null,"finish_reason":"{}"}}]}}"#,
            self.reason(reason)
        );
        self.choice(out, &inner, ChunkKind::Finish);
        if self.content.delivery == DeliveryMode::StreamWithUsage {
            // Writing to a Vec does not fail.
            let _ = write!(
                out.bytes,
                "data: {},\"choices\":[],\"usage\":{}}}\n\n",
                self.head,
                usage_json(usage)
            );
            out.end(ChunkKind::Usage);
        }
        if marker == EndMarker::Sent {
            out.text("data: [DONE]\n\n");
            out.end(ChunkKind::Done);
        }
    }

    /// As in vLLM, the error event is not a chunk of the answer, and the end marker is still sent.
    fn error(&mut self, out: &mut EventBuffer, message: &str) {
        let _ = write!(out.bytes, "data: {}\n\ndata: [DONE]\n\n", error(500, message));
        out.end(ChunkKind::Done);
    }

    fn whole(&self, reason: Option<FinishReason>, usage: &Usage) -> Vec<u8> {
        let tokens = usage.completion;
        let mut choice = json!({
            "index": 0,
            "logprobs": null,
            "finish_reason": reason.map(|reason| self.reason(reason)),
        });
        if self.chat {
            let mut message = json!({ "role": "assistant", "content": null });
            for (part, text) in self.content.parts(tokens) {
                match part {
                    Part::Reasoning => message["reasoning"] = text.into(),
                    Part::Text => message["content"] = text.into(),
                    Part::Tool => {
                        message["tool_calls"] = json!([{
                            "id": self.call_id(),
                            "type": "function",
                            "function": { "name": self.content.tool, "arguments": text },
                        }]);
                    }
                }
            }
            choice["message"] = message;
        } else {
            choice["text"] = self
                .content
                .parts(tokens)
                .into_iter()
                .map(|(_, text)| text)
                .collect::<Vec<_>>()
                .join(" ")
                .into();
        }
        format!(
            r#"{},"choices":[{choice}],"usage":{}}}"#,
            self.head,
            usage_json(usage)
        )
        .into_bytes()
    }
}

fn usage_json(usage: &Usage) -> Value {
    let mut json = json!({
        "prompt_tokens": usage.prompt,
        "total_tokens": u64::from(usage.prompt) + u64::from(usage.completion),
        "completion_tokens": usage.completion,
        "prompt_tokens_details": { "cached_tokens": usage.cached.unwrap_or(0) },
    });
    if let Some(reasoning) = usage.reasoning {
        json["completion_tokens_details"] = json!({ "reasoning_tokens": reasoning });
    }
    json
}

/// Returns the body of an error.
pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        400 | 405 | 413 => "BadRequestError",
        401 => "AuthenticationError",
        404 => "NotFoundError",
        429 => "RateLimitError",
        503 => "ServiceUnavailableError",
        _ => "InternalServerError",
    };
    json!({ "error": { "message": message, "type": kind, "param": null, "code": status } })
}
