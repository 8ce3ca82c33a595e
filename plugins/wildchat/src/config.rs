//! The configuration: the keys of `flavor`.

#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;
use veeksha_plugin::conversation::OutputControl;
use veeksha_plugin::flavor::{HistoryMode, TimeUnit};

/// The trace flavor `wildchat`.
#[derive(Debug, PartialEq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Requests of a conversation at most, from its beginning. Null: all of them.
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
    /// The longest time in seconds that a person is taken to think; what was longer is cut to it.
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    pub max_think_time_s: f64,
    /// The output tokens per second of the recorded model. With it, the time of a question that was
    /// not recorded is that of its answer without the time of writing it. Null: it is that of its
    /// answer.
    #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
    pub recorded_tokens_per_s: Option<f64>,
    /// The time format of `timestamp`, in rows and in messages.
    pub timestamp_unit: Unit,
    /// Only conversations in these languages. Empty: all.
    pub languages: Vec<String>,
    /// Only conversations with these models. Empty: all.
    pub models: Vec<String>,
    /// True if conversations that are marked as toxic are left out.
    pub skip_toxic: bool,
    /// True if conversations in which personal data was replaced are left out.
    pub skip_redacted: bool,
    /// Tokens of unique text before each conversation, so that no prefix cache knows it from an
    /// earlier pass. 0: none.
    pub cache_bust_tokens: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            max_turns: None,
            history: HistoryMode::default(),
            output_control: OutputControl::default(),
            output_tokens: None,
            max_think_time_s: 600.0,
            recorded_tokens_per_s: None,
            timestamp_unit: Unit::default(),
            languages: Vec::new(),
            models: Vec::new(),
            skip_toxic: false,
            skip_redacted: false,
            cache_bust_tokens: 0,
        }
    }
}

/// The form of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema, serde::Serialize))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// ISO 8601; without an offset it is UTC.
    #[default]
    DateTime,
    /// Seconds since 1970.
    Seconds,
    /// Milliseconds since 1970.
    Milliseconds,
    /// Microseconds since 1970.
    Microseconds,
}

impl Unit {
    /// Nanoseconds in one, where it is a number.
    pub(crate) fn nanos(self) -> Option<f64> {
        match self {
            Unit::DateTime => None,
            Unit::Seconds => Some(1e9),
            Unit::Milliseconds => Some(1e6),
            Unit::Microseconds => Some(1e3),
        }
    }
}

impl From<Unit> for TimeUnit {
    fn from(unit: Unit) -> Self {
        match unit {
            Unit::DateTime => TimeUnit::DateTime,
            Unit::Seconds => TimeUnit::Seconds,
            Unit::Milliseconds => TimeUnit::Milliseconds,
            Unit::Microseconds => TimeUnit::Microseconds,
        }
    }
}
