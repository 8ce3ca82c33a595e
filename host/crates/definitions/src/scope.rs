//! The scope of a metric, the origin of its samples, and the workloads that have any.

use crate::observation::Observation;
use crate::tool_times::ToolTimes;

/// The thing that one value of a metric or aggregate describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// A request. Goodput checks such objectives for each request.
    Request,
    /// A gap within a request. Goodput checks the same statistic over each request's gaps.
    Gap,
    /// A session.
    Session,
    /// A tool run.
    ToolRun,
    /// The whole run.
    Run,
}

impl Scope {
    /// The lower-case name in files.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Request => "request",
            Scope::Gap => "gap",
            Scope::Session => "session",
            Scope::ToolRun => "tool_run",
            Scope::Run => "run",
        }
    }

    /// Returns true if each request has its own values.
    pub fn is_within_request(self) -> bool {
        matches!(self, Scope::Request | Scope::Gap)
    }
}

/// The origin of a metric's samples.
#[derive(Clone, Copy, Debug)]
pub enum Samples {
    /// One value of a request, or none.
    Request(fn(&Observation) -> Option<f64>),
    /// The gaps between the chunks of a request.
    ChunkGaps,
    /// The gaps between the tokens of a request.
    TokenGaps,
    /// One value of a session.
    Session,
    /// One value for each request that follows another one in its session.
    ThinkTimes,
    /// One value of a tool run.
    ToolRun(fn(&ToolTimes) -> f64),
}

/// The property that a workload must have for a metric to have samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Every workload can have samples.
    Nothing,
    /// Answers of at least two tokens.
    TwoTokens,
    /// Sessions in which a request follows another.
    TwoRequests,
    /// Sessions that run tools of the scenario.
    Tools,
}
