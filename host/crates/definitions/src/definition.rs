//! The facts about a metric from which every view derives.

use veeksha_model::Better;

use crate::observation::Observation;
use crate::table::Metric;

/// The thing that one value of a metric or aggregate describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// A request. Goodput checks such objectives for each request.
    Request,
    /// A gap within a request. Goodput checks the same statistic over each request's gaps.
    Gap,
    /// A session.
    Session,
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
}

/// The method by which the client's error of a metric is certified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certification {
    /// The metric has a separate error bound.
    Own,
    /// The metric is computed from the same instants as another one, whose bound covers it.
    As(Metric),
    /// The client's timing does not affect it.
    Exempt,
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
}

/// The facts about a metric.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// The name in configuration and files; Veeksha's name where Veeksha has the metric.
    pub name: &'static str,
    /// Further accepted names, mostly those of other tools.
    pub aliases: &'static [&'static str],
    /// The name in Veeksha's `slo_results.json`, where it differs.
    pub slo_name: Option<&'static str>,
    /// The name in the keys of `summary_stats.json`.
    pub display: &'static str,
    /// The name in terminal tables and plots, in industry terms.
    pub title: &'static str,
    /// The abbreviation in messages.
    pub short: &'static str,
    /// The unit of its values; `1` for a ratio.
    pub unit: &'static str,
    /// True if the values are shares, from 0 to 1.
    pub is_share: bool,
    /// The direction in which it improves.
    pub better: Better,
    /// The thing that one sample describes.
    pub scope: Scope,
    /// One line: the formula in prose.
    pub definition: &'static str,
    /// The author of the definition, or the origin of the formula.
    pub source: &'static str,
    /// The origin of the samples.
    pub samples: Samples,
    /// True if an answer that failed midway still has a sample.
    pub of_failed: bool,
    /// The method by which the client's error is certified.
    pub certification: Certification,
    /// True if the value depends on the number of an answer's output tokens. Where independent
    /// counts disagree, such metrics are marked.
    pub uses_token_counts: bool,
    /// True if the metric starts at the scheduled instant. Where traffic has no schedule, the
    /// certificate does not rate such metrics.
    pub from_schedule: bool,
    /// The property that a workload must have for the metric to have samples.
    pub needs: Needs,
    /// The reason why two runs cannot be compared by this metric, if any.
    pub not_comparable: Option<&'static str>,
    /// The rank in the summary table on the terminal and at the top of the report page; `None` for
    /// metrics that appear in files only.
    pub rank: Option<u8>,
    /// True if time slices summarize the metric.
    pub in_slices: bool,
    /// True if the report page has a value for each request, and charts of the values.
    pub charted: bool,
}

/// The defaults of an entry: a latency of requests that appears in files only.
pub(crate) const LATENCY: Definition = Definition {
    name: "",
    aliases: &[],
    slo_name: None,
    display: "",
    title: "",
    short: "",
    unit: "s",
    is_share: false,
    better: Better::Less,
    scope: Scope::Request,
    definition: "",
    source: "",
    samples: Samples::Session,
    of_failed: false,
    certification: Certification::Exempt,
    uses_token_counts: false,
    from_schedule: false,
    needs: Needs::Nothing,
    not_comparable: None,
    rank: None,
    in_slices: false,
    charted: false,
};

/// The defaults of a token count.
pub(crate) const TOKENS: Definition = Definition {
    unit: "tokens",
    better: Better::Neither,
    ..LATENCY
};

/// The defaults of a session metric.
pub(crate) const SESSION: Definition = Definition {
    scope: Scope::Session,
    samples: Samples::Session,
    ..LATENCY
};
