//! Redaction of the decisions that a run records.

use std::borrow::Cow;

use veeksha_decisions::Redact;
use veeksha_model::REDACTED;
use veeksha_scenario::{is_secret_key, without_secrets};

/// Minimum length of secrets that are replaced within headers and bodies; shorter ones may be
/// ordinary words.
const MIN_SECRET: usize = 4;
/// The same within messages, which are long texts of ordinary words. Keys of servers are longer.
const MIN_SECRET_OF_TEXTS: usize = 16;

/// Redacts recorded decisions by the rules for scenarios: secrets of the scenario, headers and
/// members of a body whose name names a secret.
pub(crate) struct DecisionRedaction {
    /// Each secret with its redacted form, longest first.
    secrets: Vec<(String, String)>,
}

impl DecisionRedaction {
    /// A redaction of these secrets, each with its redacted form.
    pub(crate) fn new(mut secrets: Vec<(String, String)>) -> Self {
        secrets.retain(|(secret, _)| secret.len() >= MIN_SECRET);
        secrets.sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
        DecisionRedaction { secrets }
    }

    fn replaced<'a>(&self, text: Cow<'a, str>, min_length: usize) -> Cow<'a, str> {
        let secrets = self.secrets.iter();
        let secrets = secrets.take_while(|(secret, _)| secret.len() >= min_length);
        secrets.fold(text, |text, (secret, shown)| {
            if text.contains(secret.as_str()) {
                Cow::Owned(text.replace(secret.as_str(), shown))
            } else {
                text
            }
        })
    }
}

impl Redact for DecisionRedaction {
    fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.replaced(Cow::Borrowed(text), MIN_SECRET_OF_TEXTS)
    }

    fn header<'a>(&self, name: &str, value: &'a str) -> Cow<'a, str> {
        if is_secret_key(name) {
            return Cow::Borrowed(REDACTED);
        }
        self.replaced(Cow::Borrowed(value), MIN_SECRET)
    }

    fn body<'a>(&self, body: &'a str) -> Cow<'a, str> {
        let members = serde_json::from_str::<serde_json::Value>(body).ok();
        let redacted = members.and_then(|members| {
            let shown = without_secrets(&members);
            (shown != members).then(|| Cow::Owned(shown.to_string()))
        });
        self.replaced(redacted.unwrap_or(Cow::Borrowed(body)), MIN_SECRET)
    }
}

#[cfg(test)]
mod tests {
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
        let body = r#"{ "user": "u", "temperature": 0.5 }"#;
        assert_eq!(redaction.body(body), body);
        assert_eq!(
            redaction.body(r#"{"user": "u", "password": "p", "tier": "gold"}"#),
            r#"{"password":"***","tier":"***","user":"u"}"#
        );
    }
}
