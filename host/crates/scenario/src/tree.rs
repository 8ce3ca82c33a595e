//! What the user typed, as a tree that remembers where each piece stands. Loaders for YAML and Lua both make one.

use std::fmt;
use std::sync::Arc;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as messages should name it.
    pub file: Arc<str>,
    /// The line, counted from 1.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A value and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Where it was written; `None` for what came from the command line or cannot be located.
    pub place: Option<Place>,
}

/// A value of a scenario, whatever language it was written in.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing: YAML's `null`.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number. May be infinite or not a number, which no key accepts.
    Float(f64),
    /// Text.
    Text(String),
    /// A word of the command line: what it means (text, number, true) is decided by the key that it is given to.
    Word(String),
    /// A list.
    List(Vec<Node>),
    /// Keys and values, in the order written. An empty Lua table is an empty map, and passes as an empty list too.
    Map(Vec<(String, Node)>),
    /// A function of a Lua scenario. Its place in the tree names it.
    Function,
    /// Alternatives, at least one: YAML's `!expand`. [`crate::Documents::cells`] makes a scenario of each; in a
    /// [`crate::Document`] none are left.
    Expand(Vec<Node>),
}

impl Node {
    /// A value without a place.
    pub fn new(value: Value) -> Self {
        Node { value, place: None }
    }

    /// A value at a place.
    pub fn at(value: Value, place: Place) -> Self {
        Node {
            value,
            place: Some(place),
        }
    }

    /// The value of a key, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// The tree as JSON, for what is not part of a scenario and is decoded elsewhere. A function has no JSON and gives null.
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

    /// The node at a path, or its nearest ancestor that exists: the place to blame for something that is missing.
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

    /// Whether this is written as nothing at all, or as a feature that is switched off (`enabled: false`,
    /// `decode_window_enabled: false`): then it may name a feature that does not exist yet.
    pub(crate) fn is_switched_off(&self) -> bool {
        match &self.value {
            Value::Null => true,
            Value::Map(entries) => {
                entries.is_empty()
                    || entries.iter().any(|(key, node)| {
                        (key == "enabled" || key.ends_with("_enabled"))
                            && match &node.value {
                                Value::Bool(on) => !on,
                                Value::Word(word) => matches!(crate::word::boolean(word), Some(false)),
                                _ => false,
                            }
                    })
            }
            _ => false,
        }
    }
}

/// How a value is named in a message: `the text `abc``, `the number 3`, `a list`.
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

/// At most 60 characters, on one line: control characters are escaped, everything else is shown as typed.
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
