//! AIPerf's metrics by tag, with header, unit and formula: `aiperf/metrics/types/*.py` of aiperf
//! 0.13.0.

use veeksha_model::Nanos;

use super::facts::RequestFacts;

/// Table of the console that contains a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConsoleGroup {
    None,
    Default,
    Usage,
    Effective,
    Active,
}

/// A metric with one value per request.
pub(super) struct RecordMetric {
    pub(super) tag: &'static str,
    pub(super) header: &'static str,
    pub(super) unit: &'static str,
    /// Number of internal units (nanoseconds) per displayed unit.
    pub(super) per: f64,
    pub(super) kind: ValueKind,
    pub(super) group: ConsoleGroup,
    /// Position in the console table.
    pub(super) order: u32,
    /// Formula, in the internal unit.
    pub(super) of: fn(&RequestFacts) -> Option<f64>,
}

/// Kind of value, which decides how files write it and which requests have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// A floating-point number.
    Real,
    /// An integer, written as such in files.
    Whole,
    /// A latency for which `adj_*` counts every failed request as infinite.
    Latency,
    /// A metric of failed requests only.
    Error,
}

impl RecordMetric {
    /// Returns the metric's value for a request, in the displayed unit.
    pub(super) fn value(&self, facts: &RequestFacts) -> Option<f64> {
        let exists = facts.error == (self.kind == ValueKind::Error);
        let value = if exists { (self.of)(facts) } else { None };
        value
            .filter(|value| value.is_finite())
            .map(|value| value / self.per)
    }
}

const MS: f64 = 1e6;

fn nanos(value: Option<Nanos>) -> Option<f64> {
    value.map(|value| value as f64)
}

fn tokens(value: Option<u64>) -> Option<f64> {
    value.map(|value| value as f64)
}

/// Returns the difference of two token counts, in percent of the client's.
fn apart(server: Option<u32>, client: Option<u64>) -> Option<f64> {
    let client = client.filter(|&client| client > 0)? as f64;
    Some((f64::from(server?) - client).abs() / client * 100.0)
}

/// (Latency − TTFT) / (OSL − 1), in nanoseconds.
fn inter_token(facts: &RequestFacts) -> Option<f64> {
    let tokens = facts.osl().filter(|&tokens| tokens >= 2)?;
    Some(decode(facts)? / (tokens - 1) as f64)
}

fn decode(facts: &RequestFacts) -> Option<f64> {
    Some(facts.latency?.checked_sub(facts.ttft?)? as f64)
}

fn per_second(count: Option<f64>, nanos: Option<f64>) -> Option<f64> {
    let nanos = nanos.filter(|&nanos| nanos > 0.0)?;
    Some(count? / (nanos / 1e9))
}

fn prompt_apart(facts: &RequestFacts) -> Option<f64> {
    apart(facts.usage.map(|usage| usage.prompt), Some(facts.isl))
}

fn completion_apart(facts: &RequestFacts) -> Option<f64> {
    let client = facts.osl().filter(|_| facts.counted);
    apart(facts.usage.map(|usage| usage.completion), client)
}

fn reasoning_apart(facts: &RequestFacts) -> Option<f64> {
    let client = facts.reasoning.filter(|_| facts.counted);
    apart(facts.usage.and_then(|usage| usage.reasoning), client)
}

/// Returns the difference between actual and requested output length, in percent.
fn length_mismatch(facts: &RequestFacts) -> Option<f64> {
    let requested = facts
        .requested
        .filter(|&requested| requested > 0)
        .map(f64::from)?;
    Some((facts.osl()? as f64 - requested) / requested * 100.0)
}

/// Returns true if the request counts towards `osl_mismatch_count`: off by more than 5 % of the
/// requested length or by more than 50 tokens. `None` if no length was requested.
pub(super) fn length_mismatched(facts: &RequestFacts) -> Option<bool> {
    length_mismatch(facts).filter(|_| !facts.error)?;
    let requested = f64::from(facts.requested?);
    let apart = (facts.osl()? as f64 - requested).abs();
    Some(apart > (requested * 0.05).min(50.0))
}

/// Returns true if the request counts towards `usage_discrepancy_count`: one of the server's counts
/// is off by more than 10 %.
pub(super) fn usage_discrepant(facts: &RequestFacts) -> Option<bool> {
    let exists = !facts.error;
    let (prompt, completion) = (prompt_apart(facts).filter(|_| exists)?, completion_apart(facts)?);
    let reasoning = reasoning_apart(facts).unwrap_or(0.0);
    Some(
        [prompt, completion, reasoning]
            .into_iter()
            .any(|apart| apart > 10.0),
    )
}

