//! The schema of the configuration, generated from [`config`](crate::config). Regenerate it with
//! `UPDATE_SCHEMA=1 cargo test -p veeksha-synthetic schema`.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use veeksha_plugin::SessionGenerator;

use crate::config::{Channel, Config, Graph, Interval, Length, Seconds};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema.json");

/// A number, or a distribution of numbers.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum NumberOrLength {
    Number(#[schemars(range(min = 1))] u32),
    Distribution(Length),
}

/// A time in seconds, or a distribution of times.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum NumberOrSeconds {
    Number(#[schemars(extend("exclusiveMinimum" = 0))] f64),
    Distribution(Seconds),
}

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

/// The schema without what the host does not read: number formats, and defaults that say only "not
/// given".
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
fn schema_json_matches_the_types() {
    let schema = schema();
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(
            PATH,
            format!("{}\n", serde_json::to_string_pretty(&schema).unwrap()),
        )
        .unwrap();
    }
    let shipped: Value = serde_json::from_str(include_str!("../schema.json")).unwrap();
    assert!(
        shipped == schema,
        "plugins/synthetic/schema.json is stale: UPDATE_SCHEMA=1 cargo test -p veeksha-synthetic schema"
    );
}

/// Every default that the schema shows is one that the reader takes, and every key of the types is
/// documented.
#[test]
fn the_schema_shows_real_defaults_and_describes_every_key() {
    let schema = schema();
    let mut keys = 0;
    for_each_object(&schema, &mut |members| {
        let Some(Value::Object(properties)) = members.get("properties") else {
            return;
        };
        for (key, property) in properties {
            if key != "type" {
                assert!(
                    property.get("description").is_some_and(Value::is_string),
                    "{key} is not described"
                );
                keys += 1;
            }
        }
    });
    assert_eq!(keys, 50);
    let mut defaults = serde_json::Map::new();
    for (key, property) in schema["properties"].as_object().unwrap() {
        defaults.extend(
            property
                .get("default")
                .map(|default| (key.clone(), default.clone())),
        );
    }
    let text = serde_json::to_string(&defaults).unwrap();
    let sessions = |json: &str| {
        let workload = crate::Synthetic::open(veeksha_plugin::config::from_json(json).unwrap()).unwrap();
        (0..20)
            .map(|index| workload.session(index, crate::testing::random(1, index)).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(sessions(&text), sessions("{}"));
}

fn for_each_object(value: &Value, visit: &mut impl FnMut(&serde_json::Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            visit(members);
            members.values().for_each(|value| for_each_object(value, visit));
        }
        Value::Array(values) => values.iter().for_each(|value| for_each_object(value, visit)),
        _ => {}
    }
}
