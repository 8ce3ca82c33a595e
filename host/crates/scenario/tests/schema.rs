//! The JSON schema: consistency and use in checks. The validator: each keyword.
#![expect(
    clippy::unwrap_used,
    reason = "outside a test function the configuration does not know that this is a test"
)]

mod common;

use std::collections::BTreeMap;

use common::generators;
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use veeksha_scenario::{Document, Node, Shipped, Value, check_value, json_schema, lua_annotations};

fn node(json: &Json) -> Node {
    Node::new(match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => number
            .as_i64()
            .map_or_else(|| Value::Float(number.as_f64().unwrap()), Value::Int),
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

fn problems(schema: &Json, value: &Json) -> String {
    let found = check_value(schema, &node(value), "p");
    found
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Visits every schema within a schema.
fn visit(schema: &Json, found: &mut Vec<Json>) {
    match schema {
        Json::Object(entries) => {
            found.push(schema.clone());
            entries
                .iter()
                .filter(|(key, _)| *key != "default")
                .for_each(|(_, value)| visit(value, found));
        }
        Json::Array(items) => items.iter().for_each(|item| visit(item, found)),
        _ => {}
    }
}

/// Returns the names of a definition's keys, and the constants that its `type` may have.
fn keys_and_types(definition: &Json) -> Vec<String> {
    let mut schemas = Vec::new();
    visit(definition, &mut schemas);
    let mut names = Vec::new();
    for schema in &schemas {
        for (key, value) in schema["properties"].as_object().into_iter().flatten() {
            if value.get("x-renamed").is_some() {
                continue;
            }
            names.push(key.clone());
            names.extend(value["const"].as_str().map(str::to_owned));
        }
    }
    names
}

#[test]
fn every_type_and_key_of_traffic_is_documented() {
    // The keys that every plugin has are in the page about plugins.
    let document: String = ["traffic.md", "plugins.md"]
        .map(|page| {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/");
            std::fs::read_to_string(folder.to_owned() + page).unwrap()
        })
        .concat();
    let schema = json_schema(&generators());
    let definitions = &schema["$defs"];
    let mut names = Vec::new();
    for definition in [
        "Traffic",
        "IntervalGenerator",
        "Limits",
        "Rate",
        "Concurrent",
        "FixedSchedule",
        "ArrivalPlugin",
    ] {
        names.extend(keys_and_types(&definitions[definition]));
    }
    for expected in ["gamma", "cv", "speedup", "concurrent", "requests_in_prefill"] {
        assert!(names.iter().any(|name| name == expected), "{expected}: {names:?}");
    }
    let is_documented =
        |name: &String| document.contains(&format!("`{name}`")) || document.contains(&format!(".{name}`"));
    names.retain(|name| !is_documented(name));
    assert!(
        names.is_empty(),
        "docs/traffic.md and docs/plugins.md do not describe {names:?}"
    );
}

#[test]
fn defaults_match_their_schema() {
    let schema = json_schema(&generators());
    let mut all = Vec::new();
    visit(&schema, &mut all);
    let mut defaults = 0;
    for mut part in all {
        let Some(default) = part.get("default").cloned() else {
            continue;
        };
        part["$defs"] = schema["$defs"].clone();
        assert_eq!(problems(&part, &default), "", "{default}");
        defaults += 1;
    }
    assert!(defaults > 40, "only {defaults} defaults were checked");
}

#[test]
fn references_resolve_and_definitions_are_used() {
    let schema = json_schema(&generators());
    let mut all = Vec::new();
    visit(&schema, &mut all);
    let references: Vec<&str> = all
        .iter()
        .filter_map(|part| part.get("$ref"))
        .filter_map(Json::as_str)
        .collect();
    for reference in &references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(schema.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    for name in schema["$defs"].as_object().unwrap().keys() {
        assert!(
            references.contains(&format!("#/$defs/{name}").as_str()),
            "{name} is not used"
        );
    }
}

#[test]
fn tables_are_closed_and_keys_documented() {
    let schema = json_schema(&Shipped::default());
    let mut all = Vec::new();
    visit(&schema, &mut all);
    for part in all {
        let Some(properties) = part
            .get("properties")
            .filter(|_| part.get("type") == Some(&json!("object")))
        else {
            continue;
        };
        assert_eq!(part.get("additionalProperties"), Some(&json!(false)), "{part}");
        for (key, of) in properties.as_object().unwrap() {
            let explained = of.get("description").is_some() || of.get("const").is_some();
            assert!(explained, "{key} is not explained: {of}");
        }
    }
}

#[test]
fn schema_has_title_and_dialect() {
    let schema = json_schema(&generators());
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(
        schema["$defs"]["SessionGenerator"]["oneOf"][0]["properties"]["type"]["const"],
        "synthetic"
    );
    assert!(schema["$defs"]["synthetic.Length"]["oneOf"].is_array());
    // A file may name its schema.
    let document = Document::from_yaml("{\"$schema\": \"./schema.json\"}", "s.json").unwrap();
    assert!(document.check(&generators()).is_ok());
}

#[test]
fn shipped_generator_may_use_references() {
    let schema = json!({
        "$ref": "#/$defs/Config",
        "$defs": {"Config": {"type": "object", "properties": {"m": {}, "n": {"type": "integer", "default": 3}}, "required": ["m"]}},
    });
    let generators = Shipped {
        generators: BTreeMap::from([("other".to_owned(), schema)]),
        flavors: BTreeMap::new(),
    };
    let check = |yaml: &str| Document::from_yaml(yaml, "s.yml").unwrap().check(&generators);
    let good = check("session_generator: {type: other, m: 1}").unwrap();
    let veeksha_scenario::Generator::Shipped { config, .. } = good.session_generator else {
        panic!("shipped")
    };
    assert_eq!(config, json!({"m": 1, "n": 3}));
    assert_eq!(
        check("session_generator: {type: other}").unwrap_err().to_string(),
        "s.yml:1: session_generator: `m` is missing"
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of cases")]
fn validates_each_keyword() {
    for (schema, value, expected) in [
        (json!({"type": "integer"}), json!(5.0), ""),
        (
            json!({"type": "integer"}),
            json!(5.5),
            "p: expected a whole number, got the number 5.5",
        ),
        (json!({"type": "number"}), json!(5), ""),
        (json!({"type": ["string", "null"]}), json!(null), ""),
        (
            json!({"type": ["string", "integer"]}),
            json!(true),
            "p: expected text or a whole number, got `true`",
        ),
        (json!({"enum": ["a", "b", 3]}), json!("a"), ""),
        (
            json!({"enum": ["a", "b", 3]}),
            json!("c"),
            "p: expected `a`, `b` or `3`, got the text `c`",
        ),
        (
            json!({"const": true}),
            json!(false),
            "p: expected `true`, got `false`",
        ),
        (
            json!({"minimum": 2}),
            json!(1),
            "p: must be at least 2, got the number 1",
        ),
        (json!({"minimum": 2}), json!(2), ""),
        (
            json!({"exclusiveMinimum": 2}),
            json!(2),
            "p: must be more than 2, got the number 2",
        ),
        (
            json!({"maximum": 2.5}),
            json!(3),
            "p: must be at most 2.5, got the number 3",
        ),
        (
            json!({"exclusiveMaximum": 2}),
            json!(2),
            "p: must be less than 2, got the number 2",
        ),
        (
            json!({"items": {"type": "integer"}}),
            json!([1, "x"]),
            "p[1]: expected a whole number, got the text `x`",
        ),
        (
            json!({"minItems": 2}),
            json!([1]),
            "p: must have at least 2 items, got 1",
        ),
        (
            json!({"maxItems": 1}),
            json!([1, 2]),
            "p: must have at most 1 items, got 2",
        ),
        (
            json!({"minLength": 2}),
            json!("é"),
            "p: must have at least 2 characters, got 1",
        ),
        (json!({"required": ["a"]}), json!({}), "p: `a` is missing"),
        (
            json!({"properties": {"a": {"type": "null"}}}),
            json!({"a": 1, "b": 2}),
            "p.a: expected nothing (null), got the number 1",
        ),
        (
            json!({"additionalProperties": {"type": "integer"}}),
            json!({"a.b": "x"}),
            "p[a.b]: expected a whole number, got the text `x`",
        ),
        (
            json!({"allOf": [{"minimum": 1}, {"maximum": 3}]}),
            json!(5),
            "p: must be at most 3, got the number 5",
        ),
        // An invalid constant is not checked further, even if it has been reported before.
        (
            json!({"allOf": [{"enum": ["aa", "bb"]}], "enum": ["aa", "bb"], "maxLength": 2}),
            json!("ccc"),
            "p: expected `aa` or `bb`, got the text `ccc`",
        ),
        (
            json!({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}),
            json!(["x"]),
            "p[0]: expected a whole number, got the text `x`",
        ),
        (
            json!({"anyOf": [{"type": "integer", "minimum": 5}, {"type": "integer", "maximum": 1}]}),
            json!(7),
            "",
        ),
        (
            json!({"oneOf": [{"const": "min"}, {"type": "integer"}]}),
            json!("max"),
            "p: expected `min`, got the text `max`",
        ),
        (
            json!({"oneOf": [{"const": "min"}, {"type": "integer"}]}),
            json!(4),
            "",
        ),
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}}),
            json!("x"),
            "p: expected a whole number, got the text `x`",
        ),
        (json!({"$ref": "#"}), json!(1), ""),
        (json!(false), json!(1), "p: no value is allowed here"),
        (json!(true), json!({"a": [1]}), ""),
    ] {
        assert_eq!(problems(&schema, &value), expected, "{schema} {value}");
    }
}

#[test]
fn reports_problems_of_the_meant_variant_only() {
    let variant = |tag: &str, key: &str| {
        json!({"type": "object", "properties": {"kind": {"const": tag}, key: {"type": "integer"}},
               "required": ["kind", key], "additionalProperties": false})
    };
    let schema = json!({"oneOf": [variant("a", "x"), variant("b", "y"), {"type": "null"}]});
    assert_eq!(problems(&schema, &json!({"kind": "b", "y": 1})), "");
    assert_eq!(problems(&schema, &json!(null)), "");
    assert_eq!(
        problems(&schema, &json!({"kind": "b", "x": 1})),
        "p.x: unknown key; valid keys: `kind`, `y`\np: `y` is missing"
    );
    assert_eq!(
        problems(&schema, &json!({"kind": "c"})),
        "p.kind: unknown kind `c`; it must be `a` or `b`"
    );
    assert_eq!(
        problems(&schema, &json!({"x": 1})),
        "p: `kind` is missing; it must be `a` or `b`"
    );
    assert_eq!(
        problems(&schema, &json!(5)),
        "p: expected a table of keys, got the number 5"
    );
}

#[test]
fn terminates_on_hostile_schemas() {
    let circle = json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]});
    let _ = problems(&circle, &json!(1));
    let tree = json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {
        "a": {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]},
    }});
    assert!(problems(&tree, &json!(1)).contains("is nested more than 128 levels deep"));
}

