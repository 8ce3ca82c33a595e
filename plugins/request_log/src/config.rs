//! What the user writes under `flavor`.

#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;
use veeksha_plugin::flavor::HistoryMode;

/// The trace flavor `request_log`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// What a later request of a session sends of the conversation.
    pub history: History,
}

/// What a later request of a session sends of the conversation.
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
