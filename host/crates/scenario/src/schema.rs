//! The JSON schema of a scenario: the derived one, tidied, with the shipped components' own schemas in it.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use crate::plan::{self, ClientKind};

/// The components inside the program, by kind: the name of each with the JSON schema of its configuration, whose keys stand
/// beside `type`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shipped {
    /// Session generators.
    pub generators: BTreeMap<String, Json>,
    /// Trace flavors.
    pub flavors: BTreeMap<String, Json>,
    /// Metrics and checks.
    pub evaluators: BTreeMap<String, Json>,
}

/// The schema of scenario files (draft 2020-12), for editors and for [`crate::Document::check`].
pub fn json_schema(shipped: &Shipped) -> Json {
    let generators = &shipped.generators;
    let mut schema = plan::sheet_schema();
    inline_variants(&mut schema);
    let mut definitions = match schema.get_mut("$defs").map(Json::take) {
        Some(Json::Object(definitions)) => definitions,
        _ => Map::new(),
    };
    if let Some(client) = definitions.remove("Client") {
        definitions.insert("Client".to_owned(), client_choice(&client));
    }
    let flavor = flavor_choice(&shipped.flavors, &mut definitions);
    definitions.insert("TraceFlavor".to_owned(), flavor);
    let generator = generator_choice(
        generators,
        shipped.flavors.contains_key(DEFAULT_FLAVOR),
        &mut definitions,
    );
    definitions.insert("SessionGenerator".to_owned(), generator);
    let evaluator = evaluator_choice(&shipped.evaluators, &mut definitions);
    definitions.insert("Evaluator".to_owned(), evaluator);
    for (choice, later) in [
        ("Traffic", &["sequential_launch"][..]),
        ("Client", &["openai_router", "tts", "streaming_tts", "stt"]),
        ("Evaluator", &["accuracy_lmeval", "audio_quality"]),
        ("SessionGenerator", &["lmeval"]),
        ("TraceFlavor", &["seed_tts_text", "audio"]),
    ] {
        if let Some(choice) = definitions.get_mut(choice) {
            choice["x-not-supported-yet"] = json!(later);
        }
    }
    if let Some(endpoint) = definitions.get_mut("Endpoint") {
        later_keys(endpoint, &["engine_type", "health_url", "host", "port"]);
    }
    later_keys(&mut schema, &["server", "wandb"]);
    if let Some(properties) = schema.get_mut("properties") {
        properties["$schema"] = json!({
            "type": "string",
            "description": "For editors: where this schema is. It has no effect on a run.",
        });
        properties["evaluators"] = json!({
            "type": "array",
            "minItems": 1,
            "items": {"$ref": "#/$defs/Evaluator"},
            "default": [{"type": "performance"}],
            "description": "What measures and judges: the built-in metrics, plugins, functions. The built-in metrics are always measured.",
        });
        properties["session_generator"] = json!({
            "$ref": "#/$defs/SessionGenerator",
            "description": "Where sessions come from.",
        });
        if generators.contains_key(DEFAULT_GENERATOR) {
            properties["session_generator"]["default"] = json!({"type": DEFAULT_GENERATOR});
        } else {
            schema["required"] = json!(["session_generator"]);
        }
    }
    schema["$defs"] = Json::Object(definitions);
    close(&mut schema);
    drop_unused(&mut schema);
    schema["title"] = "veeksha-host scenario".into();
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("description");
    }
    schema
}

/// The schema of scenario files for editors: a scenario as in [`json_schema`], or a list of them. What YAML adds with its tags
/// (`!expand`, `!include`) no JSON schema can say.
pub fn file_schema(shipped: &Shipped) -> Json {
    let mut scenario = json_schema(shipped);
    let mut definitions = match scenario.get_mut("$defs").map(Json::take) {
        Some(Json::Object(definitions)) => definitions,
        _ => Map::new(),
    };
    let mut file = json!({
        "anyOf": [
            {"$ref": "#/$defs/Scenario"},
            {
                "description": "Several scenarios, run one after the other.",
                "type": "array",
                "minItems": 1,
                "items": {"$ref": "#/$defs/Scenario"},
            },
        ],
    });
    if let Some(scenario) = scenario.as_object_mut() {
        scenario.remove("$defs");
        for key in ["$schema", "title"] {
            if let Some(value) = scenario.remove(key) {
                file[key] = value;
            }
        }
    }
    definitions.insert("Scenario".to_owned(), scenario);
    file["$defs"] = Json::Object(definitions);
    file
}

