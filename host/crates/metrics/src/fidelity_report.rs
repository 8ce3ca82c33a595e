//! The figures of a replay's fidelity.

use serde_json::{Value, json};
use veeksha_stats::Summary;

use crate::json::spread;

/// What was recorded against what was achieved, over the measured requests that a trace had recorded. What could not be compared
/// is `None`, and `null` in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct FidelityReport {
    /// Measured requests that were recorded.
    pub requests: u64,
    /// Arrivals of sessions; `None` where arrivals were not replayed, or none was recorded.
    pub arrivals: Option<Arrivals>,
    /// Whole prompts: by the host's tokenizer against the recording; without what a chat template adds, unless the asked length
    /// includes it.
    pub prompt_tokens: Option<Lengths>,
    /// Whole prompts: as the server counts them against the recording.
    pub prompt_tokens_by_server: Option<Lengths>,
    /// Whole prompts: as the server counts them against the host's tokenizer.
    pub tokenizer_against_server: Option<Lengths>,
    /// Answers of answered requests against the recording.
    pub output_tokens: Option<Lengths>,
    /// Requests that wait for others.
    pub edges: Edges,
    /// What a prefix cache knew.
    pub prefix_hits: PrefixHits,
}

/// The arrivals of sessions' first requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrivals {
    /// Dispatched − recorded arrival as mapped by the schedule, in seconds.
    pub lateness: Summary,
    /// How far the gaps between successive arrivals are from the recorded ones, in seconds: the Wasserstein distance of order 1
    /// of the two samples of gaps, which is the mean of |achieved − recorded| over the gaps in ascending order. (The distance of
    /// Kolmogorov and Smirnov would call a microsecond between two arrivals recorded at one instant a wholly different
    /// distribution.) `None` for fewer than two arrivals.
    pub gap_distance: Option<f64>,
}

/// One count of tokens against another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lengths {
    /// Achieved − expected, in tokens.
    pub difference: Summary,
    /// Requests without difference ÷ requests compared.
    pub exact_share: f64,
    /// Sum of what was expected.
    pub expected: u64,
    /// Sum of what was achieved.
    pub achieved: u64,
}

/// Requests that wait for others, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Edges {
    /// Dispatched − due, where a request is due when its last parent has completed and its think time is over (and, where arrivals
    /// are replayed, not before its own recorded instant).
    pub slack: Option<Summary>,
    /// (Dispatched − last parent's completion) − the same gap in the recording, for requests whose recording has it.
    pub gap_difference: Option<Summary>,
}

/// Tokens of prompts that a prefix cache knew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixHits {
    /// Measured requests.
    pub requests: u64,
    /// Those of which the ideal is known.
    pub with_ideal: u64,
    /// Tokens that an unbounded cache would have known.
    pub ideal_tokens: u64,
    /// Prompt tokens of the requests of which the ideal is known, by the host's tokenizer, without what a chat template adds.
    pub ideal_of_tokens: u64,
    /// Requests whose server said how many tokens were cached.
    pub reporting: u64,
    /// Tokens that servers say were cached.
    pub measured_tokens: u64,
    /// Prompt tokens of the reporting requests, by the server's count.
    pub measured_of_tokens: u64,
    /// The ideal of the reporting requests alone.
    pub ideal_tokens_of_reporting: u64,
    /// Their prompt tokens, by the host's tokenizer.
    pub ideal_of_tokens_of_reporting: u64,
}

impl PrefixHits {
    /// Ideal hits ÷ prompt tokens, over all requests of which the ideal is known.
    pub fn ideal_rate(&self) -> Option<f64> {
        rate(self.ideal_tokens, self.ideal_of_tokens)
    }

    /// The same over the requests whose server reports hits: what [`measured_rate`](Self::measured_rate) compares with.
    pub fn ideal_rate_of_reporting(&self) -> Option<f64> {
        rate(self.ideal_tokens_of_reporting, self.ideal_of_tokens_of_reporting)
    }

    /// Reported hits ÷ prompt tokens, over the requests whose server reports hits.
    pub fn measured_rate(&self) -> Option<f64> {
        rate(self.measured_tokens, self.measured_of_tokens)
    }

    /// Requests whose server reports hits ÷ requests.
    pub fn coverage(&self) -> Option<f64> {
        rate(self.reporting, self.requests)
    }
}

fn rate(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl FidelityReport {
    /// `metrics/replay_fidelity.json`.
    pub fn replay_fidelity(&self) -> Value {
        let arrivals = self.arrivals.as_ref().map(|arrivals| {
            json!({
                "lateness": spread(&Some(arrivals.lateness)),
                "gap_wasserstein_distance": arrivals.gap_distance,
            })
        });
        let hits = &self.prefix_hits;
        json!({
            "requests": self.requests,
            "arrivals_replayed": self.arrivals.is_some(),
            "arrivals": arrivals,
            "prompt_tokens": lengths(&self.prompt_tokens),
            "prompt_tokens_by_server": lengths(&self.prompt_tokens_by_server),
            "tokenizer_against_server": lengths(&self.tokenizer_against_server),
            "output_tokens": lengths(&self.output_tokens),
            "edge_slack": spread(&self.edges.slack),
            "edge_gap_difference": spread(&self.edges.gap_difference),
            "prefix_hits": {
                "requests": hits.requests,
                "requests_with_ideal": hits.with_ideal,
                "requests_reporting": hits.reporting,
                "coverage": hits.coverage(),
                "ideal_tokens": (hits.with_ideal > 0).then_some(hits.ideal_tokens),
                "ideal_rate": hits.ideal_rate(),
                "measured_tokens": (hits.reporting > 0).then_some(hits.measured_tokens),
                "measured_rate": hits.measured_rate(),
                "ideal_rate_of_reporting": hits.ideal_rate_of_reporting(),
            },
        })
    }
}

fn lengths(lengths: &Option<Lengths>) -> Value {
    match lengths {
        None => Value::Null,
        Some(lengths) => json!({
            "exact_share": lengths.exact_share,
            "expected_tokens": lengths.expected,
            "achieved_tokens": lengths.achieved,
            "difference": spread(&Some(lengths.difference)),
        }),
    }
}
