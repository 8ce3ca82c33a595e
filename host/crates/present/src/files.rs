//! The files of a run folder, except its record.

use serde_json::json;
use veeksha_certificate::Certificate;
use veeksha_metrics::{Catalogue, LabelGroups, TimeSlices};
use veeksha_page::PageData;
use veeksha_report::{ReportError, RunFolder, cdf_csv, csv_table};

use crate::accuracy::AccuracyContext;
use crate::plots;
use crate::plugin_usage;
use crate::run_analysis::RunAnalysis;

/// Names of Veeksha's metrics, whose files are written even without samples.
const VEEKSHAS: [&str; 12] = [
    "num_prompt_tokens",
    "num_output_tokens",
    "num_total_tokens",
    "tpot",
    "ttfc",
    "tbc",
    "end_to_end_latency",
    "normalized_end_to_end_latency",
    "output_throughput",
    "session_size",
    "session_duration",
    "session_think_time",
];

/// Writes every file that is computed at the end of a run.
///
/// # Errors
/// Returns the first file that cannot be written; the others are written nevertheless.
pub fn write_files(
    folder: &RunFolder,
    results: &RunAnalysis,
    certificate: &Certificate,
    accuracy: &AccuracyContext,
    page: &PageData,
) -> Result<(), String> {
    let mut first = Ok(());
    let mut tried = |written: Result<(), ReportError>| {
        if first.is_ok() {
            first = written.map_err(|error| error.to_string());
        }
    };
    let evaluation = &results.evaluation;
    // Essential files come first, because an almost full disk may still have space for them.
    let mut stats = evaluation.summary_stats();
    if let Some(divergence) = &results.divergence {
        stats["decisions"] = divergence.json();
        tried(folder.write_json("metrics/decision_divergence.json", &divergence.json()));
    }
    tried(folder.write_json("metrics/summary_stats.json", &stats));
    tried(folder.write_json(
        "metrics/throughput_metrics.json",
        &evaluation.throughput_metrics(),
    ));
    tried(folder.write_json("metrics/slo_results.json", &evaluation.slo_results()));
    let mut trust = certificate.json();
    trust["threads"] = accuracy.threads.json();
    tried(folder.write_json("certificate.json", &trust));
    tried(folder.write_text("health_check_results.txt", &results.health.text()));
    tried(folder.write_json("health_check_results.json", &results.health.json()));
    if !results.plugin_usage.is_empty() {
        tried(folder.write_json(
            "metrics/plugin_usage.json",
            &plugin_usage::json(&results.plugin_usage),
        ));
    }
    tried(folder.write_json("metrics/prefill_stats.json", &results.prefill_stats));
    if let Some(windows) = &results.decode_windows {
        tried(folder.write_json("metrics/decode_window_metrics.json", windows));
    }
    tried(folder.write_with("metrics/session_metrics.json", |file| {
        evaluation.write_session_metrics(file)
    }));
    tried(folder.write_json("metrics/curves.json", &evaluation.curves()));
    tried(folder.write_json("metrics/time_slices.json", &evaluation.time_slices()));
    tried(folder.write_text("metrics/time_slices.csv", &slices(&evaluation.slices)));
    if !evaluation.groups.is_empty() {
        let (columns, rows) = LabelGroups::table(&evaluation.groups);
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        tried(folder.write_text("metrics/groups.csv", &csv_table(&columns, rows)));
    }
    if let Some(cache) = &evaluation.cache {
        let (columns, rows) = cache.table();
        tried(folder.write_text("metrics/cache_accounting.csv", &csv_table(&columns, rows)));
    }
    if let Some(fidelity) = &results.fidelity {
        tried(folder.write_json("metrics/replay_fidelity.json", &fidelity.replay_fidelity()));
    }
    for view in &results.views {
        let name = format!("metrics/dialect_{}.json", view.tool.name().replace('-', "_"));
        tried(folder.write_json(&name, view.json()));
    }
    let samples = &evaluation.samples;
    let mut named: Vec<String> = VEEKSHAS.map(str::to_owned).to_vec();
    named.extend(
        samples
            .names()
            .into_iter()
            .filter(|name| !VEEKSHAS.contains(&name.as_str())),
    );
    for name in &named {
        if let Some(data) = plots::distribution(samples, name) {
            let stem = distribution_stem(samples.catalogue(), name);
            tried(match data.count {
                0 => folder.write_text(&format!("{stem}.csv"), &cdf_csv(&data)),
                _ => folder.write_cdf(&stem, &data),
            });
        }
    }
    plots::others(folder, results, &mut tried);
    tried(folder.write_with("metrics/chrome_trace.json", |file| results.chrome.write(file)));
    tried(folder.write_text("report.html", &veeksha_page::page(page)));
    if let Some(export) = &results.export {
        first = first.and(export.write(folder));
    }
    first
}

/// Returns the path of a metric's files without extension. Metrics of plugins have a separate
/// folder, so that their names cannot collide with other files.
fn distribution_stem(catalogue: &Catalogue, name: &str) -> String {
    let is_built_in = catalogue.get(name).is_some_and(|info| info.metric.is_some());
    if is_built_in {
        format!("metrics/{name}")
    } else {
        format!("metrics/plugins/{name}")
    }
}

/// Formats the time slices as CSV; a missing value is an empty cell.
fn slices(slices: &TimeSlices) -> String {
    let (columns, rows) = slices.table();
    let line = |row: &Vec<Option<f64>>| {
        let cells = row
            .iter()
            .map(|cell| cell.map_or_else(String::new, |value| json!(value).to_string()));
        cells.collect::<Vec<_>>().join(",")
    };
    let mut text = columns.join(",");
    for row in &rows {
        text.push('\n');
        text.push_str(&line(row));
    }
    text.push('\n');
    text
}