/// The generator of a scenario that names none, as in Veeksha.
const DEFAULT_GENERATOR: &str = "synthetic";

/// The flavor of a trace that names none, as in Veeksha.
const DEFAULT_FLAVOR: &str = "timed_synthetic_session";

fn later_keys(schema: &mut Json, keys: &[&str]) {
    if let Some(Json::Object(properties)) = schema.get_mut("properties") {
        for key in keys {
            properties.insert(
                (*key).to_owned(),
                json!({"description": "Not supported by this version yet.", "x-not-supported-yet": true}),
            );
        }
    }
}

/// The derived schema of a tagged enum's variant is its tag beside a reference; here the referred keys join the tag, so
/// that the variant can be closed. A variant marked as the default does not need its tag.
fn inline_variants(schema: &mut Json) {
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
fn join(object: &mut Map<String, Json>, other: &Json) {
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

/// One variant for each kind of client: the same keys, with the defaults that its interface needs.
fn client_choice(client: &Json) -> Json {
    let variants: Vec<Json> = ClientKind::ALL
        .into_iter()
        .map(|kind| {
            let mut variant = client.clone();
            variant["description"] = kind.summary().into();
            variant["properties"]["type"] = json!({"type": "string", "const": kind.name()});
            variant["properties"]["address_append_value"]["default"] = kind.default_path().into();
            variant["properties"]["max_tokens_param"]["default"] = kind.default_max_tokens_param().into();
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
    json!({"description": "The server, and how it is spoken to.", "oneOf": variants})
}

/// A component in a file: the same keys for every kind of plugin.
fn component_in_a_file() -> Json {
    json!({
        "description": "A component in a file.",
        "type": "object",
        "properties": {
            "type": {"type": "string", "const": "wasm"},
            "path": {
                "type": "string",
                "minLength": 1,
                "description": "The component's file, relative to the scenario's folder.",
            },
            "config": {
                "type": "object",
                "additionalProperties": true,
                "default": {},
                "description": "Its configuration, checked against the schema that the component brings.",
            },
            "files": files("Files that it may read, and media that its messages may name: the name that it knows each by, and where it is."),
        },
        "required": ["type", "path"],
        "additionalProperties": false,
    })
}

fn files(description: &str) -> Json {
    json!({
        "type": "object",
        "additionalProperties": {"type": "string", "minLength": 1},
        "default": {},
        "description": description,
    })
}

/// The flavors of a trace: the shipped ones, a component in a file, and functions of a Lua scenario.
fn flavor_choice(flavors: &BTreeMap<String, Json>, definitions: &mut Map<String, Json>) -> Json {
    let mut variants: Vec<Json> = flavors
        .iter()
        .map(|(name, config)| shipped(name, config, name == DEFAULT_FLAVOR, definitions))
        .collect();
    variants.push(component_in_a_file());
    let mut layout = plan::lua_layout_schema();
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
                "description": "Makes the session of a group of rows, or refuses it: `return nil, \"why\"`. It must depend on its arguments alone.",
            },
            "warmup": {
                "x-function": "fun(group: veeksha.TraceGroup, trace: veeksha.TraceFacts): veeksha.Session?",
                "description": "Makes a session that is sent before the run begins, of the first row or, with `keep`, of the first row of each kept value.",
            },
        }),
    );
    lua.insert("required".to_owned(), json!(["type", "session"]));
    join(&mut lua, &layout);
    variants.push(Json::Object(lua));
    json!({"description": "What makes sessions of a trace's rows.", "oneOf": variants})
}

