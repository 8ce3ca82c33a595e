//! Events of Text Generation Inference's `generate_stream`: one event per token.
//!
//! A token counts as generated even if it has no visible text: a special token (end of text), or
//! one of several that form a character. The last event has `generated_text`, and `details` with
//! the finish reason; it is the end.

use serde::Deserialize;
use serde_json::value::RawValue;
use veeksha_model::{ChunkKind, Usage};

use super::json::{OptionalText, count, error_of, text};
use crate::answer::Answer;
use crate::answer_failure::unreadable;

/// An event, or a non-streamed answer. Only the members that are used.
#[derive(Debug, Deserialize)]
struct TgiEvent<'a> {
    #[serde(borrow, default)]
    token: Option<Token<'a>>,
    /// The whole text, at the end.
    #[serde(borrow, default, deserialize_with = "text")]
    generated_text: OptionalText<'a>,
    #[serde(borrow, default)]
    details: Option<Details<'a>>,
    /// Present and not null: the request failed. `error_type` contains the kind.
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    /// Increases with every event.
    #[serde(borrow, default)]
    index: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Token<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    text: OptionalText<'a>,
    #[serde(default)]
    special: Option<bool>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    logprob: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Details<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    finish_reason: OptionalText<'a>,
    #[serde(default, deserialize_with = "count")]
    generated_tokens: u32,
    /// Prompt tokens, since version 2.4; 0 before.
    #[serde(default, deserialize_with = "count")]
    input_length: u32,
}

/// Reads one event.
pub(super) fn read(data: &str, answer: &mut Answer) {
    let event: TgiEvent<'_> = match serde_json::from_str(data) {
        Ok(event) => event,
        Err(error) => return answer.refuse(unreadable(data, &error)),
    };
    let failed = event.error.is_some_and(|error| error.get() != "null");
    let empty = event.token.is_none() && event.generated_text.is_none() && event.details.is_none();
    if (failed || empty)
        && let Some(error) = error_of(data)
    {
        return answer.error(error);
    }
    answer.role();
    if let Some(token) = &event.token {
        on_token(token, event.index, answer);
    }
    let ended = event.generated_text.is_some() || event.details.is_some();
    add_end(&event, answer);
    if ended {
        answer.done_with_this();
    }
}

fn on_token(token: &Token<'_>, index: Option<&RawValue>, answer: &mut Answer) {
    let text = token.text.as_deref().unwrap_or_default();
    if text.is_empty() || token.special == Some(true) {
        answer.generated(ChunkKind::Content);
        return;
    }
    for number in [index, token.id, token.logprob].into_iter().flatten() {
        answer.ignored(number.get());
    }
    answer.content(text);
}

fn add_end(event: &TgiEvent<'_>, answer: &mut Answer) {
    if let Some(text) = event.generated_text.as_deref().filter(|_| !answer.has_text()) {
        answer.content(text);
    }
    let Some(details) = &event.details else {
        return;
    };
    answer.usage(Usage {
        prompt: details.input_length,
        completion: details.generated_tokens,
        cached: None,
        reasoning: None,
    });
    answer.finish(details.finish_reason.as_deref().unwrap_or_default());
}

/// Reads a non-streamed answer: an object, or a list of one (Hugging Face's hosted service).
pub(super) fn read_whole(body: &str, answer: &mut Answer) {
    if !body.trim_start().starts_with('[') {
        return read(body, answer);
    }
    match serde_json::from_str::<Vec<&RawValue>>(body) {
        Ok(answers) => match answers.first() {
            Some(first) => read(first.get(), answer),
            None => answer.role(),
        },
        Err(error) => answer.refuse(unreadable(body, &error)),
    }
}
