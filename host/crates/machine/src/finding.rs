//! A single factor that affects the accuracy of measurements on this machine.

use serde::Serialize;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// No action is needed.
    Good,
    /// Results are valid, but could be more accurate.
    Advice,
    /// The expected load cannot be generated, or its results are unreliable.
    Bad,
}

/// A single factor that affects the accuracy of measurements on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MachineFinding {
    /// The checked property, for example `open files`.
    pub name: &'static str,
    /// Severity for a measurement.
    pub state: State,
    /// The observed value, for example `20000 (hard limit 20000)`.
    pub found: String,
    /// Reason for its relevance, in one sentence.
    pub why: String,
    /// The exact command or setting that improves it, if there is one.
    pub remedy: Option<String>,
}

/// The load that this machine is expected to generate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedLoad {
    /// Answers that stream at the same time. Each holds a connection, and thus a file and a local
    /// port.
    pub streams: u32,
    /// New requests per second.
    pub requests_per_second: f64,
}
