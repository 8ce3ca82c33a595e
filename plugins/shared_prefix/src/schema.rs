//! `schema.json` is what the types of [`config`](crate::config) say. Written anew by
//! `UPDATE_SCHEMA=1 cargo test -p veeksha-shared-prefix schema`.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use veeksha_plugin::config::from_json;

use crate::config::Config;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema.json");

/// The schema, without number formats, which the host does not read.
fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<Config>().to_value();
    for property in properties(&mut schema)
        .values_mut()
        .filter_map(Value::as_object_mut)
    {
        property.remove("format");
    }
    schema
}

fn properties(schema: &mut Value) -> &mut Map<String, Value> {
    schema["properties"].as_object_mut().unwrap()
}

#[test]
fn schema_json_is_what_the_types_say() {
    let schema = schema();
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        let text = serde_json::to_string_pretty(&schema).unwrap();
        std::fs::write(PATH, format!("{text}\n")).unwrap();
    }
    let shipped: Value = serde_json::from_str(include_str!("../schema.json")).unwrap();
    assert!(
        shipped == schema,
        "schema.json is stale: UPDATE_SCHEMA=1 cargo test -p veeksha-shared-prefix schema"
    );
}

/// Every key is described, and the defaults that the schema shows are those of `{}`.
#[test]
fn the_schema_shows_real_defaults_and_describes_every_key() {
    let mut schema = schema();
    let mut defaults = Map::new();
    for (key, property) in properties(&mut schema) {
        assert!(property["description"].is_string(), "{key} is not described");
        defaults.insert(key.clone(), property["default"].clone());
    }
    let read = |text: &str| format!("{:?}", from_json::<Config>(text).unwrap());
    assert_eq!(read(&Value::Object(defaults).to_string()), read("{}"));
}
