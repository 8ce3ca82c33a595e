//! `schema.json` is what the types of [`config`](crate::config) say. Written anew by
//! `UPDATE_SCHEMA=1 cargo test -p veeksha-weka schema`.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::config::Config;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema.json");

#[test]
fn schema_json_is_what_the_types_say() {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<Config>().to_value();
    without_formats(&mut schema);
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        let text = serde_json::to_string_pretty(&schema).unwrap();
        std::fs::write(PATH, format!("{text}\n")).unwrap();
    }
    let shipped: Value = serde_json::from_str(&std::fs::read_to_string(PATH).unwrap()).unwrap();
    assert!(
        shipped == schema,
        "plugins/weka/schema.json is stale: UPDATE_SCHEMA=1 cargo test -p veeksha-weka schema"
    );
}

/// The defaults that the schema shows are those that the reader takes, and every key is described.
#[test]
fn the_schema_shows_real_defaults_and_describes_every_key() {
    let schema: Value = serde_json::from_str(include_str!("../schema.json")).unwrap();
    let mut shown = Map::new();
    for (key, property) in schema["properties"].as_object().unwrap() {
        assert!(property["description"].is_string(), "{key} is not described");
        shown.insert(key.clone(), property["default"].clone());
    }
    let read = |json: &str| veeksha_plugin::config::from_json::<Config>(json).unwrap();
    assert_eq!(read(&Value::Object(shown).to_string()), Config::default());
    assert_eq!(read("{}"), Config::default());
}

/// Number formats say nothing that the host checks.
fn without_formats(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if members.get("format").is_some_and(Value::is_string) {
                members.remove("format");
            }
            members.values_mut().for_each(without_formats);
        }
        Value::Array(values) => values.iter_mut().for_each(without_formats),
        _ => {}
    }
}
