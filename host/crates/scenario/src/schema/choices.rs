//! Schemas of choices by `type`: clients, generators, flavors, evaluators, with the keys of each.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};
use veeksha_endpoint::EndpointKind;

use super::shape::{inline_variants, join, later_keys, walk};
use crate::plan::client::ClientKind;
use crate::plan::keys;

/// The default generator, as in Veeksha.
pub(super) const DEFAULT_GENERATOR: &str = "synthetic";

/// The default flavor of a trace, as in Veeksha.
pub(super) const DEFAULT_FLAVOR: &str = "timed_synthetic_session";

/// Returns one variant per kind of client: the same keys, with the defaults of its API.
pub(super) fn client_choice(client: &Json) -> Json {
    let variants: Vec<Json> = ClientKind::ALL
        .into_iter()
        .map(|kind| {
            let mut variant = client.clone();
            variant["description"] = kind.summary().into();
            variant["properties"]["type"] = json!({"type": "string", "const": kind.name()});
            let endpoint = kind.endpoint();
            let path = endpoint.as_ref().map_or("", EndpointKind::default_path);
            let max_tokens_param = endpoint.as_ref().and_then(EndpointKind::default_max_tokens_param);
            variant["properties"]["address_append_value"]["default"] = path.into();
            variant["properties"]["max_tokens_param"]["default"] = max_tokens_param.into();
            variant["properties"]["ignore_eos"]["default"] = kind.default_ignore_eos().into();
            let mut required: Vec<&str> = Vec::new();
            if kind != ClientKind::default() {
                required.push("type");
            }
            for (key, of) in [("template", ClientKind::Template), ("codec", ClientKind::Wasm)] {
                if kind == of {
                    required.push(key);
                } else if let Some(properties) = variant["properties"].as_object_mut() {
                    properties.remove(key);
                }
            }
            variant["required"] = json!(required);
            variant
        })
        .collect();
    json!({"description": "The server and the client's connection to it.", "oneOf": variants})
}

/// Returns the schema of a component that is not shipped, the same for every kind of plugin.
fn component(definitions: &mut Map<String, Json>) -> Json {
    let mut keys = keys::component_schema();
    if let Some(Json::Object(own)) = keys.get_mut("$defs").map(Json::take) {
        definitions.extend(own);
    }
    let mut variant = Map::new();
    variant.insert("description".to_owned(), "A WebAssembly component.".into());
    variant.insert("type".to_owned(), "object".into());
    variant.insert(
        "properties".to_owned(),
        json!({"type": {"type": "string", "const": "wasm"}}),
    );
    variant.insert("required".to_owned(), json!(["type"]));
    join(&mut variant, &keys);
    Json::Object(variant)
}

fn files(description: &str) -> Json {
    json!({
        "type": "object",
        "additionalProperties": {"type": "string", "minLength": 1},
        "default": {},
        "description": description,
    })
}

fn media_files() -> Json {
    files("Images, sounds and videos that its messages may name: a map from the name to the path.")
}

/// Returns the key of an agent whose decisions are compared with recorded ones.
fn recorded_run() -> Json {
    json!({
        "type": ["string", "null"],
        "minLength": 1,
        "default": null,
        "description": "The folder of a run of the same agents, relative to the scenario's folder. The run reports where the agents decide differently. Null compares with no run.",
    })
}

/// Returns the flavors of a trace: the shipped ones, a component in a file, and functions of a Lua
/// scenario.
pub(super) fn flavor_choice(flavors: &BTreeMap<String, Json>, definitions: &mut Map<String, Json>) -> Json {
    let mut variants: Vec<Json> = flavors
        .iter()
        .map(|(name, config)| shipped(name, config, name == DEFAULT_FLAVOR, definitions))
        .collect();
    variants.push(component(definitions));
    let mut layout = keys::lua_layout_schema();
    if let Some(Json::Object(own)) = layout.get_mut("$defs").map(Json::take) {
        definitions.extend(own);
    }
    let mut lua = Map::new();
    lua.insert("description".to_owned(), "Functions of this Lua scenario.".into());
    lua.insert("type".to_owned(), "object".into());
    lua.insert(
        "properties".to_owned(),
        json!({
            "type": {"type": "string", "const": "lua"},
            "session": {
                "x-function": "fun(group: veeksha.TraceGroup, trace: veeksha.TraceFacts, epoch: integer, rng: veeksha.Rng): veeksha.Session?, string?",
                "description": "Makes the session of a group of rows, or refuses it: `return nil, \"reason\"`. It must depend on its arguments alone.",
            },
            "warmup": {
                "x-function": "fun(group: veeksha.TraceGroup, trace: veeksha.TraceFacts): veeksha.Session?",
                "description": "Makes a session that is sent before the run begins, from the first row or, with `keep`, from the first row of each kept value.",
            },
        }),
    );
    lua.insert("required".to_owned(), json!(["type", "session"]));
    join(&mut lua, &layout);
    variants.push(Json::Object(lua));
    json!({"description": "The flavor that makes sessions of a trace's rows.", "oneOf": variants})
}

