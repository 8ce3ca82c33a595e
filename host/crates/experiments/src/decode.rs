//! `decode_stats.json` and `decode_stats.csv`: the decode windows of all runs.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::csv_text::cell as text;
use crate::key_metrics::RunShape;
use crate::outcome::CellOutcome;
use crate::sweep_run::SweepRun;

const COLUMNS: [&str; 10] = [
    "key",
    "run_dir",
    "context_length",
    "batch_size",
    "window_start",
    "window_end",
    "window_duration_s",
    "tbc_count",
    "tbc_mean",
    "tbc_p99",
];

/// Returns the contents of both files; `None` if no run has decode windows, context length and
/// batch size.
///
/// A run's key is `<context length>_<batch size>`. Where runs share a key (they differ in something
/// else), each after the first is called `<key>_run<run_index>`: Veeksha keeps the last of them
/// only.
pub(crate) fn stats(ended: &[(&SweepRun, &CellOutcome)]) -> Option<(Value, Vec<Vec<String>>)> {
    let mut stats: BTreeMap<String, &Value> = BTreeMap::new();
    let mut rows = vec![COLUMNS.map(str::to_owned).to_vec()];
    for (cell, outcome) in ended {
        let windows = &outcome.decode_window_metrics;
        let shape = RunShape::of(&cell.config, outcome);
        let (Some(context_length), Some(batch_size)) = (shape.context_length, shape.batch_size) else {
            continue;
        };
        if !windows.is_object() {
            continue;
        }
        let mut key = format!("{context_length}_{batch_size}");
        if stats.contains_key(&key) {
            key = format!("{key}_run{}", cell.run_index);
        }
        let one = windows.get("window").filter(|window| window.is_object());
        let first = windows.pointer("/windows/per_window/0");
        let of_window = |name: &str| one.or(first).and_then(|window| window.get(name));
        let duration = match one {
            Some(window) => window.get("duration_s"),
            None => windows.pointer("/windows/total_duration_s"),
        };
        let tbc = |name: &str| windows.pointer(&format!("/tbc_in_window_stats/{name}"));
        let or_empty = |value: Option<&Value>| value.map(text).unwrap_or_default();
        rows.push(vec![
            key.clone(),
            outcome
                .run_dir
                .as_ref()
                .map(|path| path.display().to_string())
                .unwrap_or_default(),
            context_length.to_string(),
            batch_size.to_string(),
            or_empty(of_window("start")),
            or_empty(of_window("end")),
            or_empty(duration),
            or_empty(tbc("count")),
            or_empty(tbc("mean")),
            or_empty(tbc("p99")),
        ]);
        stats.insert(key, windows);
    }
    if stats.is_empty() {
        return None;
    }
    let stats = stats
        .into_iter()
        .map(|(key, windows)| (key, windows.clone()))
        .collect();
    Some((Value::Object(stats), rows))
}
