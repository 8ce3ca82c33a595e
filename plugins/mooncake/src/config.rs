//! The configuration.

#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;

/// The trace flavor `mooncake`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema, serde::Serialize))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Tokens of a hash block: 512 in Mooncake's own traces, 64 or others where Dynamo wrote them.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub block_size: u32,
    /// The prompt of a later turn of a session.
    pub history: History,
}

/// The prompt of a later turn of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema, serde::Serialize))]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// Its whole prompt, as its hash blocks say; a turn before it is waited for, and not sent
    /// again.
    Fresh,
    /// Its prompt less the prompt and the answer of the turn before it, after that
    /// conversation with its real answers. The hash blocks of such a turn are ignored.
    Live,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            block_size: 512,
            history: History::Fresh,
        }
    }
}
