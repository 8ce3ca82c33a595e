//! Why a configuration does not fit, while the reader is still on its way back to the root.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Expected, Unexpected};

use crate::Error;

/// A refusal and the way to its place, from the leaf to the root.
#[derive(Debug)]
pub(super) struct Failure {
    way: Vec<Cow<'static, str>>,
    message: String,
    hint: Option<String>,
}

impl Failure {
    pub(super) fn new(message: String) -> Self {
        Failure {
            way: Vec::new(),
            message,
            hint: None,
        }
    }

    /// The same refusal, seen from one level up.
    pub(super) fn below(mut self, key: impl Into<Cow<'static, str>>) -> Self {
        self.way.push(key.into());
        self
    }

    /// A name that is none of `known`.
    fn unknown(kind: &str, name: &str, known: &'static [&'static str]) -> Self {
        let known_here = match known {
            [] => "none is known here".into(),
            _ => format!("known here: {}", list(known)),
        };
        let mut failure = Failure::new(format!("unknown {kind} `{name}`; {known_here}"));
        failure.hint = nearest(name, known).map(|nearest| format!("did you mean `{nearest}`?"));
        failure
    }

    pub(super) fn into_error(self) -> Error {
        let mut path = String::new();
        for key in self.way.iter().rev() {
            path.push('/');
            path.push_str(&key.replace('~', "~0").replace('/', "~1"));
        }
        Error {
            hint: self.hint,
            ..Error::config(path, self.message)
        }
    }
}

/// The names in backticks, with commas.
pub(super) fn list(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The known name that a typing error may have been meant for: at most a third of the letters differ.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |candidate: &&str| strsim::osa_distance(name, candidate);
    known
        .iter()
        .copied()
        .min_by_key(distance)
        .filter(|best| distance(best) * 3 <= best.len().max(name.len()) + 1)
}

/// What was expected, in words that someone who writes a scenario knows.
fn plainly(expected: &dyn Expected) -> String {
    match expected.to_string().as_str() {
        "u8" => "a whole number from 0 to 255".into(),
        "u16" => "a whole number from 0 to 65535".into(),
        "u32" => "a whole number from 0 to 4294967295".into(),
        "u64" | "usize" => "a whole number that is not negative".into(),
        "i32" | "i64" | "isize" => "a whole number".into(),
        "f32" | "f64" => "a number".into(),
        "a boolean" => "true or false".into(),
        "a sequence" => "a list".into(),
        "a map" => "an object".into(),
        other if other.starts_with("struct ") => "an object".into(),
        other => other.to_owned(),
    }
}

fn found(unexpected: Unexpected<'_>) -> String {
    match unexpected {
        Unexpected::Map => "an object".into(),
        Unexpected::Seq => "a list".into(),
        Unexpected::Unit | Unexpected::Option => "null".into(),
        other => other.to_string(),
    }
}

impl de::Error for Failure {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Failure::new(message.to_string())
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Failure::new(format!(
            "expected {}, found {}",
            plainly(expected),
            found(unexpected)
        ))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(unexpected, expected)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Failure::unknown("key", field, expected).below(field.to_owned())
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Failure::unknown("name", variant, expected)
    }

    fn missing_field(field: &'static str) -> Self {
        Failure::new(format!("the key `{field}` is missing"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Failure::new(format!(
            "the key `{field}` is given twice, under two of its names"
        ))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
