//! Types of values and their names in schemas.

use serde_json::Value as Json;

use crate::tree::{Node, Value};
use crate::word;

/// Follows a schema's `$ref`. An unresolvable reference accepts everything, like an empty schema.
pub(crate) fn follow<'s>(root: &'s Json, schema: &'s Json) -> &'s Json {
    let mut schema = schema;
    // A longer chain of references is a cycle.
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

/// Returns the types that a schema names; empty if it names none.
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

/// Returns true if a value is of a type; a word of the command line is of every type that it can be
/// parsed as.
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
        // An empty Lua table, which is read as a map, is an empty list too.
        (Value::Map(entries), "array") => entries.is_empty(),
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

/// The order in which a word's type is tried: the most specific first, text last.
const ORDER: [&str; 8] = [
    "null", "integer", "number", "boolean", "object", "function", "string", "array",
];

/// Returns the type that a value is taken for if a schema allows several.
pub(crate) fn chosen<'s>(node: &Node, types: &[&'s str]) -> Option<&'s str> {
    ORDER.iter().find_map(|kind| {
        types
            .iter()
            .copied()
            .find(|name| name == kind && is_of(node, name))
    })
}

/// Returns true if the value of `key` is null and means an absent key: the key is optional and
/// has no default. Veeksha's resolved configurations contain such nulls.
pub(crate) fn is_unset(schema: &Json, key: &str, value: &Node) -> bool {
    let required = schema.get("required").and_then(Json::as_array);
    let is_required = required.is_some_and(|names| names.iter().any(|name| name == key));
    let property = schema
        .get("properties")
        .and_then(|properties| properties.get(key));
    matches!(value.value, Value::Null)
        && !is_required
        && property
            .is_some_and(|of| of.get("type") == Some(&Json::from("object")) && of.get("default").is_none())
}

/// Returns a type's name in messages.
pub(crate) fn name(kind: &str) -> &str {
    match kind {
        "null" => "nothing (null)",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        "string" => "text",
        "array" => "a list",
        "object" => "a table of keys",
        "function" => "a function, which only a Lua scenario can contain",
        other => other,
    }
}

/// Joins names: `a`, `a or b`, `a, b or c`.
pub(crate) fn either(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// Returns a JSON constant as shown in messages.
pub(crate) fn shown(value: &Json) -> String {
    match value {
        Json::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}

/// Returns true if a value is null or a feature that is switched off (`enabled: false`,
/// `decode_window_enabled: false`). Such a value may name a feature that is not supported yet.
pub(crate) fn is_switched_off(node: &Node) -> bool {
    match &node.value {
        Value::Null => true,
        Value::Map(entries) => {
            entries.is_empty()
                || entries.iter().any(|(key, node)| {
                    (key == "enabled" || key.ends_with("_enabled"))
                        && match &node.value {
                            Value::Bool(on) => !on,
                            Value::Word(word) => matches!(word::boolean(word), Some(false)),
                            _ => false,
                        }
                })
        }
        _ => false,
    }
}
