//! The first line of the file.

use serde::{Deserialize, Serialize};

use crate::error::DecisionsError;

/// Version of the file's format.
const VERSION: u64 = 1;
/// Version of the plugin contract, whose nodes the lines describe.
const CONTRACT: &str = "0.2.0";
/// The value of `format`.
const FORMAT: &str = "veeksha-host decisions";

/// The origin of the decisions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionsOrigin {
    /// The name of the plugin that decided.
    pub plugin: String,
    /// Its version.
    pub plugin_version: String,
    /// BLAKE3 of its code, in hex.
    pub plugin_digest: String,
    /// The seed of the run.
    pub seed: u64,
    /// The run's id; `None` in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
}

#[derive(Serialize)]
struct WrittenHeader<'a> {
    format: &'static str,
    version: u64,
    contract: &'static str,
    #[serde(flatten)]
    origin: &'a DecisionsOrigin,
}

/// The versions, which a file of any version has.
#[derive(Deserialize)]
struct VersionKeys {
    format: String,
    version: serde_json::Value,
    #[serde(default)]
    contract: serde_json::Value,
}

/// The first line.
pub(crate) struct HeaderLine;

impl HeaderLine {
    /// Appends the line, without its line feed.
    pub(crate) fn write(line: &mut Vec<u8>, origin: &DecisionsOrigin) -> serde_json::Result<()> {
        let header = WrittenHeader {
            format: FORMAT,
            version: VERSION,
            contract: CONTRACT,
            origin,
        };
        serde_json::to_writer(line, &header)
    }

    /// Reads the line.
    pub(crate) fn read(line: &[u8]) -> Result<DecisionsOrigin, DecisionsError> {
        let damaged = |error: serde_json::Error| DecisionsError::Damaged {
            line: 1,
            why: error.to_string(),
        };
        let keys: VersionKeys = serde_json::from_slice(line).map_err(damaged)?;
        if keys.format != FORMAT {
            return Err(DecisionsError::Damaged {
                line: 1,
                why: format!("`format` is not `{FORMAT}`"),
            });
        }
        if keys.version != VERSION || keys.contract != CONTRACT {
            let text = |value: &serde_json::Value| match value {
                serde_json::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            return Err(DecisionsError::OtherVersion {
                found: format!("{} (contract {})", text(&keys.version), text(&keys.contract)),
                known: format!("{VERSION} (contract {CONTRACT})"),
            });
        }
        serde_json::from_slice(line).map_err(damaged)
    }
}
