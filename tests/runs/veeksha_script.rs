//! Compatibility with a Veeksha user's script: every result file is read by the names, keys and
//! columns in Veeksha's documentation, and recomputed.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::results::{json, lines};
use crate::simulated::simulated;

/// The file names of Veeksha's metrics, and their display names.
const METRICS: [(&str, &str); 12] = [
    ("num_prompt_tokens", "Number of Prompt Tokens"),
    ("num_output_tokens", "Number of Output Tokens"),
    ("num_total_tokens", "Number of Total Tokens"),
    ("tpot", "Time per Output Token"),
    ("ttfc", "Time to First Chunk"),
    ("tbc", "Time Between Chunks"),
    ("end_to_end_latency", "End to End Latency"),
    ("normalized_end_to_end_latency", "Normalized End to End Latency"),
    ("output_throughput", "Output Throughput"),
    ("session_size", "Requests per Session"),
    ("session_duration", "Session Duration"),
    ("session_think_time", "Intra-session Think Time"),
];

/// The keys of a line of `request_level_metrics.jsonl`.
const ROW: [&str; 20] = [
    "request_id",
    "session_id",
    "session_total_requests",
    "scheduler_ready_at",
    "scheduler_dispatched_at",
    "client_picked_up_at",
    "client_completed_at",
    "result_processed_at",
    "num_delta_prompt_tokens",
    "num_total_prompt_tokens",
    "target_num_delta_prompt_tokens",
    "num_output_tokens",
    "num_requested_output_tokens",
    "num_total_tokens",
    "is_stream",
    "tpot",
    "ttfc",
    "end_to_end_latency",
    "normalized_end_to_end_latency",
    "output_throughput",
];

/// The counts in `summary_stats.json`.
const COUNTS: [&str; 12] = [
    "Number of Requests",
    "Number of Errored Requests",
    "Number of Completed Requests",
    "Number of Cancelled Requests",
    "Error Rate",
    "Cancellation Rate",
    "Number of Sessions Seen",
    "Successful Sessions",
    "Errored Sessions",
    "Cancelled Sessions",
    "Incomplete Sessions",
    "Observed Session Dispatch Rate",
];

const SCENARIO: &str = r#"
seed: 11
session_generator:
  type: synthetic
  session_graph:
    type: linear
    num_request_generator: { type: uniform, min: 1, max: 3 }
    request_wait_generator: { type: poisson, arrival_rate: 10 }
  channels: [ { type: text, body_length_generator: { type: uniform, min: 50, max: 150 } } ]
  output_spec: { text: { output_length_generator: { type: uniform, min: 1, max: 24 } } }
traffic_scheduler: { type: rate, interval_generator: { type: poisson, arrival_rate: 20 } }
client: { type: openai_chat_completions, api_base: "sim://default" }
runtime: { max_sessions: 60, benchmark_timeout: 60 }
evaluators:
  - type: performance
    text_channel: { decode_window_enabled: true }
    slos:
      - { type: constant, metric: ttfc, percentile: 0.99, value: 5.0, name: "P99 TTFC" }
      - { type: constant, metric: tbc, percentile: 0.9, value: 0.5 }
"#;

/// Returns the run that all of these tests share, made once.
fn run() -> &'static Path {
    static RUN: std::sync::OnceLock<(tempfile::TempDir, PathBuf)> = std::sync::OnceLock::new();
    let (_, run) = RUN.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let run = simulated(folder.path(), "s.yml", SCENARIO, &[]);
        (folder, run)
    });
    run
}

fn rows() -> Vec<Value> {
    lines(run(), "metrics/request_level_metrics.jsonl")
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"))
}

/// Returns a percentile by the textbook definition: linear interpolation between the two samples
/// next to the rank.
fn percentile(mut samples: Vec<f64>, percent: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let rank = percent / 100.0 * (samples.len() - 1) as f64;
    let (below, above) = (samples[rank.floor() as usize], samples[rank.ceil() as usize]);
    below + (above - below) * (rank - rank.floor())
}

#[track_caller]
fn assert_close(found: f64, expected: f64, what: &str) {
    let scale = expected.abs().max(1e-9);
    assert!(
        (found - expected).abs() / scale < 1e-9,
        "{what}: {found} is not {expected}"
    );
}

