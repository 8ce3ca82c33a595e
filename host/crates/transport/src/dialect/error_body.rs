//! The shapes in which servers say that something went wrong.

use serde_json::Value;
use veeksha_model::ErrorClass;

use crate::Failure;
use crate::config::Target;
use crate::failure::{one_line, shorten};

/// Characters of an unknown body that are quoted.
const QUOTED_CHARS: usize = 200;

/// What an error object says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerError {
    /// The server's words.
    pub(crate) message: String,
    /// Its code, where it is a number that fits a status (also as a string: LiteLLM sends `"400"`).
    pub(crate) code: Option<u16>,
}

/// Finds the error in a JSON value: `{"error": {"message", "code"}}` (vLLM, llama.cpp, LiteLLM), `{"error": "text"}`,
/// `{"message", "type", "code"}` without a wrapper (dynamo), `{"detail": text or list}` (FastAPI, transformers).
/// An object with `choices` and no `error` is no error.
pub(crate) fn error_in(value: &Value) -> Option<ServerError> {
    let object = value.as_object()?;
    match object.get("error") {
        Some(Value::Null) | None => {}
        Some(Value::String(message)) => {
            return Some(ServerError {
                message: message.clone(),
                code: code_of(value),
            });
        }
        Some(error @ Value::Object(_)) => {
            return Some(ServerError {
                message: message_of(error).unwrap_or_else(|| error.to_string()),
                code: code_of(error).or_else(|| code_of(value)),
            });
        }
        Some(other) => {
            return Some(ServerError {
                message: other.to_string(),
                code: code_of(value),
            });
        }
    }
    if object.contains_key("choices") {
        return None;
    }
    let message = message_of(value)?;
    Some(ServerError {
        message,
        code: code_of(value),
    })
}

fn message_of(value: &Value) -> Option<String> {
    match (value.get("message"), value.get("detail")) {
        (Some(Value::String(message)), _) => Some(message.clone()),
        (_, Some(Value::String(detail))) => Some(detail.clone()),
        // FastAPI's validation errors: a list of objects with `loc` and `msg`, or of texts.
        (_, Some(Value::Array(details))) => {
            Some(details.iter().map(detail_text).collect::<Vec<_>>().join("; "))
        }
        (_, Some(detail @ Value::Object(_))) => message_of(detail).or_else(|| Some(detail.to_string())),
        _ => None,
    }
}

fn detail_text(detail: &Value) -> String {
    let place = detail.get("loc").and_then(Value::as_array).map(|loc| {
        let parts = loc
            .iter()
            .map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned));
        parts.collect::<Vec<_>>().join(".")
    });
    match (detail, detail.get("msg").and_then(Value::as_str), place) {
        (Value::String(text), _, _) => text.clone(),
        (_, Some(message), Some(place)) => format!("{place}: {message}"),
        (_, Some(message), None) => message.to_owned(),
        _ => detail.to_string(),
    }
}

fn code_of(value: &Value) -> Option<u16> {
    let number = |value: &Value| match value {
        Value::Number(code) => code.as_u64().and_then(|code| u16::try_from(code).ok()),
        Value::String(code) => code.parse().ok(),
        _ => None,
    };
    value
        .get("code")
        .and_then(number)
        .or_else(|| value.get("status").and_then(number))
}

