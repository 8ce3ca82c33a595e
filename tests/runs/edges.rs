//! Requests that wait for other events of a request than its end, from the scenario to the record.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::results::{json, lines};
use crate::simulated::{path, real, simulated};
use crate::support::{assert_code, veeksha};

/// Sessions of a long answer (1), a request 30 ms after its dispatch (2), one at its first chunk
/// (3), one after both (4), and one that continues its conversation (5).
pub(crate) fn scenario(sessions: u32) -> String {
    format!(
        r#"
local sessions = function(index, rng)
  return {{
    requests = {{
      {{ user = synthetic(40), output = {{ tokens = 60, exact = true }} }},
      {{ user = synthetic(10), output = {{ tokens = 2, exact = true }},
        after = {{ node = 1, trigger = "dispatched", delay = "30ms" }} }},
      {{ user = synthetic(10), output = {{ tokens = 2, exact = true }},
        after = {{ node = 1, trigger = "first_chunk" }} }},
      {{ user = synthetic(10), output = {{ tokens = 2, exact = true }}, after = {{ 2, 3 }}, wait = "5ms" }},
      {{ user = synthetic(10), output = {{ tokens = 2, exact = true }}, history = 1 }},
    }},
  }}
end
return {{
  seed = 7,
  session_generator = {{ type = "lua", sessions = sessions }},
  traffic_scheduler = {{ type = "concurrent", target_concurrent_sessions = 2, rampup_seconds = 0 }},
  client = {{ api_base = "sim://default" }},
  runtime = {{ max_sessions = {sessions} }},
}}
"#
    )
}

fn number(line: &Value, key: &str) -> f64 {
    line[key].as_f64().unwrap_or_else(|| panic!("{key} of {line}"))
}

/// Rounding of the times in result files, in seconds.
const ROUNDING: f64 = 1e-6;

/// Checks the instants of each session.
fn check_instants(run: &Path, sessions: usize) {
    let mut by_session: BTreeMap<u64, BTreeMap<u64, Value>> = BTreeMap::new();
    for line in lines(run, "metrics/request_level_metrics.jsonl") {
        let (session, node) = (line["session_id"].as_u64(), line["node_id"].as_u64());
        let nodes = by_session.entry(session.expect("a session")).or_default();
        nodes.insert(node.expect("a node"), line);
    }
    assert_eq!(by_session.len(), sessions);
    for nodes in by_session.values() {
        let [first, on_dispatch, on_chunk, joined, continued] =
            [1, 2, 3, 4, 5].map(|node| nodes.get(&node).expect("every node was sent"));
        let due = |line: &Value| number(line, "scheduler_ready_at");
        let dispatched = |line: &Value| number(line, "scheduler_dispatched_at");
        let completed = |line: &Value| number(line, "client_completed_at");
        let is_after = |due: f64, event: f64| (due - event).abs() <= ROUNDING;
        // The scheduler decides the dispatch before a thread stamps it.
        let decided = due(first) + 0.03 - ROUNDING..=dispatched(first) + 0.03 + ROUNDING;
        assert!(decided.contains(&due(on_dispatch)), "{on_dispatch}");
        let first_chunk = dispatched(first) + number(first, "ttfc");
        assert!(is_after(due(on_chunk), first_chunk), "{on_chunk}");
        assert!(
            dispatched(on_chunk) < completed(first),
            "while the parent streams"
        );
        let ready = completed(on_dispatch).max(completed(on_chunk)) + 0.005;
        assert!(is_after(due(joined), ready), "{joined}");
        assert!(is_after(due(continued), completed(first)), "{continued}");
        assert_eq!(on_dispatch["parent_triggers"], serde_json::json!(["dispatched"]));
        assert_eq!(on_dispatch["parent_delays"], serde_json::json!([0.03]));
        assert_eq!(on_chunk["parent_triggers"], serde_json::json!(["first_chunk"]));
        assert!(
            joined.get("parent_triggers").is_none_or(Value::is_null),
            "{joined}"
        );
    }
}

fn arrival_check(run: &Path) -> Value {
    let checks = json(run, "health_check_results.json");
    let checks = checks["checks"].as_array().expect("checks").clone();
    let arrival = |check: &Value| check["name"] == "Intra-Session Request Arrival";
    checks.into_iter().find(arrival).expect("the check")
}

#[test]
fn virtual_time_releases_requests_at_the_events_they_wait_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "edges.lua", &scenario(6), &[]);
    check_instants(&run, 6);
    let check = arrival_check(&run);
    assert_eq!(check["outcome"], "passed", "{check}");
    let summary = json(&run, "metrics/summary_stats.json");
    // The record has the events, so that its evaluation gives the same results.
    let evaluated = veeksha(["evaluate", path(&run)]);
    assert_code(&evaluated, 0);
    assert_eq!(json(&run, "metrics/summary_stats.json"), summary);
    check_instants(&run, 6);
}

#[test]
fn real_time_releases_requests_at_the_events_they_wait_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = real(folder.path(), "edges.lua", &scenario(6), 0);
    check_instants(&run, 6);
    let check = arrival_check(&run);
    // On busy cores a request may be late, but none is early.
    assert_eq!(check["values"]["early"]["value"], 0.0, "{check}");
}
