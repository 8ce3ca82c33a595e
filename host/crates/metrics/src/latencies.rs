//! The latencies of one request, as its line in the record shows them.

use veeksha_definitions::{Metric, Observation, gaps};
use veeksha_events::{Latencies, RequestRecord};

/// Returns the latencies of a request, in seconds, by the definitions of [`Metric`].
///
/// A request that failed after some chunks keeps what was observed of it (`ttfc`, `tbc`). It has
/// no metric that describes a whole answer (end to end, per token, throughput).
pub fn latencies(record: &RequestRecord) -> Latencies {
    let observation = Observation::of(record);
    let sample = |metric: Metric| metric.sample(&observation);
    Latencies {
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
