//! A component that a scenario uses.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::plan::plugin_limits::PluginLimits;

/// A component with its configuration and the files that it may read. The keys are the same
/// wherever a scenario uses a component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = refuse_old_name)]
pub struct ComponentUse {
    /// The component's file, relative to the scenario's folder.
    #[schemars(length(min = 1))]
    pub plugin: String,
    /// Its configuration, checked against the component's schema.
    #[serde(default)]
    pub config: Map<String, Json>,
    /// Files that it may read, and media that its messages may name: a map from the name to the
    /// path.
    #[serde(default)]
    #[schemars(extend("additionalProperties" = {"type": "string", "minLength": 1}))]
    pub files: BTreeMap<String, PathBuf>,
    /// Capabilities that it may use: `blob:read data/*.jsonl` (files below the scenario's folder)
    /// and `env:NAME`. They take effect for the component that `veeksha.lock` pins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<String>,
    /// Its limits, where they differ from `runtime.plugin_limits`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "limits_schema")]
    pub limits: Map<String, Json>,
    /// The number of its instances. Null: as its manifest states, otherwise `per-worker`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances: Option<InstanceChoice>,
    /// The consequence of a trap or an exceeded limit. Null: as its manifest states, otherwise
    /// `abort`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_trap: Option<TrapChoice>,
}

/// The number of instances of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceChoice {
    /// One for each worker thread.
    PerWorker,
    /// A pool that all workers share.
    Pooled,
    /// A new one for each call; for agents: for each session.
    PerCall,
}

/// The consequence of a trap of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrapChoice {
    /// What the call was for is lost: a session, a workload, a metric.
    Abort,
    /// The call is repeated once in a new instance.
    Restart,
    /// The plugin is not called again, and the run goes on without it.
    Disable,
}

impl ComponentUse {
    /// Returns the limits: its own, and for the others those of the run.
    ///
    /// # Errors
    /// If a limit has a wrong type, which the schema excludes.
    pub fn limits_over(&self, of_run: &PluginLimits) -> Result<PluginLimits, serde_json::Error> {
        let mut limits = serde_json::to_value(of_run)?;
        if let Json::Object(all) = &mut limits {
            all.extend(self.limits.clone());
        }
        serde_json::from_value(limits)
    }

    /// Returns the configuration as JSON text.
    pub fn config_text(&self) -> String {
        Json::Object(self.config.clone()).to_string()
    }
}

/// The keys of [`PluginLimits`], without their defaults: an absent key means the limit of the run.
fn limits_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut schema = PluginLimits::json_schema(generator);
    if let Some(Json::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut().filter_map(Json::as_object_mut) {
            property.remove("default");
        }
    }
    schema
}

/// The key `plugin` was `path` before; the error for the old name names the new one.
fn refuse_old_name(schema: &mut schemars::Schema) {
    if let Some(Json::Object(properties)) = schema.get_mut("properties") {
        properties.insert(
            "path".to_owned(),
            serde_json::json!({
                "description": "The former name of `plugin`.",
                "x-renamed": "plugin",
                "not": {},
            }),
        );
    }
}
