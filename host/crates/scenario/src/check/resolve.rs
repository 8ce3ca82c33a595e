//! Resolves a checked tree to JSON with every default filled in.

use serde_json::{Map, Number, Value as Json};

use super::kind::{chosen, follow, is_unset, types};
use super::variant::{Choice, choose, text, variant_tag};
use crate::tree::{Node, Value};
use crate::word;

/// Deeper than anything that `check` accepts.
const MAX_DEPTH: u32 = 160;

/// Returns the value of a node without problems ([`super::check_value`]): words of the command line
/// get the type of their key, missing keys their defaults, and `5.0` becomes `5` where an integer
/// is required.
pub(crate) fn resolve(schema: &Json, node: &Node) -> Json {
    resolve_at(schema, schema, node, None, 0)
}

fn resolve_at(root: &Json, schema: &Json, node: &Node, default: Option<&Json>, depth: u32) -> Json {
    if depth > MAX_DEPTH {
        return Json::Null;
    }
    let default = schema.get("default").or(default);
    if schema.get("$ref").is_some() {
        return resolve_at(root, follow(root, schema), node, default, depth + 1);
    }
    if let Some(variants) = schema
        .get("oneOf")
        .or_else(|| schema.get("anyOf"))
        .and_then(Json::as_array)
    {
        return match choose(root, variants, node, default) {
            Choice::Variant(variant) => resolve_at(root, variant, node, default, depth + 1),
            Choice::Constants(values) => constant(&values, node).unwrap_or_else(|| plain(node)),
            Choice::Try(variants) => {
                let fits = |variant: &&&Json| {
                    let mut within = (**variant).clone();
                    if let (Some(object), Some(definitions)) = (within.as_object_mut(), root.get("$defs")) {
                        object.entry("$defs").or_insert_with(|| definitions.clone());
                    }
                    crate::check::checker::check_value(&within, node, "").is_empty()
                };
                match variants.iter().find(fits).or(variants.first()) {
                    Some(variant) => resolve_at(root, variant, node, default, depth + 1),
                    None => plain(node),
                }
            }
            Choice::UnknownTag { .. } | Choice::MissingTag { .. } | Choice::WrongKind(_) => plain(node),
        };
    }
    if let Some(values) = schema.get("enum").and_then(Json::as_array)
        && let Some(value) = constant(&values.iter().collect::<Vec<_>>(), node)
    {
        return value;
    }
    let kinds = types(schema);
    match (chosen(node, &kinds), &node.value) {
        (Some("integer"), value) => integer(value),
        (Some("boolean"), Value::Word(typed)) => Json::Bool(word::boolean(typed).unwrap_or_default()),
        (Some("null"), _) => Json::Null,
        (Some("string"), Value::Word(typed)) => Json::String(typed.clone()),
        (Some("array"), Value::Word(_)) => {
            let items = schema.get("items").unwrap_or(&Json::Bool(true));
            Json::Array(vec![resolve_at(
                root,
                items,
                node,
                default.and_then(|list| list.get(0)),
                depth + 1,
            )])
        }
        (Some("array"), Value::Map(_)) => Json::Array(Vec::new()),
        (Some("object"), Value::List(_)) => map(root, schema, &[], default, depth),
        (_, Value::List(items)) => {
            let of = schema.get("items").unwrap_or(&Json::Bool(true));
            let default_of = |index| default.and_then(|list| list.get(index));
            items
                .iter()
                .enumerate()
                .map(|(index, item)| resolve_at(root, of, item, default_of(index), depth + 1))
                .collect()
        }
        (_, Value::Map(entries)) => map(root, schema, entries, default, depth),
        _ => plain(node),
    }
}

fn map(root: &Json, schema: &Json, entries: &[(String, Node)], default: Option<&Json>, depth: u32) -> Json {
    let mut object = Map::new();
    let properties = schema.get("properties").and_then(Json::as_object);
    let others = schema.get("additionalProperties").unwrap_or(&Json::Bool(true));
    for (key, node) in entries {
        if is_unset(schema, key, node) {
            continue;
        }
        let of = properties
            .and_then(|properties| properties.get(key))
            .unwrap_or(others);
        if of.get("x-not-supported-yet").is_none_or(|mark| mark.is_array()) {
            object.insert(
                key.clone(),
                resolve_at(
                    root,
                    of,
                    node,
                    default.and_then(|default| default.get(key)),
                    depth + 1,
                ),
            );
        }
    }
    for (key, of) in properties.into_iter().flatten() {
        if let Some(tag) = variant_tag(schema, key) {
            object.insert(key.clone(), tag.into());
        } else if !object.contains_key(key)
            && let Some(value) = of.get("default").or_else(|| follow(root, of).get("default"))
        {
            object.insert(key.clone(), resolve_at(root, of, &node(value), None, depth + 1));
        }
    }
    Json::Object(object)
}

/// Converts a JSON value to a tree without places.
pub(crate) fn node(json: &Json) -> Node {
    Node::new(match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(value) => Value::Int(value),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::Text(text.clone()),
        Json::Array(items) => Value::List(items.iter().map(node).collect()),
        Json::Object(entries) => Value::Map(
            entries
                .iter()
                .map(|(key, value)| (key.clone(), node(value)))
                .collect(),
        ),
    })
}

/// Converts a tree to JSON by the types of its values alone.
fn plain(node: &Node) -> Json {
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
        Value::Function => Json::String(match &node.place {
            Some(place) => format!("function at {place}"),
            None => "function".to_owned(),
        }),
    }
}

fn integer(value: &Value) -> Json {
    match value {
        Value::Int(value) => Json::from(*value),
        // The check has verified that it is an integer within range.
        Value::Float(value) => Json::from(*value as i64),
        Value::Word(typed) => word::number(typed).map_or(Json::Null, |value| integer(&value)),
        _ => Json::Null,
    }
}

fn constant(values: &[&Json], node: &Node) -> Option<Json> {
    values
        .iter()
        .find(|value| equals(node, value))
        .map(|value| (*value).clone())
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
