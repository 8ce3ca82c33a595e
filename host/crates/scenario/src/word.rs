//! Interpretation of the command line's words.

use saphyr::Scalar;

use crate::tree::Value;

/// Parses `true`, `1`, `yes` and their opposites, in any case.
pub(crate) fn boolean(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" => Some(true),
        "false" | "0" | "no" => Some(false),
        _ => None,
    }
}

/// Returns true for `null`, `none` and `~`, which unset a key.
pub(crate) fn is_null(word: &str) -> bool {
    matches!(word, "null" | "Null" | "NULL" | "none" | "None" | "~")
}

/// Parses a number as YAML does, as an integer if possible.
pub(crate) fn number(word: &str) -> Option<Value> {
    match scalar(word) {
        value @ (Value::Int(_) | Value::Float(_)) => Some(value),
        _ => None,
    }
}

/// Interprets a word by YAML's rules, for keys without a type.
pub(crate) fn scalar(word: &str) -> Value {
    if word.is_empty() {
        return Value::Text(String::new());
    }
    match Scalar::parse_from_cow(word.into()) {
        Scalar::Null => Value::Null,
        Scalar::Boolean(value) => Value::Bool(value),
        Scalar::Integer(value) => Value::Int(value),
        Scalar::FloatingPoint(value) => Value::Float(value.into_inner()),
        Scalar::String(text) => Value::Text(text.into_owned()),
    }
}
