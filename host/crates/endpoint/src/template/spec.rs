//! Description of an API.

use serde_json::Value;
use veeksha_model::Framing;

/// What describes an API.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TemplateSpec {
    /// Appended to the target's address, for example `v2/generate`.
    pub path: String,
    /// Headers of every request besides the host's own.
    pub headers: Vec<(String, String)>,
    /// The request's body, an object. A string that is one placeholder alone becomes what the placeholder stands for, whatever
    /// its type; inside a longer string a placeholder is replaced as text. A member or an element whose placeholder has no value is
    /// left out.
    pub request: Value,
    /// How answers are cut into events.
    pub framing: Framing,
    /// Where an event has its parts.
    pub answer: Pointers,
}

/// Where an event has its parts: JSON pointers, in which `*` as an array's index means every element. An event need not have them
/// all, and a part that is not of the expected type is taken as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pointers {
    /// Visible text: what this event adds.
    pub text: Option<String>,
    /// Reasoning text: what this event adds.
    pub reasoning: Option<String>,
    /// Why generation ended: a text that is not empty, a number or `true`. If it is given, an answer without it is truncated.
    pub finish_reason: Option<String>,
    /// Tokens of the prompt.
    pub prompt_tokens: Option<String>,
    /// Tokens generated.
    pub output_tokens: Option<String>,
    /// Prompt tokens that came from the prefix cache.
    pub cached_tokens: Option<String>,
    /// Generated tokens that were reasoning.
    pub reasoning_tokens: Option<String>,
    /// Anything but `null` there: the request failed. The shapes of errors that are usual ([`crate::error_in`]) are understood
    /// without it in events that have none of the other parts.
    pub error: Option<String>,
    /// An event whose whole data is this text marks the end, for example `[DONE]`.
    pub done: Option<String>,
}
