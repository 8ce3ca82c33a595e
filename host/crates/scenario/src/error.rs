//! Errors of reading a scenario, before it is checked.

use crate::Place;

/// Why a scenario, or an override of one, could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// The text is not YAML.
    #[error("{file}:{line}: not valid YAML: {message}")]
    Yaml {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u32,
        /// What the parser says.
        message: String,
    },
    /// The text is YAML, but of a form that a scenario cannot have.
    #[error("{file}:{line}: {message}")]
    Form {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u32,
        /// What is wrong, and what to write instead.
        message: String,
    },
    /// The text is too long to be a scenario.
    #[error("{file}: {bytes} bytes are too many for a scenario; the limit is 10 MiB")]
    TooLarge {
        /// The file.
        file: String,
        /// Its length.
        bytes: usize,
    },
    /// There are several scenarios where one is needed.
    #[error("{}this is a sweep of {} scenarios (`!expand`, or a list of scenarios); one is needed here", at(.place), many(*.scenarios))]
    Sweep {
        /// Where it begins.
        place: Option<Place>,
        /// How many.
        scenarios: u64,
    },
    /// A sweep has too many scenarios.
    #[error("{}the sweep has {} scenarios; at most {most} are possible: name fewer values behind `!expand`", at(.place), many(*.scenarios))]
    TooManyScenarios {
        /// Where it begins.
        place: Option<Place>,
        /// How many.
        scenarios: u64,
        /// How many there may be.
        most: u64,
    },
    /// The scenarios of a sweep are too large together.
    #[error(
        "{}the {scenarios} scenarios of the sweep have {} values together; at most {most} are possible: move what is long into \
         files of their own", at(.place), many(*.values)
    )]
    SweepTooLarge {
        /// Where it begins.
        place: Option<Place>,
        /// How many scenarios.
        scenarios: u64,
        /// How many values.
        values: u64,
        /// How many there may be.
        most: u64,
    },
    /// An override's path cannot be read or followed.
    #[error("cannot set `{path}`: {message}")]
    Path {
        /// The path as typed.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// An override's value is missing, or begins like a YAML list, table or quoted text and is none.
    #[error("cannot set `{path}` to `{value}`: {message}")]
    Value {
        /// The path as typed.
        path: String,
        /// The value as typed.
        value: String,
        /// What is wrong with it.
        message: String,
    },
}

fn at(place: &Option<Place>) -> String {
    place
        .as_ref()
        .map(|place| format!("{place}: "))
        .unwrap_or_default()
}

/// Counts saturate.
fn many(count: u64) -> String {
    if count == u64::MAX {
        "more than 10^19".to_owned()
    } else {
        count.to_string()
    }
}