/// The failure for an answer whose status is not 2xx. `location` is the header of that name.
pub(crate) fn status_failure(target: &Target, status: u16, location: Option<&str>, body: &[u8]) -> Failure {
    let text = String::from_utf8_lossy(body);
    let words = match serde_json::from_str::<Value>(&text)
        .ok()
        .as_ref()
        .and_then(error_in)
    {
        Some(error) => error.message,
        None => shorten(&target.redact(&text), QUOTED_CHARS),
    };
    let words = if words.is_empty() {
        String::new()
    } else {
        format!(": {words}")
    };
    let message = match status {
        401 | 403 if target.api_key.is_some() => {
            format!(
                "the server refused the API key (HTTP {status}){words}; set OPENAI_API_KEY or client.api_key"
            )
        }
        401 | 403 => {
            format!(
                "the server wants an API key, and none was sent (HTTP {status}){words}; set OPENAI_API_KEY or client.api_key"
            )
        }
        404 => format!(
            "the server knows no such model or path (HTTP 404){words}; asked for the model `{}` at `{}` below `{}`",
            target.model,
            target.path(),
            target.api_base
        ),
        300..=399 => match location {
            Some(location) => format!(
                "the server redirects to `{location}` (HTTP {status}), and redirects are not followed; set client.api_base to the final address"
            ),
            None => format!("the server answered with HTTP {status} and no place to go to{words}"),
        },
        _ => format!("HTTP {status}{words}"),
    };
    Failure::with_status(
        ErrorClass::Status,
        Some(status),
        one_line(&target.redact(&message)),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Dialect, Secret};

    fn target() -> Target {
        Target {
            api_base: "http://h/v1".into(),
            path: None,
            dialect: Dialect::ChatCompletions,
            model: "tiny".into(),
            api_key: None,
            max_tokens_param: None,
            min_tokens_param: None,
            ignore_eos: None,
            sampling: serde_json::Map::new(),
            headers: vec![],
            tls: Default::default(),
            stream_options: true,
            render: None,
        }
    }

    #[test]
    fn every_shape_of_error_is_understood() {
        let cases = [
            (json!({"error": {"message": "m", "code": 503}}), "m", Some(503)),
            (json!({"error": {"message": "m", "code": "400"}}), "m", Some(400)),
            (
                json!({"error": {"message": "m", "code": "invalid_api_key"}}),
                "m",
                None,
            ),
            (json!({"error": {"message": "m", "code": null}}), "m", None),
            (json!({"error": "m"}), "m", None),
            (json!({"error": {"detail": "d"}}), "d", None),
            (json!({"message": "m", "type": "t", "code": 404}), "m", Some(404)),
            (json!({"detail": "d"}), "d", None),
            (json!({"detail": ["a", "b"]}), "a; b", None),
            (
                json!({"detail": [{"loc": ["body", "messages", 0], "msg": "Field required"}]}),
                "body.messages.0: Field required",
                None,
            ),
            (json!({"choices": [], "error": {"message": "m"}}), "m", None),
        ];
        for (value, message, code) in cases {
            assert_eq!(
                error_in(&value),
                Some(ServerError {
                    message: message.into(),
                    code
                }),
                "{value}"
            );
        }
        for value in [
            json!({"choices": [], "message": "m"}),
            json!({"error": null, "choices": []}),
            json!([]),
            json!({}),
        ] {
            assert_eq!(error_in(&value), None, "{value}");
        }
    }

    #[test]
    fn statuses_say_what_to_do() {
        let text = |target: &Target, status, location, body: &str| {
            status_failure(target, status, location, body.as_bytes()).message
        };
        let plain = target();
        assert_eq!(text(&plain, 503, None, r#"{"message":"down"}"#), "HTTP 503: down");
        assert_eq!(
            text(&plain, 502, None, "<html>\n bad gateway"),
            "HTTP 502: <html> bad gateway"
        );
        assert_eq!(text(&plain, 500, None, ""), "HTTP 500");
        assert!(text(&plain, 401, None, "").contains("none was sent"));
        assert!(text(&plain, 307, Some("https://x/y"), "").contains("`https://x/y`"));
        assert!(text(&plain, 404, None, "").contains("`tiny`"));
        let body = "x".repeat(1_000);
        assert_eq!(
            text(&plain, 500, None, &body),
            format!("HTTP 500: {}…", "x".repeat(200))
        );
    }

    #[test]
    fn a_key_that_the_server_repeats_is_not_repeated() {
        let target = Target {
            api_key: Some(Secret::new("sk-secret-1")),
            headers: vec![("X-Api-Key".into(), "other-secret".into())],
            ..target()
        };
        let body = br#"{"error":{"message":"bad key sk-secret-1 and other-secret"}}"#;
        let message = status_failure(&target, 401, None, body).message;
        assert!(
            message.contains("OPENAI_API_KEY") && message.contains("client.api_key"),
            "{message}"
        );
        assert!(message.contains("bad key *** and ***"), "{message}");
    }
}
