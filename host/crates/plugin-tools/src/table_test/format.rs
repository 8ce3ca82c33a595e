//! The format of test files. Doc comments are the documentation of the keys.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::request_input::RequestInput;
use crate::play::{Remaining, ScriptedEnd};

/// The seed of tests that state none.
pub(crate) const SEED: u64 = 42;

/// A test file.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TestFile {
    /// The tests.
    #[serde(default)]
    pub(crate) test: Vec<TestCase>,
}

/// A test: an input, and the expected result.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TestCase {
    /// The name, unique in the project.
    pub(crate) name: String,
    /// The kind to test. Needed only if the plugin has several.
    #[serde(default)]
    pub(crate) kind: Option<String>,
    /// The configuration.
    #[serde(default)]
    pub(crate) config: Option<BTreeMap<String, Value>>,
    /// The seed of the run.
    #[serde(default = "seed")]
    pub(crate) seed: u64,
    /// Granted files: paths relative to the project, by name.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, PathBuf>,

    /// Generators and flavors: the indices of the sessions, or the number of the first sessions.
    #[serde(default)]
    pub(crate) sessions: Option<SessionChoice>,
    /// Agents: the ends of nodes, in order.
    #[serde(default)]
    pub(crate) answers: Vec<ScriptedEnd>,
    /// Agents: the treatment of nodes that are open after the last of `answers`.
    #[serde(default)]
    pub(crate) then: Remaining,

    /// Arrival processes: the number of arrivals.
    #[serde(default)]
    pub(crate) arrivals: Option<u32>,
    /// Flavors: a trace, relative to the project.
    #[serde(default)]
    pub(crate) trace: Option<PathBuf>,
    /// Flavors: the rows of the trace, in place of a file.
    #[serde(default)]
    pub(crate) rows: Vec<BTreeMap<String, Value>>,
    /// Codecs: the events of an answer.
    #[serde(default)]
    pub(crate) events: Vec<String>,
    /// Metrics and request checks: finished requests.
    #[serde(default)]
    pub(crate) requests: Vec<RequestInput>,
    /// SLO checks: the results of a run.
    #[serde(default)]
    pub(crate) results: Option<ResultsInput>,

    /// A scenario to simulate, relative to the project.
    #[serde(default)]
    pub(crate) scenario: Option<PathBuf>,
    /// Keys of the scenario to set: `runtime.max_sessions=5`.
    #[serde(default)]
    pub(crate) set: Vec<String>,

    /// Conditions on the result: `sessions[0].requests.length == 3`.
    #[serde(default)]
    pub(crate) expect: Vec<String>,
    /// The expected error.
    #[serde(default)]
    pub(crate) error: Option<ExpectedError>,
    /// True to compare the result with a file in `tests/snapshots`.
    #[serde(default)]
    pub(crate) snapshot: bool,
}

fn seed() -> u64 {
    SEED
}

/// The sessions of a test.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum SessionChoice {
    /// The first sessions.
    Count(u32),
    /// Sessions by their indices.
    Indices(Vec<u64>),
}

impl Default for SessionChoice {
    fn default() -> Self {
        SessionChoice::Count(1)
    }
}

impl SessionChoice {
    /// Returns the indices.
    pub(crate) fn indices(&self) -> Vec<u64> {
        match self {
            SessionChoice::Count(count) => (0..u64::from(*count)).collect(),
            SessionChoice::Indices(indices) => indices.clone(),
        }
    }
}

/// An expected error of the plugin. Texts are parts of what the plugin returns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ExpectedError {
    /// The error's code.
    pub(crate) code: Option<String>,
    /// The path into the configuration.
    pub(crate) path: Option<String>,
    /// A part of the message.
    pub(crate) message: Option<String>,
}

/// The results of a run, for SLO checks.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ResultsInput {
    /// Samples of metrics by name.
    pub(crate) metrics: BTreeMap<String, Vec<f64>>,
    /// Values of run metrics by name.
    pub(crate) aggregates: BTreeMap<String, f64>,
}
