//! Requests that their workload cancels, from the scenario to the record, in virtual and in real
//! time and by the server's log.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use crate::results::{json, latest, lines};
use crate::server::Sim;
use crate::simulated::{path, simulated};
use crate::support::{assert_code, scenario, veeksha};
use crate::truth::request_of;

/// Sessions of requests that end in each way: answered (1); answered first (2), and so the end of
/// 3 and 4; after 400 ms (5); after 5 chunks (6); at the first chunk (7); before it is sent,
/// because 2 has ended (8); released by that (9); with a part that is continued (10).
fn sessions(count: u32) -> String {
    format!(
        r#"
local long = {{ tokens = 3000, exact = true }}
local sessions = function(index, rng)
  return {{
    requests = {{
      {{ user = synthetic(40), output = {{ tokens = 5, exact = true }} }},
      {{ user = synthetic(10), output = {{ tokens = 20, exact = true }}, after = 1 }},
      {{ user = synthetic(10), output = long, after = 1, cancel = {{ 2, 4 }} }},
      {{ user = synthetic(10), output = long, after = 1, cancel = 2 }},
      {{ user = synthetic(10), output = long, after = 1, cancel = {{ delay = "400ms" }} }},
      {{ user = synthetic(10), output = long, after = 1, cancel = {{ chunks = 5 }} }},
      {{ user = synthetic(10), output = long, after = 1, cancel = {{ trigger = "first_chunk" }} }},
      {{ user = synthetic(10), output = long, after = 1, wait = "1h", cancel = {{ node = 2, delay = "10ms" }} }},
      {{ user = synthetic(10), output = {{ tokens = 2, exact = true }}, after = 8, wait = "5ms" }},
      {{ user = synthetic(10), output = {{ tokens = 2, exact = true }}, history = 6 }},
    }},
  }}
end
return {{
  seed = 7,
  session_generator = {{ type = "lua", sessions = sessions }},
  traffic_scheduler = {{ type = "concurrent", target_concurrent_sessions = 1, rampup_seconds = 0 }},
  client = {{ api_base = "sim://default" }},
  runtime = {{ max_sessions = {count} }},
}}
"#
    )
}

fn number(line: &Value, key: &str) -> f64 {
    line[key].as_f64().unwrap_or_else(|| panic!("{key} of {line}"))
}

/// Checks the ends of the requests; `late` is the time in seconds that a client may take.
fn check(run: &Path, count: u64, late: f64) {
    let all = lines(run, "metrics/request_level_metrics.jsonl");
    let line = |session: u64, node: u64| {
        let found = all
            .iter()
            .find(|line| line["session_id"] == session && line["node_id"] == node);
        found.unwrap_or_else(|| panic!("{session}/{node} was not sent"))
    };
    for session in 0..count {
        let end = |node| number(line(session, node), "client_completed_at");
        let sent = |node| number(line(session, node), "scheduler_dispatched_at");
        for node in [1, 2, 9, 10] {
            assert_eq!(line(session, node)["success"], true, "{session}/{node}");
            assert_eq!(line(session, node)["cancelled_by_client"], false);
        }
        for node in 3..=7 {
            let line = line(session, node);
            assert_eq!(line["cancelled_by_client"], true, "{line}");
            assert_eq!(
                (&line["success"], &line["error_class"]),
                (&false.into(), &Value::Null)
            );
            assert_eq!(line["end_to_end_latency"], Value::Null, "not of a part");
            let chunks = number(line, "num_chunks");
            // The simulator sends a token per chunk, and its words are tokens of the host as well.
            assert_eq!(number(line, "num_output_tokens"), chunks, "{line}");
            let gaps = line["tbc"].as_array().expect("the gaps of the part").len();
            assert!(line["ttfc"].is_number(), "{line}");
            assert!(gaps > 0 && gaps as f64 <= chunks || node == 7, "{line}");
        }
        let within = |node, due: f64| {
            let after = end(node) - due;
            assert!((-1e-6..=late).contains(&after), "{session}/{node} by {after} s");
        };
        within(3, end(2));
        within(4, end(2));
        within(5, sent(5) + 0.4);
        within(7, sent(7) + number(line(session, 7), "ttfc"));
        let first_gaps = line(session, 6)["tbc"].as_array().expect("gaps")[..4].iter();
        let chunks: f64 = first_gaps.filter_map(Value::as_f64).sum();
        within(6, sent(6) + number(line(session, 6), "ttfc") + chunks);
        // The node that was never sent counts as complete from its cancellation on.
        let due = number(line(session, 9), "scheduler_ready_at");
        assert!((due - end(2) - 0.015).abs() < 1e-6, "{due} after {}", end(2));
        // The part of the answer is a turn of the conversation.
        let prompt = number(line(session, 6), "num_total_prompt_tokens");
        let continued = number(line(session, 10), "num_total_prompt_tokens");
        assert!(continued >= prompt + 10.0 + 5.0, "{prompt} {continued}");
        assert!(all.iter().all(|line| line["node_id"] != 8), "never sent");
    }
    let summary = json(run, "metrics/summary_stats.json");
    for (key, expected) in [
        ("Number of Requests", 9 * count),
        ("Number of Completed Requests", 4 * count),
        ("Number of Errored Requests", 0),
        ("Number of Cancelled Requests", 0),
        ("Number of Requests Cancelled by the Workload", 5 * count),
        ("Number of Intended Requests", 4 * count),
        ("Successful Sessions", count),
    ] {
        assert_eq!(summary[key], expected, "{key}");
    }
    assert_eq!(summary["never_sent_freq"]["cancelled_by_client"], count);
    assert_eq!(summary["Error Rate"], 0.0);
}

