//! The configuration: the keys of `flavor`.

#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;
use veeksha_plugin::flavor::HistoryMode;

/// The trace flavor `shared_prefix`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// A text file; the text of later turns is cut from it. Empty: synthetic text.
    pub corpus_file: Option<String>,
    /// Tokens of the block that a hash id names.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub block_size: u32,
    /// The earlier conversation that a later request of a session sends.
    pub history: History,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            corpus_file: None,
            block_size: 512,
            history: History::Live,
        }
    }
}

/// The earlier conversation that a later request of a session sends.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema, serde::Serialize))]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// The requests before it, each with the model's real answer.
    #[default]
    Live,
    /// Nothing.
    Fresh,
}

impl From<History> for HistoryMode {
    fn from(history: History) -> Self {
        match history {
            History::Live => HistoryMode::Live,
            History::Fresh => HistoryMode::Fresh,
        }
    }
}