/// A recorded trace: its keys, and the flavor.
fn trace(has_default_flavor: bool, definitions: &mut Map<String, Json>) -> Json {
    let mut keys = plan::trace_schema();
    if let Some(Json::Object(own)) = keys.get_mut("$defs").map(Json::take) {
        definitions.extend(own);
    }
    let mut variant = Map::new();
    variant.insert("type".to_owned(), "object".into());
    let mut flavor = json!({
        "$ref": "#/$defs/TraceFlavor",
        "description": "What makes sessions of its rows.",
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

/// What measures and judges: the built-in metrics, the shipped components, a component in a file, functions of a Lua scenario.
fn evaluator_choice(evaluators: &BTreeMap<String, Json>, definitions: &mut Map<String, Json>) -> Json {
    let mut performance = plan::performance_schema();
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
    for (name, config) in evaluators {
        variants.push(shipped(name, config, false, definitions));
    }
    variants.push(component_in_a_file());
    variants.push(json!({
        "description": "Functions of this Lua scenario.",
        "type": "object",
        "properties": {
            "type": {"type": "string", "const": "lua"},
            "name": {
                "type": ["string", "null"],
                "minLength": 1,
                "default": null,
                "description": "What messages and results call it; null takes its place in the list.",
            },
            "metrics": {
                "type": "object",
                "additionalProperties": {"$ref": "#/$defs/LuaMetric"},
                "description": "Metrics by name.",
            },
            "good": {
                "x-function": "fun(request: veeksha.Completion): boolean",
                "description": "Whether a finished request was good: part of goodput.",
            },
            "check": {
                "x-function": "fun(results: veeksha.Results): veeksha.Verdict[]",
                "description": "Judges the run by its results: a list of verdicts, each of which can fail the run.",
            },
        },
        "required": ["type"],
        "additionalProperties": false,
    }));
    definitions.insert("LuaMetric".to_owned(), lua_metric());
    json!({"description": "What measures and judges a run.", "oneOf": variants})
}

fn lua_metric() -> Json {
    json!({
        "description": "A metric of a Lua scenario.",
        "type": "object",
        "properties": {
            "observe": {
                "x-function": "fun(request: veeksha.Completion): veeksha.Samples",
                "description": "Is given every finished request, in the order in which they ended, and returns its samples: nil, a number, a list of numbers, or `{ value =, weight = }`.",
            },
            "finish": {
                "x-function": "fun(): veeksha.Samples",
                "description": "Returns the samples that can only be told at the end.",
            },
            "unit": {
                "type": "string",
                "default": "1",
                "description": "The unit of its values: `s` for seconds, `1` for a number or a ratio.",
            },
            "better": {
                "enum": ["higher", "less", "neither"],
                "default": "neither",
                "description": "Which way it is good.",
            },
            "summary": {
                "type": "string",
                "default": "",
                "description": "One line: what it is and how it is computed.",
            },
        },
        "required": ["observe"],
        "additionalProperties": false,
    })
}

fn generator_choice(
    generators: &BTreeMap<String, Json>,
    has_default_flavor: bool,
    definitions: &mut Map<String, Json>,
) -> Json {
    let mut variants = Vec::new();
    for (name, config) in generators {
        variants.push(shipped(name, config, name == DEFAULT_GENERATOR, definitions));
    }
    variants.push(trace(has_default_flavor, definitions));
    variants.push(component_in_a_file());
    variants.push(json!({
        "description": "A function of this Lua scenario: `sessions` or `agent`.",
        "type": "object",
        "properties": {
            "type": {"type": "string", "const": "lua"},
            "sessions": {
                "x-function": "fun(index: integer, rng: veeksha.Rng): veeksha.Session?",
                "description": "Makes session `index` (from 0) as a whole; nil ends the workload. It must depend on its arguments alone.",
            },
            "agent": {
                "x-function": "fun(session: veeksha.AgentSession)",
                "description": "Plays one session step by step: it sends a request, waits for the answer, and goes on.",
            },
            "length": {
                "type": ["integer", "null"],
                "minimum": 1,
                "default": null,
                "description": "How many sessions there are; null for no end but the function's own.",
            },
            "files": files("Images, sounds and videos that its messages may name: the name of each, and where it is."),
        },
        "required": ["type"],
        "additionalProperties": false,
    }));
    json!({"description": "Where sessions come from.", "oneOf": variants})
}

/// A shipped component's keys beside its name. Its definitions move to the root under names of their own.
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

/// Closes every object that lists its keys: another key is an error. Formats that only describe a Rust type are dropped.
fn close(schema: &mut Json) {
    walk(schema, &mut |schema| {
        if let Some(object) = schema.as_object_mut() {
            if let Some(Json::String(text)) = object.get_mut("description") {
                // A comment's line breaks are the source's; blank lines are paragraphs.
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

fn drop_unused(schema: &mut Json) {
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
pub(crate) fn walk(schema: &mut Json, visit: &mut impl FnMut(&mut Json)) {
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
