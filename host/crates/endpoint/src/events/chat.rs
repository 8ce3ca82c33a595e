//! Events of chat completions and completions. Both share one shape, which also covers the
//! non-streamed answer: `delta`, `message` and `text` are alternative locations of the same data.
//!
//! The end is the event with a `finish_reason`. Most servers send `[DONE]` after it (transformers
//! does not).

use serde::Deserialize;
use veeksha_model::Usage;

use super::json::{MessageText, OptionalText, content, count, error_of, text};
use super::log_probabilities;
use crate::answer::Answer;
use crate::answer_failure::unreadable;

/// A stream event, or a whole non-streamed answer.
#[derive(Debug, Deserialize)]
struct ChatEvent<'a> {
    /// The same in every event of a response.
    #[serde(borrow, default)]
    id: Option<&'a serde_json::value::RawValue>,
    /// Absent, `null`, empty, or one entry per choice in the event.
    #[serde(borrow, default)]
    choices: Option<Vec<ChoiceDelta<'a>>>,
    /// Token counts: in a separate event, in the finish event, or in every event.
    #[serde(default)]
    usage: Option<UsageWire>,
    /// Groq's extension, with token counts in the last event.
    #[serde(default)]
    x_groq: Option<XGroq>,
    /// Present and not null: the request failed.
    #[serde(borrow, default)]
    error: Option<&'a serde_json::value::RawValue>,
}

impl ChatEvent<'_> {
    /// Returns true if the event has an `error` that is not `null`.
    fn has_error(&self) -> bool {
        self.error.is_some_and(|error| error.get() != "null")
    }
}

/// The part of an event that belongs to one choice.
#[derive(Debug, Deserialize)]
struct ChoiceDelta<'a> {
    /// Index of the choice. Servers that omit it have only one.
    #[serde(default)]
    index: Option<u32>,
    /// Chat: the increment. In a non-streamed answer: the whole message.
    #[serde(borrow, default, alias = "message")]
    delta: Option<MessageDelta<'a>>,
    /// Completions: the increment.
    #[serde(borrow, default, deserialize_with = "text")]
    text: OptionalText<'a>,
    /// The finish reason, in the last event of the choice.
    #[serde(borrow, default, deserialize_with = "text")]
    finish_reason: OptionalText<'a>,
    /// Token counts inside the choice (seen at hosted services).
    #[serde(default)]
    usage: Option<UsageWire>,
    /// Log-probabilities of the event's tokens.
    #[serde(borrow, default)]
    logprobs: Option<&'a serde_json::value::RawValue>,
}

/// A piece of a chat message.
#[derive(Debug, Default, Deserialize)]
struct MessageDelta<'a> {
    /// A string, or a list of parts (Mistral's reasoning models).
    #[serde(borrow, default, deserialize_with = "content")]
    content: Option<MessageText<'a>>,
    /// The name that vLLM uses.
    #[serde(borrow, default, deserialize_with = "text")]
    reasoning: OptionalText<'a>,
    /// The name that DeepSeek, SGLang, LiteLLM and llama.cpp use.
    #[serde(borrow, default, deserialize_with = "text")]
    reasoning_content: OptionalText<'a>,
    /// A refusal. It is text that the model generated.
    #[serde(borrow, default, deserialize_with = "text")]
    refusal: OptionalText<'a>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<ToolCallDelta<'a>>>,
    /// The predecessor of `tool_calls`: a single call without an id.
    #[serde(borrow, default)]
    function_call: Option<FunctionDelta<'a>>,
}

impl MessageDelta<'_> {
    /// Returns the reasoning text under either name. LiteLLM may send both with the same content.
    fn reasoning_text(&self) -> &str {
        match self.reasoning_content.as_deref() {
            Some(text) if !text.is_empty() => text,
            _ => self.reasoning.as_deref().unwrap_or(""),
        }
    }
}

