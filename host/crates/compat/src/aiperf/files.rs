//! `profile_export_aiperf.json` and `.csv` and the time slices: `aiperf/exporters/*.py`, schema
//! version 1.4.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use veeksha_model::{Nanos, csv_cell};

use super::results::{AiperfMetric, AiperfStats};
use super::state::AiperfSlice;
use crate::options::Threshold;

/// `JsonExportData.SCHEMA_VERSION`.
const SCHEMA_VERSION: &str = "1.4";

/// Metadata of a run that AIPerf's files contain next to its metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AiperfInfo {
    /// `benchmark_id`: the run's identifier.
    pub benchmark_id: String,
    /// `aiperf_version`: the program that wrote the file, such as `veeksha-host 0.1.0`.
    pub version: String,
    /// `run_info.random_seed`.
    pub seed: Option<u64>,
    /// `run_info.cli_command`, without secrets.
    pub cli_command: String,
    /// `input_config`: the resolved configuration, without secrets.
    pub input_config: Value,
    /// Goodput thresholds by AIPerf's tags, in the displayed units (milliseconds).
    pub goodput: Vec<Threshold>,
    /// Name of the tokenizer behind the client's counts, as used in a sentence; `None` omits the
    /// remark.
    pub tokenizer: Option<String>,
    /// Length of a time slice in nanoseconds; `None` or 0 omits the slices.
    pub slice: Option<Nanos>,
}

/// AIPerf's files of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct AiperfFiles {
    /// `profile_export_aiperf.json`.
    pub json: Value,
    /// `profile_export_aiperf.csv`, with the line ends of Python's `csv` (CR LF).
    pub csv: String,
    /// The files of the time slices, if a length was given.
    pub timeslices: Option<AiperfSlices>,
    /// Notes for readers of these files for which AIPerf's format has no field; complete sentences.
    pub remarks: Vec<String>,
}

/// AIPerf's files of time slices.
#[derive(Clone, Debug, PartialEq)]
pub struct AiperfSlices {
    /// `profile_export_aiperf_timeslices.json`.
    pub json: Value,
    /// `profile_export_aiperf_timeslices.csv`.
    pub csv: String,
}

/// Metadata around the metrics.
pub(super) struct ExportMetadata<'a> {
    pub(super) info: &'a AiperfInfo,
    pub(super) epoch: u64,
    pub(super) end: Nanos,
    pub(super) interrupted: bool,
    pub(super) ended: bool,
    pub(super) errors: Vec<Value>,
}

pub(super) fn json(metrics: &[AiperfMetric], frame: &ExportMetadata<'_>) -> Value {
    let info = frame.info;
    let mut run_info = json!({
        "benchmark_id": info.benchmark_id,
        "trial": 0,
        "cli_command": info.cli_command,
    });
    if let (Some(seed), Some(run_info)) = (info.seed, run_info.as_object_mut()) {
        run_info.insert("random_seed".into(), seed.into());
    }
    let incomplete = match (frame.interrupted, frame.ended) {
        (true, _) => Some("Run cancelled before all records were processed."),
        (false, false) => Some("The record ends before the run did."),
        (false, true) => None,
    };
    let mut file = Map::from_iter([
        ("schema_version".to_owned(), SCHEMA_VERSION.into()),
        ("aiperf_version".to_owned(), info.version.as_str().into()),
        ("benchmark_id".to_owned(), info.benchmark_id.as_str().into()),
        ("input_config".to_owned(), info.input_config.clone()),
        ("run_info".to_owned(), run_info),
        ("was_cancelled".to_owned(), frame.interrupted.into()),
        ("is_complete".to_owned(), incomplete.is_none().into()),
        ("error_summary".to_owned(), Value::Array(frame.errors.clone())),
    ]);
    if let Some(reason) = incomplete {
        file.insert("incomplete_reason".into(), reason.into());
    }
    for (key, at) in [("start_time", 0), ("end_time", frame.end)] {
        if let Some(time) = wall(frame.epoch, at) {
            file.insert(key.into(), time.into());
        }
    }
    file.extend(metrics.iter().map(|metric| (metric.tag.clone(), metric.json())));
    Value::Object(file)
}

/// Formats an instant as ISO 8601 in UTC, to the microsecond.
fn wall(epoch: u64, at: Nanos) -> Option<String> {
    let micros = i64::try_from(epoch.checked_add(at)? / 1000).ok()?;
    let time = Timestamp::from_microsecond(micros).ok()?;
    Some(time.to_string())
}

