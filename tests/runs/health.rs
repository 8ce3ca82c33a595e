//! Health checks from outside: one run for each possible deviation from its scenario.

use serde_json::Value;

use crate::results::json;
use crate::simulated::{labelled, path, simulated};
use crate::support::{assert_code, scenario, stderr, stdout, veeksha};

/// Single requests in a closed loop.
const CLOSED: &str = r#"
session_generator:
  type: synthetic
  session_graph: { type: single_request }
  channels: [ { type: text, body_length_generator: { type: fixed, value: 100 } } ]
  output_spec: { text: { output_length_generator: { type: fixed, value: 16 } } }
traffic_scheduler: { type: concurrent, target_concurrent_sessions: 4, rampup_seconds: 0 }
client: { type: openai_chat_completions, api_base: "sim://default" }
runtime: { max_sessions: 80, benchmark_timeout: 60 }
"#;

fn health(run: &std::path::Path, more: &[&str]) -> std::process::Output {
    let mut arguments = vec!["health", path(run)];
    arguments.extend(more);
    veeksha(arguments)
}

fn checks(run: &std::path::Path) -> Vec<Value> {
    let output = health(run, &["--json"]);
    assert_code(&output, 0);
    let mut report: Value = serde_json::from_str(&stdout(&output)).expect("one JSON object and nothing else");
    // The state of its record, which the run cannot check while it is being written.
    let whole = report
        .as_object_mut()
        .and_then(|report| report.remove("record_is_whole"));
    assert_eq!(whole, Some(Value::Bool(true)));
    assert_eq!(
        report,
        json(run, "health_check_results.json"),
        "the same as when the run ended"
    );
    report["checks"].as_array().expect("checks").clone()
}

fn outcome(checks: &[Value], name: &str) -> String {
    let check = checks.iter().find(|check| check["name"] == name);
    let check = check.unwrap_or_else(|| panic!("no {name} in {checks:?}"));
    check["outcome"].as_str().expect("an outcome").to_owned()
}

#[test]
fn run_that_follows_its_scenario_is_healthy() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.yml", CLOSED, &[]);
    let output = health(&run, &["--strict"]);
    assert_code(&output, 0);
    let written = std::fs::read_to_string(run.join("health_check_results.txt")).expect("the checks");
    assert_eq!(stdout(&output).trim_end(), written.trim_end());
    let checks = checks(&run);
    for (name, expected) in [
        ("Session Dispatch Rate", "skipped"),
        ("Intra-Session Request Arrival", "skipped"),
        ("Session Concurrency", "passed"),
        ("Prompt Length", "passed"),
        ("Output Length", "passed"),
        ("Lifecycle Timing Delays", "passed"),
        ("Request Accounting", "passed"),
        ("Client Saturation", "passed"),
    ] {
        assert_eq!(outcome(&checks, name), expected, "{name}");
    }
    let open = simulated(folder.path(), "s.lua", &labelled(60, "", ""), &[]);
    let checks = self::checks(&open);
    assert_eq!(outcome(&checks, "Session Dispatch Rate"), "passed");
    assert_eq!(outcome(&checks, "Intra-Session Request Arrival"), "passed");
    assert_eq!(outcome(&checks, "Session Concurrency"), "skipped");
    assert_eq!(
        outcome(&checks, "Cold Cache"),
        "passed",
        "prompts of a Lua function are compared with each other"
    );
}

/// Two runs of one Lua scenario against one server, whose prompts share a prefix: hits within the
/// first run are expected, but the second one also hits the first one's cache.
#[test]
fn cache_warmed_by_another_run_is_remarked_for_every_generator() {
    let folder = tempfile::tempdir().expect("a folder");
    let sim = crate::server::Sim::start(&[]);
    let text = r#"
return {
  session_generator = { type = "lua", sessions = function(index, rng)
    return { requests = { {
      system = synthetic(600, 1), user = synthetic(600), output = { tokens = 4, exact = true },
    } } }
  end },
  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 2, rampup_seconds = 0 },
  client = { type = "openai_chat_completions" },
  runtime = { max_sessions = 12, benchmark_timeout = 60 },
}
"#;
    let file = scenario(folder.path(), "s.lua", text);
    let mut outcomes = Vec::new();
    for _ in 0..2 {
        let out = folder.path().join("out");
        let arguments = [
            "run",
            &file,
            "--output_dir",
            path(&out),
            "--client.api_base",
            &sim.api_base,
        ];
        assert_code(&veeksha(arguments), 0);
        outcomes.push(outcome(&checks(&crate::results::latest(&out)), "Cold Cache"));
    }
    sim.stop();
    assert_eq!(outcomes, ["passed", "failed"]);
}

/// The server receives the length of an answer in a parameter that it does not support, so that
/// answers end at arbitrary lengths.
#[test]
fn short_responses_with_exact_output_fail_the_health_check() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = scenario(folder.path(), "terse.yml", "mean_output_tokens: 4\n");
    let sim = crate::server::Sim::start(&["--profile", &profile]);
    let file = scenario(folder.path(), "s.yml", CLOSED);
    let out = folder.path().join("out");
    let output = veeksha([
        "run",
        &file,
        "--output_dir",
        path(&out),
        "--client.api_base",
        &sim.api_base,
        "--client.ignore_eos",
        "false",
        "--client.min_tokens_param",
        "the_least",
    ]);
    sim.stop();
    // A failed check is a warning of the run, and an error only on request.
    assert_code(&output, 0);
    let run = crate::results::latest(&out);
    assert!(stdout(&output).contains("Output Length"), "{}", stdout(&output));
    assert_eq!(outcome(&checks(&run), "Output Length"), "failed");
    assert_code(&health(&run, &[]), 0);
    let strict = health(&run, &["--strict"]);
    assert_code(&strict, 6);
    assert!(
        stdout(&strict).contains("Health checks: FAILED"),
        "{}",
        stdout(&strict)
    );
    let strict = health(&run, &["--strict", "--json"]);
    assert_code(&strict, 6);
    let report: Value = serde_json::from_str(&stdout(&strict)).expect("JSON");
    assert_eq!(report["passed"], false);
}

/// A limit on requests in flight delays an open loop: the sent rate differs from the requested one.
#[test]
fn missed_rate_fails_the_health_check() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = CLOSED.replace(
        "{ type: concurrent, target_concurrent_sessions: 4, rampup_seconds: 0 }",
        "{ type: rate, interval_generator: { type: fixed, interval: 0.02 }, limits: { requests_in_flight: 1 } }",
    );
    let run = simulated(folder.path(), "s.yml", &text, &[]);
    assert_eq!(outcome(&checks(&run), "Session Dispatch Rate"), "failed");
    assert_code(&health(&run, &["--strict"]), 6);
}

/// Half of the events are missing: checks without enough data do not fail, and report it.
#[test]
fn damaged_record_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.yml", CLOSED, &[]);
    let events = run.join("record/events.parquet");
    let bytes = std::fs::read(&events).expect("the record");
    std::fs::write(&events, &bytes[..bytes.len() / 2]).expect("a file");
    let output = health(&run, &[]);
    assert_code(&output, 0);
    assert!(stderr(&output).contains("events.parquet"), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("the record is truncated"), "{said}");
    assert!(said.contains("requests finished        80"), "{said}");
    let nowhere = health(&folder.path().join("nowhere"), &["--strict"]);
    assert_code(&nowhere, 2);
}
