//! The latencies of one request, as its line in the record shows them.

use veeksha_events::{Latencies, RequestRecord};
use veeksha_model::Nanos;

use crate::row::Row;

/// `later - earlier` in seconds; negative where the order is the other way round.
pub fn seconds_between(earlier: Nanos, later: Nanos) -> f64 {
    (later as i64 - earlier as i64) as f64 / 1e9
}

/// The gaps between successive generated chunks, in nanoseconds.
pub(crate) fn gaps(record: &RequestRecord) -> impl Iterator<Item = Nanos> + '_ {
    let later = record.generated_at().skip(1);
    record
        .generated_at()
        .zip(later)
        .map(|(earlier, later)| later.saturating_sub(earlier))
}

/// The tokens of each generated chunk, in their order: by the record, or one each where there are as many chunks as output tokens. `None`
/// where neither is known.
pub(crate) fn chunk_tokens(record: &RequestRecord) -> Option<impl Iterator<Item = u32> + '_> {
    let chunks = record.generated_at().count();
    let listed = &record.chunk_tokens;
    let known = if listed.is_empty() {
        chunks == record.output_tokens as usize
    } else {
        listed.len() == chunks
    };
    known.then(|| (0..chunks).map(|place| listed.get(place).copied().unwrap_or(1)))
}

/// The latencies of a request, in seconds, by the definitions of [`crate::Metric`].
///
/// *Generated* chunks are those with reasoning, content or a part of a tool call; the role, empty deltas, the finish
/// reason, usage and `[DONE]` are not. A request without generated chunks has no latencies.
///
/// A request that failed after some chunks keeps what was observed of it (`ttfc`, `tbc`); what describes a whole answer
/// (end to end, per token, throughput) it does not have, because the answer never became whole.
pub fn latencies(record: &RequestRecord) -> Latencies {
    let row = Row::of(record);
    let observed = Latencies {
        ttfc: row.ttfc(),
        ttfc_from_intended: row.ttfc_from_intended(),
        tbc: gaps(record).map(|gap| gap as f64 / 1e9).collect(),
        ..Latencies::default()
    };
    if !record.is_ok() {
        return observed;
    }
    Latencies {
        tpot: row.tpot(),
        end_to_end: row.end_to_end(),
        end_to_end_from_intended: row.end_to_end_from_intended(),
        normalized_end_to_end: row.normalized_end_to_end(),
        output_throughput: row.output_throughput(),
        ..observed
    }
}
