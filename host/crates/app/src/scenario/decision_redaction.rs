//! Redaction of the decisions that a run records.

use std::borrow::Cow;

use serde_json::Value as Json;
use veeksha_decisions::Redact;
use veeksha_model::REDACTED;
use veeksha_scenario::{body_without_secrets, is_secret_key};

/// Minimum length of secrets that are replaced within headers and bodies; shorter ones may be
/// ordinary words.
const MIN_SECRET: usize = 4;
/// The same within messages, labels, errors and words of a body, which are long texts of ordinary
/// words. Keys of servers are longer.
const MIN_SECRET_OF_TEXTS: usize = 16;
/// The same for secrets of letters and digits, which are hardly words.
const MIN_MIXED_SECRET: usize = 12;
/// Keys for servers without authentication, which are not secret.
const PLACEHOLDERS: [&str; 3] = ["empty", "none", "dummy"];

/// Redacts recorded decisions by the rules for scenarios: secrets of the scenario, headers and
/// members of a body whose name names a secret.
pub(crate) struct DecisionRedaction {
    /// Each secret with its redacted form, longest first.
    secrets: Vec<(String, String)>,
}

impl DecisionRedaction {
    /// A redaction of these secrets, each with its redacted form.
    pub(crate) fn new(mut secrets: Vec<(String, String)>) -> Self {
        let is_secret = |secret: &str| {
            secret.len() >= MIN_SECRET && !PLACEHOLDERS.iter().any(|word| secret.eq_ignore_ascii_case(word))
        };
        secrets.retain(|(secret, _)| is_secret(secret));
        secrets.sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
        DecisionRedaction { secrets }
    }

