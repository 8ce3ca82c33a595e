//! The configuration: the keys of `flavor`.

#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;

/// The trace flavor `inputs_json`.
#[derive(Debug, PartialEq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Members of the recorded bodies that are not sent: the host has its own.
    pub drop: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            drop: ["model", "stream", "stream_options"].map(str::to_owned).into(),
        }
    }
}
