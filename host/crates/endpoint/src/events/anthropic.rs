//! Events of Anthropic's Messages API: typed events for content blocks.
//!
//! The end is `message_delta` with a `stop_reason`; the end marker `message_stop` follows it. Token
//! counts come in two places: the prompt's in `message_start`, the answer's in `message_delta`,
//! where they are totals. `input_tokens` excludes tokens of the prompt cache, so the prompt is the
//! sum of three counts.

use serde::Deserialize;
use serde_json::value::RawValue;
use veeksha_model::Usage;

use super::json::{OptionalText, error_of, text};
use crate::answer::Answer;
use crate::answer_failure::unreadable;
use crate::error_body::ServerError;

/// An event, or a non-streamed message. Only the members that are used.
#[derive(Debug, Deserialize)]
struct AnthropicEvent<'a> {
    #[serde(borrow, default, rename = "type", deserialize_with = "text")]
    kind: OptionalText<'a>,
    /// Index of the event's block.
    #[serde(default)]
    index: Option<u32>,
    /// In `message_start`.
    #[serde(borrow, default)]
    message: Option<AnthropicMessage<'a>>,
    /// In `content_block_start`.
    #[serde(borrow, default)]
    content_block: Option<ContentBlock<'a>>,
    /// In `content_block_delta` and `message_delta`.
    #[serde(borrow, default)]
    delta: Option<BlockDelta<'a>>,
    #[serde(default)]
    usage: Option<AnthropicUsage>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct AnthropicMessage<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    usage: Option<AnthropicUsage>,
    #[serde(borrow, default)]
    content: Option<Vec<ContentBlock<'a>>>,
    #[serde(borrow, default, deserialize_with = "text")]
    stop_reason: OptionalText<'a>,
}

/// A content block.
#[derive(Debug, Deserialize)]
struct ContentBlock<'a> {
    #[serde(borrow, default, rename = "type", deserialize_with = "text")]
    kind: OptionalText<'a>,
    #[serde(borrow, default, deserialize_with = "text")]
    text: OptionalText<'a>,
    #[serde(borrow, default, deserialize_with = "text")]
    thinking: OptionalText<'a>,
    /// The proof that `thinking` is the server's own.
    #[serde(borrow, default, deserialize_with = "text")]
    signature: OptionalText<'a>,
    #[serde(borrow, default, deserialize_with = "text")]
    id: OptionalText<'a>,
    #[serde(borrow, default, deserialize_with = "text")]
    name: OptionalText<'a>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

/// The increment of an event.
#[derive(Debug, Deserialize)]
struct BlockDelta<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    text: OptionalText<'a>,
    #[serde(borrow, default, deserialize_with = "text")]
    thinking: OptionalText<'a>,
    #[serde(borrow, default, deserialize_with = "text")]
    signature: OptionalText<'a>,
    #[serde(borrow, default, deserialize_with = "text")]
    partial_json: OptionalText<'a>,
    #[serde(borrow, default, deserialize_with = "text")]
    stop_reason: OptionalText<'a>,
}

/// Token counts. A later count replaces an earlier one.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct AnthropicUsage {
    #[serde(default)]
    input_tokens: Option<u32>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u32>,
    #[serde(default)]
    cache_read_input_tokens: Option<u32>,
    #[serde(default)]
    output_tokens: Option<u32>,
}

impl AnthropicUsage {
    fn update(&mut self, new: AnthropicUsage) {
        self.input_tokens = new.input_tokens.or(self.input_tokens);
        self.cache_creation_input_tokens = new
            .cache_creation_input_tokens
            .or(self.cache_creation_input_tokens);
        self.cache_read_input_tokens = new.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.output_tokens = new.output_tokens.or(self.output_tokens);
    }

    fn usage(&self) -> Usage {
        let prompt = [
            self.input_tokens,
            self.cache_creation_input_tokens,
            self.cache_read_input_tokens,
        ];
        Usage {
            prompt: prompt.into_iter().flatten().fold(0, u32::saturating_add),
            completion: self.output_tokens.unwrap_or(0),
            cached: self.cache_read_input_tokens,
            reasoning: None,
        }
    }
}

