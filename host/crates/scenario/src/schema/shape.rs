//! Transformations of derived schemas that do not depend on the keys.

use serde_json::{Map, Value as Json, json};

pub(super) fn later_keys(schema: &mut Json, keys: &[&str]) {
    if let Some(Json::Object(properties)) = schema.get_mut("properties") {
        for key in keys {
            properties.insert(
                (*key).to_owned(),
                json!({"description": "Not supported by this version yet.", "x-not-supported-yet": true}),
            );
        }
    }
}

/// Inlines variants. The derived schema of a tagged enum's variant is its tag next to a reference;
/// here the referenced keys join the tag, so that the variant can be closed. The variant marked as
/// the default does not require its tag.
pub(super) fn inline_variants(schema: &mut Json) {
    let definitions = schema.get("$defs").cloned().unwrap_or_default();
    walk(schema, &mut |schema| {
        let Some(variants) = schema.get_mut("oneOf").and_then(Json::as_array_mut) else {
            return;
        };
        for variant in variants {
            let reference = variant
                .get("$ref")
                .and_then(Json::as_str)
                .and_then(|reference| reference.strip_prefix("#/$defs/"));
            if let Some(target) = reference.and_then(|name| definitions.get(name)).cloned()
                && let Some(object) = variant.as_object_mut()
            {
                object.remove("$ref");
                join(object, &target);
            }
            let is_default = variant
                .as_object_mut()
                .and_then(|object| object.remove("x-default-variant"))
                .is_some();
            if is_default {
                unrequire(variant, "type");
            }
        }
    });
}

fn unrequire(schema: &mut Json, key: &str) {
    if let Some(Json::Array(required)) = schema.get_mut("required") {
        required.retain(|name| name.as_str() != Some(key));
        if required.is_empty()
            && let Some(object) = schema.as_object_mut()
        {
            object.remove("required");
        }
    }
}

/// Adds the keys of one object schema to another.
pub(super) fn join(object: &mut Map<String, Json>, other: &Json) {
    if let Some(more) = other.get("properties").and_then(Json::as_object) {
        let properties = object.entry("properties").or_insert_with(|| json!({}));
        for (key, of) in more {
            if properties.get(key).is_none() {
                properties[key] = of.clone();
            }
        }
    }
    if let Some(more) = other.get("required").and_then(Json::as_array)
        && let Some(required) = object
            .entry("required")
            .or_insert_with(|| json!([]))
            .as_array_mut()
    {
        required.extend(more.iter().cloned());
    }
    for (key, value) in other.as_object().into_iter().flatten() {
        if !["title", "$schema", "$defs", "default", "$id"].contains(&key.as_str()) {
            object.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
}

/// Closes every object that lists its keys, so that other keys are errors. Drops formats that only
/// describe a Rust type.
pub(super) fn close(schema: &mut Json) {
    walk(schema, &mut |schema| {
        if let Some(object) = schema.as_object_mut() {
            if let Some(Json::String(text)) = object.get_mut("description") {
                // A comment's line breaks are those of the source; blank lines separate paragraphs.
                *text = text
                    .split("\n\n")
                    .map(|part| part.replace('\n', " "))
                    .collect::<Vec<_>>()
                    .join("\n\n");
            }
            if object.get("properties").is_some_and(Json::is_object) {
                object.entry("additionalProperties").or_insert(Json::Bool(false));
            }
            if matches!(
                object.get("format").and_then(Json::as_str),
                Some("uint32" | "int32" | "uint64" | "int64" | "double" | "float" | "uint8" | "uint16")
            ) {
                object.remove("format");
            }
        }
    });
}

pub(super) fn drop_unused(schema: &mut Json) {
    loop {
        let text = schema.to_string();
        let Some(definitions) = schema.get_mut("$defs").and_then(Json::as_object_mut) else {
            return;
        };
        let before = definitions.len();
        definitions.retain(|name, _| text.contains(&format!("\"#/$defs/{name}\"")));
        if definitions.len() == before {
            return;
        }
    }
}

/// Visits a schema and every schema within it.
pub(super) fn walk(schema: &mut Json, visit: &mut impl FnMut(&mut Json)) {
    visit(schema);
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    for (keyword, value) in object {
        match (keyword.as_str(), value) {
            ("properties" | "$defs" | "patternProperties", Json::Object(named)) => {
                named.values_mut().for_each(|schema| walk(schema, visit));
            }
            ("oneOf" | "anyOf" | "allOf" | "prefixItems", Json::Array(several)) => {
                several.iter_mut().for_each(|schema| walk(schema, visit));
            }
            ("items" | "additionalProperties" | "not", value @ Json::Object(_)) => walk(value, visit),
            _ => {}
        }
    }
}
