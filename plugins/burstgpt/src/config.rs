//! The configuration.

#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;

/// The trace flavor `burstgpt`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema, serde::Serialize))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The prompt of a later turn of a conversation.
    pub history: History,
    /// The wait of a later turn of a conversation after the answer to the turn before it.
    pub think_time: ThinkTime,
    /// Tokens that a failed request (one with 0 response tokens) is sent with. Null: failed
    /// requests are left out; a session that has no others is a bad row.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub failed_output_tokens: Option<u32>,
}

/// The prompt of a later turn of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema, serde::Serialize))]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// Its request tokens less all tokens of the turn before it, after that
    /// conversation with its real answers. Where they do not have more, the whole request by
    /// itself.
    Live,
    /// The whole request by itself.
    Fresh,
}

/// The wait of a later turn of a conversation after the answer to the turn before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema, serde::Serialize))]
#[serde(rename_all = "snake_case")]
pub enum ThinkTime {
    /// As recorded: from the end of the answer before it (`Timestamp` and `Elapsed time` of that
    /// row) to its `Timestamp`. Where no elapsed time is recorded, not at all.
    Recorded,
    /// Not at all.
    None,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            history: History::Live,
            think_time: ThinkTime::Recorded,
            failed_output_tokens: None,
        }
    }
}
