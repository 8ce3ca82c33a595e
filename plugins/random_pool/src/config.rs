//! The configuration: the keys of `flavor`.

#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;
use veeksha_plugin::conversation::OutputControl;

/// The trace flavor `random_pool`.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The kind of limit on the length of an answer: exactly (exact), at most (`at_most`), or not
    /// at all (free).
    #[cfg_attr(test, schemars(with = "String", extend("enum" = ["exact", "at_most", "free"])))]
    pub output_control: OutputControl,
    /// Tokens asked for in every answer. Null: the server decides.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub output_tokens: Option<u32>,
    /// Tokens of unique text before each prompt, so that no prefix cache knows it from an
    /// earlier pass. 0: none.
    pub cache_bust_tokens: u32,
}
