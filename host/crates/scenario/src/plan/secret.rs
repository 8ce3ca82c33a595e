//! Values that no file, log or message may show.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value as Json;

/// What stands in a resolved configuration where a secret was.
pub(crate) const REMOVED: &str = "***";

/// A secret. Printing and serialising it gives `***`; only [`Secret::expose`] gives the text.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// The text, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REMOVED)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REMOVED)
    }
}

/// Whether a header of this name carries a secret.
pub(crate) fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "auth",
        "key",
        "token",
        "secret",
        "cookie",
        "password",
        "credential",
        "signature",
    ]
    .iter()
    .any(|part| name.contains(part))
}

/// Whether a key of a request's body or of a plugin's configuration names a secret. `token` alone does not: there are
/// `max_tokens` and their like.
fn is_secret_key(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace(['-', '_'], "");
    [
        "apikey",
        "secret",
        "password",
        "passwd",
        "authorization",
        "credential",
        "accesstoken",
        "authtoken",
        "bearer",
    ]
    .iter()
    .any(|part| name.contains(part))
        || matches!(name.as_str(), "token" | "hftoken")
}

/// A value with the secrets in it replaced, at any depth.
pub(crate) fn without_secrets(value: &Json) -> Json {
    match value {
        Json::Object(entries) => entries
            .iter()
            .map(|(key, value)| {
                let value = match value {
                    Json::String(text) if is_secret_key(key) && !text.is_empty() => REMOVED.into(),
                    other => without_secrets(other),
                };
                (key.clone(), value)
            })
            .collect(),
        Json::Array(items) => items.iter().map(without_secrets).collect(),
        other => other.clone(),
    }
}

/// An address with its password and the secrets among its query parameters replaced.
pub(crate) fn address_without_secrets(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let (before_query, query) = rest
        .split_once('?')
        .map_or((rest, None), |(before, query)| (before, Some(query)));
    let (authority, path) = before_query.split_at(before_query.find('/').unwrap_or(before_query.len()));
    let mut shown = String::new();
    if !scheme.is_empty() {
        shown.push_str(scheme);
        shown.push_str("://");
    }
    match authority.rsplit_once('@') {
        Some((user, host)) => {
            if let Some((name, _)) = user.split_once(':') {
                shown.push_str(name);
                shown.push(':');
            }
            shown.push_str(REMOVED);
            shown.push('@');
            shown.push_str(host);
        }
        None => shown.push_str(authority),
    }
    shown.push_str(path);
    if let Some(query) = query {
        let parts: Vec<String> = query
            .split('&')
            .map(|part| match part.split_once('=') {
                Some((name, _)) if is_secret_header(name) => format!("{name}={REMOVED}"),
                _ => part.to_owned(),
            })
            .collect();
        shown.push('?');
        shown.push_str(&parts.join("&"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lose_passwords_and_secret_parameters_only() {
        for (address, shown) in [
            ("http://localhost:8000/v1", "http://localhost:8000/v1"),
            ("https://me:pw@host/v1", "https://me:***@host/v1"),
            ("https://sometoken@host/v1", "https://***@host/v1"),
            (
                "https://h/v1?api-version=2&api_key=abc",
                "https://h/v1?api-version=2&api_key=***",
            ),
            ("sim://llama-8b", "sim://llama-8b"),
            ("https://me:p@ss@host", "https://me:***@host"),
        ] {
            assert_eq!(address_without_secrets(address), shown);
        }
    }

    #[test]
    fn a_secret_never_prints() {
        let secret = Secret::new("sk-123");
        assert_eq!(format!("{secret:?}"), "***");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"***\"");
        assert_eq!(secret.expose(), "sk-123");
    }

    #[test]
    fn keys_that_only_sound_secret_are_kept() {
        let value =
            serde_json::json!({"max_tokens": 5, "top_k": 3, "apiKey": "x", "deep": [{"password": "y"}]});
        assert_eq!(
            without_secrets(&value),
            serde_json::json!({"max_tokens": 5, "top_k": 3, "apiKey": "***", "deep": [{"password": "***"}]})
        );
    }
}
