//! Arrival processes of plugins: the same starts as those of the built-in processes, in virtual and
//! in real time.

use std::path::Path;

use serde_json::Value;

use crate::results::{json, lines};
use crate::simulated::{ends_with, evaluate, path, real, simulated};
use crate::support::{assert_code, root, scenario as write, stderr, stdout, veeksha};

/// Sessions of two requests, with these traffic and runtime.
fn scenario(traffic: &str, runtime: &str) -> String {
    format!(
        r#"
local sessions = function(index, rng)
  return {{ requests = {{
    {{ user = synthetic(rng:int(20, 60)), output = {{ tokens = 4, exact = true }} }},
    {{ user = synthetic(10), history = 1, output = {{ tokens = 4, exact = true }}, wait = "5ms" }},
  }} }}
end
return {{
  seed = 7,
  session_generator = {{ type = "lua", sessions = sessions }},
  traffic_scheduler = {{ {traffic} }},
  client = {{ api_base = "sim://default" }},
  runtime = {{ max_sessions = 120, {runtime} }},
}}
"#
    )
}

const POISSON: &str = r#"type = "rate", interval_generator = { type = "poisson", arrival_rate = 100 }"#;
const FIXED: &str = r#"type = "rate", interval_generator = { type = "fixed", interval = 0.0125 }"#;

/// The same gaps, drawn by a component.
fn component(config: &str) -> String {
    let file = root().join("tests/guests/dist/sdk-arrivals.wasm");
    format!(
        r#"type = "arrival_process", process = {{ type = "wasm", plugin = "{}", config = {config} }}"#,
        file.display()
    )
}

/// The fixed gaps in Lua, for `sessions` arrivals.
fn lua(sessions: u32) -> String {
    format!(
        r#"type = "arrival_process", process = {{ type = "lua", arrivals = function(rng)
  local session = 0
  return function(count)
    local list = {{}}
    while #list < count and session < {sessions} do
      table.insert(list, session * 0.0125)
      session += 1
    end
    return list
  end
end }}"#
    )
}

/// Returns the session and the start of each session, in the order of their ids.
fn starts(run: &Path) -> Vec<(u64, f64)> {
    let mut starts: Vec<(u64, f64)> = lines(run, "traces/trace.jsonl")
        .iter()
        .filter(|line| line["event"] == "session_started")
        .map(|line| {
            (
                line["session_id"].as_u64().expect("an id"),
                line["at"].as_f64().expect("a time"),
            )
        })
        .collect();
    starts.sort_by_key(|(session, _)| *session);
    starts
}

fn check<'a>(health: &'a Value, name: &str) -> &'a Value {
    let checks = health["checks"].as_array().expect("checks");
    let found = checks.iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {health}"))
}

#[test]
fn plugins_with_the_gaps_of_a_built_in_process_have_its_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |name: &str, traffic: &str| simulated(folder.path(), name, &scenario(traffic, ""), &[]);
    let built_in = starts(&run("poisson.lua", POISSON));
    assert_eq!(built_in.len(), 120);
    assert_eq!(
        starts(&run("component.lua", &component("{ rate = 100 }"))),
        built_in
    );
    assert_eq!(
        starts(&run("lua.lua", &lua(1000))),
        starts(&run("fixed.lua", FIXED))
    );
    // The process is among the plugins of the run.
    let run = run("again.lua", &component("{ rate = 100 }"));
    let text = std::fs::read_to_string(run.join("config.yml")).expect("a file");
    assert!(text.contains("sdk-arrivals.wasm"), "{text}");
}

#[test]
fn real_time_has_the_same_arrivals_with_any_number_of_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = scenario(
        &component("{ rate = 100 }"),
        "num_dispatcher_threads = 2, num_plugin_threads = 2",
    );
    let virtual_run = simulated(folder.path(), "virtual.lua", &text, &[]);
    let real_run = real(folder.path(), "real.lua", &text, 0);
    assert_eq!(starts(&real_run), starts(&virtual_run));
    let summary = json(&real_run, "metrics/summary_stats.json");
    assert_eq!(summary["Number of Requests"], 240);
    assert_eq!(summary["Number of Missed Arrivals"], 0);
}

