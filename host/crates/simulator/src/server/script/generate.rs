//! APIs with a single prompt: Hugging Face TGI, and Ollama's JSON lines.

use std::io::Write as _;

use serde_json::{Value, json};
use veeksha_clock::utc_stamp;
use veeksha_model::{ChunkKind, Usage};

use super::answer_script::{EndMarker, EventBuffer, Script};
use crate::engine::FinishReason;
use crate::server::script::content::{AnswerContent, Part};

/// TGI: one event for each token; the last token's event ends the answer.
pub(super) struct Tgi {
    content: AnswerContent,
    /// The last token, which is sent with the values of the end.
    pending: Option<u32>,
}

impl Tgi {
    pub(super) fn new(content: AnswerContent) -> Self {
        Tgi {
            content,
            pending: None,
        }
    }

    fn open(&self, out: &mut EventBuffer, index: u32, last: bool) {
        let word = self.content.word(index);
        // Writing to a Vec does not fail. TGI writes no space after `data:`.
        let _ = write!(
            out.bytes,
            r#"data:{{"index":{},"token":{{"id":{},"text":""#,
            index + 1,
            1000 + word
        );
        if index > 0 && self.content.part(index - 1) != self.content.part(index) {
            out.text(" ");
        }
        self.content.push_piece(&mut out.bytes, index, last);
        let logprob = -(word as f64 + 1.0) / 32.0;
        let _ = write!(out.bytes, r#"","logprob":{logprob:?},"special":false}}"#);
    }

    fn text(&self, tokens: u32) -> String {
        let texts: Vec<_> = self
            .content
            .parts(tokens)
            .into_iter()
            .map(|(_, text)| text)
            .collect();
        texts.join(" ")
    }

    fn details(&self, reason: Option<FinishReason>, usage: &Usage) -> Value {
        json!({
            "finish_reason": reason.map(tgi_reason),
            "generated_tokens": usage.completion,
            "seed": null,
            "input_length": usage.prompt,
        })
    }
}

fn tgi_reason(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop => "eos_token",
        FinishReason::Length => "length",
    }
}

impl Script for Tgi {
    fn token(&mut self, out: &mut EventBuffer, index: u32, last: bool) {
        if last {
            self.pending = Some(index);
            return;
        }
        self.open(out, index, false);
        out.text(",\"generated_text\":null,\"details\":null}\n\n");
        out.end(ChunkKind::Content);
    }

    fn finish(&mut self, out: &mut EventBuffer, reason: FinishReason, usage: &Usage, _marker: EndMarker) {
        let Some(index) = self.pending.take() else { return };
        self.open(out, index, true);
        let details = if self.content.details {
            self.details(Some(reason), usage)
        } else {
            Value::Null
        };
        let text = Value::from(self.text(usage.completion));
        let _ = write!(
            out.bytes,
            ",\"generated_text\":{text},\"details\":{details}}}\n\n"
        );
        out.end(ChunkKind::Content);
    }

    fn error(&mut self, out: &mut EventBuffer, message: &str) {
        let (_, data) = tgi_error(500, message);
        let _ = write!(out.bytes, "data:{data}\n\n");
    }

    fn whole(&self, reason: Option<FinishReason>, usage: &Usage) -> Vec<u8> {
        let mut answer = json!({ "generated_text": self.text(usage.completion) });
        if self.content.details {
            answer["details"] = self.details(reason, usage);
            answer["details"]["prefill"] = json!([]);
            answer["details"]["tokens"] = json!([]);
        }
        answer.to_string().into_bytes()
    }
}

/// Returns TGI's status and body of an error.
pub(super) fn tgi_error(status: u16, message: &str) -> (u16, Value) {
    let (status, kind) = match status {
        400 | 413 => (422, "validation"),
        429 => (429, "overloaded"),
        500 => (424, "generation"),
        other => (other, "generation"),
    };
    (status, json!({ "error": message, "error_type": kind }))
}

/// Ollama: one line of JSON per token, and a final one.
pub(super) struct OllamaLines {
    content: AnswerContent,
    /// `{"model":...,"created_at":...`: the beginning of every line.
    head: String,
}

impl OllamaLines {
    pub(super) fn new(content: AnswerContent) -> Self {
        let head = format!(
            r#"{{"model":{},"created_at":"{}""#,
            content.model,
            stamp(content.created)
        );
        OllamaLines { content, head }
    }

    fn end(&self, reason: Option<FinishReason>, usage: &Usage) -> Value {
        json!({
            "done": reason.is_some(),
            "done_reason": reason.map(FinishReason::name),
            "context": [],
            "prompt_eval_count": usage.prompt,
            "eval_count": usage.completion,
        })
    }
}

impl Script for OllamaLines {
    fn token(&mut self, out: &mut EventBuffer, index: u32, last: bool) {
        out.text(&self.head);
        let (field, kind) = match self.content.part(index) {
            Part::Reasoning => (r#","response":"","thinking":""#, ChunkKind::Reasoning),
            Part::Text | Part::Tool => (r#","response":""#, ChunkKind::Content),
        };
        out.text(field);
        self.content.push_piece(&mut out.bytes, index, last);
        out.text("\",\"done\":false}\n");
        out.end(kind);
    }

    fn finish(&mut self, out: &mut EventBuffer, reason: FinishReason, usage: &Usage, marker: EndMarker) {
        if marker == EndMarker::Missing {
            return;
        }
        let end = self.end(Some(reason), usage).to_string();
        out.text(&self.head);
        out.text(r#","response":"","#);
        out.text(end.trim_start_matches('{'));
        out.text("\n");
        out.end(ChunkKind::Finish);
    }

    fn error(&mut self, out: &mut EventBuffer, message: &str) {
        let _ = writeln!(out.bytes, "{}", json!({ "error": message }));
    }

    fn whole(&self, reason: Option<FinishReason>, usage: &Usage) -> Vec<u8> {
        let mut answer = self.end(reason, usage);
        answer["model"] = self.content.model_value();
        answer["created_at"] = stamp(self.content.created).into();
        answer["response"] = "".into();
        for (part, text) in self.content.parts(usage.completion) {
            match part {
                Part::Reasoning => answer["thinking"] = text.into(),
                Part::Text | Part::Tool => answer["response"] = text.into(),
            }
        }
        answer.to_string().into_bytes()
    }
}

/// Formats a time as RFC 3339: `2023-08-04T19:22:45.499127Z`.
fn stamp(nanos: u64) -> String {
    // The input is `DD_MM_YYYY-HH_MM_SS`.
    let utc = utc_stamp(nanos);
    let part = |from: usize, to: usize| utc.get(from..to).unwrap_or_default();
    format!(
        "{}-{}-{}T{}:{}:{}.{:06}Z",
        part(6, 10),
        part(3, 5),
        part(0, 2),
        part(11, 13),
        part(14, 16),
        part(17, 19),
        nanos / 1000 % 1_000_000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_rfc_3339() {
        // Expected values from `date -u -d @1700000000 +%FT%TZ`.
        assert_eq!(stamp(1_700_000_000_123_456_789), "2023-11-14T22:13:20.123456Z");
    }
}
