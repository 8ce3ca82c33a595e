//! Failures that an answer or its events describe.

use serde_json::Value;
use veeksha_model::ErrorClass;

use crate::answer_outcome::QUOTED_CHARS;
use crate::error_body::{ServerError, error_in};
use crate::failure::{Failure, one_line, shorten};

pub(crate) fn in_stream(error: ServerError) -> Failure {
    Failure::with_status(ErrorClass::InStream, error.code, one_line(&error.message))
}

/// Returns the failure of an event named `error`, for any shape of `data`.
pub(crate) fn named_error(data: &str) -> Failure {
    let error = serde_json::from_str::<Value>(data).ok();
    let error = error.and_then(|value| match value {
        Value::String(message) => Some(ServerError { message, code: None }),
        value => error_in(&value),
    });
    in_stream(error.unwrap_or_else(|| ServerError {
        message: data.to_owned(),
        code: None,
    }))
}

/// Returns the failure of an event that cannot be parsed: a server error in one of the usual
/// shapes, or else invalid data.
pub(crate) fn unreadable(data: &str, why: &serde_json::Error) -> Failure {
    let error = serde_json::from_str::<Value>(data).ok();
    match error.and_then(|value| error_in(&value)) {
        Some(error) => in_stream(error),
        None => {
            let quoted = shorten(data, QUOTED_CHARS);
            Failure::new(
                ErrorClass::Protocol,
                one_line(&format!(
                    "an event of the stream is not what the API describes ({why}): {quoted}"
                )),
            )
        }
    }
}

/// Returns the failure of an answer without any event.
pub(crate) fn no_event(content_type: Option<&str>, beginning: &[u8]) -> Failure {
    let stream = content_type.is_some_and(|kind| kind.starts_with("text/event-stream"));
    let beginning = shorten(&String::from_utf8_lossy(beginning), QUOTED_CHARS);
    if stream && beginning.trim().is_empty() {
        return Failure::new(ErrorClass::Truncated, "the stream ended before its first event");
    }
    let kind = content_type.unwrap_or("of no stated type");
    let message = if beginning.is_empty() {
        format!("the answer is empty ({kind}), not an event stream")
    } else {
        format!("the answer is not an event stream ({kind}): {beginning}")
    };
    Failure::new(ErrorClass::Protocol, message)
}
