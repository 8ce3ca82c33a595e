//! The descriptor of a plugin.

use serde::{Deserialize, Serialize};

use crate::bindings::types as wit;
use crate::text::one_line;

/// Maximum lengths of name, version and summary, in characters.
const MAX_CHARS: [usize; 3] = [64, 64, 500];
/// Maximum size of a schema, in bytes.
const MAX_SCHEMA_BYTES: usize = 1 << 20;

/// The result of a plugin's `describe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    /// The plugin's name.
    pub name: String,
    /// The plugin's version.
    pub version: String,
    /// A summary of one line.
    pub summary: String,
    /// JSON schema of its configuration: the text of a JSON object.
    pub config_schema: String,
}

impl Descriptor {
    /// Converts the result of the guest, if it is valid.
    pub(crate) fn convert(answer: wit::Descriptor) -> Result<Self, String> {
        let [name, version, summary] = MAX_CHARS;
        if answer.name.trim().is_empty() {
            return Err("the descriptor's name is empty".into());
        }
        if answer.config_schema.len() > MAX_SCHEMA_BYTES {
            return Err(format!(
                "the descriptor's schema has more than {} KiB",
                MAX_SCHEMA_BYTES >> 10
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
