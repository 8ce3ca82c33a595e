//! An API that somebody described: no code, only what a request looks like and where an answer has its parts.
//!
//! A request is JSON in which some strings are placeholders, for example `{"text": "{{prompt}}", "limit": "{{max_tokens}}"}`. An
//! answer is read with JSON pointers ([RFC 6901](https://www.rfc-editor.org/rfc/rfc6901)), for example `/choices/0/text`; `*` where
//! an array's index is expected means every element.

mod pointer;
mod request;

use std::borrow::Cow;

use serde_json::Value;
use veeksha_model::Framing;

use crate::dialect::Header;

pub(crate) use self::pointer::{Found, Target, Walk};
pub(crate) use self::request::{Fill, Placeholder, RequestTemplate};

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
        request::known_placeholders()
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

/// An API that somebody described, checked.
#[derive(Clone, Debug)]
pub struct Template {
    path: String,
    headers: Vec<Header>,
    framing: Framing,
    request: RequestTemplate,
    walk: Walk,
    done: Option<String>,
    wants_finish_reason: bool,
}

impl Template {
    /// Checks a description.
    ///
    /// # Errors
    /// If a placeholder or a pointer in it means nothing; the message names it.
    pub fn new(spec: TemplateSpec) -> Result<Self, TemplateError> {
        if spec.answer.text.is_none() && spec.answer.reasoning.is_none() {
            return Err(TemplateError::NothingGenerated);
        }
        Template::of_requests(spec)
    }

    /// As [`Template::new`], for an API whose answers a plugin reads: the description need not say where an answer has its parts.
    ///
    /// # Errors
    /// As [`Template::new`].
    pub fn of_requests(spec: TemplateSpec) -> Result<Self, TemplateError> {
        let TemplateSpec {
            path,
            headers,
            request,
            framing,
            answer,
        } = spec;
        Ok(Template {
            path,
            headers: headers
                .into_iter()
                .map(|(name, value)| (Cow::Owned(name), Cow::Owned(value)))
                .collect(),
            framing,
            request: RequestTemplate::new(&request)?,
            wants_finish_reason: answer.finish_reason.is_some(),
            walk: Walk::new(&answer)?,
            done: answer.done.map(|marker| marker.trim().to_owned()),
        })
    }

    /// Appended to the target's address.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Headers of every request besides the host's own.
    pub fn headers(&self) -> &[Header] {
        &self.headers
    }

    /// How answers are cut.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// The data of the event that marks the end, if there is one.
    pub fn end_marker(&self) -> Option<&str> {
        self.done.as_deref()
    }

    pub(crate) fn request(&self) -> &RequestTemplate {
        &self.request
    }

    pub(crate) fn walk(&self) -> &Walk {
        &self.walk
    }

    /// Whether an answer without a finish reason is truncated.
    pub(crate) fn wants_finish_reason(&self) -> bool {
        self.wants_finish_reason
    }
}
