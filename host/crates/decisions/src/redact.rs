//! Redaction of recorded texts.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use veeksha_model::{HeaderField, REDACTED};

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

/// Notes whether a redaction changes any text.
pub(crate) struct NotingRedact<'r> {
    inner: &'r dyn Redact,
    changed: AtomicBool,
}

impl<'r> NotingRedact<'r> {
    pub(crate) fn new(inner: &'r dyn Redact) -> Self {
        NotingRedact {
            inner,
            changed: AtomicBool::new(false),
        }
    }

    /// Returns true if a text was changed.
    pub(crate) fn has_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    fn noted<'a>(&self, text: &str, redacted: Cow<'a, str>) -> Cow<'a, str> {
        if redacted != text {
            self.changed.store(true, Ordering::Relaxed);
        }
        redacted
    }
}

impl Redact for NotingRedact<'_> {
    fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.noted(text, self.inner.text(text))
    }

    fn header<'a>(&self, name: &str, value: &'a str) -> Cow<'a, str> {
        self.noted(value, self.inner.header(name, value))
    }

    fn body<'a>(&self, body: &'a str) -> Cow<'a, str> {
        self.noted(body, self.inner.body(body))
    }
}

/// Returns true if no part of a header was redacted. The others cannot be sent.
pub(crate) fn is_whole((_, value): &HeaderField) -> bool {
    !value.contains(REDACTED)
}

/// Returns true if a step was written with a redacted header.
pub(crate) fn has_redacted_headers(step: &RecordedStep) -> bool {
    let added = &step.step.added;
    let headers = added.requests.iter().flat_map(|request| &request.headers);
    !headers.chain(&added.headers).all(is_whole)
}