/// Returns the schema of a recorded trace: its keys and the flavor.
fn trace(has_default_flavor: bool, definitions: &mut Map<String, Json>) -> Json {
    let mut keys = keys::trace_schema();
    if let Some(Json::Object(own)) = keys.get_mut("$defs").map(Json::take) {
        definitions.extend(own);
    }
    let mut variant = Map::new();
    variant.insert("type".to_owned(), "object".into());
    let mut flavor = json!({
        "$ref": "#/$defs/TraceFlavor",
        "description": "The flavor that makes sessions of its rows.",
    });
    let mut required = vec!["type"];
    if has_default_flavor {
        flavor["default"] = json!({"type": DEFAULT_FLAVOR});
    } else {
        required.push("flavor");
    }
    variant.insert(
        "properties".to_owned(),
        json!({"type": {"type": "string", "const": "trace"}, "flavor": flavor}),
    );
    variant.insert("required".to_owned(), json!(required));
    join(&mut variant, &keys);
    Json::Object(variant)
}

/// Returns the evaluators: the built-in metrics, a component in a file, functions of a Lua
/// scenario.
pub(super) fn evaluator_choice(definitions: &mut Map<String, Json>) -> Json {
    let mut performance = keys::performance_schema();
    inline_variants(&mut performance);
    if let Some(Json::Object(own)) = performance.get_mut("$defs").map(Json::take) {
        definitions.extend(own);
    }
    later_keys(
        &mut performance,
        &["image_channel", "audio_channel", "video_channel"],
    );
    let mut built_in = Map::new();
    built_in.insert("type".to_owned(), "object".into());
    built_in.insert(
        "properties".to_owned(),
        json!({"type": {"type": "string", "const": "performance"}}),
    );
    join(&mut built_in, &performance);
    let mut variants = vec![Json::Object(built_in)];
    variants.push(component(definitions));
    variants.push(json!({
        "description": "Functions of this Lua scenario.",
        "type": "object",
        "properties": {
            "type": {"type": "string", "const": "lua"},
            "name": {
                "type": ["string", "null"],
                "minLength": 1,
                "default": null,
                "description": "Its name in messages and results; null takes its position in the list.",
            },
            "metrics": {
                "type": "object",
                "additionalProperties": {"$ref": "#/$defs/LuaMetric"},
                "description": "Metrics by name.",
            },
            "good": {
                "x-function": "fun(request: veeksha.Completion): boolean",
                "description": "Returns true if a finished request was good: part of goodput.",
            },
            "check": {
                "x-function": "fun(results: veeksha.Results): veeksha.Verdict[]",
                "description": "Checks the run's results: returns a list of verdicts, each of which can fail the run.",
            },
        },
        "required": ["type"],
        "additionalProperties": false,
    }));
    definitions.insert("LuaMetric".to_owned(), lua_metric());
    json!({"description": "Metrics, checks and objectives of a run.", "oneOf": variants})
}

fn lua_metric() -> Json {
    json!({
        "description": "A metric of a Lua scenario.",
        "type": "object",
        "properties": {
            "observe": {
                "x-function": "fun(request: veeksha.Completion): veeksha.Samples",
                "description": "Receives every finished request, in order of completion, and returns its samples: nil, a number, a list of numbers, or `{ value =, weight = }`.",
            },
            "finish": {
                "x-function": "fun(): veeksha.Samples",
                "description": "Returns the samples that are only known at the end.",
            },
            "unit": {
                "type": "string",
                "default": "1",
                "description": "The unit of its values: `s` for seconds, `1` for a number or a ratio.",
            },
            "better": {
                "enum": ["higher", "less", "neither"],
                "x-synonyms": {"lower": "less", "smaller": "less", "more": "higher"},
                "default": "neither",
                "description": "The direction of improvement.",
            },
            "summary": {
                "type": "string",
                "default": "",
                "description": "A one-line definition.",
            },
        },
        "required": ["observe"],
        "additionalProperties": false,
    })
}