/// Creates a row of the table below.
const fn metric(
    (tag, header): (&'static str, &'static str),
    (unit, per): (&'static str, f64),
    kind: ValueKind,
    (group, order): (ConsoleGroup, u32),
    of: fn(&RequestFacts) -> Option<f64>,
) -> RecordMetric {
    RecordMetric {
        tag,
        header,
        unit,
        per,
        kind,
        group,
        order,
        of,
    }
}

const PER_USER: (&str, f64) = ("tokens/sec/user", 1.0);
const TOKENS: (&str, f64) = ("tokens", 1.0);
const MILLIS: (&str, f64) = ("ms", MS);
const PERCENT: (&str, f64) = ("%", 1.0);
const HIDDEN: (ConsoleGroup, u32) = (ConsoleGroup::None, 0);

/// All metrics with one value per request.
pub(super) const RECORD_METRICS: [RecordMetric; 31] = [
    metric(
        ("request_latency", "Request Latency"),
        MILLIS,
        ValueKind::Latency,
        (ConsoleGroup::Default, 300),
        |facts| nanos(facts.latency),
    ),
    metric(
        ("time_to_first_token", "Time to First Token"),
        MILLIS,
        ValueKind::Latency,
        (ConsoleGroup::Default, 100),
        |facts| nanos(facts.ttft),
    ),
    metric(
        ("time_to_second_token", "Time to Second Token"),
        MILLIS,
        ValueKind::Real,
        (ConsoleGroup::Default, 200),
        |facts| nanos(facts.second),
    ),
    metric(
        ("time_to_first_output_token", "Time to First Output Token"),
        MILLIS,
        ValueKind::Real,
        (ConsoleGroup::Default, 210),
        |facts| nanos(facts.first_output),
    ),
    metric(
        ("decode_duration", "Decode Duration"),
        MILLIS,
        ValueKind::Latency,
        (ConsoleGroup::Default, 350),
        decode,
    ),
    metric(
        ("inter_token_latency", "Inter Token Latency"),
        MILLIS,
        ValueKind::Latency,
        (ConsoleGroup::Default, 400),
        inter_token,
    ),
    metric(
        (
            "output_token_throughput_per_user",
            "Output Token Throughput Per User",
        ),
        PER_USER,
        ValueKind::Real,
        (ConsoleGroup::Default, 500),
        |facts| per_second(Some(1.0), inter_token(facts)),
    ),
    metric(
        ("e2e_output_token_throughput", "E2E Output Token Throughput"),
        PER_USER,
        ValueKind::Real,
        (ConsoleGroup::Default, 510),
        |facts| per_second(tokens(facts.osl()), nanos(facts.latency)),
    ),
    metric(
        ("prefill_throughput_per_user", "Prefill Throughput Per User"),
        PER_USER,
        ValueKind::Real,
        HIDDEN,
        |facts| per_second(Some(facts.isl as f64), nanos(facts.ttft)),
    ),
    metric(
        ("output_sequence_length", "Output Sequence Length"),
        TOKENS,
        ValueKind::Whole,
        (ConsoleGroup::Default, 600),
        |facts| tokens(facts.osl()),
    ),
    metric(
        ("input_sequence_length", "Input Sequence Length"),
        TOKENS,
        ValueKind::Whole,
        (ConsoleGroup::Default, 700),
        |facts| Some(facts.isl as f64),
    ),
    metric(
        ("output_token_count", "Output Token Count"),
        TOKENS,
        ValueKind::Whole,
        HIDDEN,
        |facts| tokens(facts.output.filter(|&output| output > 0)),
    ),
    metric(
        ("reasoning_token_count", "Reasoning Token Count"),
        TOKENS,
        ValueKind::Whole,
        HIDDEN,
        |facts| tokens(facts.reasoning),
    ),
    metric(
        ("error_isl", "Error Input Sequence Length"),
        TOKENS,
        ValueKind::Error,
        HIDDEN,
        |facts| Some(facts.isl as f64),
    ),
    metric(
        ("osl_mismatch_diff_pct", "OSL Mismatch Diff %"),
        PERCENT,
        ValueKind::Real,
        HIDDEN,
        length_mismatch,
    ),
    metric(
        ("usage_prompt_tokens", "Usage Prompt Tokens"),
        TOKENS,
        ValueKind::Whole,
        (ConsoleGroup::Usage, 1000),
        |facts| facts.usage.map(|usage| f64::from(usage.prompt)),
    ),
    metric(
        ("usage_completion_tokens", "Usage Completion Tokens"),
        TOKENS,
        ValueKind::Whole,
        (ConsoleGroup::Usage, 1100),
        |facts| facts.usage.map(|usage| f64::from(usage.completion)),
    ),
    metric(
        ("usage_total_tokens", "Usage Total Tokens"),
        TOKENS,
        ValueKind::Whole,
        (ConsoleGroup::Usage, 1200),
        |facts| {
            facts
                .usage
                .map(|usage| f64::from(usage.prompt) + f64::from(usage.completion))
        },
    ),
    metric(
        ("usage_reasoning_tokens", "Usage Reasoning Tokens"),
        TOKENS,
        ValueKind::Whole,
        (ConsoleGroup::Usage, 1110),
        |facts| facts.usage.and_then(|usage| usage.reasoning).map(f64::from),
    ),
    metric(
        ("usage_prompt_cache_read_tokens", "Usage Prompt Cache Read Tokens"),
        TOKENS,
        ValueKind::Whole,
        (ConsoleGroup::Usage, 1010),
        |facts| facts.usage.and_then(|usage| usage.cached).map(f64::from),
    ),
    metric(
        ("usage_prompt_tokens_diff_pct", "Usage Prompt Diff %"),
        PERCENT,
        ValueKind::Real,
        HIDDEN,
        prompt_apart,
    ),
    metric(
        ("usage_completion_tokens_diff_pct", "Usage Completion Diff %"),
        PERCENT,
        ValueKind::Real,
        HIDDEN,
        completion_apart,
    ),
    metric(
        ("usage_reasoning_tokens_diff_pct", "Usage Reasoning Diff %"),
        PERCENT,
        ValueKind::Real,
        HIDDEN,
        reasoning_apart,
    ),
    metric(
        ("http_req_connection_reused", "HTTP Connection Reused"),
        ("ratio", 1.0),
        ValueKind::Whole,
        HIDDEN,
        |facts| Some(if facts.reused { 1.0 } else { 0.0 }),
    ),
    metric(
        ("http_req_dns_lookup", "HTTP DNS Lookup"),
        MILLIS,
        ValueKind::Real,
        HIDDEN,
        |facts| nanos(facts.dns),
    ),
    metric(
        ("http_req_connecting", "HTTP Connecting"),
        MILLIS,
        ValueKind::Real,
        HIDDEN,
        |facts| nanos(facts.connecting),
    ),
    metric(
        ("http_req_waiting", "HTTP Waiting (TTFB)"),
        MILLIS,
        ValueKind::Real,
        HIDDEN,
        |facts| nanos(facts.waiting),
    ),
    metric(
        ("http_req_receiving", "HTTP Receiving"),
        MILLIS,
        ValueKind::Real,
        HIDDEN,
        |facts| nanos(facts.receiving),
    ),
    // Not in AIPerf's registry: `derived_latency.py` injects them, for failed requests too; see
    // `ISSUED`.
    metric(
        ("effective_latency", "Effective Latency (CO-aware)"),
        MILLIS,
        ValueKind::Real,
        (ConsoleGroup::Effective, u32::MAX),
        |facts| Some(facts.end.saturating_sub(facts.issued) as f64),
    ),
    metric(
        ("credit_to_start_latency", "Credit-to-Start Latency"),
        MILLIS,
        ValueKind::Real,
        HIDDEN,
        |facts| Some(facts.start.saturating_sub(facts.issued) as f64),
    ),
    metric(
        ("inter_chunk_latency", "Inter Chunk Latency"),
        MILLIS,
        ValueKind::Real,
        HIDDEN,
        |_| None,
    ),
];

/// Metrics measured from the dispatch: they include failed requests and are missing in time slices
/// and in request rows.
pub(super) const ISSUED: [&str; 2] = ["effective_latency", "credit_to_start_latency"];

/// The only metric with many values per request.
pub(super) const INTER_CHUNK: &str = "inter_chunk_latency";

/// Returns true if larger values are better: a threshold on the metric is then a lower bound.
pub(super) fn larger_is_better(tag: &str) -> bool {
    let rate = tag.contains("throughput");
    let amount =
        tag.ends_with("sequence_length") || tag.ends_with("_token_count") || tag.ends_with("_tokens");
    rate || amount
}

/// Returns the metrics that accept a threshold.
pub(super) fn with_thresholds() -> impl Iterator<Item = &'static RecordMetric> {
    RECORD_METRICS.iter().filter(|metric| {
        metric.kind != ValueKind::Error && metric.tag != INTER_CHUNK && !ISSUED.contains(&metric.tag)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_unique() {
        let mut tags: Vec<_> = RECORD_METRICS.iter().map(|metric| metric.tag).collect();
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), RECORD_METRICS.len());
    }

    #[test]
    fn larger_is_better_for_throughput_and_lengths() {
        for tag in [
            "output_token_throughput_per_user",
            "output_sequence_length",
            "usage_prompt_cache_read_tokens",
        ] {
            assert!(larger_is_better(tag), "{tag}");
        }
        for tag in [
            "request_latency",
            "time_to_first_token",
            "http_req_waiting",
            "osl_mismatch_diff_pct",
        ] {
            assert!(!larger_is_better(tag), "{tag}");
        }
    }
}
