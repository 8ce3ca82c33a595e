//! The host's times, compared with the server's log on the same clock.

use std::collections::HashMap;

use serde_json::Value;

use crate::results::{latest, lines};
use crate::server::Sim;
use crate::support::{assert_code, veeksha};

/// Returns the instants at which the server wrote the chunks with content, in seconds on the
/// machine's monotonic clock.
pub(crate) fn contents(truth: &Value) -> Vec<f64> {
    let chunks = truth["chunks"].as_array().expect("chunks");
    chunks
        .iter()
        .filter(|chunk| chunk[1] == "content")
        .map(|chunk| seconds(&chunk[0]))
        .collect()
}

/// Returns `session/node` of a line of a truth log: its `x-request-id` without the id of the run.
pub(crate) fn request_of(line: &Value) -> Option<&str> {
    Some(line["request_id"].as_str()?.split_once('/')?.1)
}

/// Converts a time of a truth log to seconds.
pub(crate) fn seconds(nanos: &Value) -> f64 {
    nanos.as_f64().expect("a time") / 1e9
}

#[test]
fn requests_and_chunks_agree_with_the_truth_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let truth_file = folder.path().join("truth.jsonl");
    let sim = Sim::start(&["--truth", truth_file.to_str().expect("UTF-8")]);
    let output_dir = folder.path().to_str().expect("UTF-8");
    let arguments = [
        "run",
        "scenarios/quickstart.lua",
        "--output_dir",
        output_dir,
        "--client.api_base",
        &sim.api_base,
    ];
    assert_code(&veeksha(arguments), 0);
    sim.stop();

    let run = latest(folder.path());
    let rows = lines(&run, "metrics/request_level_metrics.jsonl");
    let trace = lines(&run, "traces/trace.jsonl");
    let epoch = trace[0]["epoch_monotonic"]
        .as_f64()
        .expect("the run's zero on the machine's clock");
    let truth = lines(folder.path(), "truth.jsonl");
    let truth: HashMap<&str, &Value> = truth
        .iter()
        .filter_map(|line| Some((request_of(line)?, line)))
        .collect();
    assert_eq!(truth.len(), rows.len(), "as many requests arrived as were sent");

    let mut errors = Vec::new();
    for row in &rows {
        let id = row["request_id"].as_str().expect("an id");
        let seen = truth
            .get(id)
            .unwrap_or_else(|| panic!("the server never saw {id}"));
        let number = |key: &str| row[key].as_f64().expect("a time");
        let contents = contents(seen);
        assert_eq!(
            row["tbc"].as_array().expect("tbc").len() + 1,
            contents.len(),
            "{id}"
        );
        // Causes precede effects on one clock: sent, arrived, answered, received.
        let arrived = seconds(&seen["arrived_at"]);
        assert!(epoch + number("scheduler_dispatched_at") <= arrived, "{id}");
        let received = epoch + number("scheduler_dispatched_at") + number("ttfc");
        let error = received - contents[0];
        assert!(error >= 0.0, "{id}: received {error} s before it was sent");
        errors.push(error);
    }
    errors.sort_by(f64::total_cmp);
    println!(
        "client lag of the first chunk: median {:.1} µs of {}",
        errors[errors.len() / 2] * 1e6,
        errors.len()
    );
}
