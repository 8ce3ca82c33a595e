//! The configuration: the keys of `flavor`.

#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;
use veeksha_plugin::flavor::{HistoryMode, TimeUnit};

/// The trace flavor `request_log`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The earlier conversation that a later request of a session sends.
    pub history: History,
    /// The time format of the column `timestamp`.
    pub timestamp_unit: Unit,
}

/// The earlier conversation that a later request of a session sends.
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

/// The time format of a column.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema, serde::Serialize))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A number of seconds.
    #[default]
    Seconds,
    /// A number of milliseconds.
    Milliseconds,
    /// A number of microseconds.
    Microseconds,
    /// A number of nanoseconds.
    Nanoseconds,
    /// A date and a time: ISO 8601, or `YYYY-MM-DD hh:mm:ss.fff`. Without an offset it is UTC.
    DateTime,
}

impl From<Unit> for TimeUnit {
    fn from(unit: Unit) -> Self {
        match unit {
            Unit::Seconds => TimeUnit::Seconds,
            Unit::Milliseconds => TimeUnit::Milliseconds,
            Unit::Microseconds => TimeUnit::Microseconds,
            Unit::Nanoseconds => TimeUnit::Nanoseconds,
            Unit::DateTime => TimeUnit::DateTime,
        }
    }
}
