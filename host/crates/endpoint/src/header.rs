//! HTTP headers of an API.

use std::borrow::Cow;

/// Name and value of a header.
pub type Header = (Cow<'static, str>, Cow<'static, str>);

/// The header that carries the API key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyHeader {
    /// `Authorization: Bearer KEY`.
    #[default]
    Bearer,
    /// `x-api-key: KEY`.
    XApiKey,
}
