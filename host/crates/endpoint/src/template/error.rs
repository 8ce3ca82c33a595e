//! Errors of a template.

use super::placeholder::known_placeholders;

/// Reason for refusing a description of an API.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The body of a request is not an object.
    #[error("the request must be a JSON object, not {kind}")]
    NotAnObject {
        /// Its actual type.
        kind: &'static str,
    },
    /// An unknown placeholder.
    #[error(
        "the request's {place} has the unknown placeholder `{{{{{name}}}}}`; known are {}",
        known_placeholders()
    )]
    UnknownPlaceholder {
        /// A JSON pointer to the string.
        place: String,
        /// The text between the braces.
        name: String,
    },
    /// A placeholder without its end.
    #[error("the request's {place} has `{{{{` without `}}}}` after it")]
    OpenPlaceholder {
        /// A JSON pointer to the string.
        place: String,
    },
    /// A placeholder inside a longer text whose value is not text.
    #[error(
        "the request's {place} has `{{{{{name}}}}}` inside a longer text, but it is replaced by JSON and must be the whole string"
    )]
    NotText {
        /// A JSON pointer to the string.
        place: String,
        /// The placeholder.
        name: &'static str,
    },
    /// An invalid pointer.
    #[error(
        "the answer's {field} `{pointer}` is not a JSON pointer: {reason}; an example is `/choices/0/text`"
    )]
    Pointer {
        /// The field of the answer.
        field: &'static str,
        /// The pointer.
        pointer: String,
        /// The reason why the pointer is invalid.
        reason: &'static str,
    },
    /// No part of an event would ever count as an answer.
    #[error(
        "the answer has neither `text` nor `reasoning`: without one of them nothing that is generated would be seen; known are text, reasoning, finish_reason, prompt_tokens, output_tokens, cached_tokens, reasoning_tokens, error, done"
    )]
    NothingGenerated,
}
