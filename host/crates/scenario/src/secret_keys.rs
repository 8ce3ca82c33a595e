//! Keys whose values must not appear in any file, log or message.

use std::borrow::Cow;

use serde_json::Value as Json;
use veeksha_model::{REDACTED, is_safe_header, redact_address, redact_addresses};

/// Words before `token` in names of tokens of a text, which are not secret: `eos_token`.
const TEXT_TOKENS: [&str; 18] = [
    "audio", "bos", "cls", "end", "eos", "first", "image", "last", "mask", "next", "output", "pad", "per",
    "sep", "special", "start", "stop", "unk",
];

/// Returns true if a header, a key of a request's body or a key of a plugin's configuration names a
/// secret.
pub fn is_secret_key(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    if name.split(['-', '_']).any(|word| word == "auth") {
        return true;
    }
    let name = name.replace(['-', '_'], "");
    if let Some(kind) = name.strip_suffix("token") {
        return !TEXT_TOKENS.iter().any(|word| kind.ends_with(word));
    }
    [
        "apikey",
        "secret",
        "password",
        "passwd",
        "authorization",
        "credential",
        "accesskey",
        "accesstoken",
        "authtoken",
        "bearer",
        "cookie",
        "jwt",
        "passphrase",
        "privatekey",
        "signature",
        "subscriptionkey",
    ]
    .iter()
    .any(|part| name.contains(part))
}

/// Returns true if a parameter of an address names a secret.
fn is_secret_parameter(name: &str) -> bool {
    let short = ["key", "sig", "auth", "pass", "pwd", "sid", "sessionid"];
    is_secret_key(name)
        || short.iter().any(|short| name.eq_ignore_ascii_case(short))
        || name.to_ascii_lowercase().ends_with("token")
}

/// Returns a value of a configuration with secrets redacted at any depth: values of keys that name
/// a secret, `headers` except safe ones, and all parts of addresses that may be secret.
pub fn without_secrets(value: &Json) -> Json {
    redacted(value, &|text| {
        let is_one_address = text.contains("://") && !text.contains(char::is_whitespace);
        if is_one_address {
            redact_address(text).into()
        } else {
            redact_addresses(text, &is_secret_parameter)
        }
    })
}

/// Returns the members of a request's body with secrets redacted at any depth. They differ from a
/// configuration in their addresses, which are content: only user, password and parameters that
/// name a secret are redacted in them.
pub fn body_without_secrets(body: &Json) -> Json {
    redacted(body, &|text| redact_addresses(text, &is_secret_parameter))
}

/// Redacts the texts that are not the value of a secret key.
type RedactText<'r> = dyn Fn(&str) -> Cow<'_, str> + 'r;

fn redacted(value: &Json, text: &RedactText<'_>) -> Json {
    match value {
        Json::Object(entries) => entries
            .iter()
            .map(|(key, value)| (key.clone(), shown(key, value, text)))
            .collect(),
        Json::Array(items) => items.iter().map(|item| redacted(item, text)).collect(),
        Json::String(of) => text(of).into(),
        other => other.clone(),
    }
}

fn shown(key: &str, value: &Json, text: &RedactText<'_>) -> Json {
    match value {
        Json::Object(declared) if DECLARING.contains(&key) => {
            let declared = declared.iter().map(|(name, value)| {
                let shown = if is_schema(value) {
                    redacted(value, text)
                } else {
                    shown(name, value, text)
                };
                (name.clone(), shown)
            });
            declared.collect()
        }
        _ if is_secret_key(key) => hidden(value),
        Json::Object(headers) if key.eq_ignore_ascii_case("headers") => headers
            .iter()
            .map(|(name, value)| {
                let shown = if is_safe_header(name) {
                    value.clone()
                } else {
                    hidden(value)
                };
                (name.clone(), shown)
            })
            .collect(),
        other => redacted(other, text),
    }
}

/// Redacts each scalar of a secret value. Tables and lists keep their shape.
fn hidden(value: &Json) -> Json {
    match value {
        // Booleans and nulls reveal nothing; an empty text is not a secret.
        Json::Null | Json::Bool(_) => value.clone(),
        Json::String(text) if text.is_empty() => value.clone(),
        Json::Object(entries) => entries
            .iter()
            .map(|(key, value)| (key.clone(), hidden(value)))
            .collect(),
        Json::Array(items) => items.iter().map(hidden).collect(),
        _ => REDACTED.into(),
    }
}

