//! What is compared.

use veeksha_model::{Better, Nanos};

use crate::load::Load;
use crate::timed_samples::TimedSamples;
use crate::whole_run::Counted;

/// One side of a comparison: runs of the same thing.
#[derive(Clone, Debug)]
pub struct Side {
    /// Its name, for people: `A`, `v0.11`, a folder.
    pub label: String,
    /// At least one. Several tell how much such runs differ by themselves.
    pub runs: Vec<RunData>,
}

/// A run, as far as it is compared.
#[derive(Clone, Debug, Default)]
pub struct RunData {
    /// Its name, for people.
    pub label: String,
    /// Digests of what the workload wants: of the first `n` sessions, for several `n`, ascending. `None` if they are not known.
    pub workload: Option<Vec<(u64, String)>>,
    /// The configuration, flattened: `("traffic.rate", "10")`.
    pub settings: Vec<(String, String)>,
    /// The first instant at which the schedule asked for a request, and the end of the last answer.
    pub window: Option<(Nanos, Nanos)>,
    /// Where it lies, to tell whether two are the same one.
    pub place: Option<String>,
    /// The name that its record bears, which a copy of it bears too and no other run.
    pub recorded_as: Option<String>,
    /// Of the prompt tokens, as the server counts them, the share that it had in its prefix cache; `None` if it does not tell.
    pub cached_share: Option<f64>,
    /// Requests that were answered with something, of those that the schedule asked for. `None` if they are not known.
    pub answered: Option<Counted>,
    /// What it was asked to send. `None` if it is not known.
    pub load: Option<Load>,
    /// What its certificate says of the run as a whole.
    pub trust: Trust,
    /// Figures of the whole run.
    pub figures: Vec<FigureData>,
    /// Metrics with their samples.
    pub metrics: Vec<MetricData>,
}

/// What a run's certificate says of the whole of it, or of one metric.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// The verdict.
    pub validity: Validity,
    /// Why it is not valid, each reason in words.
    pub why: Vec<String>,
}

/// What a run's certificate comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Validity {
    /// The client's part in every certified metric is small.
    #[default]
    Valid,
    /// The client's part is not small, or not known.
    Degraded,
    /// The figures say more about the client than about the server.
    Invalid,
}

impl Validity {
    /// As certificates write it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Validity::Valid => "VALID",
            Validity::Degraded => "DEGRADED",
            Validity::Invalid => "INVALID",
        }
    }
}

/// A figure of the whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureData {
    /// Its name: `error_rate`.
    pub name: String,
    /// Its unit; `1` for a share.
    pub unit: String,
    /// Which way it is good.
    pub better: Better,
    /// Finite; one that is not is left out.
    pub value: f64,
    /// What it is made of, request by request; `None`: nothing within the run tells how far it may be off.
    pub parts: Option<Parts>,
    /// Whether it grows with what is asked for, as rates and counts do: it is judged only between runs that were asked for the same.
    pub grows_with_load: bool,
}

impl FigureData {
    /// A figure of which nothing is known but its value.
    pub fn new(name: &str, unit: &str, better: Better, value: f64) -> Self {
        FigureData {
            name: name.to_owned(),
            unit: unit.to_owned(),
            better,
            value,
            parts: None,
            grows_with_load: false,
        }
    }
}

/// What a figure of the whole run is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Parts {
    /// It is a share of requests: 1 for each that counts, 0 for each that does not.
    Outcomes(TimedSamples),
    /// It is the weighted mean of these.
    Mean(TimedSamples),
    /// It is a rate: the sum of these amounts ÷ the seconds of the window. An amount of nothing adds nothing and may be left out.
    Amounts {
        /// Each at the instant at which it was there.
        samples: TimedSamples,
        /// From when to when.
        window: (Nanos, Nanos),
    },
}

impl Parts {
    /// The samples, whatever they add up to.
    pub(crate) fn samples(&self) -> &TimedSamples {
        match self {
            Parts::Outcomes(samples) | Parts::Mean(samples) | Parts::Amounts { samples, .. } => samples,
        }
    }
}

/// A metric of a run.
#[derive(Clone, Debug)]
pub struct MetricData {
    /// Its name: `ttfc`.
    pub name: String,
    /// Its unit: `s`, `tokens`, `1` for a ratio.
    pub unit: String,
    /// Which way it is good.
    pub better: Better,
    /// Its samples.
    pub samples: TimedSamples,
    /// How far the client may have falsified it, if that is known.
    pub client_error: Option<ClientError>,
    /// What the certificate says of it. A metric that is not valid leaves the others as they are.
    pub trust: Trust,
    /// Why two runs cannot be set against one another by it, in words: because its yardstick is the run itself, say. It is shown and not judged.
    pub not_judged: Option<String>,
}

impl MetricData {
    /// A metric that is valid and can be judged.
    pub fn new(name: &str, unit: &str, better: Better, samples: TimedSamples) -> Self {
        MetricData {
            name: name.to_owned(),
            unit: unit.to_owned(),
            better,
            samples,
            client_error: None,
            trust: Trust::default(),
            not_judged: None,
        }
    }
}

/// How far the client may have falsified a metric, in the metric's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientError {
    /// Mean absolute error of a sample: what means and medians are off by at most.
    pub mean: f64,
    /// 99th percentile of the absolute errors: what higher percentiles are off by at most.
    pub p99: f64,
}
