//! The configuration.

#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;

/// The trace flavor `weka`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema, serde::Serialize))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where the ids of hash blocks mean the same.
    pub scope: Scope,
    /// The scope of the ids of hash blocks in a subagent.
    pub subagents: Subagents,
}

/// Where the ids of hash blocks mean the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema, serde::Serialize))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// As the row's `hash_id_scope` states: `global` is the file, `local` the conversation.
    /// Without it, the conversation.
    Recorded,
    /// In a conversation; those of others are other text.
    Conversation,
    /// In the whole file.
    File,
}

/// The scope of the ids of hash blocks in a subagent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema, serde::Serialize))]
#[serde(rename_all = "snake_case")]
pub enum Subagents {
    /// Something separate: what a subagent sends is in no cache but its own, as the format
    /// defines.
    Isolated,
    /// The same as in the conversation around it.
    Shared,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            scope: Scope::Recorded,
            subagents: Subagents::Isolated,
        }
    }
}
