//! Labels under which inference-perf counts failures.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use veeksha_model::{ErrorClass, RequestRecord, Status};

/// `max_error_messages`: number of messages kept per label.
const MESSAGES: usize = 100;

/// Failures by label.
#[derive(Debug, Default)]
pub(super) struct FailureLabels(BTreeMap<String, FailureLabel>);

#[derive(Debug, Default)]
struct FailureLabel {
    count: u64,
    messages: Vec<String>,
}

impl FailureLabels {
    /// Adds a failure: `make_concise_label`, by HTTP status, else by the text of the message.
    pub(super) fn take(&mut self, record: &RequestRecord) {
        let Status::Failed { class, message } = &record.status else {
            return;
        };
        let text = message.to_lowercase();
        let label = match record.http_status.filter(|_| *class == ErrorClass::Status) {
            Some(code) => format!("{code} - {}", http_label(code, &text)),
            None if is_timeout(&text) => "Timeout".to_owned(),
            None if text.contains("connect") => "Connection Error".to_owned(),
            None => class.name().to_owned(),
        };
        let label = self.0.entry(label).or_default();
        label.count += 1;
        if label.messages.len() < MESSAGES && !label.messages.contains(message) {
            label.messages.push(message.clone());
        }
    }

    /// `build_error_counts`.
    pub(super) fn json(self) -> Map<String, Value> {
        let of = |(name, label): (String, FailureLabel)| {
            let messages = label.messages.iter().map(|message| json!({ "message": message }));
            let messages: Vec<Value> = messages.collect();
            (name, json!({ "count": label.count, "messages": messages }))
        };
        self.0.into_iter().map(of).collect()
    }
}

/// `_HTTP_CODE_LABELS`, else `_HTTP_ERROR_LABELS` by the lower-case text of the message.
fn http_label(code: u16, text: &str) -> &'static str {
    let any = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match code {
        429 => "Rate Limit",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ if any(&[
            "context window",
            "context_window",
            "context length",
            "maximum context",
        ]) || any(&[
            "max tokens",
            "max_tokens",
            "maxtokens",
            "token limit",
            "token_limit",
        ]) =>
        {
            "Context Window"
        }
        _ if any(&["invalid json", "malformed json", "json parse", "unexpected token"])
            || any(&[
                "expecting value",
                "unterminated string",
                "expecting ',' delimiter",
            ]) =>
        {
            "Invalid JSON"
        }
        _ if is_timeout(text) => "Timeout",
        _ if any(&["model not found", "model_not_found", "no such model"]) => "Model Not Found",
        _ => "other",
    }
}

fn is_timeout(text: &str) -> bool {
    ["timeout", "timed out", "timed-out", "timedout"]
        .iter()
        .any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unnamed_status_is_classified_by_its_message() {
        assert_eq!(http_label(429, "slow down"), "Rate Limit");
        assert_eq!(
            http_label(400, "this model's maximum context length is 4096 tokens"),
            "Context Window"
        );
        assert_eq!(
            http_label(400, "expecting value: line 1 column 1"),
            "Invalid JSON"
        );
        assert_eq!(http_label(408, "the request timed out"), "Timeout");
        assert_eq!(http_label(404, "no such model: x"), "Model Not Found");
        assert_eq!(http_label(418, "a teapot"), "other");
    }
}
