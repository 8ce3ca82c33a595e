//! Outcome of one run of a sweep.

use std::path::PathBuf;

use serde_json::Value;

/// Outcome of one run as plain data: the contents of its files. `Null` for a missing file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellOutcome {
    /// The run's folder; `None` if it failed before there was one.
    pub run_dir: Option<PathBuf>,
    /// Exit code that the run alone would have ended with.
    pub exit_code: u8,
    /// One line that explains why the run is not good; `None` if it is.
    pub failure: Option<String>,
    /// Duration including setup and evaluation.
    pub duration_seconds: Option<f64>,
    /// The certificate's verdict: `VALID`, `DEGRADED` or `INVALID`.
    pub verdict: Option<String>,
    /// `metrics/summary_stats.json`.
    pub summary_stats: Value,
    /// `metrics/throughput_metrics.json`.
    pub throughput_metrics: Value,
    /// `metrics/slo_results.json`; `Null`, or without `results`, where no objective was set.
    pub slo_results: Value,
    /// `metrics/prefill_stats.json`.
    pub prefill_stats: Value,
    /// `metrics/decode_window_metrics.json`.
    pub decode_window_metrics: Value,
    /// `health_check_results.json`.
    pub health_checks: Value,
}
