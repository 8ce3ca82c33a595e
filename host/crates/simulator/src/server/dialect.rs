//! The JSON of answers: the two OpenAI dialects, streamed and whole, and errors.

use std::fmt::Write as _;

use serde_json::{Value, json};
use veeksha_model::Usage;

/// Which endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/completions`.
    Text,
}

/// The end marker of a stream.
pub(super) const DONE: &str = "data: [DONE]\n\n";

/// Short words of everyday English: with a space before them they are single tokens of most vocabularies. The token counts of
/// `usage` are what holds; the number of words is the number of tokens.
const WORDS: [&str; 32] = [
    "time",
    "year",
    "people",
    "way",
    "day",
    "man",
    "thing",
    "woman",
    "life",
    "child",
    "world",
    "school",
    "state",
    "family",
    "student",
    "group",
    "country",
    "problem",
    "hand",
    "part",
    "place",
    "case",
    "week",
    "company",
    "system",
    "program",
    "question",
    "work",
    "government",
    "number",
    "night",
    "point",
];

/// The text of token `index` of answer `ordinal`.
pub(super) fn push_token(out: &mut String, ordinal: u64, index: u32) {
    let draw = (ordinal ^ (u64::from(index) << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59;
    if index > 0 {
        out.push(' ');
    }
    out.push_str(WORDS[draw as usize % WORDS.len()]);
}

/// Writes the events of one answer.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    dialect: Dialect,
    ordinal: u64,
    /// `{"id":...,"object":...,"created":...,"model":...`: the beginning of every event.
    head: String,
}

impl Writer {
    /// `created` is in seconds since 1970.
    pub(super) fn new(
        dialect: Dialect,
        delivery: super::request::Delivery,
        ordinal: u64,
        created: u64,
        model: &str,
    ) -> Self {
        let whole = delivery == super::request::Delivery::Whole;
        let (id, object) = match dialect {
            Dialect::Chat if whole => ("chatcmpl", "chat.completion"),
            Dialect::Chat => ("chatcmpl", "chat.completion.chunk"),
            Dialect::Text => ("cmpl", "text_completion"),
        };
        let model = Value::from(model);
        let head =
            format!(r#"{{"id":"{id}-sim-{ordinal}","object":"{object}","created":{created},"model":{model}"#);
        Writer {
            dialect,
            ordinal,
            head,
        }
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn event(&self, out: &mut String, choice: impl FnOnce(&mut String)) {
        out.push_str("data: ");
        out.push_str(&self.head);
        out.push_str(r#","choices":[{"index":0,"#);
        choice(out);
        out.push_str("}]}\n\n");
    }

    /// The event that says who speaks; chat only.
    pub(super) fn role(&self, out: &mut String) {
        self.event(out, |out| {
            out.push_str(r#""delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null"#);
        });
    }

    /// The event of one token.
    pub(super) fn token(&self, out: &mut String, index: u32) {
        self.event(out, |out| {
            out.push_str(match self.dialect {
                Dialect::Chat => r#""delta":{"content":""#,
                Dialect::Text => r#""text":""#,
            });
            push_token(out, self.ordinal, index);
            out.push_str(match self.dialect {
                Dialect::Chat => r#""},"logprobs":null,"finish_reason":null"#,
                Dialect::Text => r#"","logprobs":null,"finish_reason":null"#,
            });
        });
    }

    /// The event that says why the answer ended.
    pub(super) fn finish(&self, out: &mut String, reason: &str) {
        self.event(out, |out| {
            out.push_str(match self.dialect {
                Dialect::Chat => r#""delta":{}"#,
                Dialect::Text => r#""text":"""#,
            });
            // A String takes everything.
            let _ = write!(out, r#","logprobs":null,"finish_reason":"{reason}""#);
        });
    }

    /// The event with the token counts.
    pub(super) fn usage(&self, out: &mut String, usage: &Usage) {
        let _ = write!(
            out,
            "data: {},\"choices\":[],\"usage\":{}}}\n\n",
            self.head,
            usage_json(usage)
        );
    }

    /// The event of an error inside a stream, as vLLM sends it.
    pub(super) fn error(&self, out: &mut String) {
        let _ = write!(out, "data: {}\n\n", error_json(500, MID_STREAM));
    }

    /// A whole answer of so many tokens; without a reason it is one that was cut off.
    pub(super) fn whole(&self, reason: Option<&str>, usage: &Usage) -> String {
        let mut text = String::new();
        (0..usage.completion).for_each(|index| push_token(&mut text, self.ordinal, index));
        let mut choice = json!({ "index": 0, "logprobs": null, "finish_reason": reason });
        match self.dialect {
            Dialect::Chat => choice["message"] = json!({ "role": "assistant", "content": text }),
            Dialect::Text => choice["text"] = Value::from(text),
        }
        format!(
            r#"{},"choices":[{choice}],"usage":{}}}"#,
            self.head,
            usage_json(usage)
        )
    }
}

/// What an answer that breaks says.
pub(super) const MID_STREAM: &str =
    "the simulated engine failed while answering (faults.midstream_error_probability)";

fn usage_json(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt,
        "total_tokens": u64::from(usage.prompt) + u64::from(usage.completion),
        "completion_tokens": usage.completion,
        "prompt_tokens_details": { "cached_tokens": usage.cached.unwrap_or(0) },
    })
}

/// The body of an error.
pub(super) fn error_json(status: u16, message: &str) -> Value {
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
