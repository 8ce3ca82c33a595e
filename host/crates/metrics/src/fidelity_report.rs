//! The statistics of a replay's fidelity.

use serde_json::{Value, json};
use veeksha_stats::Summary;

use crate::json_shapes::summary_json;

/// Recorded against achieved values, over the measured requests of a recorded trace. Values that
/// could not be compared are `None`, and `null` in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct FidelityReport {
    /// Measured requests that were recorded.
    pub requests: u64,
    /// Arrivals of sessions; `None` if arrivals were not replayed or none was recorded.
    pub arrivals: Option<ArrivalFidelity>,
    /// Whole prompts: the host's tokenizer against the recording; without the chat template, unless
    /// the requested length includes it.
    pub prompt_tokens: Option<Lengths>,
    /// Whole prompts: the server's count against the recording.
    pub prompt_tokens_by_server: Option<Lengths>,
    /// Whole prompts: the server's count against the host's tokenizer.
    pub tokenizer_against_server: Option<Lengths>,
    /// Answers of answered requests against the recording.
    pub output_tokens: Option<Lengths>,
    /// Requests that wait for others.
    pub edges: EdgeFidelity,
    /// Prefix cache hits.
    pub prefix_hits: PrefixHits,
}

/// The arrivals of sessions' first requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArrivalFidelity {
    /// Dispatched − recorded arrival as mapped by the schedule, in seconds.
    pub lateness: Summary,
    /// Distance between the achieved and the recorded gaps of successive arrivals, in seconds: the
    /// Wasserstein distance of order 1 of the two samples, which is the mean of |achieved −
    /// recorded| over the gaps in ascending order. (The Kolmogorov-Smirnov distance would treat a
    /// microsecond between two arrivals recorded at one instant as a completely different
    /// distribution.) `None` for fewer than two arrivals.
    pub gap_distance: Option<f64>,
}

/// A comparison of two token counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lengths {
    /// Achieved − expected, in tokens.
    pub difference: Summary,
    /// Requests without difference ÷ requests compared.
    pub exact_share: f64,
    /// Sum of expected tokens.
    pub expected: u64,
    /// Sum of achieved tokens.
    pub achieved: u64,
}

/// Requests that wait for others, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EdgeFidelity {
    /// Dispatched − due. A request is due when its last edge is met and its think time is over (if
    /// arrivals are replayed, not before its recorded instant).
    pub slack: Option<Summary>,
    /// (Dispatched − last parent's completion) − the same gap in the recording, for requests whose
    /// recording contains it.
    pub gap_difference: Option<Summary>,
}

/// Prompt tokens found in a prefix cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixHits {
    /// Measured requests.
    pub requests: u64,
    /// Requests with a known ideal.
    pub with_ideal: u64,
    /// Tokens that an unbounded cache would have contained.
    pub ideal_tokens: u64,
    /// Prompt tokens of the requests with a known ideal, by the host's tokenizer, without the chat
    /// template.
    pub ideal_of_tokens: u64,
    /// Requests whose server reported cached tokens.
    pub reporting: u64,
    /// Cached tokens as reported by servers.
    pub measured_tokens: u64,
    /// Prompt tokens of the reporting requests, by the server's count.
    pub measured_of_tokens: u64,
    /// The ideal of the reporting requests alone.
    pub ideal_tokens_of_reporting: u64,
    /// Prompt tokens of the reporting requests, by the host's tokenizer.
    pub ideal_of_tokens_of_reporting: u64,
}

impl PrefixHits {
    /// Returns ideal hits ÷ prompt tokens, over all requests with a known ideal.
    pub fn ideal_rate(&self) -> Option<f64> {
        rate(self.ideal_tokens, self.ideal_of_tokens)
    }

    /// Returns the ideal rate over the requests whose server reports hits: the reference for
    /// [`measured_rate`](Self::measured_rate).
    pub fn ideal_rate_of_reporting(&self) -> Option<f64> {
        rate(self.ideal_tokens_of_reporting, self.ideal_of_tokens_of_reporting)
    }

    /// Returns reported hits ÷ prompt tokens, over the requests whose server reports hits.
    pub fn measured_rate(&self) -> Option<f64> {
        rate(self.measured_tokens, self.measured_of_tokens)
    }

    /// Returns requests whose server reports hits ÷ requests.
    pub fn coverage(&self) -> Option<f64> {
        rate(self.reporting, self.requests)
    }
}

fn rate(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl FidelityReport {
    /// Returns the content of `metrics/replay_fidelity.json`.
    pub fn replay_fidelity(&self) -> Value {
        let arrivals = self.arrivals.as_ref().map(|arrivals| {
            json!({
                "lateness": summary_json(&Some(arrivals.lateness)),
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
            "edge_slack": summary_json(&self.edges.slack),
            "edge_gap_difference": summary_json(&self.edges.gap_difference),
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
            "difference": summary_json(&Some(lengths.difference)),
        }),
    }
}
