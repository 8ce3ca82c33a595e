//! What may be secret is not shown: neither on the terminal nor in files.

use serde_json::Value;
use veeksha_model::{REMOVED, shown_address};
use veeksha_scenario::Setting;

/// A setting as it may be shown.
pub(crate) fn mask(setting: &mut Setting) {
    if is_secret(&setting.path) {
        setting.value = REMOVED.into();
    }
    mask_within(&mut setting.value);
}

/// A command as it was typed, but for what may be secret in it.
pub(crate) fn shown_command(typed: impl Iterator<Item = String>) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut hidden = false;
    for word in typed {
        // The parameters of an address are not keys of ours.
        let assignment = word.split_once('=').filter(|(name, _)| !name.contains("://"));
        match assignment {
            _ if hidden => words.push(REMOVED.to_owned()),
            Some((name, _)) if is_secret(name) => words.push(format!("{name}={REMOVED}")),
            Some((name, value)) => words.push(format!("{name}={}", shown(value))),
            None => words.push(shown(&word)),
        }
        hidden = !hidden && word.starts_with("--") && !word.contains('=') && is_secret(&word);
    }
    words.join(" ")
}

/// A text that may be an address.
fn shown(text: &str) -> String {
    match text.contains("://") {
        true => shown_address(text),
        false => text.to_owned(),
    }
}

fn is_secret(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let words = ["api_key", "headers", "proxy", "secret", "password", "live-token"];
    words.iter().any(|word| path.contains(word))
}

fn mask_within(value: &mut Value) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                match is_secret(key) {
                    true => *value = REMOVED.into(),
                    false => mask_within(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask_within),
        Value::String(text) => *text = shown(text),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_that_are_swept_are_not_told() {
        let told = |path: &str, value: Value| {
            let mut setting = Setting {
                path: path.to_owned(),
                value,
            };
            mask(&mut setting);
            setting.value
        };
        assert_eq!(told("client.api_key", json!("sk-1")), json!("***"));
        assert_eq!(told("client.headers.x-api-key", json!("k")), json!("***"));
        assert_eq!(
            told(
                "client",
                json!({"api_key": "sk-1", "model": "m", "targets": [{"api_key": "sk-2"}]})
            ),
            json!({"api_key": "***", "model": "m", "targets": [{"api_key": "***"}]})
        );
        assert_eq!(
            told("client.api_base", json!("http://user:word@host/v1")),
            json!("http://***@host/v1")
        );
        assert_eq!(told("runtime.max_sessions", json!(4)), json!(4));
    }

    #[test]
    fn secrets_of_the_command_line_are_not_told() {
        let typed = "veeksha-host run a.lua --client.api_key sk-1 --set client.headers.x=sk-2 --client.api_key=sk-3 --seed 4 \
                     --client.api_base http://u:p@h/v1?key=k --live-token abc";
        let told = shown_command(typed.split_whitespace().map(str::to_owned));
        assert_eq!(
            told,
            "veeksha-host run a.lua --client.api_key *** --set client.headers.x=*** --client.api_key=*** --seed 4 \
             --client.api_base http://***@h/v1?key=*** --live-token ***"
        );
    }
}
