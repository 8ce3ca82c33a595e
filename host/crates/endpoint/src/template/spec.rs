//! Description of an API.

use serde_json::Value;
use veeksha_model::Framing;

/// Description of a user-defined API.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TemplateSpec {
    /// Path appended to the target's URL, for example `v2/generate`.
    pub path: String,
    /// Headers of every request in addition to the host's.
    pub headers: Vec<(String, String)>,
    /// The request's body, an object. A string that is a single placeholder is replaced by the
    /// placeholder's value, of any type; inside a longer string a placeholder is replaced as text.
    /// A member or an element whose placeholder has no value is omitted.
    pub request: Value,
    /// Framing of the response events.
    pub framing: Framing,
    /// Locations of the parts of an event.
    pub answer: Pointers,
}

/// Locations of the parts of an event: JSON pointers, in which `*` in the position of an array
/// index matches every element. All parts are optional in an event, and a part of an unexpected
/// type counts as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pointers {
    /// Visible text: the increment of this event.
    pub text: Option<String>,
    /// Reasoning text: the increment of this event.
    pub reasoning: Option<String>,
    /// Finish reason: a non-empty string, a number or `true`. If set, an answer without it is
    /// truncated.
    pub finish_reason: Option<String>,
    /// Number of prompt tokens.
    pub prompt_tokens: Option<String>,
    /// Number of generated tokens.
    pub output_tokens: Option<String>,
    /// Number of prompt tokens that came from the prefix cache.
    pub cached_tokens: Option<String>,
    /// Number of generated tokens that were reasoning.
    pub reasoning_tokens: Option<String>,
    /// Any value but `null` there means that the request failed. The usual error shapes
    /// ([`crate::error_in`]) are recognized without it in events that have none of the other parts.
    pub error: Option<String>,
    /// Text of the end marker: an event whose whole data equals it, for example `[DONE]`.
    pub done: Option<String>,
}
