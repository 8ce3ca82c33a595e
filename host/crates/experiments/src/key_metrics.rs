//! Key metrics for the comparison of runs, read from a run's files.

use serde_json::Value;
use veeksha_definitions::Metric;

use crate::config::CellConfig;
use crate::outcome::CellOutcome;

/// Key metrics of one run; `None` for missing ones. Times are seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KeyMetrics {
    /// Time to the first chunk, median.
    pub ttfc_p50: Option<f64>,
    /// Time to the first chunk, 99th percentile.
    pub ttfc_p99: Option<f64>,
    /// Time between chunks, median.
    pub tbc_p50: Option<f64>,
    /// Time between chunks, 99th percentile.
    pub tbc_p99: Option<f64>,
    /// Time per output token, median.
    pub tpot_p50: Option<f64>,
    /// Time per output token, 99th percentile.
    pub tpot_p99: Option<f64>,
    /// End-to-end latency, median.
    pub end_to_end_latency_p50: Option<f64>,
    /// End-to-end latency, 99th percentile.
    pub end_to_end_latency_p99: Option<f64>,
    /// Answered requests per second.
    pub requests_per_second: Option<f64>,
    /// Output tokens per second of all requests.
    pub output_tokens_per_second: Option<f64>,
    /// Input and output tokens per second.
    pub total_tokens_per_second: Option<f64>,
    /// Share of intended requests that met all objectives.
    pub goodput: Option<f64>,
}

/// Returns a statistic of a metric from `summary_stats.json`.
fn summary_stat(outcome: &CellOutcome, metric: Metric, statistic: &str) -> Option<f64> {
    let key = format!("{} ({statistic})", metric.display_name());
    outcome.summary_stats.get(key).and_then(Value::as_f64)
}

impl KeyMetrics {
    /// Reads the metrics from the files in [`CellOutcome`].
    pub fn of(outcome: &CellOutcome) -> Self {
        let stat = |metric, statistic| summary_stat(outcome, metric, statistic);
        let rate = |key: &str| outcome.throughput_metrics.get(key).and_then(Value::as_f64);
        KeyMetrics {
            ttfc_p50: stat(Metric::Ttfc, "P50"),
            ttfc_p99: stat(Metric::Ttfc, "P99"),
            tbc_p50: stat(Metric::Tbc, "P50"),
            tbc_p99: stat(Metric::Tbc, "P99"),
            tpot_p50: stat(Metric::Tpot, "P50"),
            tpot_p99: stat(Metric::Tpot, "P99"),
            end_to_end_latency_p50: stat(Metric::EndToEnd, "P50"),
            end_to_end_latency_p99: stat(Metric::EndToEnd, "P99"),
            requests_per_second: rate("requests_per_second"),
            output_tokens_per_second: rate("output_tokens_per_second"),
            total_tokens_per_second: rate("total_tokens_per_second"),
            goodput: rate("goodput"),
        }
    }

    /// Returns the metrics by the names of their columns.
    pub(crate) fn named(&self) -> [(&'static str, Option<f64>); 12] {
        [
            ("ttfc_p50", self.ttfc_p50),
            ("ttfc_p99", self.ttfc_p99),
            ("tbc_p50", self.tbc_p50),
            ("tbc_p99", self.tbc_p99),
            ("tpot_p50", self.tpot_p50),
            ("tpot_p99", self.tpot_p99),
            ("end_to_end_latency_p50", self.end_to_end_latency_p50),
            ("end_to_end_latency_p99", self.end_to_end_latency_p99),
            ("requests_per_second", self.requests_per_second),
            ("output_tokens_per_second", self.output_tokens_per_second),
            ("total_tokens_per_second", self.total_tokens_per_second),
            ("goodput", self.goodput),
        ]
    }
}

/// Shape of a run's requests under Veeksha's names.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RunShape {
    pub(crate) context_length: Option<u64>,
    pub(crate) batch_size: Option<u64>,
    pub(crate) output_length: Option<u64>,
}

impl RunShape {
    /// Applies Veeksha's rules. Context length: the only group of the prefill statistics, else the
    /// configured length if fixed. Batch size: the number of requests that a decode window needs,
    /// if it is a number, else the sessions of a closed loop. Output length: the configured length
    /// if fixed, else (an extension) the common length of all answers.
    pub(crate) fn of(config: &CellConfig, outcome: &CellOutcome) -> Self {
        let groups = outcome.prefill_stats.get("groups").and_then(Value::as_object);
        let only_group = groups
            .filter(|groups| groups.len() == 1)
            .and_then(|groups| groups.keys().next()?.parse().ok());
        let stat = |statistic| summary_stat(outcome, Metric::OutputTokens, statistic);
        let all_answers = match (stat("Min"), stat("Max")) {
            (Some(least), Some(most)) if least == most && least >= 0.0 => Some(least as u64),
            _ => None,
        };
        RunShape {
            context_length: only_group.or(config.context_length),
            batch_size: outcome
                .decode_window_metrics
                .pointer("/config/min_active_requests")
                .and_then(Value::as_u64)
                .or(config.concurrency),
            output_length: config.output_length.or(all_answers),
        }
    }
}
