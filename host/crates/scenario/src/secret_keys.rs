//! Keys whose values must not appear in any file, log or message.

use serde_json::Value as Json;
use veeksha_model::{REDACTED, is_safe_header, redact_address};

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

/// Returns true if the value at a path of a scenario may be secret: one of its keys names a secret,
/// or it belongs to `headers`.
pub fn is_secret_path(path: &str) -> bool {
    path.split(['.', '[', ']'])
        .any(|key| is_secret_key(key) || key.eq_ignore_ascii_case("headers"))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn paths_of_secrets_and_headers_are_secret() {
        for path in [
            "client.api_key",
            "client.headers",
            "client.headers[x-a]",
            "client.targets[0].headers",
        ] {
            assert!(is_secret_path(path), "{path}");
        }
        for path in [
            "client.model",
            "client.max_tokens_param",
            "session_generator.config.header",
        ] {
            assert!(!is_secret_path(path), "{path}");
        }
    }
}
