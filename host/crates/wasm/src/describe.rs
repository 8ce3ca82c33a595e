//! What a plugin says of itself.

use serde::{Deserialize, Serialize};

use crate::bindings::types as wit;
use crate::text::one_line;

/// Characters of the name, the version, the summary.
const LENGTHS: [usize; 3] = [64, 64, 500];
/// Bytes of the schema.
const SCHEMA_BYTES: usize = 1 << 20;

/// A plugin's answer to `describe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// One line.
    pub summary: String,
    /// JSON schema of its configuration: the text of a JSON object.
    pub config_schema: String,
}

impl Descriptor {
    /// Takes what the guest returned, if it can be used.
    pub(crate) fn admit(answer: wit::Descriptor) -> Result<Self, String> {
        let [name, version, summary] = LENGTHS;
        if answer.name.trim().is_empty() {
            return Err("the descriptor's name is empty".into());
        }
        if answer.config_schema.len() > SCHEMA_BYTES {
            return Err(format!(
                "the descriptor's schema has more than {} KiB",
                SCHEMA_BYTES >> 10
            ));
        }
        serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&answer.config_schema)
            .map_err(|error| format!("the descriptor's schema is not a JSON object: {error}"))?;
        Ok(Descriptor {
            name: one_line(&answer.name, name),
            version: one_line(&answer.version, version),
            summary: one_line(&answer.summary, summary),
            config_schema: answer.config_schema,
        })
    }
}
