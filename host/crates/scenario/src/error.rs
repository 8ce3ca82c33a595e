//! Errors of reading a scenario, before it is checked.

use crate::tree::Place;

/// An error of reading a scenario or an override.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// The text is not YAML.
    #[error("{file}:{line}: not valid YAML: {message}")]
    Yaml {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u32,
        /// The parser's message.
        message: String,
    },
    /// The text is YAML, but not of a form that a scenario can have.
    #[error("{file}:{line}: {message}")]
    Form {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u32,
        /// The problem and its fix.
        message: String,
    },
    /// The text is too long to be a scenario.
    #[error("{file}: {bytes} bytes exceed the limit of 10 MiB for a scenario")]
    TooLarge {
        /// The file.
        file: String,
        /// Its length in bytes.
        bytes: usize,
    },
    /// Several scenarios where one is required.
    #[error("{}this is a sweep of {} scenarios (`!expand`, or a list of scenarios); a single one is required here", at(.place), many(*.scenarios))]
    Sweep {
        /// The beginning of the sweep.
        place: Option<Place>,
        /// Number of scenarios.
        scenarios: u64,
    },
    /// A sweep has too many scenarios.
    #[error("{}the sweep has {} scenarios; at most {most} are allowed: reduce the values of `!expand`", at(.place), many(*.scenarios))]
    TooManyScenarios {
        /// The beginning of the sweep.
        place: Option<Place>,
        /// Number of scenarios.
        scenarios: u64,
        /// The maximum number.
        most: u64,
    },
    /// The scenarios of a sweep are too large together.
    #[error(
        "{}the {scenarios} scenarios of the sweep have {} values together; at most {most} are allowed: move long values into separate files", at(.place), many(*.values)
    )]
    SweepTooLarge {
        /// The beginning of the sweep.
        place: Option<Place>,
        /// Number of scenarios.
        scenarios: u64,
        /// Number of values.
        values: u64,
        /// The maximum number of values.
        most: u64,
    },
    /// An override's path cannot be read or followed.
    #[error("cannot set `{path}`: {message}")]
    Path {
        /// The path as typed.
        path: String,
        /// The problem with the path.
        message: String,
    },
    /// An override's value is missing, or begins like a YAML list, table or quoted text but is not
    /// one.
    #[error("cannot set `{path}` to `{value}`: {message}")]
    Value {
        /// The path as typed.
        path: String,
        /// The value as typed.
        value: String,
        /// The problem with the value.
        message: String,
    },
}

fn at(place: &Option<Place>) -> String {
    place
        .as_ref()
        .map(|place| format!("{place}: "))
        .unwrap_or_default()
}

/// Formats a saturating count.
fn many(count: u64) -> String {
    if count == u64::MAX {
        "more than 10^19".to_owned()
    } else {
        count.to_string()
    }
}
