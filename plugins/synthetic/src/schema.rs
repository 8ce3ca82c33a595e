//! `schema.json` is what the types of [`config`](crate::config) say. Written anew by
//! `UPDATE_SCHEMA=1 cargo test -p veeksha-synthetic schema`.

use schemars::generate::SchemaSettings;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::config::{Channel, Config, Graph, Interval, Length};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema.json");

/// Writes the values that are defaults somewhere, as the user would.
macro_rules! serialize_defaults {
    ($($type:ident: $($variant:pat => $value:expr),+;)+) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $($variant => $value.serialize(serializer),)+
                    other => Err(serde::ser::Error::custom(format!("{other:?} is the default of nothing"))),
                }
            }
        }
    )+};
}

serialize_defaults! {
    Length:
        Length::Fixed { value } => json!({"type": "fixed", "value": value}),
        Length::Uniform { min, max } => json!({"type": "uniform", "min": min, "max": max});
    Interval:
        Interval::Poisson { arrival_rate } => json!({"type": "poisson", "arrival_rate": arrival_rate});
    Graph:
        Graph::Linear { num_request_generator, request_wait_generator, .. } => json!({
            "type": "linear",
            "num_request_generator": num_request_generator,
            "request_wait_generator": request_wait_generator,
        });
    Channel:
        Channel::Text { body_length_generator, shared_prefix_ratio, shared_prefix_probability } => json!({
            "type": "text",
            "body_length_generator": body_length_generator,
            "shared_prefix_ratio": shared_prefix_ratio,
            "shared_prefix_probability": shared_prefix_probability,
        });
}

/// The schema without what the host does not read: number formats, and defaults that say only "not given".
fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<Config>().to_value();
    tidy(&mut schema);
    schema
}

fn tidy(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if members.get("format").is_some_and(Value::is_string) {
                members.remove("format");
            }
            if members.get("default").is_some_and(Value::is_null) {
                members.remove("default");
            }
            if let Some(Value::Object(default)) = members.get_mut("default") {
                default.retain(|_, value| !value.is_null());
            }
            members.values_mut().for_each(tidy);
        }
        Value::Array(values) => values.iter_mut().for_each(tidy),
        _ => {}
    }
}

#[test]
fn schema_json_is_what_the_types_say() {
    let text = format!("{}\n", serde_json::to_string_pretty(&schema()).unwrap());
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(PATH, &text).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(PATH).unwrap_or_default(),
        text,
        "plugins/synthetic/schema.json is stale: UPDATE_SCHEMA=1 cargo test -p veeksha-synthetic schema"
    );
}
