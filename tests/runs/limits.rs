//! Limits on concurrent activity, verified in the record of a run.

use serde_json::Value;

use crate::results::{latest, lines};
use crate::support::{assert_code, scenario, veeksha};

const BUSY: &str = r#"
session_generator:
  type: synthetic
  session_graph: { type: linear, num_request_generator: { type: fixed, value: 2 }, request_wait_generator: { type: fixed, interval: 0 } }
  channels: [ { type: text, body_length_generator: { type: fixed, value: 30 } } ]
  output_spec: { text: { output_length_generator: { type: fixed, value: 8 } } }
traffic_scheduler: { type: rate, interval_generator: { type: fixed, interval: 0.01 } }
client: { api_base: "sim://default" }
runtime: { max_sessions: 60, benchmark_timeout: 0 }
"#;

/// Returns the rows of a run with additional flags.
fn rows(more: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = scenario(folder.path(), "busy.yml", BUSY);
    let output_dir = folder.path().to_str().expect("UTF-8");
    let mut arguments = vec!["run", &file, "--output_dir", output_dir];
    arguments.extend(more);
    assert_code(&veeksha(arguments), 0);
    lines(&latest(folder.path()), "metrics/request_level_metrics.jsonl")
}

fn time(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"))
}

/// Returns the maximum number of intervals that overlap at one instant.
fn most(stretches: impl Iterator<Item = (f64, f64)>) -> i32 {
    let mut edges: Vec<(f64, i32)> = stretches.flat_map(|(from, to)| [(from, 1), (to, -1)]).collect();
    // At equal instants, an end precedes a start.
    edges.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut now = 0;
    edges.iter().fold(0, |most, (_, step)| {
        now += step;
        most.max(now)
    })
}

fn dispatched(row: &Value) -> f64 {
    time(row, "scheduler_dispatched_at")
}

fn held(rows: &[Value], key: &str) -> f64 {
    rows.iter().map(|row| time(row, key)).sum()
}

#[test]
fn no_request_is_held_without_limits() {
    let rows = rows(&[]);
    assert_eq!(rows.len(), 120);
    for key in ["held_by_sessions", "held_by_in_flight", "held_by_prefill"] {
        assert_eq!(held(&rows, key), 0.0, "{key}");
    }
}

#[test]
fn requests_in_flight_are_capped_and_keep_their_instants() {
    let rows = rows(&["--traffic_scheduler.limits.requests_in_flight", "3"]);
    assert_eq!(rows.len(), 120);
    let flights = rows
        .iter()
        .map(|row| (dispatched(row), time(row, "client_completed_at")));
    assert!(most(flights) <= 3);
    assert!(held(&rows, "held_by_in_flight") > 0.0);
    assert_eq!(held(&rows, "held_by_sessions"), 0.0);
    for row in &rows {
        // Root requests are intended for the instants of the arrival process, whatever their delay.
        if row["node_id"] == 0 {
            let arrival = time(row, "session_id") * 0.01;
            let intended = time(row, "scheduler_ready_at");
            assert!(
                (intended - arrival - 0.01).abs() < 1e-9 || (intended - arrival).abs() < 1e-9,
                "{row}"
            );
        }
        let waited = dispatched(row) - time(row, "scheduler_ready_at");
        let held = time(row, "held_by_in_flight");
        assert!(waited >= held - 1e-9, "{row}");
        assert!(time(row, "ttfc_from_intended") >= held, "{row}");
    }
}

#[test]
fn requests_in_prefill_are_capped_by_their_first_chunk() {
    let rows = rows(&["--traffic_scheduler.limits.requests_in_prefill", "1"]);
    assert_eq!(rows.len(), 120);
    // From the dispatch to the first chunk no other request is admitted; decoding continues.
    let prefills = rows
        .iter()
        .map(|row| (dispatched(row), dispatched(row) + time(row, "ttfc")));
    assert!(most(prefills) <= 1);
    let flights = rows
        .iter()
        .map(|row| (dispatched(row), time(row, "client_completed_at")));
    assert!(most(flights) > 1, "decoding is not limited");
    assert!(held(&rows, "held_by_prefill") > 0.0);
}

#[test]
fn sessions_are_capped_from_their_first_request_to_their_last() {
    let rows = rows(&["--traffic_scheduler.limits.sessions", "2"]);
    assert_eq!(rows.len(), 120);
    let sessions = (0..60).map(|session| {
        let of: Vec<&Value> = rows.iter().filter(|row| row["session_id"] == session).collect();
        let from = of.iter().map(|row| dispatched(row)).fold(f64::MAX, f64::min);
        let to = of
            .iter()
            .map(|row| time(row, "client_completed_at"))
            .fold(0.0, f64::max);
        (from, to)
    });
    assert!(most(sessions) <= 2);
    assert!(held(&rows, "held_by_sessions") > 0.0);
}
