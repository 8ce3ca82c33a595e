//! The configuration.

#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;

/// The trace flavor `bailian`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema, serde::Serialize))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Tokens of a hash block; the published files have 16 in their names.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub block_size: u32,
    /// The wait of a turn after the answer to the turn before it.
    pub think_time: ThinkTime,
}

/// The wait of a turn after the answer to the turn before it. Traffic that replays recorded
/// arrivals sends it no earlier than recorded in either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema, serde::Serialize))]
#[serde(rename_all = "snake_case")]
pub enum ThinkTime {
    /// Not at all: the trace records when turns came, but not when they were answered.
    None,
    /// As long as it came after the turn before it, the time of the recorded answer included.
    RecordedGap,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            block_size: 16,
            think_time: ThinkTime::None,
        }
    }
}
