//! Redaction of recorded texts.

use std::borrow::Cow;

use veeksha_model::REDACTED;

use crate::recorded_step::RecordedStep;

/// Removes secrets from the texts of a step before they are written.
pub trait Redact: Send + Sync {
    /// Returns any text without the secrets of the scenario.
    fn text<'a>(&self, text: &'a str) -> Cow<'a, str>;

    /// Returns the value of a header. The default redacts it like any text.
    fn header<'a>(&self, name: &str, value: &'a str) -> Cow<'a, str> {
        let _ = name;
        self.text(value)
    }

    /// Returns the members that are merged into a request's body. The default redacts them like
    /// any text.
    fn body<'a>(&self, body: &'a str) -> Cow<'a, str> {
        self.text(body)
    }
}

/// Redacts nothing.
#[derive(Clone, Copy, Debug)]
pub struct Verbatim;

impl Redact for Verbatim {
    fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Cow::Borrowed(text)
    }
}

/// Returns true if a step was written with a redacted text.
pub(crate) fn holds_redacted(step: &RecordedStep) -> bool {
    let is_redacted = |text: &str| text.contains(REDACTED);
    let added = &step.step.added;
    let requests = &added.requests;
    let headers = requests.iter().flat_map(|request| &request.headers);
    let mut headers = headers.chain(&added.headers);
    let mut bodies = requests.iter().filter_map(|request| request.body.as_deref());
    headers.any(|(_, value)| is_redacted(value)) || bodies.any(is_redacted)
}
