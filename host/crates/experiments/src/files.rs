//! `sweep_manifest.json`, `sweep_summary.json` and `sweep_summary.csv`: Veeksha's keys and columns,
//! followed by additional ones.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::error::SweepError;
use crate::failed_checks::failed_names;
use crate::key_metrics::{KeyMetrics, RunShape};
use crate::outcome::CellOutcome;
use crate::sweep_run::{SweepRun, setting_paths};
use crate::{csv_text, decode};

/// Veeksha's columns, in its order.
const COLUMNS: [&str; 15] = [
    "run_index",
    "run_dir",
    "traffic_type",
    "target_concurrent_sessions",
    "arrival_rate",
    "context_length",
    "output_length",
    "max_sessions",
    "benchmark_timeout_s",
    "num_requests",
    "num_completed_requests",
    "error_rate",
    "all_slos_met",
    "tpot_based_throughput",
    "tbc_based_throughput",
];

/// Statistics of a group of the prefill statistics, and of the gaps in decode windows.
const STATISTICS: [&str; 8] = ["count", "mean", "median", "p90", "p99", "min", "max", "std"];

/// Returns every file of a group with its content. Only finished runs are included.
pub(crate) fn all(folder: &Path, cells: &[&SweepRun]) -> Result<Vec<(&'static str, String)>, SweepError> {
    let ended: Vec<(&SweepRun, &CellOutcome)> = cells
        .iter()
        .filter_map(|cell| Some((*cell, cell.outcome.as_ref()?)))
        .collect();
    let mut files = vec![
        ("sweep_manifest.json", json_text(&manifest(folder, cells, &ended))),
        ("sweep_summary.json", json_text(&summary(folder, cells, &ended))),
        (
            "sweep_summary.csv",
            csv_text::write(folder, "sweep_summary.csv", &table(cells, &ended))?,
        ),
    ];
    if let Some((stats, rows)) = decode::stats(&ended) {
        files.push(("decode_stats.json", json_text(&stats)));
        files.push((
            "decode_stats.csv",
            csv_text::write(folder, "decode_stats.csv", &rows)?,
        ));
    }
    Ok(files)
}

fn json_text(value: &Value) -> String {
    format!("{value:#}\n")
}

fn path_text(path: Option<&Path>) -> Value {
    path.map(|path| path.display().to_string()).into()
}

fn manifest(folder: &Path, cells: &[&SweepRun], ended: &[(&SweepRun, &CellOutcome)]) -> Value {
    let runs: Vec<Value> = ended
        .iter()
        .map(|(cell, outcome)| {
            let run_dir = outcome.run_dir.as_deref();
            let below = |name: &str| path_text(run_dir.map(|run| run.join(name)).as_deref());
            // A file that the run did not write is not listed.
            let written = |content: &Value, name: &str| match content {
                Value::Null => Value::Null,
                _ => below(name),
            };
            json!({
                "run_dir": path_text(run_dir),
                "config_path": below("config.yml"),
                "metrics_dir": below("metrics"),
                "prefill_stats_path": written(&outcome.prefill_stats, "metrics/prefill_stats.json"),
                "decode_window_metrics_path": written(
                    &outcome.decode_window_metrics,
                    "metrics/decode_window_metrics.json",
                ),
                "run_index": cell.run_index,
                "run": cell.number,
                "exit_code": outcome.exit_code,
                "settings": settings(cell),
            })
        })
        .collect();
    json!({
        "sweep_dir": path_text(Some(folder)),
        "num_runs": runs.len(),
        "num_planned": cells.len(),
        "runs": runs,
    })
}

fn settings(cell: &SweepRun) -> Value {
    let settings = cell
        .settings
        .iter()
        .map(|setting| (setting.path.clone(), setting.value.clone()));
    Value::Object(settings.collect())
}

fn summary(folder: &Path, cells: &[&SweepRun], ended: &[(&SweepRun, &CellOutcome)]) -> Value {
    let runs: Vec<Value> = ended.iter().map(|(cell, outcome)| run(cell, outcome)).collect();
    json!({
        "base_output_dir": path_text(Some(folder)),
        "num_runs": runs.len(),
        "num_planned": cells.len(),
        "runs": runs,
    })
}

fn run(cell: &SweepRun, outcome: &CellOutcome) -> Value {
    let shape = RunShape::of(&cell.config, outcome);
    let metrics: Map<String, Value> = KeyMetrics::of(outcome)
        .named()
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    let mut run = json!({
        "run_index": cell.run_index,
        "run": cell.number,
        "run_dir": path_text(outcome.run_dir.as_deref()),
        "context_length": shape.context_length,
        "batch_size": shape.batch_size,
        "output_length": shape.output_length,
        "traffic": cell.config.traffic,
        "runtime": cell.config.runtime,
        "summary_stats": or_empty(&outcome.summary_stats),
        "throughput_metrics": or_empty(&outcome.throughput_metrics),
        "prefill_group_stats": prefill_group(&outcome.prefill_stats, shape.context_length),
        "decode_window_stats": decode_windows(&outcome.decode_window_metrics),
        "settings": settings(cell),
        "key_metrics": metrics,
        "exit_code": outcome.exit_code,
        "failure": outcome.failure,
        "failed_health_checks": failed_names(outcome),
        "verdict": outcome.verdict,
        "duration_s": outcome.duration_seconds,
    });
    // As in Veeksha: no keys without objectives.
    if let Some(met) = all_slos_met(outcome) {
        run["all_slos_met"] = met.clone();
        run["slo_results"] = outcome.slo_results.clone();
    }
    run
}

