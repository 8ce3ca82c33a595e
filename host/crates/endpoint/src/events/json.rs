//! Deserialization of members that may be absent or `null`.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{DeserializeOwned, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error_body::{ServerError, error_in};

/// A string, borrowed from the event if it has no escapes.
pub(super) type OptionalText<'a> = Option<Cow<'a, str>>;

/// Deserializes a count that may be `null`.
pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    Ok(Option::<u32>::deserialize(deserializer)?.unwrap_or(0))
}

/// Deserializes a string or `null`, borrowed from the event if it has no escapes. A separate type
/// is required because serde does not borrow inside an `Option` otherwise.
pub(super) fn text<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<OptionalText<'a>, D::Error> {
    #[derive(Deserialize)]
    struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);
    Ok(Option::<Borrowed<'a>>::deserialize(deserializer)?.map(|text| text.0))
}

/// A value that nothing depends on: `None` if it is `null` or has another form.
#[derive(Debug)]
pub(super) struct Usable<T>(pub(super) Option<T>);

impl<T> Default for Usable<T> {
    fn default() -> Self {
        Usable(None)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Usable<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?;
        Ok(Usable(serde_json::from_str(json.get()).ok()))
    }
}

/// The content of a message: a string, or a list of typed parts.
#[derive(Debug)]
pub(super) enum MessageText<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ContentPart<'a>>),
}

/// A part of a message's content. Parts of other types (references, images) have no text.
#[derive(Debug, Deserialize)]
pub(super) struct ContentPart<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) text: OptionalText<'a>,
    /// In a part of type `thinking`.
    #[serde(borrow, default, deserialize_with = "content")]
    pub(super) thinking: Option<MessageText<'a>>,
}

impl MessageText<'_> {
    /// Returns the visible texts in order.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let (text, parts) = match self {
            MessageText::Text(text) => (Some(&**text), &[][..]),
            MessageText::Parts(parts) => (None, &parts[..]),
        };
        text.into_iter()
            .chain(parts.iter().filter_map(|part| part.text.as_deref()))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for MessageText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;
        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = MessageText<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of parts")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(MessageText::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(MessageText::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, parts: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(parts)).map(MessageText::Parts)
            }
        }
        deserializer.deserialize_any(ContentVisitor)
    }
}

/// Deserializes a message's content or `null`.
pub(super) fn content<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<MessageText<'a>>, D::Error> {
    Option::deserialize(deserializer)
}

/// Returns the error in an event, in one of the usual shapes.
pub(super) fn error_of(text: &str) -> Option<ServerError> {
    error_in(&serde_json::from_str::<Value>(text).ok()?)
}