pub(super) fn generator_choice(
    generators: &BTreeMap<String, Json>,
    has_default_flavor: bool,
    definitions: &mut Map<String, Json>,
) -> Json {
    let mut variants = Vec::new();
    for (name, config) in generators {
        variants.push(shipped(name, config, name == DEFAULT_GENERATOR, definitions));
    }
    variants.push(trace(has_default_flavor, definitions));
    let mut component = component(definitions);
    component["properties"]["recorded_run"] = recorded_run();
    variants.push(component);
    variants.push(json!({
        "description": "The recorded decisions of a run's agents, sent again without the agents.",
        "type": "object",
        "properties": {
            "type": {"type": "string", "const": "replay"},
            "run": {
                "type": "string",
                "minLength": 1,
                "description": "The run's folder, relative to the scenario's folder.",
            },
            "files": media_files(),
        },
        "required": ["type", "run"],
        "additionalProperties": false,
    }));
    variants.push(json!({
        "description": "A function of this Lua scenario: `sessions` or `agent`.",
        "type": "object",
        "properties": {
            "type": {"type": "string", "const": "lua"},
            "sessions": {
                "x-function": "fun(index: integer, rng: veeksha.Rng): veeksha.Session?",
                "description": "Makes the whole session `index` (from 0); nil ends the workload. It must depend on its arguments alone.",
            },
            "agent": {
                "x-function": "fun(session: veeksha.AgentSession)",
                "description": "Plays one session step by step: sends a request, waits for the answer, and continues.",
            },
            "length": {
                "type": ["integer", "null"],
                "minimum": 1,
                "default": null,
                "description": "Number of sessions; null if only the function ends the workload.",
            },
            "guarantees": {
                "type": "object",
                "properties": {
                    "max_output_tokens": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "No answer is requested with more tokens than this.",
                    },
                    "max_depth": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "The longest chain of requests in which each waits for the one before it.",
                    },
                    "distinct_prompts": {
                        "type": "boolean",
                        "default": false,
                        "description": "No prompt begins like the prompt of another session.",
                    },
                },
                "additionalProperties": false,
                "default": {},
                "description": "Properties that hold for all sessions. The host refuses objectives that such sessions cannot meet and skips work that they do not need.",
            },
            "files": media_files(),
            "recorded_run": recorded_run(),
        },
        "required": ["type"],
        "additionalProperties": false,
    }));
    json!({"description": "The source of sessions.", "oneOf": variants})
}

/// Returns the schema of a shipped component: its keys next to its `type`. Its definitions move to
/// the root under unique names.
fn shipped(name: &str, config: &Json, is_default: bool, definitions: &mut Map<String, Json>) -> Json {
    let mut config = config.clone();
    let own = config.get_mut("$defs").map(Json::take).unwrap_or_default();
    let prefix = format!("{name}.");
    let rename = |schema: &mut Json| {
        walk(schema, &mut |schema| {
            let renamed = schema
                .get("$ref")
                .and_then(Json::as_str)
                .and_then(|reference| reference.strip_prefix("#/$defs/"))
                .map(|target| format!("#/$defs/{prefix}{target}"));
            if let Some(renamed) = renamed {
                schema["$ref"] = renamed.into();
            }
        });
    };
    rename(&mut config);
    for (key, mut definition) in own.as_object().cloned().unwrap_or_default() {
        rename(&mut definition);
        definitions.insert(format!("{prefix}{key}"), definition);
    }
    let mut variant = Map::new();
    variant.insert("type".to_owned(), "object".into());
    variant.insert(
        "properties".to_owned(),
        json!({"type": {"type": "string", "const": name}}),
    );
    let target = config
        .get("$ref")
        .and_then(Json::as_str)
        .and_then(|reference| definitions.get(reference.strip_prefix("#/$defs/")?))
        .cloned();
    join(&mut variant, target.as_ref().unwrap_or(&config));
    if !is_default {
        let required = variant.entry("required").or_insert_with(|| json!([]));
        if let Some(required) = required.as_array_mut() {
            required.insert(0, "type".into());
        }
    }
    Json::Object(variant)
}
