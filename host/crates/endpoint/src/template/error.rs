//! Errors of a template.

use super::placeholder::known_placeholders;

/// Why a description of an API was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The body of a request is not an object.
    #[error("the request must be a JSON object, not {kind}")]
    NotAnObject {
        /// What it is.
        kind: &'static str,
    },
    /// A placeholder that does not exist.
    #[error(
        "the request's {place} has the unknown placeholder `{{{{{name}}}}}`; known are {}",
        known_placeholders()
    )]
    UnknownPlaceholder {
        /// A JSON pointer to the string.
        place: String,
        /// What stands between the braces.
        name: String,
    },
    /// A placeholder without its end.
    #[error("the request's {place} has `{{{{` without `}}}}` after it")]
    OpenPlaceholder {
        /// A JSON pointer to the string.
        place: String,
    },
    /// A placeholder that is no text, inside a longer text.
    #[error(
        "the request's {place} has `{{{{{name}}}}}` inside a longer text, but it stands for JSON and must be the whole string"
    )]
    NotText {
        /// A JSON pointer to the string.
        place: String,
        /// The placeholder.
        name: &'static str,
    },
    /// A pointer that is none.
    #[error(
        "the answer's {field} `{pointer}` is no JSON pointer: {reason}; one looks like `/choices/0/text`"
    )]
    Pointer {
        /// Which of the answer's parts.
        field: &'static str,
        /// The pointer.
        pointer: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Nothing would ever be taken for an answer.
    #[error(
        "the answer has neither `text` nor `reasoning`: without one of them nothing that is generated would be seen; known are text, reasoning, finish_reason, prompt_tokens, output_tokens, cached_tokens, reasoning_tokens, error, done"
    )]
    NothingGenerated,
}