#[test]
fn a_process_that_ends_limits_the_sessions_and_can_be_evaluated() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = scenario(&lua(70), "");
    let run = simulated(folder.path(), "lua.lua", &text, &[]);
    assert_eq!(starts(&run).len(), 70);
    let health = json(&run, "health_check_results.json");
    assert_eq!(
        check(&health, "Session Dispatch Rate")["outcome"],
        "passed",
        "{health}"
    );
    let evaluated = evaluate(&run, &[]);
    assert_code(&evaluated, 0);
    assert!(!stderr(&evaluated).contains("unknown"), "{}", stderr(&evaluated));
    // A run with another process has another load.
    let other = simulated(
        folder.path(),
        "other.lua",
        &scenario(&component("{ rate = 100 }"), ""),
        &[],
    );
    let compared = veeksha(["compare", path(&run), path(&other)]);
    assert!(
        stdout(&compared).contains("of the arrival process"),
        "{}",
        stdout(&compared)
    );
}

#[test]
fn check_describes_the_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = write(
        folder.path(),
        "check.lua",
        &scenario(&component("{ rate = 100 }"), ""),
    );
    let output = veeksha(["check", &file]);
    assert_code(&output, 0);
    for part in ["open loop, by a plugin", "sdk-arrivals.wasm"] {
        assert!(stdout(&output).contains(part), "{}", stdout(&output));
    }
    for (traffic, message) in [
        (component("{ rate = 0 }"), "traffic_scheduler.process.config.rate"),
        (component("{ rat = 1 }"), "rate"),
        (r#"type = "arrival_process""#.to_owned(), "process"),
        (
            r#"type = "arrival_process", process = { type = "lua" }"#.to_owned(),
            "arrivals",
        ),
    ] {
        let file = write(folder.path(), "check.lua", &scenario(&traffic, ""));
        let output = veeksha(["check", &file]);
        assert_code(&output, 2);
        assert!(
            stderr(&output).contains(message),
            "{traffic}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn hostile_processes_end_with_one_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let hostile = |behaviour: &str| {
        let file = root().join("tests/guests/dist/hostile-arrivals.wasm");
        let traffic = format!(
            r#"type = "arrival_process", process = {{ type = "wasm", plugin = "{}", config = {{ behaviour = "{behaviour}" }} }}"#,
            file.display()
        );
        scenario(&traffic, "plugin_limits = { call_deadline_seconds = 0.5 }")
    };
    for (behaviour, message) in [
        ("backwards", "session 1: its arrival at"),
        ("beyond", "must be below 2^53 ns"),
        ("trap", "session 0 never arrives"),
        ("loop", "did not return within 500 ms"),
        ("too-many", "asked for 64 arrivals"),
        ("empty", "the process has no arrivals"),
        ("error", "no further arrivals"),
        ("refuse", "`refuse` is not a behaviour"),
    ] {
        let file = write(folder.path(), "hostile.lua", &hostile(behaviour));
        let output = veeksha(["run", &file, "--output_dir", path(folder.path())]);
        let said = stderr(&output);
        assert!(said.contains(message), "{behaviour}: {said}");
        assert!(said.contains("hostile-arrivals"), "{behaviour}: {said}");
        assert_eq!(said.matches(message).count(), 1, "{behaviour}: {said}");
        // A refusal of `open` is about the configuration.
        let code = if behaviour == "refuse" { 2 } else { 4 };
        assert_code(&output, code);
    }
    // After the check of the first arrivals: those before are used.
    for behaviour in ["backwards-at-99", "trap-at-99", "loop-at-99"] {
        let (output, run) = ends_with(folder.path(), "late.lua", &hostile(behaviour), &[], 4);
        assert!(stderr(&output).contains("process.next"), "{}", stderr(&output));
        let started = starts(&run).len();
        assert!((1..99).contains(&started), "{behaviour}: {started}");
    }
}
