//! Redaction of secrets before anything is printed or written.

use serde_json::Value;
use veeksha_model::{REDACTED, redact_address};
use veeksha_scenario::{Setting, is_secret_key};

/// Redacts a setting that distinguishes the runs of a sweep.
pub(crate) fn redact(setting: &mut Setting) {
    if is_secret(&setting.path) {
        setting.value = REDACTED.into();
    } else {
        redact_within(&mut setting.value);
    }
}

/// Returns true if a part of the text of a setting was redacted.
pub fn is_redacted(text: &str) -> bool {
    text.contains(REDACTED)
}

/// Returns a command line without its secrets.
pub(crate) fn shown_command(typed: impl Iterator<Item = String>) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut hidden = false;
    for word in typed {
        // The parameters of an address are not keys of a scenario.
        let assignment = word.split_once('=').filter(|(name, _)| !name.contains("://"));
        match assignment {
            _ if hidden => words.push(REDACTED.to_owned()),
            Some((name, _)) if is_secret(name) => words.push(format!("{name}={REDACTED}")),
            Some((name, value)) => words.push(format!("{name}={}", shown(value))),
            None => words.push(shown(&word)),
        }
        hidden = !hidden && word.starts_with("--") && !word.contains('=') && is_secret(&word);
    }
    words.join(" ")
}

/// Redacts a text that may be an address or a table of keys.
fn shown(text: &str) -> String {
    if text.contains('{') && words(text).any(is_secret) {
        REDACTED.to_owned()
    } else if text.contains("://") {
        redact_address(text)
    } else {
        text.to_owned()
    }
}

/// Returns true if a key, a flag, or a path of keys names a secret.
fn is_secret(path: &str) -> bool {
    let is_secret_word = |word: &str| {
        let word = word.trim_start_matches('-').to_ascii_lowercase();
        is_secret_key(&word) || ["headers", "proxy", "live-token"].contains(&word.as_str())
    };
    words(path).any(is_secret_word)
}

/// The parts of a text that may be keys.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_key = |letter: char| letter.is_alphanumeric() || ['_', '-'].contains(&letter);
    text.split(move |letter: char| !is_key(letter))
}

fn redact_within(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                if is_secret(key) {
                    *value = REDACTED.into()
                } else {
                    redact_within(value)
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact_within),
        Value::String(text) => *text = shown(text),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn redacts_swept_secrets() {
        let redacted = |path: &str, value: Value| {
            let mut setting = Setting {
                path: path.to_owned(),
                value,
            };
            redact(&mut setting);
            setting.value
        };
        assert_eq!(redacted("client.api_key", json!("sk-1")), json!("***"));
        assert_eq!(redacted("client.headers.x-api-key", json!("k")), json!("***"));
        assert_eq!(
            redacted(
                "client",
                json!({"api_key": "sk-1", "model": "m", "targets": [{"api_key": "sk-2"}]})
            ),
            json!({"api_key": "***", "model": "m", "targets": [{"api_key": "***"}]})
        );
        assert_eq!(
            redacted("client.api_base", json!("http://user:word@host/v1")),
            json!("http://***@host/v1")
        );
        assert_eq!(redacted("runtime.max_sessions", json!(4)), json!(4));
        let parameter = "client.additional_sampling_params.access_token";
        assert_eq!(redacted(parameter, json!("k")), json!("***"));
        assert_eq!(redacted("client.tokenizer", json!("gpt2")), json!("gpt2"));
    }

    #[test]
    fn redacts_secrets_on_the_command_line() {
        let typed = "veeksha-host run a.lua --client.api_key sk-1 --set client.headers.x=sk-2 --client.api_key=sk-3 --seed 4 \
                     --client.api_base http://u:p@h/v1?key=k --live-token abc";
        let structured = "--set|client={model: m, targets: [{api_key: sk-5}]}|--client|{Api-Key: sk-6}";
        let structured = structured.split('|').map(str::to_owned);
        assert_eq!(shown_command(structured), "--set client=*** --client ***");
        let shown = shown_command(typed.split_whitespace().map(str::to_owned));
        assert_eq!(
            shown,
            "veeksha-host run a.lua --client.api_key *** --set client.headers.x=*** --client.api_key=*** --seed 4 \
             --client.api_base http://***@h/v1?key=*** --live-token ***"
        );
    }
}
