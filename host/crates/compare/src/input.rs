//! Input of a comparison.

use std::fmt;

use veeksha_model::{Better, Nanos};

use crate::load::RequestedLoad;
use crate::request_share::RequestShare;
use crate::timed_samples::TimedSamples;

/// One side of a comparison: runs of the same thing.
#[derive(Clone, Debug)]
pub struct CompareSide {
    /// Display name: `A`, `v0.11`, a folder.
    pub label: String,
    /// At least one run. Several runs show the noise between runs.
    pub runs: Vec<RunData>,
}

/// The compared data of a run.
#[derive(Clone, Debug, Default)]
pub struct RunData {
    /// Display name.
    pub label: String,
    /// Name, description and tags of its scenario.
    pub scenario: ScenarioLabel,
    /// Digests of the planned work: of the first `n` sessions, for several `n`, ascending. `None`
    /// if unknown.
    pub workload: Option<Vec<(u64, String)>>,
    /// The requests that were sent in the first `n` sessions, for several `n`, ascending. `None` if
    /// unknown.
    pub sent: Option<Vec<SentSoFar>>,
    /// Flattened configuration: `("traffic.rate", "10")`.
    pub settings: Vec<(String, String)>,
    /// First intended instant of a request, and the end of the last answer.
    pub window: Option<(Nanos, Nanos)>,
    /// Location of the run, which identifies it.
    pub place: Option<String>,
    /// Name in its record, which only copies of the run share.
    pub recorded_as: Option<String>,
    /// Share of the prompt tokens, as counted by the server, that its prefix cache had; `None` if
    /// it is not reported.
    pub cached_share: Option<f64>,
    /// Answered requests, out of those that the schedule intended. `None` if unknown.
    pub answered: Option<RequestShare>,
    /// Requested load. `None` if unknown.
    pub load: Option<RequestedLoad>,
    /// Definition of good requests.
    pub good_requests: GoodRequests,
    /// Certificate's verdict on the whole run.
    pub trust: Trust,
    /// Values of the whole run.
    pub run_metrics: Vec<RunValueData>,
    /// Metrics with their samples.
    pub metrics: Vec<MetricData>,
}

/// Definition of the good requests of a run by the SLOs of its scenario, which `goodput` and
/// `good_requests_per_second` need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GoodRequests {
    /// The scenario has no SLO, condition or request check that defines them.
    #[default]
    Undefined,
    /// They are defined.
    Defined,
    /// The SLOs are unknown or cannot be judged, for this reason.
    Unknown(String),
}

/// Name, description and tags of a scenario, all optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScenarioLabel {
    /// Name.
    pub name: Option<String>,
    /// Description.
    pub description: Option<String>,
    /// Tags.
    pub tags: Vec<String>,
}

/// `nightly: chat with a warm cache (tags: chat, cache)`.
impl fmt::Display for ScenarioLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<&str> = self
            .name
            .iter()
            .chain(&self.description)
            .map(String::as_str)
            .collect();
        f.write_str(&texts.join(": "))?;
        if self.tags.is_empty() {
            return Ok(());
        }
        let space = if texts.is_empty() { "" } else { " " };
        write!(f, "{space}(tags: {})", self.tags.join(", "))
    }
}

/// The requests that a run sent in its first sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentSoFar {
    /// The number of sessions.
    pub sessions: u64,
    /// The number of requests.
    pub requests: u64,
    /// Digest of the requests' bodies.
    pub digest: String,
}

/// A certificate's verdict on a whole run or on one metric.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// The verdict.
    pub validity: Validity,
    /// Reasons, unless it is valid.
    pub why: Vec<String>,
}

/// Verdict of a run's certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Validity {
    /// The client's part in every certified metric is small.
    #[default]
    Valid,
    /// The client's part is not small, or unknown.
    Degraded,
    /// The metrics describe the client rather than the server.
    Invalid,
}

impl Validity {
    /// Returns the name used in certificates.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Validity::Valid => "VALID",
            Validity::Degraded => "DEGRADED",
            Validity::Invalid => "INVALID",
        }
    }
}

/// A value of the whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunValueData {
    /// Name, such as `error_rate`.
    pub name: String,
    /// Unit; `1` for a share.
    pub unit: String,
    /// Better direction.
    pub better: Better,
    /// Value; omitted if it is not finite.
    pub value: f64,
    /// Contributions of the requests; `None`: the error within the run is unknown.
    pub parts: Option<ValueParts>,
    /// True if it grows with the requested load, like rates and counts: it is judged only between
    /// runs with the same load.
    pub grows_with_load: bool,
}

impl RunValueData {
    /// Returns true if it is a share, from 0 to 1.
    pub(crate) fn is_share(&self) -> bool {
        self.unit == "1"
    }

    /// Creates a value without contributions.
    pub fn new(name: &str, unit: &str, better: Better, value: f64) -> Self {
        RunValueData {
            name: name.to_owned(),
            unit: unit.to_owned(),
            better,
            value,
            parts: None,
            grows_with_load: false,
        }
    }
}

/// Contributions to a value of the whole run.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueParts {
    /// It is a share of requests: 1 for each that counts, 0 for each other.
    Outcomes(TimedSamples),
    /// It is the weighted mean of these samples.
    Mean(TimedSamples),
    /// It is a rate: the sum of these amounts ÷ the seconds of the window. Amounts of 0 may be left
    /// out.
    Amounts {
        /// Amounts at their instants.
        samples: TimedSamples,
        /// Begin and end of the window.
        window: (Nanos, Nanos),
    },
}

impl ValueParts {
    /// Returns the samples, whatever their meaning.
    pub(crate) fn samples(&self) -> &TimedSamples {
        match self {
            ValueParts::Outcomes(samples)
            | ValueParts::Mean(samples)
            | ValueParts::Amounts { samples, .. } => samples,
        }
    }
}

/// A metric of a run.
#[derive(Clone, Debug)]
pub struct MetricData {
    /// Name, such as `ttfc`.
    pub name: String,
    /// Unit: `s`, `tokens`, `1` for a ratio.
    pub unit: String,
    /// True if the values are shares, from 0 to 1, which are shown in percent.
    pub is_share: bool,
    /// Better direction.
    pub better: Better,
    /// Samples.
    pub samples: TimedSamples,
    /// Bound on the client's error, if known.
    pub client_error: Option<ClientError>,
    /// Certificate's verdict on it. An invalid metric does not affect the others.
    pub trust: Trust,
    /// Reason why it cannot be compared between runs, for example because it is relative to the run
    /// itself. It is shown but not judged.
    pub not_judged: Option<String>,
    /// True if it contains the prefill of prompts, which cached prompt tokens shorten.
    pub contains_prefill: bool,
}

impl MetricData {
    /// Creates a valid metric that can be judged and is not a share.
    pub fn new(name: &str, unit: &str, better: Better, samples: TimedSamples) -> Self {
        MetricData {
            name: name.to_owned(),
            unit: unit.to_owned(),
            is_share: false,
            better,
            samples,
            client_error: None,
            trust: Trust::default(),
            not_judged: None,
            contains_prefill: false,
        }
    }
}

/// Bound on the client's error of a metric, in the metric's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientError {
    /// Mean absolute error of a sample: bound for means and medians.
    pub mean: f64,
    /// 99th percentile of the absolute errors: bound for higher percentiles.
    pub p99: f64,
}
