//! Redaction of secrets before anything is printed or written.

use std::collections::HashMap;

use serde_json::Value;
use veeksha_model::{REDACTED, redact_address};
use veeksha_scenario::Setting;

/// Redacts the settings of all runs of a sweep. Values of a key with equal redacted forms are
/// numbered by their position: `*** (1st)`, `*** (2nd)`. A digest would also distinguish them, but
/// reveal short secrets.
pub(crate) fn redact<'s>(settings: impl Iterator<Item = &'s mut Setting>) {
    let mut alike: HashMap<(String, String), Vec<Value>> = HashMap::new();
    let mut redacted = Vec::new();
    for setting in settings {
        let shown = redacted_value(setting);
        let value = std::mem::replace(&mut setting.value, shown);
        let key = (setting.path.clone(), setting.value.to_string());
        let values = alike.entry(key.clone()).or_default();
        let place = values.iter().position(|known| *known == value);
        let place = place.unwrap_or_else(|| {
            values.push(value);
            values.len() - 1
        });
        redacted.push((setting, key, place));
    }
    for (setting, key, place) in redacted {
        if alike.get(&key).is_some_and(|values| values.len() > 1) {
            number_within(&mut setting.value, place + 1);
        }
    }
}

/// Returns true if a part of the text of a setting was redacted.
pub fn is_redacted(text: &str) -> bool {
    text.contains(REDACTED)
}

/// Returns true if the text of a setting contains the position of its redacted value.
pub fn is_numbered(text: &str) -> bool {
    let mut ordinals = text.split(" (").skip(1).filter_map(|rest| rest.split(')').next());
    ordinals.any(|ordinal| {
        let number = ordinal.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
        number.parse().is_ok_and(|number| nth(number) == ordinal)
    })
}

fn redacted_value(setting: &Setting) -> Value {
    if is_secret(&setting.path) {
        return REDACTED.into();
    }
    let mut value = setting.value.clone();
    redact_within(&mut value);
    value
}

/// Appends the position to each redacted text.
fn number_within(value: &mut Value, place: usize) {
    match value {
        Value::Object(entries) => entries
            .iter_mut()
            .for_each(|(_, value)| number_within(value, place)),
        Value::Array(items) => items.iter_mut().for_each(|value| number_within(value, place)),
        Value::String(text) if is_redacted(text) => *text += &format!(" ({})", nth(place)),
        _ => {}
    }
}

/// `1st`, `2nd`, `3rd`, `11th`.
fn nth(place: usize) -> String {
    let ending = match (place % 10, place % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{place}{ending}")
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

/// Redacts a text that may be an address.
fn shown(text: &str) -> String {
    if text.contains("://") {
        redact_address(text)
    } else {
        text.to_owned()
    }
}

fn is_secret(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let words = ["api_key", "headers", "proxy", "secret", "password", "live-token"];
    words.iter().any(|word| path.contains(word))
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
        let told = |path: &str, value: Value| {
            let mut setting = Setting {
                path: path.to_owned(),
                value,
            };
            redact(std::iter::once(&mut setting));
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
    fn numbers_values_that_look_alike_when_redacted() {
        let told = |path: &str, values: &[Value]| -> Vec<Value> {
            let mut settings: Vec<Setting> = values
                .iter()
                .map(|value| Setting {
                    path: path.to_owned(),
                    value: value.clone(),
                })
                .collect();
            redact(settings.iter_mut());
            settings.into_iter().map(|setting| setting.value).collect()
        };
        // As in a sweep over two keys, where each value occurs several times.
        assert_eq!(
            told(
                "client.headers.x-route",
                &[json!("slow"), json!("slow"), json!("fast"), json!("slow")]
            ),
            [
                json!("*** (1st)"),
                json!("*** (1st)"),
                json!("*** (2nd)"),
                json!("*** (1st)")
            ]
        );
        assert_eq!(
            told(
                "client.api_base",
                &[
                    json!("http://h/v1?deployment=a"),
                    json!("http://h/v1?deployment=b"),
                    json!("http://u:p@h/v1"),
                ]
            ),
            [
                json!("http://h/v1?deployment=*** (1st)"),
                json!("http://h/v1?deployment=*** (2nd)"),
                json!("http://***@h/v1"),
            ]
        );
        assert_eq!(
            told(
                "client",
                &[
                    json!({"api_key": "a", "model": "m"}),
                    json!({"api_key": "b", "model": "m"})
                ]
            ),
            [
                json!({"api_key": "*** (1st)", "model": "m"}),
                json!({"api_key": "*** (2nd)", "model": "m"})
            ]
        );
        assert_eq!(told("seed", &[json!(1), json!(2)]), [json!(1), json!(2)]);
    }

    #[test]
    fn recognizes_numbered_values() {
        let all: Vec<String> = [1, 2, 3, 4, 11, 12, 13, 21, 102, 111].map(nth).to_vec();
        assert_eq!(all.join(" "), "1st 2nd 3rd 4th 11th 12th 13th 21st 102nd 111th");
        for text in [
            "*** (1st)",
            "http://h?k=*** (112th)",
            r#"{"api_key":"*** (3rd)"}"#,
        ] {
            assert!(is_redacted(text) && is_numbered(text), "{text}");
        }
        for text in ["***", "*** (1)", "*** (1th)", "*** ()", "http://h?k=***"] {
            assert!(is_redacted(text) && !is_numbered(text), "{text}");
        }
    }

    #[test]
    fn redacts_secrets_on_the_command_line() {
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
