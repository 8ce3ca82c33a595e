//! Limits, capabilities and policies of components in whole runs: exit codes, messages and files.

use std::path::Path;
use std::process::Output;

use crate::results::{json, latest, lines};
use crate::support::{assert_code, root, scenario, stderr, veeksha};

const REST: &str = "client: { api_base: 'sim://fast' }
traffic_scheduler: { type: concurrent, target_concurrent_sessions: 2, rampup_seconds: 0 }
runtime: { max_sessions: 4, benchmark_timeout: 30 }
";

/// Runs a scenario whose text has `{dist}` in place of the folder of the fixtures.
fn run(folder: &Path, text: &str, more: &[&str]) -> Output {
    let dist = root().join("tests/guests/dist");
    let text = format!("{text}\n{REST}").replace("{dist}", dist.to_str().expect("UTF-8"));
    let file = scenario(folder, "guest.yml", &text);
    let output_dir = folder.join("out");
    let output_dir = output_dir.to_str().expect("UTF-8").to_owned();
    let mut arguments = vec!["run", &file, "--output_dir", &output_dir];
    arguments.extend(more);
    veeksha(arguments)
}

const READER: &str =
    "session_generator: { type: wasm, plugin: '{dist}/hostile-sessions.wasm', config: { mode: blob } }";

#[test]
fn a_file_needs_a_grant_that_the_refusal_names() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("data"), "0123456789").expect("a file");
    let refused = run(folder.path(), READER, &[]);
    assert_code(&refused, 4);
    let message = stderr(&refused);
    assert!(
        message.contains("--grant 'hostile-sessions=blob:read data'"),
        "{message}"
    );
    assert!(message.contains("code: VP0003"), "{message}");
    let more = [
        "--grant",
        "hostile-sessions=blob:read dat*",
        "--runtime.max_sessions",
        "1",
    ];
    let granted = run(folder.path(), READER, &more);
    assert_code(&granted, 0);
}

#[test]
fn a_grant_of_a_scenario_needs_a_lock() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = READER.replace("config:", "grants: ['blob:read data'], config:");
    let refused = run(folder.path(), &text, &[]);
    assert_code(&refused, 2);
    let message = stderr(&refused);
    for part in [
        "session_generator.grants",
        "veeksha.lock",
        "veeksha-host plugin lock",
    ] {
        assert!(message.contains(part), "no {part:?} in {message}");
    }
    let text = READER.replace("config:", "grants: ['net:all'], config:");
    let refused = run(folder.path(), &text, &[]);
    assert_code(&refused, 2);
    assert!(stderr(&refused).contains("session_generator.grants[0]: `net:all` is not a capability"));
}

#[test]
fn a_run_may_go_on_without_a_metric_that_traps() {
    for (on_trap, code) in [("disable", 0), ("abort", 4), ("restart", 4)] {
        let folder = tempfile::tempdir().expect("a folder");
        let text = format!(
            "evaluators: [ {{ type: wasm, plugin: '{{dist}}/hostile-everywhere.wasm', on_trap: {on_trap}, \
             config: {{ in: 'collector.observe panic' }} }} ]"
        );
        let output = run(folder.path(), &text, &[]);
        assert_code(&output, code);
        let message = stderr(&output);
        assert!(
            message.contains("failed in `collector.observe`"),
            "{on_trap}: {message}"
        );
        let results = latest(&folder.path().join("out"));
        let health = json(&results, "health_check_results.json");
        assert_eq!(
            health["passed"], false,
            "{on_trap}: the failure is in the health checks"
        );
        let usage = json(&results, "metrics/plugin_usage.json");
        let plugins = usage.as_array().expect("a list");
        let metric = plugins
            .iter()
            .find(|plugin| plugin["plugin"] == "hostile-everywhere");
        let restarts = metric.and_then(|metric| metric["restarts"].as_u64());
        assert_eq!(restarts, Some(u64::from(on_trap == "restart")), "{usage}");
    }
}

#[test]
fn the_use_of_resources_and_the_log_are_files_of_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = READER.replace("mode: blob", "mode: log-flood") + "\ntrace_recorder: { plugin_logs: true }";
    let output = run(folder.path(), &text, &[]);
    assert_code(&output, 0);
    let message = stderr(&output);
    assert!(message.contains("note: plugin `hostile-sessions`: "), "{message}");
    assert!(message.contains("log lines were dropped"), "{message}");
    let results = latest(&folder.path().join("out"));
    let usage = json(&results, "metrics/plugin_usage.json");
    assert_eq!(usage[0]["plugin"], "hostile-sessions");
    assert!(usage[0]["dropped_log_lines"].as_u64() > Some(99_000), "{usage}");
    assert!(usage[0]["memory_bytes"].as_u64() >= Some(1 << 16), "{usage}");
    let log = lines(&results, "plugin_logs.jsonl");
    let first = &log[0];
    assert_eq!(
        (&first["plugin"], &first["function"], &first["level"]),
        (
            &"hostile-sessions".into(),
            &"workload.sessions".into(),
            &"info".into()
        )
    );
    assert_eq!(first["session"], 0);
    let page = std::fs::read_to_string(results.join("report.html")).expect("the page");
    assert!(page.contains("Resources of plugins") && page.contains("\"plugin_use\""));
}

#[test]
fn a_component_may_have_limits_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let with = |limits: &str| {
        READER
            .replace("mode: blob", "mode: good")
            .replace("config:", &format!("limits: {{ {limits} }}, config:"))
    };
    let refused = run(folder.path(), &with("call_budget: fuel, call_fuel: 10"), &[]);
    assert_code(&refused, 4);
    let message = stderr(&refused);
    assert!(message.contains("code: VP0008"), "{message}");
    assert!(message.contains("call_fuel allows more"), "{message}");
    assert_code(
        &run(folder.path(), &with("call_budget: fuel, memory_mib: 64"), &[]),
        0,
    );
    let misspelt = run(folder.path(), &with("memory_mb: 64"), &[]);
    assert_code(&misspelt, 2);
    assert!(
        stderr(&misspelt).contains("did you mean"),
        "{}",
        stderr(&misspelt)
    );
}
