//! Comparison of values with a schema's constants.

use serde_json::{Number, Value as Json};

use super::variant::text;
use crate::tree::{Node, Value, function_text};
use crate::word;

/// Converts a tree to JSON by the types of its values alone.
pub(crate) fn plain(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(value) => Json::from(*value),
        Value::Float(value) => Number::from_f64(*value).map_or(Json::Null, Json::Number),
        Value::Text(text) => Json::String(text.clone()),
        Value::Word(typed) => plain(&Node::new(word::scalar(typed))),
        Value::List(items) | Value::Expand(items) => items.iter().map(plain).collect(),
        Value::Map(entries) => Json::Object(
            entries
                .iter()
                .map(|(key, node)| (key.clone(), plain(node)))
                .collect(),
        ),
        Value::Function => Json::String(function_text(node.place.as_ref())),
    }
}

/// Returns true if a node means this constant. Names are compared case-insensitively, as in
/// Veeksha.
pub(crate) fn equals(node: &Node, constant: &Json) -> bool {
    match constant {
        Json::String(name) => text(node).is_some_and(|text| text.eq_ignore_ascii_case(name)),
        Json::Bool(wanted) => match &node.value {
            Value::Bool(value) => value == wanted,
            Value::Word(typed) => word::boolean(typed) == Some(*wanted),
            _ => false,
        },
        Json::Null => match &node.value {
            Value::Null => true,
            Value::Word(typed) => word::is_null(typed),
            _ => false,
        },
        Json::Number(wanted) => {
            let value = match &node.value {
                Value::Int(value) => Some(*value as f64),
                Value::Float(value) => Some(*value),
                Value::Word(typed) => match word::number(typed) {
                    Some(Value::Int(value)) => Some(value as f64),
                    Some(Value::Float(value)) => Some(value),
                    _ => None,
                },
                _ => None,
            };
            value.is_some() && value == wanted.as_f64()
        }
        other => plain(node) == *other,
    }
}