/// Returns the result of all objectives; `None` without objectives, `null` if it is unknown (an SLO
/// plugin failed).
fn all_slos_met(outcome: &CellOutcome) -> Option<&Value> {
    let met = outcome.slo_results.get("all_slos_met")?;
    let results = outcome.slo_results.get("results").and_then(Value::as_array);
    let nothing_asked = !met.is_null() && results.is_some_and(Vec::is_empty);
    (!nothing_asked).then_some(met)
}

/// Returns an empty object for a missing file, as Veeksha does.
fn or_empty(value: &Value) -> Value {
    match value {
        Value::Null => json!({}),
        value => value.clone(),
    }
}

/// Returns the group of the run's context length, or the only group.
fn prefill_group(prefill: &Value, context_length: Option<u64>) -> Value {
    let found = || {
        let groups = prefill.get("groups")?.as_object()?;
        let wanted = context_length.map(|length| length.to_string());
        let (length, group) = match wanted.as_ref().and_then(|length| groups.get_key_value(length)) {
            Some(group) => group,
            None if groups.len() == 1 => groups.iter().next()?,
            None => return None,
        };
        let mut found = Map::new();
        found.insert("prompt_len".to_owned(), length.parse::<u64>().ok()?.into());
        take(&mut found, group, &STATISTICS);
        found.insert(
            "group_by".to_owned(),
            prefill.get("group_by").cloned().unwrap_or_default(),
        );
        Some(Value::Object(found))
    };
    found().unwrap_or_else(|| json!({}))
}

fn decode_windows(windows: &Value) -> Value {
    let Some(stats) = windows
        .get("tbc_in_window_stats")
        .filter(|stats| stats.is_object())
    else {
        return json!({});
    };
    let mut found = Map::new();
    take(&mut found, stats, &STATISTICS);
    for (key, pointer) in [
        ("window_duration_s", "/windows/total_duration_s"),
        ("num_windows", "/windows/num_selected_segments"),
        ("min_active_requests", "/config/min_active_requests"),
    ] {
        if let Some(value) = windows.pointer(pointer) {
            found.insert(key.to_owned(), value.clone());
        }
    }
    Value::Object(found)
}

fn take(into: &mut Map<String, Value>, from: &Value, keys: &[&str]) {
    for key in keys {
        if let Some(value) = from.get(key) {
            into.insert((*key).to_owned(), value.clone());
        }
    }
}

/// Returns the rows of `sweep_summary.csv`, the header first.
fn table(cells: &[&SweepRun], ended: &[(&SweepRun, &CellOutcome)]) -> Vec<Vec<String>> {
    let paths = setting_paths(cells.iter().copied());
    let metrics = KeyMetrics::default().named().map(|(name, _)| name);
    let heading = COLUMNS
        .into_iter()
        .chain(["run", "exit_code", "verdict", "duration_s"])
        .chain(metrics)
        .chain(["failure", "failed_health_checks"])
        .map(str::to_owned)
        .chain(paths.iter().map(|path| (*path).to_owned()))
        .collect();
    let mut rows: Vec<Vec<String>> = vec![heading];
    for (cell, outcome) in ended {
        let mut row: Vec<String> = COLUMNS.iter().map(|name| veekshas(name, cell, outcome)).collect();
        row.push(cell.number.to_string());
        row.push(outcome.exit_code.to_string());
        row.push(outcome.verdict.clone().unwrap_or_default());
        row.push(csv_text::number(outcome.duration_seconds));
        row.extend(
            KeyMetrics::of(outcome)
                .named()
                .map(|(_, value)| csv_text::number(value)),
        );
        row.push(outcome.failure.clone().unwrap_or_default());
        row.push(failed_names(outcome).unwrap_or_default().join("; "));
        row.extend(paths.iter().map(|path| {
            let setting = cell.settings.iter().find(|setting| setting.path == *path);
            setting.map(|setting| setting.text()).unwrap_or_default()
        }));
        rows.push(row);
    }
    rows
}

fn veekshas(column: &str, cell: &SweepRun, outcome: &CellOutcome) -> String {
    let shape = RunShape::of(&cell.config, outcome);
    let text = csv_text::cell;
    match column {
        "run_index" => cell.run_index.to_string(),
        "run_dir" => text(&path_text(outcome.run_dir.as_deref())),
        "context_length" => text(&shape.context_length.into()),
        "output_length" => text(&shape.output_length.into()),
        "num_requests" => text(&outcome.summary_stats["Number of Requests"]),
        "num_completed_requests" => text(&outcome.summary_stats["Number of Completed Requests"]),
        "error_rate" => text(&outcome.summary_stats["Error Rate"]),
        "all_slos_met" => all_slos_met(outcome).map(text).unwrap_or_default(),
        "tpot_based_throughput" | "tbc_based_throughput" => text(&outcome.throughput_metrics[column]),
        other => text(
            cell.config
                .traffic
                .get(other)
                .or_else(|| cell.config.runtime.get(other))
                .unwrap_or(&Value::Null),
        ),
    }
}