/// Returns the samples of a request metric, from the rows alone and by Veeksha's formulas.
fn samples(metric: &str, rows: &[Value]) -> Vec<f64> {
    let gaps = |row: &Value| -> Vec<f64> {
        let gaps = row["tbc"].as_array().expect("gaps");
        gaps.iter().map(|gap| gap.as_f64().expect("a gap")).collect()
    };
    let tokens = |row: &Value| number(row, "num_output_tokens");
    let whole = |row: &Value| number(row, "ttfc") + gaps(row).iter().sum::<f64>();
    rows.iter()
        .flat_map(|row| match metric {
            "num_prompt_tokens" => vec![number(row, "num_delta_prompt_tokens")],
            "num_output_tokens" => vec![tokens(row)],
            "num_total_tokens" => vec![number(row, "num_total_prompt_tokens") + tokens(row)],
            "ttfc" => vec![number(row, "ttfc")],
            "tbc" => gaps(row),
            "end_to_end_latency" => vec![whole(row)],
            "tpot" if tokens(row) >= 2.0 => {
                vec![(whole(row) - number(row, "ttfc")) / (tokens(row) - 1.0)]
            }
            "tpot" => Vec::new(),
            "normalized_end_to_end_latency" => vec![whole(row) / tokens(row)],
            "output_throughput" => vec![tokens(row) / whole(row)],
            other => panic!("{other} is not a metric of requests"),
        })
        .collect()
}

#[test]
fn rows_have_veeksha_s_keys() {
    let rows = rows();
    assert!(rows.len() > 60, "{} rows", rows.len());
    for row in &rows {
        for key in ROW {
            assert!(row.get(key).is_some(), "no {key} in {row}");
        }
        assert!(row["tbc"].is_array(), "{row}");
        // An answer of one token has no time per output token, whereas Veeksha writes 0.
        assert_eq!(row["tpot"].is_null(), row["num_output_tokens"] == 1, "{row}");
        assert_eq!(
            number(row, "num_total_tokens"),
            number(row, "num_total_prompt_tokens") + number(row, "num_output_tokens")
        );
    }
    assert!(
        rows.iter().any(|row| row["num_output_tokens"] == 1),
        "the case is there"
    );
}

#[test]
fn the_summary_is_that_of_the_rows() {
    let (rows, summary) = (rows(), json(run(), "metrics/summary_stats.json"));
    for key in COUNTS {
        assert!(summary.get(key).is_some_and(|value| !value.is_null()), "no {key}");
    }
    assert!(summary["error_code_freq"].is_object());
    assert_eq!(summary["Number of Completed Requests"], rows.len());
    assert_eq!(summary["Number of Sessions Seen"], 60);
    assert_eq!(summary["Successful Sessions"], 60);
    for (metric, display) in METRICS
        .iter()
        .filter(|(metric, _)| !metric.starts_with("session_"))
    {
        let samples = samples(metric, &rows);
        let statistic = |name: &str| number(&summary, &format!("{display} ({name})"));
        assert_close(
            statistic("Mean"),
            samples.iter().sum::<f64>() / samples.len() as f64,
            metric,
        );
        for percent in [50.0, 90.0, 99.0] {
            let expected = percentile(samples.clone(), percent);
            assert_close(
                statistic(&format!("P{percent}")),
                expected,
                &format!("{metric} P{percent}"),
            );
        }
    }
}

#[test]
fn sessions_are_those_of_the_rows() {
    let (rows, summary) = (rows(), json(run(), "metrics/summary_stats.json"));
    let mut sessions = std::collections::BTreeMap::<u64, Vec<&Value>>::new();
    for row in &rows {
        sessions
            .entry(row["session_id"].as_u64().expect("an id"))
            .or_default()
            .push(row);
    }
    let sizes = sessions
        .values()
        .map(|session| session.len() as f64)
        .collect::<Vec<_>>();
    let durations = sessions.values().map(|session| {
        let first = session
            .iter()
            .map(|row| number(row, "scheduler_dispatched_at"))
            .reduce(f64::min);
        let last = session
            .iter()
            .map(|row| number(row, "client_completed_at"))
            .reduce(f64::max);
        last.expect("a row") - first.expect("a row")
    });
    let durations = durations.collect::<Vec<_>>();
    // From the completion of a turn to the dispatch of the next one; these sessions are chains.
    let mut pauses = Vec::new();
    for session in sessions.values_mut() {
        session.sort_by(|a, b| {
            number(a, "scheduler_dispatched_at").total_cmp(&number(b, "scheduler_dispatched_at"))
        });
        pauses.extend(
            session.windows(2).map(|pair| {
                number(pair[1], "scheduler_dispatched_at") - number(pair[0], "client_completed_at")
            }),
        );
    }
    for (display, samples) in [
        ("Requests per Session", sizes),
        ("Session Duration", durations),
        ("Intra-session Think Time", pauses),
    ] {
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        assert_close(number(&summary, &format!("{display} (Mean)")), mean, display);
        for percent in [50.0, 90.0, 99.0] {
            let found = number(&summary, &format!("{display} (P{percent})"));
            assert_close(
                found,
                percentile(samples.clone(), percent),
                &format!("{display} P{percent}"),
            );
        }
    }
}