fn outcome(run: &Path, name: &str) -> Value {
    let checks = json(run, "health_check_results.json");
    let checks = checks["checks"].as_array().expect("checks").clone();
    let check = checks.into_iter().find(|check| check["name"] == name);
    check.expect("the check")["outcome"].clone()
}

#[test]
fn virtual_time_cancels_at_the_events() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "cancel.lua", &sessions(3), &[]);
    check(&run, 3, 1e-6);
    for name in [
        "Request Cancellation",
        "Output Length",
        "Requests Sent",
        "Request Accounting",
    ] {
        assert_eq!(outcome(&run, name), "passed", "{name}");
    }
    // The record has everything: its evaluation gives the same results.
    let summary = json(&run, "metrics/summary_stats.json");
    assert_code(&veeksha(["evaluate", path(&run)]), 0);
    assert_eq!(json(&run, "metrics/summary_stats.json"), summary);
    check(&run, 3, 1e-6);
}

/// The server sees each connection close soon after the cancellation, and stops there.
#[test]
fn real_time_closes_the_connections() {
    let folder = tempfile::tempdir().expect("a folder");
    let truth_file = folder.path().join("truth.jsonl");
    let sim = Sim::start(&["--truth", path(&truth_file)]);
    let file = scenario(folder.path(), "cancel.lua", &sessions(2));
    let output_dir = folder.path().join("out");
    let arguments = [
        "run",
        &file,
        "--output_dir",
        path(&output_dir),
        "--client.api_base",
        &sim.api_base,
    ];
    assert_code(&veeksha(arguments), 0);
    sim.stop();
    let run = latest(&output_dir);
    check(&run, 2, 0.2);
    let truth = lines(folder.path(), "truth.jsonl");
    let truth: HashMap<&str, &Value> = truth
        .iter()
        .filter_map(|line| Some((request_of(line)?, line)))
        .collect();
    assert_eq!(truth.len(), 18);
    for session in 0..2 {
        for node in [1, 2, 9, 10] {
            assert_eq!(truth[&*format!("{session}/{node}")]["outcome"], "length");
        }
        for node in 3..=7 {
            let line = truth[&*format!("{session}/{node}")];
            assert_eq!(line["outcome"], "disconnected", "{node}");
            let chunks = line["chunks"].as_array().expect("chunks").len();
            assert!(chunks < 1000, "{node}: {chunks} of 3000 tokens");
        }
    }
}
