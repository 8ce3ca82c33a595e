//! Why a configuration does not fit, while the reader is still on its way back to the root.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Expected, Unexpected};

use crate::types::Error;

/// A refusal and the way to its place, from the leaf to the root.
///
/// Every value that is read may fail, in code that is generated for each type of a plugin: the
/// error is small, and its making is kept out of that code, because components travel inside the
/// host (a tenth of `synthetic` was this).
#[derive(Debug)]
pub(super) struct Failure(Box<Refusal>);

#[derive(Debug)]
struct Refusal {
    way: Vec<Cow<'static, str>>,
    message: String,
    hint: Option<String>,
}

impl Failure {
    #[cold]
    pub(super) fn new(message: String) -> Self {
        Failure(Box::new(Refusal {
            way: Vec::new(),
            message,
            hint: None,
        }))
    }

    /// The same refusal, seen from one level up.
    #[cold]
    pub(super) fn below(mut self, key: Cow<'static, str>) -> Self {
        self.0.way.push(key);
        self
    }

    /// The same refusal, seen from the list whose element it is about.
    #[cold]
    pub(super) fn at(self, index: usize) -> Self {
        self.below(index.to_string().into())
    }

    /// A name that is none of `known`.
    #[cold]
    fn unknown(kind: &str, name: &str, known: &'static [&'static str]) -> Self {
        let known_here = match known {
            [] => "none is known here".into(),
            _ => format!("known here: {}", list(known)),
        };
        let mut failure = Failure::new(format!("unknown {kind} `{name}`; {known_here}"));
        failure.0.hint = nearest(name, known).map(|nearest| format!("did you mean `{nearest}`?"));
        failure
    }

    pub(super) fn into_error(self) -> Error {
        let Refusal { way, message, hint } = *self.0;
        let mut path = String::new();
        for key in way.iter().rev() {
            path.push('/');
            path.push_str(&key.replace('~', "~0").replace('/', "~1"));
        }
        Error {
            hint,
            ..Error::config(path, message)
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

/// The known name that a typing error may have been meant for: at most a third of the letters
/// differ.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |candidate: &&str| strsim::osa_distance(name, candidate);
    known
        .iter()
        .copied()
        .min_by_key(distance)
        .filter(|best| distance(best) * 3 <= best.len().max(name.len()) + 1)
}

/// The expected type, in terms of scenario files.
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
    #[cold]
    fn custom<T: fmt::Display>(message: T) -> Self {
        Failure::new(message.to_string())
    }

    #[cold]
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

    #[cold]
    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Failure::unknown("key", field, expected).below(field.to_owned().into())
    }

    #[cold]
    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Failure::unknown("name", variant, expected)
    }

    #[cold]
    fn missing_field(field: &'static str) -> Self {
        Failure::new(format!("the key `{field}` is missing"))
    }

    #[cold]
    fn duplicate_field(field: &'static str) -> Self {
        Failure::new(format!(
            "the key `{field}` is given twice, under two of its names"
        ))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Failure {}