#[test]
fn each_metric_has_a_table_of_101_rows_and_a_plot() {
    let rows = rows();
    for (metric, display) in METRICS {
        let text = std::fs::read_to_string(run().join(format!("metrics/{metric}.csv"))).expect(metric);
        let mut table = text.lines();
        assert_eq!(table.next(), Some(format!(",cdf,{display}").as_str()), "{metric}");
        let cells: Vec<Vec<f64>> = table
            .map(|line| {
                line.split(',')
                    .map(|cell| cell.parse().expect("a number"))
                    .collect()
            })
            .collect();
        assert_eq!(cells.len(), 101, "{metric}");
        for (index, row) in cells.iter().enumerate() {
            assert_eq!(row[0], index as f64, "{metric}");
            assert_close(row[1], index as f64 / 100.0, metric);
        }
        assert!(
            cells.windows(2).all(|pair| pair[0][2] <= pair[1][2]),
            "{metric} grows"
        );
        if !metric.starts_with("session_") {
            let samples = samples(metric, &rows);
            for percent in [0, 50, 99, 100] {
                assert_close(
                    cells[percent][2],
                    percentile(samples.clone(), percent as f64),
                    metric,
                );
            }
        }
        assert!(run().join(format!("metrics/{metric}.png")).exists(), "{metric}");
    }
    assert!(run().join("metrics/ttfc_violin_plot.png").exists());
    assert!(run().join("metrics/decode_window_plot.png").exists());
}

#[test]
fn throughput_and_objectives_have_veeksha_s_keys() {
    let rows = rows();
    let throughput = json(run(), "metrics/throughput_metrics.json");
    let mean = |samples: Vec<f64>| samples.iter().sum::<f64>() / samples.len() as f64;
    assert_close(
        number(&throughput, "tpot_based_throughput"),
        1.0 / mean(samples("tpot", &rows)),
        "1/mean TPOT",
    );
    assert_close(
        number(&throughput, "tbc_based_throughput"),
        1.0 / percentile(samples("tbc", &rows), 99.0),
        "1/P99 TBC",
    );

    let slos = json(run(), "metrics/slo_results.json");
    assert_eq!(slos["all_slos_met"], true);
    let results = slos["results"].as_array().expect("results");
    assert_eq!(results.len(), 2);
    for (result, (metric, percent, threshold, key)) in results
        .iter()
        .zip([("ttfc", 99.0, 5.0, "ttfc_p99"), ("tbc", 90.0, 0.5, "tbc_p90")])
    {
        assert_eq!(result["met"], true);
        assert_eq!(result["slo_metric_key"], key);
        assert_eq!(result["metric"], metric);
        assert_close(number(result, "percentile"), percent / 100.0, key);
        assert_close(number(result, "threshold"), threshold, key);
        assert_close(
            number(result, "observed_value"),
            percentile(samples(metric, &rows), percent),
            key,
        );
        assert_eq!(result["lower_is_better"], true);
    }
    assert_eq!(results[0]["name"], "P99 TTFC");
    assert!(results[1]["name"].is_null());
}

#[test]
fn prefill_statistics_are_grouped_by_prompt_length() {
    let stats = json(run(), "metrics/prefill_stats.json");
    assert_eq!(stats["metric"], "ttfc");
    assert!(stats["group_by"].is_string());
    let groups = stats["groups"].as_object().expect("groups");
    let rows = rows();
    let counted: u64 = groups
        .values()
        .map(|group| group["count"].as_u64().expect("a count"))
        .sum();
    assert_eq!(counted, rows.len() as u64);
    for (length, group) in groups {
        let length: f64 = length.parse().expect("a length");
        let of_it = rows
            .iter()
            .filter(|row| number(row, "target_num_delta_prompt_tokens") == length);
        let times: Vec<f64> = of_it.map(|row| number(row, "ttfc")).collect();
        assert_eq!(group["count"], times.len());
        assert_close(
            number(group, "mean"),
            times.iter().sum::<f64>() / times.len() as f64,
            "mean",
        );
        assert_close(number(group, "median"), percentile(times.clone(), 50.0), "median");
        assert_close(number(group, "p90"), percentile(times.clone(), 90.0), "p90");
        assert_close(number(group, "p99"), percentile(times.clone(), 99.0), "p99");
        assert_close(number(group, "min"), percentile(times.clone(), 0.0), "min");
        assert_close(number(group, "max"), percentile(times, 100.0), "max");
        assert!(group["std"].is_number() || group["std"].is_null(), "{group}");
    }
}

