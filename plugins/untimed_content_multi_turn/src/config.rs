//! The configuration: the keys of `flavor`.

#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;
use veeksha_plugin::flavor::HistoryMode;

/// The trace flavor `untimed_content_multi_turn`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The column with the list of messages.
    pub conversation_column: String,
    /// The key of a message's role.
    pub role_key: String,
    /// The key of a message's content.
    pub content_key: String,
    /// The role of messages of the user.
    pub user_role_value: String,
    /// The role of answers.
    pub assistant_role_value: String,
    /// The role of instructions.
    pub system_role_value: String,
    /// The role of results of tools.
    pub tool_role_value: String,
    /// The earlier conversation that a later request sends.
    pub history: History,
    /// True if messages after the last answer are sent too; the length of their answer, the server
    /// decides.
    pub keep_unanswered: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            conversation_column: "conversations".into(),
            role_key: "from".into(),
            content_key: "value".into(),
            user_role_value: "human".into(),
            assistant_role_value: "gpt".into(),
            system_role_value: "system".into(),
            tool_role_value: "tool".into(),
            history: History::Recorded,
            keep_unanswered: false,
        }
    }
}

/// The earlier conversation that a later request sends.
#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(test, derive(JsonSchema, serde::Serialize))]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// The requests before it, each with its recorded answer.
    Recorded,
    /// The requests before it, each with the model's real answer.
    Live,
    /// Nothing.
    Fresh,
}

impl From<History> for HistoryMode {
    fn from(history: History) -> Self {
        match history {
            History::Recorded => HistoryMode::Recorded,
            History::Live => HistoryMode::Live,
            History::Fresh => HistoryMode::Fresh,
        }
    }
}