/// Reads one event. `counts` accumulates the counts of all events.
pub(super) fn read(data: &str, counts: &mut AnthropicUsage, answer: &mut Answer) {
    let event: AnthropicEvent<'_> = match serde_json::from_str(data) {
        Ok(event) => event,
        Err(error) => return answer.refuse(unreadable(data, &error)),
    };
    match event.kind.as_deref() {
        Some("message_start") => {
            answer.role();
            if let Some(message) = event.message {
                answer.id(message.id);
                // `output_tokens` is a placeholder here: the counts are set on the answer at its
                // end.
                if let Some(usage) = message.usage {
                    counts.update(usage);
                }
            }
        }
        Some("content_block_start") => {
            answer.role();
            if let Some(block) = &event.content_block {
                block.begin(event.index, answer);
            }
        }
        Some("content_block_delta") => {
            answer.role();
            if let Some(delta) = &event.delta {
                answer.reasoning(delta.thinking.as_deref().unwrap_or_default());
                answer.signature(event.index, delta.signature.as_deref().unwrap_or_default());
                answer.content(delta.text.as_deref().unwrap_or_default());
                let piece = delta.partial_json.as_deref().unwrap_or_default();
                if !piece.is_empty() {
                    answer.tool(event.index, "", "", piece);
                }
            }
        }
        Some("message_delta") => {
            if let Some(usage) = event.usage {
                counts.update(usage);
                if usage.output_tokens.is_some() {
                    answer.usage(counts.usage());
                }
            }
            let delta = event.delta.as_ref();
            answer.finish(
                delta
                    .and_then(|delta| delta.stop_reason.as_deref())
                    .unwrap_or_default(),
            );
        }
        Some("message_stop") => answer.done(),
        Some("content_block_stop") => answer.role(),
        Some("ping") => answer.comment(),
        kind => {
            let failed = kind == Some("error") || event.error.is_some_and(|error| error.get() != "null");
            match error_of(data).filter(|_| failed || kind.is_none()) {
                Some(error) => answer.error(error),
                None if failed => answer.error(ServerError {
                    message: data.to_owned(),
                    code: None,
                }),
                // The API requires clients to ignore unknown types.
                None => answer.role(),
            }
        }
    }
}

impl ContentBlock<'_> {
    fn is_call(&self) -> bool {
        self.kind
            .as_deref()
            .is_some_and(|kind| kind.ends_with("tool_use"))
    }

    /// Reads the start of a block: usually empty, but a call has its name.
    fn begin(&self, index: Option<u32>, answer: &mut Answer) {
        if self.is_call() {
            // Its `input` is an empty object; the pieces follow.
            let (id, name) = (self.id.as_deref(), self.name.as_deref());
            return answer.tool(index, id.unwrap_or_default(), name.unwrap_or_default(), "");
        }
        if self.kind.as_deref() == Some("redacted_thinking") {
            return answer.hidden_reasoning();
        }
        answer.reasoning(self.thinking.as_deref().unwrap_or_default());
        answer.signature(index, self.signature.as_deref().unwrap_or_default());
        answer.content(self.text.as_deref().unwrap_or_default());
    }
}

/// Reads a non-streamed message.
pub(super) fn read_whole(body: &str, counts: &mut AnthropicUsage, answer: &mut Answer) {
    let message: AnthropicMessage<'_> = match serde_json::from_str(body) {
        Ok(message) => message,
        Err(error) => return answer.refuse(unreadable(body, &error)),
    };
    let Some(content) = &message.content else {
        return match error_of(body) {
            Some(error) => answer.error(error),
            None => answer.role(),
        };
    };
    answer.id(message.id);
    answer.role();
    for (index, block) in (0..).zip(content) {
        block.begin(Some(index), answer);
        if let Some(input) = block.input.filter(|_| block.is_call()) {
            answer.tool(Some(index), "", "", input.get());
        }
    }
    if let Some(usage) = message.usage {
        counts.update(usage);
        answer.usage(counts.usage());
    }
    answer.finish(message.stop_reason.as_deref().unwrap_or_default());
}
