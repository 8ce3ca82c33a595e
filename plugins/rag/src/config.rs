//! The configuration: the keys of `flavor`.

#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;

/// The trace flavor `rag`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The number of documents that are kept: those with the most rows.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub num_documents: u32,
    /// True if the first row of each kept document is sent before the run begins.
    pub warmup: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            num_documents: 10,
            warmup: true,
        }
    }
}
