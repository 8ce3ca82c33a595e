//! Events of OpenAI's Responses API: typed events. Text comes in `*.delta` events; the `*.done`
//! events repeat it and are ignored.
//!
//! The end is `response.completed` or `response.incomplete`, which also contain the token counts.
//! The finish reason is the server's `incomplete_details.reason`, else its `status`.
//! `response.failed` and `error` are failures. `response.cancelled` does not count as an end:
//! without another one the answer is truncated.

use serde::Deserialize;
use serde_json::value::RawValue;
use veeksha_model::Usage;

use super::json::{OptionalText, count, error_of, text};
use super::log_probabilities;
use crate::answer::Answer;
use crate::answer_failure::unreadable;
use crate::error_body::ServerError;

/// An event. Only the members that are used.
#[derive(Debug, Deserialize)]
struct ResponsesEvent<'a> {
    #[serde(borrow, default, rename = "type", deserialize_with = "text")]
    kind: OptionalText<'a>,
    /// The increment of a `*.delta` event.
    #[serde(borrow, default)]
    delta: Option<RawDelta<'a>>,
    /// Index of the event's output item.
    #[serde(default)]
    output_index: Option<u32>,
    /// The item that begins or ends.
    #[serde(borrow, default)]
    item: Option<OutputItem<'a>>,
    /// The complete arguments of a call.
    #[serde(borrow, default, deserialize_with = "text")]
    arguments: OptionalText<'a>,
    /// The response so far; the whole response at the end.
    #[serde(borrow, default)]
    response: Option<Whole<'a>>,
    /// Log-probabilities of the increment's tokens; an empty list if the request did not ask for
    /// them.
    #[serde(borrow, default)]
    logprobs: Option<&'a RawValue>,
    /// Increases with every event.
    #[serde(borrow, default)]
    sequence_number: Option<&'a RawValue>,
    /// Random padding of variable length, a protection against traffic analysis.
    #[serde(borrow, default)]
    obfuscation: Option<&'a RawValue>,
}

/// A string. Another value in events that are ignored.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
struct RawDelta<'a>(#[serde(borrow)] &'a RawValue);

/// An output item.
#[derive(Debug, Deserialize)]
struct OutputItem<'a> {
    #[serde(borrow, default, rename = "type", deserialize_with = "text")]
    kind: OptionalText<'a>,
    #[serde(borrow, default, deserialize_with = "text")]
    call_id: OptionalText<'a>,
    #[serde(borrow, default, deserialize_with = "text")]
    name: OptionalText<'a>,
    #[serde(borrow, default, deserialize_with = "text")]
    arguments: OptionalText<'a>,
    /// The free-text input of a custom tool.
    #[serde(borrow, default, deserialize_with = "text")]
    input: OptionalText<'a>,
    /// In a reasoning item, where the request asked for it.
    #[serde(borrow, default, deserialize_with = "text")]
    encrypted_content: OptionalText<'a>,
    #[serde(borrow, default)]
    content: Option<Vec<OutputPart<'a>>>,
    #[serde(borrow, default)]
    summary: Option<Vec<OutputPart<'a>>>,
}

/// A part of a message or of a reasoning item.
#[derive(Debug, Deserialize)]
struct OutputPart<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    text: OptionalText<'a>,
    #[serde(borrow, default, deserialize_with = "text")]
    refusal: OptionalText<'a>,
    #[serde(borrow, default)]
    logprobs: Option<&'a RawValue>,
}

/// A response object.
#[derive(Debug, Default, Deserialize)]
struct Whole<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "text")]
    status: OptionalText<'a>,
    #[serde(borrow, default)]
    incomplete_details: Option<Incomplete<'a>>,
    #[serde(default)]
    usage: Option<ResponsesUsage>,
    /// Used only in a non-streamed answer, therefore not parsed here.
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Incomplete<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    reason: OptionalText<'a>,
}

