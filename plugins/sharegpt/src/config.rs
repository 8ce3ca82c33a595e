//! The configuration: the keys of `flavor`.

#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;
use veeksha_plugin::conversation::OutputControl;
use veeksha_plugin::flavor::HistoryMode;

/// The trace flavor `sharegpt`.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Requests of a conversation at most, from its beginning. Null: all of them. vLLM's benchmark
    /// sends 1.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub max_turns: Option<u32>,
    /// The earlier conversation that a request sends: the model's real answers (live), the
    /// recorded ones (recorded), or nothing (fresh).
    #[cfg_attr(test, schemars(with = "String", extend("enum" = ["live", "recorded", "fresh"])))]
    pub history: HistoryMode,
    /// The kind of limit on the length of an answer: exactly (exact), at most (`at_most`), or not
    /// at all (free).
    #[cfg_attr(test, schemars(with = "String", extend("enum" = ["exact", "at_most", "free"])))]
    pub output_control: OutputControl,
    /// Tokens asked for in every answer. Null: as many as the recorded answer has.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub output_tokens: Option<u32>,
    /// The fewest tokens of a request's own messages. A conversation with a shorter one is refused.
    pub min_prompt_tokens: Option<u32>,
    /// The most tokens of a request's own messages. A conversation with a longer one is refused.
    /// vLLM: 1024.
    pub max_prompt_tokens: Option<u32>,
    /// The fewest tokens of a recorded answer; ignored with `output_tokens`. vLLM: 4, for
    /// prompts too.
    pub min_output_tokens: Option<u32>,
    /// The most tokens of an answer. A conversation with a longer one is refused.
    pub max_output_tokens: Option<u32>,
    /// The most tokens of all that is sent and answered in a conversation, as far as it is
    /// replayed. vLLM: 2048.
    pub max_total_tokens: Option<u32>,
    /// Tokens of unique text before each conversation, so that no prefix cache knows it from an
    /// earlier pass. 0: none.
    pub cache_bust_tokens: u32,
}
