//! One thing that bears on how accurate a measurement can be here.

use serde::Serialize;

/// How a finding bears on a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing to do.
    Good,
    /// Figures hold, and would be better otherwise.
    Advice,
    /// The expected load cannot be driven, or its figures cannot be trusted.
    Bad,
}

/// One thing that bears on how accurate a measurement can be here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at, for example `open files`.
    pub name: &'static str,
    /// How it bears on a measurement.
    pub state: State,
    /// What is the case, for example `20000 (hard limit 20000)`.
    pub found: String,
    /// Why it matters, in a sentence.
    pub why: String,
    /// The exact command or setting that improves it, where there is one.
    pub remedy: Option<String>,
}

/// The load that this machine is asked to drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedLoad {
    /// Answers that stream at the same time: each holds a connection, hence a file and a local port.
    pub streams: u32,
    /// New requests each second.
    pub requests_per_second: f64,
}