/// Token counts.
#[derive(Clone, Copy, Debug, Deserialize)]
struct ResponsesUsage {
    #[serde(default, deserialize_with = "count")]
    input_tokens: u32,
    #[serde(default, deserialize_with = "count")]
    output_tokens: u32,
    #[serde(default)]
    input_tokens_details: Option<InputDetails>,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct InputDetails {
    #[serde(default)]
    cached_tokens: Option<u32>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct OutputDetails {
    #[serde(default)]
    reasoning_tokens: Option<u32>,
}

impl From<ResponsesUsage> for Usage {
    fn from(counts: ResponsesUsage) -> Usage {
        Usage {
            prompt: counts.input_tokens,
            completion: counts.output_tokens,
            cached: counts
                .input_tokens_details
                .and_then(|details| details.cached_tokens),
            reasoning: counts
                .output_tokens_details
                .and_then(|details| details.reasoning_tokens),
        }
    }
}

/// Reads one event.
pub(super) fn read(data: &str, answer: &mut Answer) {
    let event: ResponsesEvent<'_> = match serde_json::from_str(data) {
        Ok(event) => event,
        Err(error) => return answer.refuse(unreadable(data, &error)),
    };
    for number in [event.sequence_number, event.obfuscation].into_iter().flatten() {
        answer.ignored(number.get());
    }
    answer.id(event.response.as_ref().and_then(|response| response.id));
    let kind = event.kind.as_deref().unwrap_or_default();
    let kind = kind.strip_prefix("response.").unwrap_or(kind);
    match kind {
        "output_text.delta" | "refusal.delta" => {
            on_text(data, &event, answer, Answer::content);
            if let Some(logprobs) = event.logprobs {
                log_probabilities::read_tokens(logprobs, answer);
            }
        }
        "reasoning_text.delta" | "reasoning_summary_text.delta" => {
            on_text(data, &event, answer, Answer::reasoning);
        }
        "function_call_arguments.delta" | "custom_tool_call_input.delta" | "mcp_call_arguments.delta" => {
            let index = event.output_index;
            on_text(data, &event, answer, |answer, piece| {
                answer.tool(index, "", "", piece)
            });
        }
        "function_call_arguments.done" => {
            answer.role();
            // Handles a server that sends the arguments in one piece.
            let arguments = event.arguments.as_deref().unwrap_or_default();
            if !arguments.is_empty()
                && !event
                    .output_index
                    .is_some_and(|index| answer.has_arguments(index))
            {
                answer.tool(event.output_index, "", "", arguments);
            }
        }
        "output_item.added" => {
            answer.role();
            if let Some(item) = event.item.as_ref().filter(|item| item.is_call()) {
                item.add_call(event.output_index, answer);
            }
        }
        "output_item.done" => {
            answer.role();
            if let Some(item) = event.item.as_ref().filter(|item| item.is_reasoning()) {
                item.sign(event.output_index, answer);
            }
        }
        "completed" | "incomplete" => {
            let response = event.response.unwrap_or_default();
            end(&response, kind, answer);
            answer.done_with_this();
        }
        "failed" | "error" => fail(data, event.response.as_ref(), answer),
        "keepalive" => answer.comment(),
        // Includes events without a type: an error in another shape, or an event that is ignored.
        _ => match event.kind.is_none().then(|| error_of(data)).flatten() {
            Some(error) => answer.error(error),
            None => answer.role(),
        },
    }
}

fn on_text(
    data: &str,
    event: &ResponsesEvent<'_>,
    answer: &mut Answer,
    mut add: impl FnMut(&mut Answer, &str),
) {
    let Some(delta) = &event.delta else {
        return answer.role();
    };
    match serde_json::from_str::<Borrowed<'_>>(delta.0.get()) {
        Ok(Borrowed(piece)) => add(answer, &piece),
        Err(error) => answer.refuse(unreadable(data, &error)),
    }
}

/// A string, borrowed if it has no escapes.
#[derive(Deserialize)]
struct Borrowed<'a>(#[serde(borrow)] std::borrow::Cow<'a, str>);

/// Reads a response object.
pub(super) fn read_whole(body: &str, answer: &mut Answer) {
    let response: Whole<'_> = match serde_json::from_str(body) {
        Ok(response) => response,
        Err(error) => return answer.refuse(unreadable(body, &error)),
    };
    answer.id(response.id);
    let failed = response.error.is_some_and(|error| error.get() != "null");
    if failed || (response.output.is_none() && response.status.is_none()) {
        return match error_of(body) {
            Some(error) => answer.error(error),
            None => answer.role(),
        };
    }
    if let Some(output) = response.output {
        match serde_json::from_str::<Vec<OutputItem<'_>>>(output.get()) {
            Ok(items) => {
                for (index, item) in (0..).zip(&items) {
                    item.add_to(index, answer);
                }
            }
            Err(error) => return answer.refuse(unreadable(body, &error)),
        }
    }
    match response.status.as_deref() {
        Some("in_progress" | "queued" | "cancelled") => answer.role(),
        status => end(&response, status.unwrap_or("completed"), answer),
    }
}

/// Reads the counts and the finish reason at the end. `ended` is the finish reason if the response
/// has none.
fn end(response: &Whole<'_>, ended: &str, answer: &mut Answer) {
    if let Some(usage) = response.usage {
        answer.usage(usage.into());
    }
    let why = response
        .incomplete_details
        .as_ref()
        .and_then(|details| details.reason.as_deref())
        .filter(|reason| !reason.is_empty());
    let status = response.status.as_deref().filter(|status| !status.is_empty());
    answer.finish(why.or(status).unwrap_or(ended));
}

/// Reads `{"type":"error","message"}`, the same with the members inside `error`, or
/// `response.failed` with `response.error`.
fn fail(data: &str, response: Option<&Whole<'_>>, answer: &mut Answer) {
    let inner = response
        .and_then(|response| response.error)
        .and_then(|error| error_of(&format!("{{\"error\":{}}}", error.get())));
    let error = inner.or_else(|| error_of(data)).unwrap_or_else(|| ServerError {
        message: data.to_owned(),
        code: None,
    });
    answer.error(error);
}

impl OutputItem<'_> {
    fn is_call(&self) -> bool {
        self.kind.as_deref().is_some_and(|kind| kind.ends_with("_call")) && self.call_id.is_some()
    }

    fn is_reasoning(&self) -> bool {
        self.kind.as_deref() == Some("reasoning")
    }

    fn sign(&self, index: Option<u32>, answer: &mut Answer) {
        answer.signature(index, self.encrypted_content.as_deref().unwrap_or_default());
    }

    fn add_call(&self, index: Option<u32>, answer: &mut Answer) {
        let arguments = self.arguments.as_deref().filter(|text| !text.is_empty());
        answer.tool(
            index,
            self.call_id.as_deref().unwrap_or_default(),
            self.name.as_deref().unwrap_or_default(),
            arguments.or(self.input.as_deref()).unwrap_or_default(),
        );
    }

    fn add_to(&self, index: u32, answer: &mut Answer) {
        if self.is_call() {
            return self.add_call(Some(index), answer);
        }
        let reasoning = self.is_reasoning();
        if reasoning {
            self.sign(Some(index), answer);
        }
        let summary = self.summary.iter().flatten();
        for part in self.content.iter().flatten().chain(summary) {
            for text in [&part.text, &part.refusal].into_iter().flatten() {
                if reasoning {
                    answer.reasoning(text);
                } else {
                    answer.content(text);
                }
            }
            if let Some(logprobs) = part.logprobs {
                log_probabilities::read_tokens(logprobs, answer);
            }
        }
    }
}