/// Writes two tables, metrics with percentiles and single values, each ordered by tag.
pub(super) fn csv(metrics: &[AiperfMetric]) -> String {
    let mut sorted: Vec<&AiperfMetric> = metrics.iter().collect();
    sorted.sort_unstable_by(|a, b| a.tag.cmp(&b.tag));
    let (requests, systems): (Vec<_>, Vec<_>) = sorted
        .into_iter()
        .partition(|metric| metric.stats.is_distribution());
    let mut text = String::new();
    if !requests.is_empty() {
        let mut header = vec!["Metric".to_owned()];
        header.extend(AiperfStats::default().named().map(|(name, _)| name.to_owned()));
        row(&mut text, &header);
        for metric in &requests {
            let mut cells = vec![name(metric)];
            cells.extend(metric.stats.named().map(|(_, value)| cell(value)));
            row(&mut text, &cells);
        }
        if !systems.is_empty() {
            text.push_str("\r\n");
        }
    }
    if !systems.is_empty() {
        row(&mut text, &["Metric".to_owned(), "Value".to_owned()]);
        for metric in systems {
            row(&mut text, &[name(metric), cell(metric.stats.avg)]);
        }
    }
    text
}

pub(super) fn slices(slices: &[AiperfSlice], epoch: u64, input_config: &Value) -> AiperfSlices {
    let mut csv = String::new();
    let header = [
        "Timeslice",
        "Start_NS",
        "End_NS",
        "Metric",
        "Unit",
        "Stat",
        "Value",
    ];
    row(&mut csv, &header.map(str::to_owned));
    let mut list = Vec::new();
    for (index, slice) in slices.iter().enumerate() {
        let (start, end) = (epoch.saturating_add(slice.from), epoch.saturating_add(slice.to));
        let mut object = Map::from_iter([
            ("start_ns".to_owned(), Value::from(start)),
            ("end_ns".to_owned(), Value::from(end)),
        ]);
        if !slice.complete {
            object.insert("is_complete".into(), false.into());
        }
        let metrics = slice.metrics.iter();
        object.extend(metrics.map(|metric| (metric.tag.clone(), metric.json())));
        list.push(Value::Object(object));
        let mut sorted: Vec<&AiperfMetric> = slice.metrics.iter().collect();
        sorted.sort_unstable_by(|a, b| a.tag.cmp(&b.tag));
        for metric in sorted {
            for (name, value) in metric.stats.named() {
                if value.is_none() {
                    continue;
                }
                let cells = [
                    index.to_string(),
                    start.to_string(),
                    end.to_string(),
                    metric.header.clone(),
                    metric.unit.to_owned(),
                    name.to_owned(),
                    cell(value),
                ];
                row(&mut csv, &cells);
            }
        }
    }
    AiperfSlices {
        json: json!({ "timeslices": list, "input_config": input_config }),
        csv,
    }
}

/// Formats a label such as `Request Latency (ms)`; counts have no unit.
fn name(metric: &AiperfMetric) -> String {
    match metric.unit {
        "count" | "requests" => metric.header.clone(),
        unit => format!("{} ({unit})", metric.header),
    }
}

fn cell(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.2}"))
}

/// Writes a row like Python's `csv.writer`.
fn row(text: &mut String, cells: &[String]) {
    let quoted = cells.iter().map(|cell| csv_cell(cell)).map(|cell| {
        if cell.contains([',', '"', '\r', '\n']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell.into_owned()
        }
    });
    text.push_str(&quoted.collect::<Vec<_>>().join(","));
    text.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_instants_as_iso_8601() {
        // 2026-08-17 12:34:56.789012 UTC, of `date -u -d '2026-08-17 12:34:56' +%s`.
        assert_eq!(
            wall(1_786_970_096_000_000_000, 789_012_345).as_deref(),
            Some("2026-08-17T12:34:56.789012Z")
        );
    }

    #[test]
    fn quotes_cells_that_need_it() {
        let mut text = String::new();
        row(
            &mut text,
            &["a,b".to_owned(), "say \"no\"".to_owned(), "plain".to_owned()],
        );
        assert_eq!(text, "\"a,b\",\"say \"\"no\"\"\",plain\r\n");
    }
}
