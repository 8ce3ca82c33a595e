//! Resolves a checked tree to JSON with every default filled in.

use serde_json::{Map, Value as Json};

use super::checker::check_value;
use super::constants::{equals, plain};
use super::kind::{chosen, follow, is_unset, types};
use super::variant::{Choice, choose, variant_tag};
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
                    check_value(&within, node, "").is_empty()
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
