//! The JSON of one event, as far as it matters. One shape serves both dialects and the answer that is not streamed:
//! `delta`, `message` and `text` are places for the same thing.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use veeksha_model::Usage;

/// An event of a stream, or a whole answer that is not streamed.
#[derive(Debug, Deserialize)]
pub(crate) struct Event<'a> {
    /// Absent, `null`, empty, or one entry for each choice the event speaks of.
    #[serde(borrow, default)]
    pub(crate) choices: Option<Vec<ChoiceDelta<'a>>>,
    /// Token counts: in an event of their own, in the finish event, or in every event.
    #[serde(default)]
    pub(crate) usage: Option<UsageWire>,
    /// Present and not null: the request failed.
    #[serde(borrow, default)]
    pub(crate) error: Option<&'a serde_json::value::RawValue>,
}

impl Event<'_> {
    /// Whether the event has an `error` that is not `null`.
    pub(crate) fn has_error(&self) -> bool {
        self.error.is_some_and(|error| error.get() != "null")
    }
}

/// What an event says of one choice.
#[derive(Debug, Deserialize)]
pub(crate) struct ChoiceDelta<'a> {
    /// Which choice; servers that leave it out have only one.
    #[serde(default)]
    pub(crate) index: Option<u32>,
    /// Chat: what was added. In an answer that is not streamed: the whole message.
    #[serde(borrow, default, alias = "message")]
    pub(crate) delta: Option<Delta<'a>>,
    /// Completions: what was added.
    #[serde(borrow, default, deserialize_with = "text")]
    pub(crate) text: Option<Cow<'a, str>>,
    /// Why generation ended, in the last event of the choice.
    #[serde(borrow, default, deserialize_with = "text")]
    pub(crate) finish_reason: Option<Cow<'a, str>>,
    /// Token counts inside the choice (seen at hosted services).
    #[serde(default)]
    pub(crate) usage: Option<UsageWire>,
}

/// A piece of a chat message.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Delta<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    pub(crate) content: Option<Cow<'a, str>>,
    /// vLLM.
    #[serde(borrow, default, deserialize_with = "text")]
    pub(crate) reasoning: Option<Cow<'a, str>>,
    /// DeepSeek, SGLang, LiteLLM, llama.cpp.
    #[serde(borrow, default, deserialize_with = "text")]
    pub(crate) reasoning_content: Option<Cow<'a, str>>,
    /// A refusal is text that the model generated.
    #[serde(borrow, default, deserialize_with = "text")]
    pub(crate) refusal: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) tool_calls: Option<Vec<ToolCallDelta<'a>>>,
}

impl Delta<'_> {
    /// The reasoning text, under whichever of its two names; LiteLLM may send both with the same content.
    pub(crate) fn reasoning(&self) -> &str {
        match self.reasoning_content.as_deref() {
            Some(text) if !text.is_empty() => text,
            _ => self.reasoning.as_deref().unwrap_or(""),
        }
    }
}

/// A piece of a tool call.
#[derive(Debug, Deserialize)]
pub(crate) struct ToolCallDelta<'a> {
    /// Which call the piece belongs to; some servers leave it out and send each call whole.
    #[serde(default)]
    pub(crate) index: Option<u32>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(crate) id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) function: Option<FunctionDelta<'a>>,
}

/// A piece of a call's function.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct FunctionDelta<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    pub(crate) name: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(crate) arguments: Option<Cow<'a, str>>,
}

/// Token counts as servers send them.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct UsageWire {
    #[serde(default, deserialize_with = "count")]
    prompt_tokens: u32,
    #[serde(default, deserialize_with = "count")]
    completion_tokens: u32,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
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
                .and_then(|details| details.cached_tokens),
            reasoning: wire
                .completion_tokens_details
                .and_then(|details| details.reasoning_tokens),
        }
    }
}

/// A count may be `null`.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    Ok(Option::<u32>::deserialize(deserializer)?.unwrap_or(0))
}

/// A text or `null`, borrowed from the event where it has no escapes (serde borrows inside an `Option` only by way of a type
/// of its own).
fn text<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'a, str>>, D::Error> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    Ok(Option::<Text<'a>>::deserialize(deserializer)?.map(|text| text.0))
}