    /// Replaces the secrets for which `is_hidden` is true.
    fn replaced<'a>(&self, text: Cow<'a, str>, is_hidden: fn(&str) -> bool) -> Cow<'a, str> {
        let secrets = self.secrets.iter().filter(|(secret, _)| is_hidden(secret));
        secrets.fold(text, |text, (secret, shown)| {
            if text.contains(secret.as_str()) {
                Cow::Owned(text.replace(secret.as_str(), shown))
            } else {
                text
            }
        })
    }

    /// Replaces secrets in the texts of a body; short ones only if they are whole words.
    fn replace_in(&self, body: &mut Json) {
        match body {
            Json::String(text) => *text = self.replaced_words(text),
            Json::Array(items) => items.iter_mut().for_each(|item| self.replace_in(item)),
            Json::Object(entries) => {
                let members = std::mem::take(entries).into_iter();
                entries.extend(members.map(|(key, mut value)| {
                    self.replace_in(&mut value);
                    (self.replaced_words(&key), value)
                }));
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
    }

    fn replaced_words(&self, text: &str) -> String {
        let long = self.text(text).into_owned();
        let secrets = self.secrets.iter();
        let short = secrets.filter(|(secret, _)| !is_hidden_in_texts(secret));
        short.fold(long, |text, (secret, shown)| replaced_word(text, secret, shown))
    }
}

/// Replaces a word where no letter or digit precedes or follows it.
fn replaced_word(text: String, word: &str, shown: &str) -> String {
    let is_of_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let found = text.match_indices(word).filter(|(at, _)| {
        !is_of_word(text[..*at].chars().next_back()) && !is_of_word(text[at + word.len()..].chars().next())
    });
    let places: Vec<usize> = found.map(|(at, _)| at).collect();
    if places.is_empty() {
        return text;
    }
    let (mut replaced, mut end) = (String::new(), 0);
    for at in places {
        replaced.push_str(&text[end..at]);
        replaced.push_str(shown);
        end = at + word.len();
    }
    replaced.push_str(&text[end..]);
    replaced
}

fn is_hidden_in_texts(secret: &str) -> bool {
    let has = |of: fn(&char) -> bool| secret.chars().any(|c| of(&c));
    let is_mixed = has(char::is_ascii_digit) && has(char::is_ascii_alphabetic);
    secret.len() >= MIN_SECRET_OF_TEXTS || is_mixed && secret.len() >= MIN_MIXED_SECRET
}

impl Redact for DecisionRedaction {
    fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.replaced(Cow::Borrowed(text), is_hidden_in_texts)
    }

    fn header<'a>(&self, name: &str, value: &'a str) -> Cow<'a, str> {
        if is_secret_key(name) {
            return Cow::Borrowed(REDACTED);
        }
        self.replaced(Cow::Borrowed(value), |_| true)
    }

    fn body<'a>(&self, body: &'a str) -> Cow<'a, str> {
        let Ok(members) = serde_json::from_str::<Json>(body) else {
            return self.replaced(Cow::Borrowed(body), |_| true);
        };
        let mut shown = body_without_secrets(&members);
        self.replace_in(&mut shown);
        if shown == members {
            Cow::Borrowed(body)
        } else {
            Cow::Owned(shown.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn redacts_headers_bodies_and_long_secrets_of_texts() {
        let key = "sk-0123456789abcdef";
        let secrets = [(key, "***"), ("gold", "***"), ("abc", "***")];
        let secrets = secrets.map(|(secret, shown)| (secret.to_owned(), shown.to_owned()));
        let redaction = DecisionRedaction::new(secrets.to_vec());
        assert_eq!(redaction.header("x-tenant", "a"), "a");
        assert_eq!(redaction.header("x-tenant", "gold-1 abc"), "***-1 abc");
        assert_eq!(redaction.header("X-Auth-Token", "a"), "***");
        assert_eq!(redaction.header("cookie", "a"), "***");
        // Ordinary words stay, or prompts would change.
        assert_eq!(redaction.text("a golden key"), "a golden key");
        assert_eq!(redaction.text(&format!("key {key}.")), "key ***.");
        assert!(!is_hidden_in_texts("gpt-4o-mini") && !is_hidden_in_texts("authorization"));
        assert!(is_hidden_in_texts("HDRSECRET777"));
        let body = r#"{ "user": "u", "temperature": 0.5 }"#;
        assert_eq!(redaction.body(body), body);
        assert_eq!(
            redaction.body(r#"{"user": "u", "password": "p", "tier": "gold"}"#),
            r#"{"password":"***","tier":"***","user":"u"}"#
        );
        // The secret of a header may be a word of a text, but not a part of its words.
        let text = r#"{"input": "a golden key, gold-plated: https://h/?q=1#a"}"#;
        assert_eq!(
            redaction.body(text),
            r#"{"input":"a golden key, ***-plated: https://h/?q=1#a"}"#
        );
        assert_eq!(
            redaction.body(&text.replace("gold-", "silver-")),
            text.replace("gold-", "silver-")
        );
        // JSON writes a line feed as `\\n`.
        let secrets = vec![("two\nlines of a key".to_owned(), "***".to_owned())];
        let redaction = DecisionRedaction::new(secrets);
        assert_eq!(
            redaction.body(r#"{"x": ["two\nlines of a key"]}"#),
            r#"{"x":["***"]}"#
        );
    }

    #[test]
    fn placeholders_of_keys_are_not_secret() {
        let redaction = DecisionRedaction::new(vec![("EMPTY".to_owned(), "***".to_owned())]);
        let body = r#"{"input": "The list is EMPTY."}"#;
        assert_eq!(redaction.body(body), body);
        assert_eq!(redaction.header("x-list", "EMPTY"), "EMPTY");
    }

    /// Texts with addresses, Markdown and JSON, in which nothing is secret.
    fn text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            "\\PC{0,8}".prop_filter("no address", |text| !text.contains("://")),
            "https?://[a-z]{1,5}(:[0-9]{2,4})?(/[a-z@#=]{0,4}){0,2}([?](q|page|v)=[a-z0-9%@]{0,4}(&n=[0-9])?)?(#[a-z/]{0,4})?",
            "[\n\t \"'<>,.;:@#?&=()*_]{1,4}",
        ];
        vec(piece, 0..8).prop_map(|pieces| pieces.join(" "))
    }

    proptest! {
        #[test]
        fn texts_without_secrets_do_not_change(texts in vec(text(), 1..4)) {
            let secrets = [("sk-0123456789abcdef", "***"), ("Zq7%Xw", "***")];
            let secrets = secrets.map(|(secret, shown)| (secret.to_owned(), shown.to_owned()));
            let redaction = DecisionRedaction::new(secrets.to_vec());
            for text in &texts {
                prop_assert_eq!(redaction.text(text), text.as_str());
            }
            let body = serde_json::json!({
                "input": texts, "response_format": {"properties": {"password": {"type": "string"}}}
            });
            let body = body.to_string();
            prop_assert_eq!(redaction.body(&body), body.as_str());
        }

        /// Wherever a secret is, neither it nor its end is left.
        #[test]
        fn secrets_are_never_left(before in text(), after in text(), place in 0..6) {
            let secret = "Zq7%Xw+k";
            let redaction = DecisionRedaction::new(vec![(secret.to_owned(), "***".to_owned())]);
            let body = match place {
                0 => serde_json::json!({"input": format!("{before} {secret} {after}")}),
                1 => serde_json::json!({"input": format!("{before} https://u:Zq7%Xw/@h/x {after}")}),
                2 => serde_json::json!({"a": [{"input": format!("{before} https://h/?v=1&api_key=Zq7%Xw&w=2 {after}")}]}),
                3 => serde_json::json!({"input": before, "private_key": {"of": [{"key": "Zq7%Xw"}]}}),
                4 => serde_json::json!({"properties": {"password": "Zq7%Xw"}, "input": after}),
                _ => serde_json::json!({"headers": {"x-any": "Zq7%Xw"}, "input": after}),
            };
            let shown = redaction.body(&body.to_string()).into_owned();
            prop_assert!(!shown.contains("Zq7"), "{shown}");
            // What precedes and follows is left.
            if place < 3 {
                let text = serde_json::from_str::<Json>(&shown).unwrap();
                let text = text.pointer("/input").or_else(|| text.pointer("/a/0/input")).unwrap();
                let text = text.as_str().unwrap();
                prop_assert!(text.starts_with(&before) && text.ends_with(&after), "{text}");
            }
        }
    }
}
