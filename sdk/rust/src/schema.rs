//! Keeps a plugin's `schema.json` and the types of its configuration together: for the plugin's own
//! tests, behind the feature `schema`.
//!
//! A plugin ships the JSON schema of its configuration as a file, so that the component needs no
//! code to make it. Its types derive `schemars::JsonSchema` in tests only
//! (`#[cfg_attr(test, derive(schemars::JsonSchema))]`), and one test calls [`check`].

use std::fmt::Debug;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::config;

/// Compares `schema.json` in a folder (the package's: `env!("CARGO_MANIFEST_DIR")`) with the types.
/// Every key must be described, and the defaults that the schema shows must be those that the
/// reader takes. With `UPDATE_SCHEMA` in the environment the file is written first.
///
/// # Errors
/// A message with the difference and the fix.
pub fn check<C: JsonSchema + DeserializeOwned + Debug>(folder: &str) -> Result<(), String> {
    let path = format!("{folder}/schema.json");
    let schema = schema_of::<C>();
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        let text = serde_json::to_string_pretty(&schema).map_err(|error| error.to_string())?;
        std::fs::write(&path, format!("{text}\n")).map_err(|error| format!("{path}: {error}"))?;
    }
    let shipped = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let shipped: Value = serde_json::from_str(&shipped).map_err(|error| format!("{path}: {error}"))?;
    if shipped != schema {
        return Err(format!(
            "{path} is stale: run the test again with UPDATE_SCHEMA=1"
        ));
    }
    let mut defaults = Map::new();
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        if !property["description"].is_string() {
            return Err(format!("{path}: `{key}` is not described"));
        }
        if let Some(default) = property.get("default") {
            defaults.insert(key.clone(), default.clone());
        }
    }
    let read = |json: &str| {
        let read = config::from_json::<C>(json).map_err(|error| format!("{path}: {}", error.message))?;
        Ok::<_, String>(format!("{read:?}"))
    };
    let (shown, taken) = (read(&Value::Object(defaults).to_string())?, read("{}")?);
    if shown == taken {
        Ok(())
    } else {
        Err(format!(
            "{path}: the defaults that it shows are read as {shown}, and those that are taken are {taken}"
        ))
    }
}

fn schema_of<C: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<C>().to_value();
    without_formats(&mut schema);
    schema
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

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    /// The configuration.
    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    struct Config {
        /// A number.
        count: u32,
        #[serde(rename = "size")]
        #[schemars(description = "How large.")]
        size: Option<u32>,
    }

    impl Default for Config {
        fn default() -> Self {
            Config { count: 3, size: None }
        }
    }

    fn check_text(text: &str) -> Result<(), String> {
        let folder =
            std::env::temp_dir().join(format!("veeksha-schema-{}-{}", std::process::id(), text.len()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("schema.json"), text).unwrap();
        let checked = check::<Config>(folder.to_str().unwrap());
        std::fs::remove_dir_all(&folder).unwrap();
        checked
    }

    #[test]
    fn accepts_only_a_file_that_matches_the_types() {
        let fitting = serde_json::to_string_pretty(&schema_of::<Config>()).unwrap();
        assert_eq!(check_text(&fitting), Ok(()));
        let other = fitting.replace("A number.", "Another number.");
        assert_ne!(fitting, other);
        assert!(check_text(&other).unwrap_err().ends_with("UPDATE_SCHEMA=1"));
        assert!(check_text("{").unwrap_err().contains("schema.json: EOF"));
        assert!(
            check::<Config>("/nowhere")
                .unwrap_err()
                .starts_with("/nowhere/schema.json: ")
        );
    }
}
