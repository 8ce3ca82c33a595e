//! Half a minute at a high rate: no request is lost or counted twice.

use std::collections::HashSet;

use crate::results::{json, latest, lines};
use crate::support::{assert_code, scenario, veeksha};

/// Two thousand requests per second for thirty seconds. A slower machine takes longer, but must not
/// lose any request.
const SOAK: &str = r#"
session_generator:
  type: synthetic
  session_graph: { type: single_request }
  channels: [ { type: text, body_length_generator: { type: fixed, value: 4 } } ]
  output_spec: { text: { output_length_generator: { type: fixed, value: 2 } } }
traffic_scheduler: { type: rate, interval_generator: { type: fixed, interval: 0.0005 } }
client: { api_base: "sim://PROFILE" }
runtime: { max_sessions: 60000, benchmark_timeout: 0 }
trace_recorder: { enabled: true }
"#;

const QUICK: &str = "prefill_base_ms: 0.1\nprefill_ms_per_token: 0\ndecode_base_ms: 0.1\ndecode_ms_per_sequence: 0\nmax_batch: 4096\nnoise_cv: 0\n";

#[test]
fn no_request_is_lost_or_counted_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = scenario(folder.path(), "quick.yml", QUICK);
    let file = scenario(folder.path(), "soak.yml", &SOAK.replace("PROFILE", &profile));
    let output_dir = folder.path().to_str().expect("UTF-8");
    let output = veeksha(["run", &file, "--output_dir", output_dir, "--quiet"]);
    assert_code(&output, 0);
    let run = latest(folder.path());
    let rows = lines(&run, "metrics/request_level_metrics.jsonl");
    let sessions: HashSet<u64> = rows
        .iter()
        .map(|row| row["session_id"].as_u64().expect("a session"))
        .collect();
    assert_eq!((rows.len(), sessions.len()), (60_000, 60_000));
    assert!(
        rows.iter().all(|row| row["success"] == true),
        "every request is answered"
    );
    let summary = json(&run, "metrics/summary_stats.json");
    assert_eq!(summary["Number of Intended Requests"], 60_000);
    assert_eq!(summary["Number of Completed Requests"], 60_000);
    let (mut dispatched, mut finished) = (0, 0);
    for line in lines(&run, "traces/trace.jsonl") {
        dispatched += usize::from(line["event"] == "dispatched");
        finished += usize::from(line["event"] == "finished");
    }
    assert_eq!((dispatched, finished), (60_000, 60_000));
}
