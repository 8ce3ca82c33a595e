//! AIPerf 0.13.0, endpoint `chat` with streaming: its files and its view.
//!
//! * The clock starts just before `session.request` and includes waiting for a connection, DNS, TCP
//!   and TLS. Here: when a client took the request up. `credit_issued_ns` is the dispatch.
//! * Content is text, reasoning or a piece of a tool call. TTFT: the first content; TTFO: the first
//!   that is not reasoning; request latency: the last. Usage and `[DONE]` end the request
//!   (`request_end_ns`) but no latency.
//! * ITL: (latency − TTFT) / (output tokens − 1), one number for each request with two or more
//!   tokens. Inter-chunk latency: all gaps.
//! * Tokens: the client's tokenizer (without chat template), reasoning included; the server's
//!   counts are the `usage_*` metrics.
//! * Latencies cover successes; `adj_*` repeats four of them with every failure as an infinite
//!   value. An answer without content is an error.
//! * Rates: over the phase, from the run's zero to the end of the last request.
//!   `benchmark_duration`: from the first start to the last content of the successes.
//! * Percentiles as in numpy, standard deviation of the population; `effective_*` and `active_*`
//!   are weighted by time.
//!
//! # Omitted keys
//!
//! A key that this host cannot know is not written: `http_req_blocked`, `http_req_sending`,
//! `http_req_duration`, `http_req_connection_overhead`, `http_req_total`, `http_req_data_sent`,
//! `http_req_data_received`, `http_req_chunks_sent`, `http_req_chunks_received` (the start of the
//! write, the connection pool and the bytes on the wire are not recorded), `context_overflow_count`
//! (AIPerf parses the server's message for it), `credit_drop_latency`, `replay_sched_*`,
//! `network_*`, audio, image, video, speculative decoding, prediction and cache-write tokens, GPU
//! energy, accuracy, `telemetry_data`, `branch_stats`, `warmup_metrics`. In the request rows:
//! `profiling_index`, `phase_name`, `source_*`, `parent_correlation_id`, `trace_data`.
//! `http_req_waiting` ends with the first byte of the answer, its head included, where AIPerf's
//! ends with the first byte of the body.

mod catalogue;
mod console;
mod curves;
mod export;
mod facts;
mod files;
mod results;
mod row;
mod state;

pub(crate) use console::Aiperf;
pub use export::AiperfExport;
pub use files::{AiperfFiles, AiperfInfo, AiperfSlices};

/// Returns the metrics that AIPerf's goodput accepts, by tag, with their units.
pub(crate) fn goodput_metrics() -> Vec<(&'static str, &'static str)> {
    let known = catalogue::with_thresholds();
    known.map(|metric| (metric.tag, metric.unit)).collect()
}
