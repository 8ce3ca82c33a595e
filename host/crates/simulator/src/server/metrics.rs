//! The server's metrics in Prometheus text format. Names follow vLLM's, with the prefix
//! `veeksha_sim:`.

use std::fmt::Write as _;

use veeksha_model::Nanos;

use super::pacing::Pacing;
use crate::engine::EngineStats;

/// The values of `/metrics`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerStats {
    /// The engine's counters and levels.
    pub engine: EngineStats,
    /// Connections accepted.
    pub connections_total: u64,
    /// Connections open now.
    pub connections_open: u64,
    /// Lateness of token writes.
    pub pacing: Pacing,
}

/// Upper bounds in seconds, as in vLLM 0.32.
const FIRST_TOKEN_BOUNDS: [f64; 22] = [
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
    80.0, 160.0, 640.0, 2560.0,
];
const END_BOUNDS: [f64; 20] = [
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0,
    960.0, 1920.0,
];

/// Two histograms of seconds since the arrival of a request.
#[derive(Debug)]
pub(super) struct LatencyHistograms {
    pub(super) first_token: Histogram,
    pub(super) end: Histogram,
}

impl LatencyHistograms {
    pub(super) fn new() -> Self {
        LatencyHistograms {
            first_token: Histogram::new(&FIRST_TOKEN_BOUNDS),
            end: Histogram::new(&END_BOUNDS),
        }
    }
}

/// A Prometheus histogram.
#[derive(Debug)]
pub(super) struct Histogram {
    bounds: &'static [f64],
    /// One more than there are bounds; not cumulative.
    counts: Vec<u64>,
    sum: Nanos,
}

impl Histogram {
    fn new(bounds: &'static [f64]) -> Self {
        Histogram {
            bounds,
            counts: vec![0; bounds.len() + 1],
            sum: 0,
        }
    }

    pub(super) fn observe(&mut self, value: Nanos) {
        let seconds = value as f64 / 1e9;
        let bucket = self.bounds.partition_point(|bound| *bound < seconds);
        self.counts[bucket] += 1;
        self.sum += value;
    }

    fn write(&self, out: &mut String, name: &str, help: &str) {
        let _ = writeln!(
            out,
            "# HELP veeksha_sim:{name} {help}\n# TYPE veeksha_sim:{name} histogram"
        );
        let mut below = 0;
        for (bound, count) in self.bounds.iter().zip(&self.counts) {
            below += count;
            let _ = writeln!(out, "veeksha_sim:{name}_bucket{{le=\"{bound:?}\"}} {below}");
        }
        let all: u64 = self.counts.iter().sum();
        let _ = writeln!(out, "veeksha_sim:{name}_bucket{{le=\"+Inf\"}} {all}");
        let _ = writeln!(out, "veeksha_sim:{name}_sum {}", self.sum as f64 / 1e9);
        let _ = writeln!(out, "veeksha_sim:{name}_count {all}");
    }
}

