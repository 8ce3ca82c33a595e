//! The latencies of one request, as in its line of the record.

use veeksha_definitions::{Metric, Observation, gaps};
use veeksha_events::RequestRecord;

/// The latencies of one request in seconds, as defined by `veeksha-definitions`; `None` if they do
/// not exist.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestLatencies {
    /// First generated chunk − dispatched.
    pub ttfc: Option<f64>,
    /// First generated chunk − intended.
    pub ttfc_from_intended: Option<f64>,
    /// (Last generated chunk − first) / (output tokens after the first chunk).
    pub tpot: Option<f64>,
    /// Last generated chunk − dispatched.
    pub end_to_end: Option<f64>,
    /// Last generated chunk − intended.
    pub end_to_end_from_intended: Option<f64>,
    /// End to end / output tokens.
    pub normalized_end_to_end: Option<f64>,
    /// Output tokens / end to end.
    pub output_throughput: Option<f64>,
    /// Gaps between successive generated chunks.
    pub tbc: Vec<f64>,
}

/// Returns the latencies of a request, in seconds, by the definitions of [`Metric`].
///
/// A request that failed after some chunks keeps its observed latencies (`ttfc`, `tbc`). It has no
/// metric that describes a whole answer (end to end, per token, throughput).
pub fn latencies(record: &RequestRecord) -> RequestLatencies {
    let observation = Observation::of(record);
    let sample = |metric: Metric| metric.sample(&observation);
    RequestLatencies {
        ttfc: sample(Metric::Ttfc),
        ttfc_from_intended: sample(Metric::TtfcFromIntended),
        tpot: sample(Metric::Tpot),
        end_to_end: sample(Metric::EndToEnd),
        end_to_end_from_intended: sample(Metric::EndToEndFromIntended),
        normalized_end_to_end: sample(Metric::NormalizedEndToEnd),
        output_throughput: sample(Metric::OutputThroughput),
        tbc: gaps(record).map(|gap| gap as f64 / 1e9).collect(),
    }
}