/// A piece of a tool call.
#[derive(Debug, Deserialize)]
struct ToolCallDelta<'a> {
    /// Index of the call. Some servers omit it and send each call whole.
    #[serde(default)]
    index: Option<u32>,
    #[serde(borrow, default, deserialize_with = "text")]
    id: OptionalText<'a>,
    #[serde(borrow, default)]
    function: Option<FunctionDelta<'a>>,
}

/// A piece of the function of a call.
#[derive(Debug, Default, Deserialize)]
struct FunctionDelta<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    name: OptionalText<'a>,
    #[serde(borrow, default, deserialize_with = "text")]
    arguments: OptionalText<'a>,
}

/// Token counts as sent by servers.
#[derive(Clone, Copy, Debug, Deserialize)]
struct UsageWire {
    #[serde(default, deserialize_with = "count")]
    prompt_tokens: u32,
    #[serde(default, deserialize_with = "count")]
    completion_tokens: u32,
    /// DeepSeek's name for cached prompt tokens.
    #[serde(default)]
    prompt_cache_hit_tokens: Option<u32>,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct XGroq {
    #[serde(default)]
    usage: Option<UsageWire>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<u32>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Option<u32>,
}

impl From<UsageWire> for Usage {
    fn from(wire: UsageWire) -> Usage {
        Usage {
            prompt: wire.prompt_tokens,
            completion: wire.completion_tokens,
            cached: wire
                .prompt_tokens_details
                .and_then(|details| details.cached_tokens)
                .or(wire.prompt_cache_hit_tokens),
            reasoning: wire
                .completion_tokens_details
                .and_then(|details| details.reasoning_tokens),
        }
    }
}

/// Reads one event, or a whole answer.
pub(super) fn read(data: &str, answer: &mut Answer) {
    let event: ChatEvent<'_> = match serde_json::from_str(data) {
        Ok(event) => event,
        Err(error) => return answer.refuse(unreadable(data, &error)),
    };
    answer.id(event.id);
    let may_be_error =
        event.has_error() || (event.choices.is_none() && event.usage.is_none() && event.x_groq.is_none());
    if may_be_error && let Some(error) = error_of(data) {
        return answer.error(error);
    }
    let mut usage = event.usage.or(event.x_groq.and_then(|groq| groq.usage));
    for choice in event.choices.into_iter().flatten() {
        usage = usage.or(choice.usage);
        if choice.index.unwrap_or(0) == 0 {
            on_choice(choice, answer);
        } else {
            answer.role();
        }
    }
    if let Some(usage) = usage {
        answer.usage(usage.into());
    }
}

fn on_choice(choice: ChoiceDelta<'_>, answer: &mut Answer) {
    let delta = choice.delta.unwrap_or_default();
    answer.role();
    answer.reasoning(delta.reasoning_text());
    if let Some(function) = delta.function_call {
        answer.tool(
            Some(0),
            "",
            function.name.as_deref().unwrap_or_default(),
            function.arguments.as_deref().unwrap_or_default(),
        );
    }
    for call in delta.tool_calls.into_iter().flatten() {
        let function = call.function.unwrap_or_default();
        answer.tool(
            call.index,
            call.id.as_deref().unwrap_or_default(),
            function.name.as_deref().unwrap_or_default(),
            function.arguments.as_deref().unwrap_or_default(),
        );
    }
    if let Some(content) = &delta.content {
        on_content(content, answer);
    }
    let tokens = choice
        .logprobs
        .map_or_else(Vec::new, |logprobs| log_probabilities::read(logprobs, answer));
    for text in [delta.refusal, choice.text].iter().flatten() {
        if answer.has_echo() {
            answer.content_after_echo(text, &tokens);
        } else {
            answer.content(text);
        }
    }
    answer.finish(choice.finish_reason.as_deref().unwrap_or_default());
}

fn on_content(content: &MessageText<'_>, answer: &mut Answer) {
    match content {
        MessageText::Text(text) => answer.content(text),
        MessageText::Parts(parts) => {
            for part in parts {
                for text in part.thinking.iter().flat_map(MessageText::texts) {
                    answer.reasoning(text);
                }
                answer.content(part.text.as_deref().unwrap_or_default());
            }
        }
    }
}