#[test]
fn annotations_contain_every_key() {
    let annotations = lua_annotations(&generators());
    for line in [
        "---@class veeksha.Scenario",
        "---@field seed? integer The seed of all randomness: lengths, texts, arrivals. Two runs with the same seed send the same requests. Default: `42`.",
        "---@alias veeksha.Traffic veeksha.Traffic.rate|veeksha.Traffic.concurrent|veeksha.Traffic.fixed_schedule",
        "---@class veeksha.Traffic.concurrent",
        "---@field type \"concurrent\"",
        "---@field type? \"rate\"",
        "---@field interval_generator? veeksha.IntervalGenerator The gaps between the starts of sessions. Default: `poisson`.",
        "---@field evaluators? veeksha.Evaluator[] Metrics, checks and objectives",
        "---@field headers? table<string, string> Additional headers of every request.",
        "---@field num_client_threads? integer|nil Threads that send requests",
        "---@field sessions? fun(index: integer, rng: veeksha.Rng): veeksha.Session?",
        "---@field body_length_generator? veeksha.synthetic.Length",
        "---@field endpoint? veeksha.Endpoint|nil",
    ] {
        assert!(annotations.contains(line), "{line} is not in\n{annotations}");
    }
    assert!(!annotations.contains("wandb"));
    // Every class referred to is defined.
    let defined = |name: &str| {
        [
            format!("---@class {name}\n"),
            format!("---@class {name}: "),
            format!("---@alias {name} "),
        ]
        .iter()
        .any(|line| annotations.contains(line))
    };
    for name in annotations.split(|c: char| !(c.is_alphanumeric() || c == '.' || c == '_')) {
        // `veeksha.lock` is a file.
        if let Some(rest) = name.strip_prefix("veeksha.")
            && !rest.is_empty()
            && rest != "lock"
        {
            let name = name.trim_end_matches('.');
            assert!(defined(name), "{name} is not defined");
        }
    }
}

