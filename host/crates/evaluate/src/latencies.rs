//! The latencies of one request: the only place where they are defined.

use veeksha_events::{Latencies, RequestRecord};
use veeksha_model::Nanos;

/// `later - earlier` in seconds; negative where the order is the other way round.
pub(crate) fn seconds_between(earlier: Nanos, later: Nanos) -> f64 {
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

/// The latencies of a request, in seconds.
///
/// *Generated* chunks are those with reasoning, content or a part of a tool call; the role, empty deltas, the finish
/// reason, usage and `[DONE]` are not. A request without generated chunks has no latencies.
///
/// * `ttfc`, `ttfc_from_intended`: first generated chunk − dispatched, − intended.
/// * `tbc`: the gaps between successive generated chunks.
/// * `end_to_end`, `end_to_end_from_intended`: last generated chunk − dispatched, − intended.
/// * `tpot`: (last generated chunk − first) / (output tokens − 1). Needs two output tokens, and two generated chunks:
///   an answer that arrived in one piece shows no time per token, and 0 would be invented.
/// * `normalized_end_to_end`: end to end / output tokens; `output_throughput`: output tokens / end to end.
///
/// A request that failed after some chunks keeps what was observed of it (`ttfc`, `tbc`); what describes a whole answer
/// (end to end, per token, throughput) it does not have, because the answer never became whole.
pub fn latencies(record: &RequestRecord) -> Latencies {
    let Some(first) = record.generated_at().next() else {
        return Latencies::default();
    };
    let observed = Latencies {
        ttfc: Some(seconds_between(record.dispatched_at, first)),
        ttfc_from_intended: Some(seconds_between(record.intended, first)),
        tbc: gaps(record).map(|gap| gap as f64 / 1e9).collect(),
        ..Latencies::default()
    };
    if !record.is_ok() {
        return observed;
    }
    let last = record.generated_at().last().unwrap_or(first);
    let end_to_end = seconds_between(record.dispatched_at, last);
    let tokens = (record.output_tokens > 0).then_some(f64::from(record.output_tokens));
    Latencies {
        tpot: (record.output_tokens >= 2 && !observed.tbc.is_empty())
            .then(|| seconds_between(first, last) / f64::from(record.output_tokens - 1)),
        end_to_end: Some(end_to_end),
        end_to_end_from_intended: Some(seconds_between(record.intended, last)),
        normalized_end_to_end: tokens.map(|tokens| end_to_end / tokens),
        output_throughput: tokens
            .filter(|_| end_to_end > 0.0)
            .map(|tokens| tokens / end_to_end),
        ..observed
    }
}
