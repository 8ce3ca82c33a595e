//! Values of the wrong shape, with their paths.

use std::fmt;

use mlua::Value;

/// An invalid value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub(crate) struct ShapeError {
    /// Path of the value (`requests[2].user`).
    pub(crate) path: String,
    /// The problem and the fix.
    pub(crate) message: String,
}

impl From<ShapeError> for mlua::Error {
    fn from(shape: ShapeError) -> Self {
        mlua::Error::external(shape)
    }
}

/// A path into a table: a list from the innermost step outwards, so that traversal has no cost
/// without an error.
#[derive(Clone, Copy)]
pub(crate) enum At<'a> {
    /// The root of the traversal.
    Root(&'a str),
    /// A field.
    Key(&'a At<'a>, &'a str),
    /// An element, counted from 1 as in Lua.
    Index(&'a At<'a>, usize),
}

impl At<'_> {
    /// Returns an error at this path.
    pub(crate) fn shape(&self, message: impl Into<String>) -> ShapeError {
        ShapeError {
            path: self.to_string(),
            message: message.into(),
        }
    }

    /// Returns an error at this path about an unexpected value.
    pub(crate) fn expected(&self, what: &str, found: &Value) -> ShapeError {
        self.shape(format!("expected {what}, found {}", describe(found)))
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Root(name) => f.write_str(name),
            At::Key(At::Root(""), key) => f.write_str(key),
            At::Key(parent, key) => write!(f, "{parent}.{key}"),
            At::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// Returns a Lua number, from either of mlua's two number types.
pub(crate) fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

/// Returns a short description of a value, for messages.
pub(crate) fn describe(value: &Value) -> String {
    match value {
        Value::Nil => "nothing (nil)".to_owned(),
        Value::Boolean(flag) => format!("the boolean {flag}"),
        Value::Integer(number) => format!("the number {number}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => {
            let text = text.to_string_lossy();
            let short: String = text.chars().take(40).collect();
            let dots = if short.len() < text.len() { "…" } else { "" };
            format!("the string \"{short}{dots}\"")
        }
        Value::Table(_) => "a table".to_owned(),
        Value::Function(_) => "a function".to_owned(),
        Value::UserData(_) => "an object of the host (text, synthetic, image, rng, ...)".to_owned(),
        other => format!("a {}", other.type_name()),
    }
}

/// Returns the message for an unknown field, with the nearest known one.
pub(crate) fn unknown_field(at: &At<'_>, key: &str, known: &[&str]) -> ShapeError {
    let nearest = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(key, name), *name))
        .min()
        .filter(|(distance, name)| *distance <= 2.max(name.len() / 3));
    let message = match nearest {
        Some((_, name)) => format!("unknown field `{key}`; did you mean `{name}`?"),
        None => format!("unknown field `{key}`; known are {}", known.join(", ")),
    };
    at.shape(message)
}
