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

/// Returns the texts of a value that [`without_secrets`] redacts.
pub fn secret_texts(value: &Json) -> Vec<String> {
    let mut texts = Vec::new();
    collect_secrets(value, &without_secrets(value), &mut texts);
    texts
}

fn collect_secrets(value: &Json, shown: &Json, texts: &mut Vec<String>) {
    match (value, shown) {
        (Json::Object(entries), Json::Object(shown)) => {
            for (key, value) in entries {
                collect_secrets(value, &shown[key], texts);
            }
        }
        (Json::Array(items), Json::Array(shown)) => {
            for (value, shown) in items.iter().zip(shown) {
                collect_secrets(value, shown, texts);
            }
        }
        (Json::String(text), shown) if shown != value => texts.push(text.clone()),
        // A table or a list that is redacted as a whole: each of its texts is secret.
        (Json::Object(entries), shown) => {
            entries
                .values()
                .for_each(|value| collect_secrets(value, shown, texts));
        }
        (Json::Array(items), shown) => items
            .iter()
            .for_each(|value| collect_secrets(value, shown, texts)),
        _ => {}
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
    fn collects_the_texts_that_are_redacted() {
        let value = serde_json::json!({
            "model": "m", "apiKey": "x", "deep": [{"password": "p", "top_k": 3}], "url": "http://u:p@h/",
            "secret": {"inner": ["y", 5]}, "headers": {"Accept": "a", "x-jwt": "z"}
        });
        let mut texts = secret_texts(&value);
        texts.sort();
        assert_eq!(texts, ["http://u:p@h/", "p", "x", "y", "z"]);
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
