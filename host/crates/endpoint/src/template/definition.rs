//! A checked template.

use std::borrow::Cow;

use veeksha_model::Framing;

use super::error::TemplateError;
use super::pointer::Walk;
use super::request::BodyTemplate;
use super::spec::TemplateSpec;
use crate::header::Header;

/// A checked description of a user-defined API.
#[derive(Clone, Debug)]
pub struct EndpointTemplate {
    path: String,
    headers: Vec<Header>,
    framing: Framing,
    request: BodyTemplate,
    walk: Walk,
    done: Option<String>,
    wants_finish_reason: bool,
    /// True if the pointers locate the parts of an answer; false if a plugin reads them.
    reads_answers: bool,
}

impl EndpointTemplate {
    /// Checks a description.
    ///
    /// # Errors
    /// If a placeholder or a pointer in it is invalid; the message names it.
    pub fn new(spec: TemplateSpec) -> Result<Self, TemplateError> {
        if spec.answer.text.is_none() && spec.answer.reasoning.is_none() {
            return Err(TemplateError::NothingGenerated);
        }
        EndpointTemplate::of_requests(spec)
    }

    /// Checks like [`EndpointTemplate::new`], for an API whose answers a plugin reads: the
    /// description may omit the pointers to the parts of an answer.
    ///
    /// # Errors
    /// See [`EndpointTemplate::new`].
    pub fn of_requests(spec: TemplateSpec) -> Result<Self, TemplateError> {
        let TemplateSpec {
            path,
            headers,
            request,
            framing,
            answer,
        } = spec;
        Ok(EndpointTemplate {
            path,
            headers: headers
                .into_iter()
                .map(|(name, value)| (Cow::Owned(name), Cow::Owned(value)))
                .collect(),
            framing,
            request: BodyTemplate::new(&request)?,
            wants_finish_reason: answer.finish_reason.is_some(),
            reads_answers: answer.text.is_some() || answer.reasoning.is_some(),
            walk: Walk::new(&answer)?,
            done: answer.done.map(|marker| marker.trim().to_owned()),
        })
    }

    /// Returns the path to append to the target's URL.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the headers of every request in addition to the host's.
    pub fn headers(&self) -> &[Header] {
        &self.headers
    }

    /// Returns the framing of the response events.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Returns the data of the event that marks the end, if there is one.
    pub fn end_marker(&self) -> Option<&str> {
        self.done.as_deref()
    }

    /// Returns true if the pointers locate the parts of an answer. There is none for tool calls.
    pub(crate) fn reads_answers(&self) -> bool {
        self.reads_answers
    }

    pub(crate) fn request(&self) -> &BodyTemplate {
        &self.request
    }

    pub(crate) fn walk(&self) -> &Walk {
        &self.walk
    }

    /// Returns true if an answer without a finish reason is truncated.
    pub(crate) fn wants_finish_reason(&self) -> bool {
        self.wants_finish_reason
    }
}
