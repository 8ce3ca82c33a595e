//! Shapes of server errors.

use serde_json::Value;
/// Contents of an error object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    /// The server's message.
    pub message: String,
    /// The server's code, if it is a number in the range of a status (also as a string: LiteLLM
    /// sends `"400"`).
    pub code: Option<u16>,
}

/// Finds the error in a JSON value: `{"error": {"message", "code"}}` (vLLM, llama.cpp, LiteLLM),
/// `{"error": "text"}`, `{"message", "type", "code"}` without a wrapper (dynamo),
/// `{"detail": text or list}` (FastAPI, transformers). An object with `choices` and without `error`
/// is not an error.
pub fn error_in(value: &Value) -> Option<ServerError> {
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
        // FastAPI's validation errors: a list of objects with `loc` and `msg`, or of strings.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
}
