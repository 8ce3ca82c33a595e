//! Values that must not appear in any file, log or message.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value as Json;
use veeksha_model::{REDACTED, is_safe_header, redact_address};

/// A secret. Formatting and serializing it gives `***`; only [`Secret::expose`] returns the text.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// Returns the text, for the code that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}

/// Returns true if a key of a request's body or of a plugin's configuration names a secret. `token`
/// alone does not, because of `max_tokens` and similar keys.
pub fn is_secret_key(name: &str) -> bool {
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
        "cookie",
        "jwt",
        "passphrase",
        "privatekey",
        "signature",
    ]
    .iter()
    .any(|part| name.contains(part))
        || matches!(name.as_str(), "token" | "hftoken")
}

/// Returns a value with secrets redacted at any depth: values of keys that name a secret, `headers`
/// except harmless ones, and secret parts of addresses.
pub fn without_secrets(value: &Json) -> Json {
    match value {
        Json::Object(entries) => entries
            .iter()
            .map(|(key, value)| (key.clone(), shown(key, value)))
            .collect(),
        Json::Array(items) => items.iter().map(without_secrets).collect(),
        Json::String(text) if text.contains("://") => redact_address(text).into(),
        other => other.clone(),
    }
}

fn shown(key: &str, value: &Json) -> Json {
    match value {
        // Booleans and nulls reveal nothing; an empty text is not a secret.
        Json::Null | Json::Bool(_) => value.clone(),
        Json::String(text) if text.is_empty() => value.clone(),
        _ if is_secret_key(key) => REDACTED.into(),
        Json::Object(headers) if key.eq_ignore_ascii_case("headers") => headers
            .iter()
            .map(|(name, value)| (name.clone(), shown_header(name, value)))
            .collect(),
        other => without_secrets(other),
    }
}

fn shown_header(name: &str, value: &Json) -> Json {
    if is_safe_header(name) {
        value.clone()
    } else {
        REDACTED.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_is_never_printed() {
        let secret = Secret::new("sk-123");
        assert_eq!(format!("{secret:?}"), "***");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"***\"");
        assert_eq!(secret.expose(), "sk-123");
    }

    #[test]
    fn redacts_secrets_at_any_depth() {
        let value = serde_json::json!({
            "max_tokens": 5, "top_k": 3, "apiKey": "x", "deep": [{"password": 7}], "secret": {"inner": "y"},
            "headers": {"Accept": "a", "x-jwt": "z"}, "url": "http://u:p@h/?k=v", "use_secret": true
        });
        assert_eq!(
            without_secrets(&value),
            serde_json::json!({
                "max_tokens": 5, "top_k": 3, "apiKey": "***", "deep": [{"password": "***"}], "secret": "***",
                "headers": {"Accept": "a", "x-jwt": "***"}, "url": "http://***@h/?k=***", "use_secret": true
            })
        );
    }
}