/// A gauge or a counter: kind, name, help, value.
type Scalar = (&'static str, &'static str, &'static str, fn(&ServerStats) -> f64);

/// The gauges and counters without labels, in the order of the text.
const SCALARS: [Scalar; 15] = [
    (
        "gauge",
        "num_requests_running",
        "Sequences in the batch.",
        |stats| stats.engine.running as f64,
    ),
    (
        "gauge",
        "num_requests_waiting",
        "Requests that wait for admission.",
        |stats| stats.engine.waiting as f64,
    ),
    (
        "gauge",
        "kv_cache_usage_perc",
        "Share of the KV memory in use, 0 to 1.",
        kv_usage,
    ),
    ("gauge", "connections_open", "Connections open now.", |stats| {
        stats.connections_open as f64
    }),
    ("counter", "connections_total", "Connections accepted.", |stats| {
        stats.connections_total as f64
    }),
    (
        "counter",
        "requests_total",
        "Requests that reached the engine.",
        |stats| stats.engine.requests_total as f64,
    ),
    (
        "counter",
        "prompt_tokens_total",
        "Prompt tokens of admitted requests.",
        |stats| stats.engine.prompt_tokens_total as f64,
    ),
    (
        "counter",
        "generation_tokens_total",
        "Tokens generated.",
        |stats| stats.engine.generation_tokens_total as f64,
    ),
    (
        "counter",
        "prefix_cache_queries_total",
        "Prompt tokens looked up.",
        |stats| stats.engine.prefix_queries_tokens as f64,
    ),
    (
        "counter",
        "prefix_cache_hits_total",
        "Prompt tokens found.",
        |stats| stats.engine.prefix_hits_tokens as f64,
    ),
    (
        "counter",
        "num_preemptions_total",
        "Preempted sequences.",
        |stats| stats.engine.preemptions_total as f64,
    ),
    ("counter", "iteration_total", "Steps of the engine.", |stats| {
        stats.engine.steps_total as f64
    }),
    (
        "counter",
        "request_rejected_total",
        "Requests rejected with a status.",
        |stats| stats.engine.rejected_total as f64,
    ),
    (
        "counter",
        "request_fault_total",
        "Requests ended by a fault.",
        |stats| stats.engine.faulted_total as f64,
    ),
    (
        "counter",
        "request_abort_total",
        "Requests whose client disconnected.",
        |stats| stats.engine.cancelled_total as f64,
    ),
];

fn kv_usage(stats: &ServerStats) -> f64 {
    stats.engine.kv_used_tokens as f64 / stats.engine.kv_capacity_tokens.max(1) as f64
}

/// Returns the text of `/metrics`. Writing to a String cannot fail.
pub(super) fn render(stats: &ServerStats, latencies: &LatencyHistograms) -> String {
    let mut out = String::with_capacity(8192);
    for (kind, name, help, value) in SCALARS {
        let _ = writeln!(
            out,
            "# HELP veeksha_sim:{name} {help}\n# TYPE veeksha_sim:{name} {kind}\nveeksha_sim:{name} {}",
            value(stats)
        );
    }
    write_successes(&mut out, &stats.engine);
    write_lateness(&mut out, &stats.pacing);
    latencies.first_token.write(
        &mut out,
        "time_to_first_token_seconds",
        "Time from the arrival of a request to the sending of its first token.",
    );
    latencies.end.write(
        &mut out,
        "e2e_request_latency_seconds",
        "Time from the arrival of a request to the sending of its last byte.",
    );
    out
}

fn write_successes(out: &mut String, engine: &EngineStats) {
    let _ = writeln!(
        out,
        "# HELP veeksha_sim:request_success_total Requests answered completely.\n\
         # TYPE veeksha_sim:request_success_total counter\n\
         veeksha_sim:request_success_total{{finished_reason=\"stop\"}} {}\n\
         veeksha_sim:request_success_total{{finished_reason=\"length\"}} {}",
        engine.finished_stop_total, engine.finished_length_total
    );
}

fn write_lateness(out: &mut String, pacing: &Pacing) {
    let _ = writeln!(
        out,
        "# HELP veeksha_sim:token_lateness_seconds Time from a token's due time to the call that wrote it.\n\
         # TYPE veeksha_sim:token_lateness_seconds summary\n\
         veeksha_sim:token_lateness_seconds{{quantile=\"0.5\"}} {}\n\
         veeksha_sim:token_lateness_seconds{{quantile=\"0.99\"}} {}\n\
         veeksha_sim:token_lateness_seconds{{quantile=\"1\"}} {}\n\
         veeksha_sim:token_lateness_seconds_count {}",
        pacing.p50 as f64 / 1e9,
        pacing.p99 as f64 / 1e9,
        pacing.max as f64 / 1e9,
        pacing.count
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_are_cumulative_and_bounds_inclusive() {
        let mut histogram = Histogram::new(&[0.001, 0.01]);
        for nanos in [500_000, 1_000_000, 1_000_001, 5_000_000_000] {
            histogram.observe(nanos);
        }
        let mut out = String::new();
        histogram.write(&mut out, "x", "y.");
        assert_eq!(
            out,
            "# HELP veeksha_sim:x y.\n# TYPE veeksha_sim:x histogram\n\
             veeksha_sim:x_bucket{le=\"0.001\"} 2\nveeksha_sim:x_bucket{le=\"0.01\"} 3\n\
             veeksha_sim:x_bucket{le=\"+Inf\"} 4\nveeksha_sim:x_sum 5.002500001\nveeksha_sim:x_count 4\n"
        );
    }
}