proptest! {
    /// Checking any value against any schema built of the supported keywords does not panic.
    #[test]
    fn arbitrary_values_and_schemas_do_not_panic(schema in any_schema(), value in any_json()) {
        let found = check_value(&schema, &node(&value), "");
        prop_assert!(found.len() <= 21);
    }

    /// Checking any tree of a scenario's keys does not panic.
    #[test]
    fn arbitrary_trees_do_not_panic(tree in any_tree()) {
        match Document::new(tree).check(&generators()) {
            Ok(scenario) => prop_assert!(!scenario.to_yaml().is_empty()),
            Err(problems) => prop_assert!(!problems.0.is_empty()),
        }
    }
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        "[a-c]{0,3}".prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::btree_map("[a-c]{1,2}", inner, 0..4)
                .prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    })
}

fn any_schema() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        prop::sample::select(vec![
            "integer", "number", "string", "boolean", "null", "array", "object", "odd"
        ])
        .prop_map(|kind| json!({"type": kind})),
        any_json().prop_map(|value| json!({"const": value})),
        prop::collection::vec(any_json(), 0..3).prop_map(|values| json!({"enum": values})),
        Just(json!({"$ref": "#"})),
        Just(json!({"$ref": "#/nowhere"})),
        any::<bool>().prop_map(Json::from),
        any::<i32>().prop_map(|bound| json!({"minimum": bound, "exclusiveMaximum": bound})),
        any_json(),
    ];
    leaf.prop_recursive(4, 32, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|of| json!({"oneOf": of})),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|of| json!({"anyOf": of, "type": "object"})),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|of| json!({"allOf": of})),
            (prop::collection::btree_map("[a-c]{1,2}", inner.clone(), 0..3), inner.clone())
                .prop_map(|(of, others)| json!({"properties": of, "additionalProperties": others, "required": ["a"]})),
            inner.prop_map(|of| json!({"items": of, "minItems": 1, "uniqueItems": true})),
        ]
    })
}

fn any_tree() -> impl Strategy<Value = Node> {
    let names = vec![
        "seed",
        "client",
        "runtime",
        "type",
        "session_generator",
        "channels",
        "evaluators",
        "slos",
        "metric",
        "value",
        "traffic_scheduler",
        "interval_generator",
        "headers",
        "min",
        "max",
        "sessions",
        "config",
        "x",
        "",
        "a.b[0]",
    ];
    let words = vec![
        "rate",
        "lua",
        "wasm",
        "text",
        "uniform",
        "performance",
        "ttfc",
        "7",
        "-1",
        "yes",
        "",
        "null",
        "1e400",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<f64>().prop_map(Value::Float),
        prop::sample::select(words.clone()).prop_map(|word| Value::Text(word.to_owned())),
        prop::sample::select(words).prop_map(|word| Value::Word(word.to_owned())),
        Just(Value::Function),
    ]
    .prop_map(Node::new);
    leaf.prop_recursive(5, 64, 5, move |inner| {
        let key = prop::sample::select(names.clone()).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|items| Node::new(Value::List(items))),
            prop::collection::vec((key, inner), 0..6).prop_map(|entries| Node::new(Value::Map(entries))),
        ]
    })
}
