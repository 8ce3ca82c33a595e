//! Runs with `stream: false`: each answer is one event, so only its end is known.

use serde_json::Value;

use crate::page;
use crate::results::{json, latest, lines};
use crate::support::{assert_code, scenario, veeksha};

const WHOLE: &str = r#"
session_generator:
  type: synthetic
  session_graph: { type: single_request }
  channels: [ { type: text, body_length_generator: { type: fixed, value: 20 } } ]
  output_spec: { text: { output_length_generator: { type: fixed, value: 8 } } }
traffic_scheduler: { type: concurrent, target_concurrent_sessions: 4, rampup_seconds: 0 }
client: { api_base: "sim://fast", additional_sampling_params: { stream: false } }
runtime: { max_sessions: 40, benchmark_timeout: 0 }
evaluators:
  - type: performance
    slos: [ { type: constant, metric: e2e, percentile: 0.99, value: 60 } ]
    text_channel: { decode_window_enabled: true }
"#;

#[test]
fn answers_that_are_not_streamed_are_counted_everywhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = scenario(folder.path(), "whole.yml", WHOLE);
    let output_dir = folder.path().to_str().expect("UTF-8");
    assert_code(&veeksha(["run", &file, "--output_dir", output_dir]), 0);
    let run = latest(folder.path());

    let rows = lines(&run, "metrics/request_level_metrics.jsonl");
    assert_eq!(rows.len(), 40);
    for row in &rows {
        assert_eq!(
            (&row["is_stream"], &row["ttfc"]),
            (&Value::Bool(false), &Value::Null)
        );
        assert_eq!(row["num_output_tokens"], 8);
        assert!(row["end_to_end_latency"].as_f64() > Some(0.0), "{row}");
    }

    let summary = json(&run, "metrics/summary_stats.json");
    assert_eq!(summary["Number of Completed Requests"], 40);
    assert_eq!(summary["Number of Empty Answers"], 0);
    assert_eq!(json(&run, "metrics/slo_results.json")["all_slos_met"], true);

    // The end is the only instant that a bound can be about.
    let certificate = json(&run, "certificate.json");
    let bounds = certificate["bounds"].as_object().expect("bounds");
    assert_eq!(
        bounds.keys().collect::<Vec<_>>(),
        ["e2e_from_intended", "end_to_end_latency"]
    );
    assert!(bounds.values().all(|bound| bound["count"] == 40), "{bounds:?}");

    let windows = json(&run, "metrics/decode_window_metrics.json");
    let skipped = &windows["eligible_requests"]["skipped"];
    assert_eq!(
        (&skipped["non_stream"], &skipped["empty"]),
        (&40.into(), &0.into())
    );

    let page = page::data(&run);
    let ends = page["requests"]["last_chunk"].as_array().expect("ends");
    assert_eq!(ends.len(), 40);
    assert!(ends.iter().all(Value::is_number), "{ends:?}");
}
