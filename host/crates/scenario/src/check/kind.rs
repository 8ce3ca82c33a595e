//! Kinds of values, and how schemas name them.

use serde_json::Value as Json;

use crate::{Node, Value, word};

/// A schema with its `$ref` followed. A reference that leads nowhere accepts everything, as an empty schema does.
pub(crate) fn follow<'s>(root: &'s Json, schema: &'s Json) -> &'s Json {
    let mut schema = schema;
    // A chain of references longer than this is a circle.
    for _ in 0..16 {
        let Some(reference) = schema.get("$ref").and_then(Json::as_str) else {
            return schema;
        };
        let target = reference
            .strip_prefix('#')
            .and_then(|pointer| root.pointer(pointer));
        match target {
            Some(target) => schema = target,
            None => return &Json::Null,
        }
    }
    &Json::Null
}

/// The types that a schema names; empty if it does not say.
pub(crate) fn types(schema: &Json) -> Vec<&str> {
    match schema.get("type") {
        Some(Json::String(one)) => vec![one.as_str()],
        Some(Json::Array(several)) => several.iter().filter_map(Json::as_str).collect(),
        _ if schema.get("x-function").is_some() => vec!["function"],
        _ if schema.get("properties").is_some() => vec!["object"],
        _ => match schema.get("const") {
            Some(Json::String(_)) => vec!["string"],
            Some(Json::Bool(_)) => vec!["boolean"],
            Some(Json::Number(_)) => vec!["number"],
            Some(Json::Null) => vec!["null"],
            _ => Vec::new(),
        },
    }
}

/// Whether a value is of a type, where a word of the command line is of every type that it can be read as.
pub(crate) fn is_of(node: &Node, kind: &str) -> bool {
    match (&node.value, kind) {
        (Value::Null, "null")
        | (Value::Bool(_), "boolean")
        | (Value::Int(_), "integer" | "number")
        | (Value::Float(_), "number")
        | (Value::Text(_), "string")
        | (Value::List(_), "array")
        | (Value::Map(_), "object")
        | (Value::Function, "function") => true,
        (Value::Float(value), "integer") => value.fract() == 0.0,
        // An empty Lua table is both.
        (Value::Map(entries), "array") => entries.is_empty(),
        (Value::List(items), "object") => items.is_empty(),
        (Value::Word(_), "string" | "array") => true,
        (Value::Word(text), "boolean") => word::boolean(text).is_some(),
        (Value::Word(text), "null") => word::is_null(text),
        (Value::Word(text), "number") => word::number(text).is_some(),
        (Value::Word(text), "integer") => match word::number(text) {
            Some(Value::Float(value)) => value.fract() == 0.0,
            Some(_) => true,
            None => false,
        },
        _ => false,
    }
}

/// The order in which a word of the command line is tried: what is most particular first, text last.
const ORDER: [&str; 8] = [
    "null", "integer", "number", "boolean", "object", "function", "string", "array",
];

/// The type that a value is taken for where a schema allows several.
pub(crate) fn chosen<'s>(node: &Node, types: &[&'s str]) -> Option<&'s str> {
    ORDER.iter().find_map(|kind| {
        types
            .iter()
            .copied()
            .find(|name| name == kind && is_of(node, name))
    })
}

/// How a message calls a type.
pub(crate) fn name(kind: &str) -> &str {
    match kind {
        "null" => "nothing (null)",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "text",
        "array" => "a list",
        "object" => "a table of keys",
        "function" => "a function, which only a Lua scenario can give",
        other => other,
    }
}

/// `a`, `a or b`, `a, b or c`.
pub(crate) fn either(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// A JSON constant as a message shows it.
pub(crate) fn shown(value: &Json) -> String {
    match value {
        Json::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}
