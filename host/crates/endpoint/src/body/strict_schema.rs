//! The schemas that OpenAI enforces (`strict`). It refuses a strict schema that does not fit these
//! rules, and servers of open models enforce every schema.

use serde_json::{Map, Value};

/// Keywords that a strict schema cannot have.
const UNSUPPORTED: [&str; 10] = [
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "unevaluatedProperties",
];

/// Returns true if OpenAI accepts the schema as a strict one: an object at the root, all properties
/// of every object required, no others allowed, and no unsupported keyword.
pub(super) fn is_strict(schema: &str) -> bool {
    let Ok(Value::Object(root)) = serde_json::from_str(schema) else {
        return false;
    };
    is_object(&root) && !root.contains_key("anyOf") && is_strict_schema(&root)
}

fn is_object(schema: &Map<String, Value>) -> bool {
    let of_object = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|name| name == "object"),
        Some(name) => name == "object",
        None => false,
    };
    of_object || schema.contains_key("properties")
}

fn is_strict_schema(schema: &Map<String, Value>) -> bool {
    if UNSUPPORTED.iter().any(|keyword| schema.contains_key(*keyword)) {
        return false;
    }
    let properties = || schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &String| required.is_some_and(|names| names.iter().any(|known| known == name));
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    if is_object(schema) && !(is_closed && properties().into_iter().flat_map(Map::keys).all(is_required)) {
        return false;
    }
    let definitions = ["properties", "$defs", "definitions"]
        .into_iter()
        .filter_map(|keyword| schema.get(keyword)?.as_object())
        .flat_map(Map::values);
    let alternatives = schema.get("anyOf").and_then(Value::as_array);
    let mut parts = definitions
        .chain(alternatives.into_iter().flatten())
        .chain(schema.get("items"));
    parts.all(|part| part.as_object().is_some_and(is_strict_schema))
}

#[cfg(test)]
mod tests {
    use super::is_strict;

    /// The cases are those of OpenAI's guide to structured outputs.
    #[test]
    fn strict_schemas_are_those_that_openai_accepts() {
        let closed = r#""additionalProperties":false"#;
        let object = |rest: &str| format!(r#"{{"type":"object",{closed}{rest}}}"#);
        let with_property =
            |schema: &str| object(&format!(r#","properties":{{"a":{schema}}},"required":["a"]"#));
        for accepted in [
            object(""),
            with_property(r#"{"type":"string"}"#),
            with_property(r#"{"type":["string","null"]}"#),
            with_property(r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#),
            with_property(&format!(r#"{{"type":"array","items":{}}}"#, object(""))),
            object(&format!(
                r#","$defs":{{"b":{}}}"#,
                with_property(r##"{"$ref":"#"}"##)
            )),
            // A property may have the name of a keyword.
            object(r#","properties":{"not":{"type":"string"}},"required":["not"]"#),
        ] {
            assert!(is_strict(&accepted), "{accepted}");
        }
        for refused in [
            r#"{"type":"object"}"#.to_owned(),
            r#"{"type":"array"}"#.to_owned(),
            "{}".to_owned(),
            object(r#","properties":{"a":{"type":"string"}}"#),
            with_property(r#"{"type":"object"}"#),
            with_property(r#"{"type":["object","null"]}"#),
            with_property(r#"{"oneOf":[{"type":"string"}]}"#),
            with_property(r#"{"type":"array","items":{"type":"object"}}"#),
            object(r#","$defs":{"b":{"type":"object"}}"#),
            object(r#","anyOf":[{"type":"string"}]"#),
        ] {
            assert!(!is_strict(&refused), "{refused}");
        }
    }
}
