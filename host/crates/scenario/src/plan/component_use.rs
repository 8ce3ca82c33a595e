//! A component that a scenario uses.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

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
}

impl ComponentUse {
    /// Returns the configuration as JSON text.
    pub fn config_text(&self) -> String {
        Json::Object(self.config.clone()).to_string()
    }
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
