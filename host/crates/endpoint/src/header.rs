//! HTTP headers of an API.

use std::borrow::Cow;

/// A header: its name and its value.
pub type Header = (Cow<'static, str>, Cow<'static, str>);

/// Which header carries the key of an API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyHeader {
    /// `Authorization: Bearer KEY`.
    #[default]
    Bearer,
    /// `x-api-key: KEY`.
    XApiKey,
}
