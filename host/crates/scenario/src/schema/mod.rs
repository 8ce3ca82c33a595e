//! The JSON schema of a scenario: the derived schema, tidied, with the shipped components' schemas
//! inserted.

mod choices;
mod shape;

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use self::choices::{
    DEFAULT_FLAVOR, DEFAULT_GENERATOR, client_choice, evaluator_choice, flavor_choice, generator_choice,
};
use self::shape::{close, drop_unused, inline_variants, later_keys};
use crate::plan::keys;
use crate::plan::named_clients::overrides_schema;

/// The components inside the program by kind: the name of each with the JSON schema of its
/// configuration, whose keys are next to `type`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shipped {
    /// Session generators.
    pub generators: BTreeMap<String, Json>,
    /// Trace flavors.
    pub flavors: BTreeMap<String, Json>,
}

/// Returns the schema of scenario files (draft 2020-12), for editors and for
/// [`crate::Document::check`].
pub fn json_schema(shipped: &Shipped) -> Json {
    let generators = &shipped.generators;
    let mut schema = keys::keys_schema();
    inline_variants(&mut schema);
    let mut definitions = match schema.get_mut("$defs").map(Json::take) {
        Some(Json::Object(definitions)) => definitions,
        _ => Map::new(),
    };
    if let Some(client) = definitions.remove("Client") {
        definitions.insert("ClientOverrides".to_owned(), overrides_schema(&client));
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
    let evaluator = evaluator_choice(&mut definitions);
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
            "description": "The location of this schema, for editors. Has no effect on a run.",
        });
        properties["evaluators"] = json!({
            "type": "array",
            "minItems": 1,
            "items": {"$ref": "#/$defs/Evaluator"},
            "default": [{"type": "performance"}],
            "description": "Metrics, checks and objectives: the built-in metrics, plugins, functions. The built-in metrics are always measured.",
        });
        properties["session_generator"] = json!({
            "$ref": "#/$defs/SessionGenerator",
            "description": "The source of sessions.",
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

/// Returns the schema of scenario files for editors: a scenario as in [`json_schema`], or a list of
/// scenarios. A JSON schema cannot express YAML's tags (`!expand`, `!include`).
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