#[test]
fn decode_windows_have_veeksha_s_keys() {
    let windows = json(run(), "metrics/decode_window_metrics.json");
    for (part, keys) in [
        (
            "config",
            &[
                "min_active_requests",
                "resolved_min_active_requests",
                "selection_strategy",
                "anchor_to_client_pickup",
                "require_streaming",
            ][..],
        ),
        (
            "eligible_requests",
            &["total_request_rows", "eligible", "skipped"],
        ),
        (
            "windows",
            &[
                "num_candidate_segments",
                "num_selected_segments",
                "total_duration_s",
                "per_window",
            ],
        ),
        (
            "tbc_in_window_stats",
            &["count", "mean", "median", "std", "min", "max", "p90", "p99"],
        ),
    ] {
        for key in keys {
            assert!(windows[part].get(key).is_some(), "no {part}.{key} in {windows}");
        }
    }
    for key in ["non_stream", "missing_anchor", "no_decode_chunks", "empty"] {
        assert!(
            windows["eligible_requests"]["skipped"].get(key).is_some(),
            "{key}"
        );
    }
    assert!(windows["notes"].is_array());
    assert_eq!(windows["eligible_requests"]["total_request_rows"], rows().len());
    let per_window = windows["windows"]["per_window"].as_array().expect("windows");
    assert!(!per_window.is_empty());
    for window in per_window {
        for key in ["window_index", "tbc_count", "tbc_mean", "tbc_median", "tbc_p99"] {
            assert!(window.get(key).is_some(), "no {key} in {window}");
        }
        let length = number(window, "end") - number(window, "start");
        assert_close(number(window, "duration_s"), length, "duration_s");
    }
    assert_eq!(
        windows.get("window").is_some_and(Value::is_object),
        per_window.len() == 1
    );
}

/// Every request is a track with a prefill and a slice for each gap; times are in microseconds.
#[test]
fn the_chrome_trace_has_a_prefill_of_each_request() {
    let trace = json(run(), "metrics/chrome_trace.json");
    let events = trace.as_array().expect("an array of events");
    let prefills: Vec<&Value> = events.iter().filter(|event| event["name"] == "Prefill").collect();
    let rows = rows();
    assert_eq!(prefills.len(), rows.len());
    for event in &prefills {
        assert_eq!(event["ph"], "X");
        for key in ["ts", "dur"] {
            assert!(event[key].as_f64().is_some_and(|time| time >= 0.0), "{event}");
        }
        assert!(
            event.get("pid").is_some() && event.get("tid").is_some() && event["args"].is_object(),
            "{event}"
        );
    }
    // From the pick-up to the first chunk; in virtual time the pick-up is the dispatch.
    let spent: f64 = prefills.iter().map(|event| number(event, "dur")).sum();
    let ttfc: f64 = rows.iter().map(|row| number(row, "ttfc")).sum();
    assert!(
        (spent / 1e6 - ttfc).abs() < 1e-6 * rows.len() as f64,
        "{spent} µs, {ttfc} s"
    );
}

#[test]
fn health_checks_are_written_as_text() {
    let text = std::fs::read_to_string(run().join("health_check_results.txt")).expect("the checks");
    for check in [
        "Session Dispatch Rate",
        "Intra-Session Request Arrival",
        "Prompt Length",
        "Output Length",
        "Lifecycle Timing Delays",
    ] {
        assert!(text.contains(check), "no {check} in {text}");
    }
}

/// A strict parser accepts every JSON file and every line; Python's `NaN` and `Infinity` do not
/// occur.
#[test]
fn all_json_is_strict() {
    let mut seen = 0;
    for folder in ["", "metrics", "traces"] {
        for entry in std::fs::read_dir(run().join(folder)).expect("a folder") {
            let file = entry.expect("an entry").path();
            let name = file
                .strip_prefix(run())
                .expect("within")
                .to_str()
                .expect("UTF-8")
                .to_owned();
            match file.extension().and_then(|end| end.to_str()) {
                Some("json") => drop(json(run(), &name)),
                Some("jsonl") => drop(lines(run(), &name)),
                _ => continue,
            }
            seen += 1;
        }
    }
    assert!(seen >= 12, "{seen} files");
}
