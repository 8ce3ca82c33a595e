//! Shared by the tests: a session generator's schema as a component would supply it, and shortcuts.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "outside a test function the configuration does not know that this is a test"
)]
#![allow(dead_code, reason = "each test file uses its own part")]

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use veeksha_scenario::{Document, Evaluator, Performance, Problems, Scenario, Shipped};

/// Returns the shipped generators of these tests: one, with Veeksha's keys.
pub(crate) fn generators() -> Shipped {
    Shipped {
        generators: BTreeMap::from([("synthetic".to_owned(), synthetic())]),
        flavors: BTreeMap::from([
            (
                "request_log".to_owned(),
                json!({"type": "object", "properties": {}}),
            ),
            ("mooncake".to_owned(), mooncake()),
            (
                "timed_synthetic_session".to_owned(),
                json!({"type": "object", "properties": {
                    "page_size": {"type": "integer", "minimum": 1, "default": 16},
                }}),
            ),
        ]),
    }
}

/// Returns the built-in evaluator, which every scenario has.
pub(crate) fn performance(scenario: &Scenario) -> &Performance {
    let built_in = scenario.evaluators.iter().find_map(|evaluator| match evaluator {
        Evaluator::Performance(performance) => Some(performance),
        _ => None,
    });
    built_in.expect("the built-in metrics are always measured")
}

fn mooncake() -> Json {
    json!({"type": "object", "properties": {"block_size": {"type": "integer", "minimum": 1, "default": 512}}})
}

fn length(default: Json) -> Json {
    json!({"$ref": "#/$defs/Length", "default": default})
}

fn uniform(min: u32, max: u32) -> Json {
    length(json!({"type": "uniform", "min": min, "max": max}))
}

/// Written by hand from the documentation of Veeksha's keys; its variants require their `type`, as
/// derived schemas do.
pub(crate) fn synthetic() -> Json {
    let positive = json!({"type": "integer", "minimum": 1});
    let with_default = |schema: &Json, default: Json| {
        let mut schema = schema.clone();
        schema["default"] = default;
        schema
    };
    let variant = |tag: &str, properties: Json| {
        let mut properties = properties;
        properties["type"] = json!({"type": "string", "const": tag});
        json!({"type": "object", "properties": properties, "required": ["type"], "additionalProperties": false})
    };
    let wait = json!({"$ref": "#/$defs/Interval", "default": {"type": "poisson", "arrival_rate": 1.0}});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Config",
        "type": "object",
        "properties": {
            "session_graph": {"$ref": "#/$defs/Graph", "default": {"type": "linear"}},
            "channels": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/Channel"}, "default": [{"type": "text"}]},
            "output_spec": {
                "type": "object",
                "properties": {
                    "text": {
                        "type": "object",
                        "properties": {"output_length_generator": uniform(6, 12)},
                        "additionalProperties": false,
                        "default": {},
                    },
                    "image": {"type": "object", "additionalProperties": true},
                    "audio": {"type": "object", "additionalProperties": true},
                    "video": {"type": "object", "additionalProperties": true},
                },
                "additionalProperties": false,
                "default": {},
            },
            "inherit_history": {"type": ["boolean", "null"], "default": null},
        },
        "additionalProperties": false,
        "$defs": {
            "Graph": {"oneOf": [
                variant("single_request", json!({})),
                variant("linear", json!({
                    "inherit_history": {"type": "boolean", "default": true},
                    "num_request_generator": uniform(6, 12),
                    "request_wait_generator": wait,
                })),
                variant("branching", json!({
                    "inherit_history": {"type": "boolean", "default": true},
                    "num_layers_generator": uniform(2, 5),
                    "layer_width_generator": uniform(1, 3),
                    "fan_out_generator": uniform(1, 2),
                    "fan_in_generator": uniform(1, 2),
                    "connection_dist_generator": length(json!({"type": "fixed", "value": 1})),
                    "request_wait_generator": wait,
                    "single_root": {"type": "boolean", "default": true},
                })),
            ]},
            "Channel": {"oneOf": [variant("text", json!({
                "body_length_generator": uniform(6, 12),
                "shared_prefix_ratio": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.0},
                "shared_prefix_probability": {"type": "number", "minimum": 0, "maximum": 1, "default": 1.0},
            }))]},
            "Length": {"oneOf": [
                variant("fixed", json!({"value": with_default(&positive, json!(8))})),
                variant("uniform", json!({
                    "min": with_default(&positive, json!(6)),
                    "max": with_default(&positive, json!(12)),
                })),
                variant("fixed_stair", json!({
                    "values": {"type": "array", "items": positive, "minItems": 1, "default": [8, 16, 32, 64]},
                    "repeat_each": with_default(&positive, json!(1)),
                    "wrap": {"type": "boolean", "default": true},
                })),
                variant("zipf", json!({
                    "theta": {"type": "number", "exclusiveMinimum": 0, "default": 0.6},
                    "alpha": {"type": ["number", "null"], "default": null},
                    "scramble": {"type": "boolean", "default": false},
                    "min": with_default(&positive, json!(6)),
                    "max": with_default(&positive, json!(12)),
                })),
            ]},
            "Interval": {"oneOf": [
                variant("poisson", json!({"arrival_rate": {"type": "number", "exclusiveMinimum": 0, "default": 1.0}})),
                variant("fixed", json!({"interval": {"type": "number", "minimum": 0, "default": 1.0}})),
            ]},
        },
    })
}

/// Reads and checks YAML.
pub(crate) fn check(yaml: &str) -> Result<Scenario, Problems> {
    Document::from_yaml(yaml, "s.yml").unwrap().check(&generators())
}

/// Returns the scenario of YAML that has no problems.
pub(crate) fn good(yaml: &str) -> Scenario {
    check(yaml).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Returns the problems of YAML as printed.
pub(crate) fn bad(yaml: &str) -> String {
    check(yaml).expect_err("there should be problems").to_string()
}

/// Returns the scenario after command-line overrides.
pub(crate) fn with(yaml: &str, overrides: &[(&str, &str)]) -> Result<Scenario, String> {
    let mut document = Document::from_yaml(yaml, "s.yml").unwrap();
    for (path, value) in overrides {
        document.set(path, value).map_err(|error| error.to_string())?;
    }
    document
        .check(&generators())
        .map_err(|problems| problems.to_string())
}
