//! The columns of a summary in the tables of slices and groups.

use veeksha_stats::Summary;

/// The names of the columns, after the name of the metric.
pub(crate) const SUMMARY_COLUMNS: [&str; 5] = ["count", "mean", "p50", "p90", "p99"];

/// Returns the values of the columns; `None` without samples.
pub(crate) fn summary_cells(summary: Option<&Summary>) -> [Option<f64>; 5] {
    [
        summary.map(|summary| summary.count as f64),
        summary.map(|summary| summary.mean),
        summary.map(|summary| summary.p50),
        summary.map(|summary| summary.p90),
        summary.map(|summary| summary.p99),
    ]
}
