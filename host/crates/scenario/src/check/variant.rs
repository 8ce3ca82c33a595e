//! Selection of the variant of a `oneOf` or `anyOf` that a value is meant to be.

use serde_json::Value as Json;

use super::kind::{chosen, follow, types};
use crate::tree::{Node, Value};

/// The result of selecting a variant.
pub(crate) enum Choice<'s> {
    /// The selected variant.
    Variant(&'s Json),
    /// Every variant is a constant: the choice is a list of values.
    Constants(Vec<&'s Json>),
    /// The tag (the key that distinguishes the variants) has an unknown value.
    UnknownTag {
        /// The key, as in `type`.
        tag: &'s str,
        /// Its valid values.
        known: Vec<&'s str>,
    },
    /// The tag is missing, and no variant is the default.
    MissingTag {
        /// The key.
        tag: &'s str,
        /// Its valid values.
        known: Vec<&'s str>,
    },
    /// The value has none of these types.
    WrongKind(Vec<&'s str>),
    /// The variants have no tag and have to be tried.
    Try(Vec<&'s Json>),
}

/// Returns the constant key of an object schema, and its value.
pub(crate) fn variant_tag<'s>(schema: &'s Json, tag: &str) -> Option<&'s str> {
    schema.get("properties")?.get(tag)?.get("const")?.as_str()
}

/// Returns the key that is a text constant in every one of these object schemas, with a different
/// value in each.
pub(crate) fn tag_of<'s>(objects: &[&'s Json]) -> Option<&'s str> {
    let properties = objects.first()?.get("properties")?.as_object()?;
    properties.keys().map(String::as_str).find(|key| {
        let mut values: Vec<_> = objects
            .iter()
            .filter_map(|schema| variant_tag(schema, key))
            .collect();
        let all = values.len() == objects.len();
        values.sort_unstable();
        values.dedup();
        all && values.len() == objects.len()
    })
}

fn requires(schema: &Json, key: &str) -> bool {
    schema
        .get("required")
        .and_then(Json::as_array)
        .is_some_and(|required| required.iter().any(|name| name.as_str() == Some(key)))
}

/// Returns the text of a node that names a variant.
pub(crate) fn text(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Text(text) | Value::Word(text) => Some(text),
        _ => None,
    }
}

/// Selects among `variants` for `node`. Without a tag, the variant of `default` (the schema's
/// default for this value) is selected, else the one that does not require its tag.
pub(crate) fn choose<'s>(
    root: &'s Json,
    variants: &'s [Json],
    node: &Node,
    default: Option<&Json>,
) -> Choice<'s> {
    let variants: Vec<&Json> = variants.iter().map(|variant| follow(root, variant)).collect();
    if variants.len() > 1 && variants.iter().all(|variant| constants(variant).is_some()) {
        return Choice::Constants(
            variants
                .iter()
                .flat_map(|variant| constants(variant).unwrap_or_default())
                .collect(),
        );
    }
    let is_object = |schema: &Json| types(schema).contains(&"object");
    let mut kinds: Vec<&str> = Vec::new();
    for kind in variants.iter().flat_map(|variant| kinds_of(root, variant, 0)) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let open = variants
        .iter()
        .any(|variant| kinds_of(root, variant, 0).is_empty());
    let kind = chosen(node, &kinds);
    if kind == Some("object") && !open {
        let objects: Vec<&Json> = variants
            .iter()
            .copied()
            .filter(|variant| is_object(variant))
            .collect();
        if let ([_, ..], Some(tag)) = (objects.as_slice(), tag_of(&objects)) {
            let known: Vec<&str> = objects
                .iter()
                .filter_map(|schema| variant_tag(schema, tag))
                .collect();
            let Some(given) = node.get(tag) else {
                let of_default = default
                    .and_then(|default| default.get(tag))
                    .and_then(Json::as_str);
                let meant = objects
                    .iter()
                    .find(|schema| of_default.is_some() && variant_tag(schema, tag) == of_default)
                    .or_else(|| objects.iter().find(|schema| !requires(schema, tag)));
                return match meant {
                    Some(meant) => Choice::Variant(meant),
                    None => Choice::MissingTag { tag, known },
                };
            };
            let named = text(given).and_then(|given| {
                let by = |same: fn(&str, &str) -> bool| {
                    objects
                        .iter()
                        .copied()
                        .find(|schema| variant_tag(schema, tag).is_some_and(|name| same(name, given)))
                };
                by(|a, b| a == b).or_else(|| by(str::eq_ignore_ascii_case))
            });
            return named.map_or(Choice::UnknownTag { tag, known }, Choice::Variant);
        }
    }
    let fitting: Vec<&Json> = match kind {
        Some(kind) => variants
            .iter()
            .copied()
            .filter(|variant| {
                let kinds = kinds_of(root, variant, 0);
                kinds.is_empty() || kinds.contains(&kind)
            })
            .collect(),
        None => variants
            .iter()
            .copied()
            .filter(|variant| kinds_of(root, variant, 0).is_empty())
            .collect(),
    };
    match fitting.as_slice() {
        [] => Choice::WrongKind(kinds),
        [one] => Choice::Variant(one),
        _ => Choice::Try(fitting),
    }
}

/// Returns the types that a schema accepts, including those of a nested choice.
fn kinds_of<'s>(root: &'s Json, schema: &'s Json, depth: u32) -> Vec<&'s str> {
    let own = types(schema);
    if !own.is_empty() || depth > 8 {
        return own;
    }
    let inner = schema
        .get("oneOf")
        .or_else(|| schema.get("anyOf"))
        .and_then(Json::as_array);
    let mut kinds = Vec::new();
    for variant in inner.into_iter().flatten() {
        kinds.extend(kinds_of(root, follow(root, variant), depth + 1));
    }
    kinds
}

fn constants(schema: &Json) -> Option<Vec<&Json>> {
    if let Some(value) = schema.get("const") {
        return Some(vec![value]);
    }
    schema
        .get("enum")
        .and_then(Json::as_array)
        .map(|values| values.iter().collect())
}