/// Keys of a JSON schema whose members are names with their schemas: a property `password` is
/// declared there, and has no value.
const DECLARING: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// The other keys of a JSON schema.
const SCHEMA_KEYS: [&str; 44] = [
    "$anchor",
    "$comment",
    "$id",
    "$ref",
    "$schema",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "default",
    "deprecated",
    "description",
    "else",
    "enum",
    "example",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "prefixItems",
    "propertyNames",
    "readOnly",
    "required",
    "title",
    "type",
    "uniqueItems",
];

/// Returns true if a value can only be a JSON schema. A table with any other key may contain a
/// secret.
fn is_schema(value: &Json) -> bool {
    let is_known = |key: &str| SCHEMA_KEYS.contains(&key) || DECLARING.contains(&key) || key == "then";
    value
        .as_object()
        .is_some_and(|schema| schema.keys().all(|key| is_known(key)))
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

    /// Names of GitLab, Vault, AWS, Azure and others.
    #[test]
    fn names_of_keys_and_tokens_are_secret_and_those_of_tokens_of_a_text_are_not() {
        for name in [
            "x-vault-token",
            "Private-Token",
            "x-amz-security-token",
            "x-session-token",
            "x-router-token",
            "ocp-apim-subscription-key",
            "x-auth",
            "x-auth-token",
            "api_token",
            "apiToken",
            "token",
            "hf_token",
        ] {
            assert!(is_secret_key(name), "{name}");
        }
        for name in [
            "max_tokens",
            "eos_token",
            "stop_token_ids",
            "time_per_output_token",
            "first_token",
            "author",
            "prompt_cache_key",
            "top_k",
            "x-session-id",
        ] {
            assert!(!is_secret_key(name), "{name}");
        }
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
                "max_tokens": 5, "top_k": 3, "apiKey": "***", "deep": [{"password": "***"}],
                "secret": {"inner": "***"},
                "headers": {"Accept": "a", "x-jwt": "***"}, "url": "http://***@h/?k=***", "use_secret": true
            })
        );
    }

    #[test]
    fn addresses_within_texts_keep_the_text_behind_them() {
        let text = "Read https://a.b/c?x=1 now.\n# Heading\nhttps://u:p@h/?api_key=k&q=2 too";
        let shown = "Read https://a.b/c?x=1 now.\n# Heading\nhttps://***@h/?api_key=***&q=2 too";
        let image = "https://h/i.png?size=3&X-Amz-Signature=s&sig=t#top";
        let value = serde_json::json!({ "input": text, "image": image });
        assert_eq!(
            without_secrets(&value),
            serde_json::json!({"input": shown, "image": "https://h/i.png?size=***&X-Amz-Signature=***&sig=***#***"})
        );
        assert_eq!(
            body_without_secrets(&value),
            serde_json::json!({"input": shown, "image": "https://h/i.png?size=3&X-Amz-Signature=***&sig=***#top"})
        );
    }

    #[test]
    fn declarations_of_schemas_are_not_secrets() {
        let schema = serde_json::json!({"response_format": {"schema": {
            "type": "object",
            "properties": {
                "signature": {"type": "string", "description": "of the author"},
                "headers": {"type": "object", "properties": {"cookie": {"type": "string"}}},
                "token": {}, "secret": {"$ref": "#/$defs/Credential"}, "name": {"type": "string"}
            },
            "required": ["signature", "token"],
            "$defs": {"Credential": {"anyOf": [{"type": "string"}, {"type": "null"}]}}
        }}});
        assert_eq!(body_without_secrets(&schema), schema);
        // Values, although the key is that of a schema.
        let values = serde_json::json!({"properties": {
            "password": "x", "credential": {"type": "basic", "value": "y"}, "cookies": ["z"]
        }});
        assert_eq!(
            body_without_secrets(&values),
            serde_json::json!({"properties": {
                "password": "***", "credential": {"type": "***", "value": "***"}, "cookies": ["***"]
            }})
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
