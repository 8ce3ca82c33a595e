//! The configuration: the keys of `flavor`.

#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;
use veeksha_plugin::conversation::OutputControl;
use veeksha_plugin::flavor::HistoryMode;

/// The trace flavor `multi_turn`.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The earlier conversation that a request sends: the model's real answers (live), the
    /// recorded ones (recorded), or nothing (fresh).
    #[cfg_attr(test, schemars(with = "String", extend("enum" = ["live", "recorded", "fresh"])))]
    pub history: HistoryMode,
    /// The kind of limit on the length of an answer: exactly (exact), at most (`at_most`), or not
    /// at all (free).
    #[cfg_attr(test, schemars(with = "String", extend("enum" = ["exact", "at_most", "free"])))]
    pub output_control: OutputControl,
    /// Tokens asked for where a turn has no `output_length`. Null: as many as its recorded answer
    /// has; without one, the server decides.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub output_tokens: Option<u32>,
    /// The `timestamp` of turns at which the trace begins, in milliseconds. Null: that of the first
    /// turn in the file.
    pub timestamp_origin_ms: Option<f64>,
    /// Tokens of unique text before each conversation, so that no prefix cache knows it from an
    /// earlier pass. 0: none.
    pub cache_bust_tokens: u32,
}
