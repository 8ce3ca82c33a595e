//! A tree of the typed values, each with its file and line. The YAML and Lua loaders both produce
//! it.

use std::fmt;
use std::sync::Arc;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as named in messages.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Prefix of the text in place of a Lua function; its location follows.
const FUNCTION_AT: &str = "function at ";
/// Text in place of a Lua function whose location is not known.
pub const UNPLACED_FUNCTION: &str = "function";

/// Returns the text that files have in place of a Lua function.
pub fn function_text(place: Option<&Place>) -> String {
    match place {
        Some(place) => format!("{FUNCTION_AT}{place}"),
        None => UNPLACED_FUNCTION.to_owned(),
    }
}

/// Returns the location in a text that files have in place of a Lua function: `function at
/// FILE:LINE`. `None` for other texts.
pub fn function_place(text: &str) -> Option<Place> {
    let (file, line) = text.strip_prefix(FUNCTION_AT)?.rsplit_once(':')?;
    Some(Place {
        file: file.into(),
        line: line.parse().ok()?,
    })
}

/// A value and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Its place; `None` for values of the command line and values without a known place.
    pub place: Option<Place>,
}

/// A value of a scenario, independent of the language it was written in.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// YAML's `null`.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number. May be infinite or NaN, which no key accepts.
    Float(f64),
    /// Text.
    Text(String),
    /// A word of the command line; its type (text, number, boolean) depends on the key that it is
    /// assigned to.
    Word(String),
    /// A list.
    List(Vec<Node>),
    /// Keys and values in file order. An empty Lua table is an empty map, which is also accepted as
    /// an empty list.
    Map(Vec<(String, Node)>),
    /// A function of a Lua scenario, identified by its path in the tree.
    Function,
    /// At least one alternative: YAML's `!expand`. [`crate::Documents::cells`] makes a scenario of
    /// each; a [`crate::Document`] contains none.
    Expand(Vec<Node>),
}

impl Node {
    /// Creates a value without a place.
    pub fn new(value: Value) -> Self {
        Node { value, place: None }
    }

    /// Creates a value with a place.
    pub fn at(value: Value, place: Place) -> Self {
        Node {
            value,
            place: Some(place),
        }
    }

    /// Returns the value of a key, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// Returns the tree as JSON, for parts that are decoded elsewhere. A function becomes null.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null | Value::Function => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Int(value) => (*value).into(),
            Value::Float(value) => (*value).into(),
            Value::Text(text) | Value::Word(text) => text.as_str().into(),
            Value::List(items) | Value::Expand(items) => items.iter().map(Node::to_json).collect(),
            Value::Map(entries) => {
                let entries = entries.iter().map(|(key, node)| (key.clone(), node.to_json()));
                serde_json::Value::Object(entries.collect())
            }
        }
    }

    /// Returns the node at a path, or its nearest existing ancestor: the place to report for a
    /// missing key.
    pub fn nearest_to(&self, path: &str) -> &Node {
        let mut node = self;
        for step in crate::path::parse(path).unwrap_or_default() {
            let next = match (&node.value, &step) {
                (Value::List(items), crate::path::Step::Bracket(index)) => {
                    index.parse::<usize>().ok().and_then(|index| items.get(index))
                }
                (_, crate::path::Step::Key(key) | crate::path::Step::Bracket(key)) => node.get(key),
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node
    }
}

/// The value as named in a message: `the text `abc``, `the number 3`, `a list`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("nothing (null)"),
            Value::Bool(value) => write!(f, "`{value}`"),
            Value::Int(value) => write!(f, "the number {value}"),
            Value::Float(value) if value.is_nan() => f.write_str("a value that is not a number"),
            Value::Float(value) if value.is_infinite() => f.write_str("an infinite number"),
            Value::Float(value) => write!(f, "the number {value:?}"),
            Value::Text(text) => write!(f, "the text `{}`", shortened(text)),
            Value::Word(word) => write!(f, "`{}`", shortened(word)),
            Value::List(_) => f.write_str("a list"),
            Value::Map(entries) if entries.is_empty() => f.write_str("an empty table"),
            Value::Map(_) => f.write_str("a table of keys"),
            Value::Function => f.write_str("a function"),
            Value::Expand(items) => write!(f, "a sweep over {} values", items.len()),
        }
    }
}

/// Shortens text to 60 characters on one line; control characters are escaped.
pub(crate) fn shortened(text: &str) -> String {
    let mut short = String::new();
    for character in text.chars().take(60) {
        if character.is_control() {
            short.extend(character.escape_default());
        } else {
            short.push(character);
        }
    }
    if text.chars().nth(60).is_some() {
        short.push_str("...");
    }
    short
}
