//! Members as servers send them: absent, `null`, or there.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::error_body::{ServerError, error_in};

/// A text, borrowed from the event where it has no escapes.
pub(super) type Text<'a> = Option<Cow<'a, str>>;

/// A count may be `null`.
pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    Ok(Option::<u32>::deserialize(deserializer)?.unwrap_or(0))
}

/// A text or `null`, borrowed from the event where it has no escapes (serde borrows inside an `Option` only by way of a type
/// of its own).
pub(super) fn text<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Text<'a>, D::Error> {
    #[derive(Deserialize)]
    struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);
    Ok(Option::<Borrowed<'a>>::deserialize(deserializer)?.map(|text| text.0))
}

/// The error in an event, in one of the usual shapes.
pub(super) fn error_of(text: &str) -> Option<ServerError> {
    error_in(&serde_json::from_str::<Value>(text).ok()?)
}
