//! Faulty plugins: the message has the plugin, the function, the reason and the location; the exit
//! code is 4.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::page::data;
use crate::results::{json, latest, lines};
use crate::support::{assert_code, root, scenario, stderr, stdout, veeksha};

fn run(component: &str, config: &str, more: &[&str]) -> (Output, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = root().join("tests/guests/dist").join(component);
    let path = if path.exists() {
        path
    } else {
        Path::new(component).to_owned()
    };
    let text = format!(
        "session_generator: {{ type: wasm, plugin: {path:?}, config: {config} }}\n\
         client: {{ api_base: 'sim://fast' }}\n\
         traffic_scheduler: {{ type: concurrent, target_concurrent_sessions: 2, rampup_seconds: 0 }}\n\
         runtime: {{ max_sessions: 6, benchmark_timeout: 30, plugin_limits: {{ call_deadline_seconds: 0.5, memory_mib: 64 }} }}\n"
    );
    let file = scenario(folder.path(), "guest.yml", &text);
    let output_dir = folder.path().to_str().expect("UTF-8").to_owned();
    let mut arguments = vec!["run", &file, "--output_dir", &output_dir];
    arguments.extend(more);
    (veeksha(arguments), folder)
}

#[track_caller]
fn fails(component: &str, mode: &str, words: &[&str]) {
    let (output, _folder) = run(component, &format!("{{ mode: {mode} }}"), &[]);
    assert_code(&output, 4);
    let said = stderr(&output);
    for part in words {
        assert!(said.contains(part), "{component} {mode}: no {part:?} in {said}");
    }
    assert!(said.len() < 4096, "a message, not a flood: {said}");
}

#[test]
fn a_good_guest_runs() {
    let (output, folder) = run("planned.wasm", "{}", &[]);
    assert_code(&output, 0);
    let rows = lines(&latest(folder.path()), "metrics/request_level_metrics.jsonl");
    assert!(!rows.is_empty());
}

/// The digest covers the requested work of all sessions.
#[test]
fn the_number_of_plugin_threads_does_not_change_the_workload() {
    // `wasi.wasm` iterates hash maps, whose order comes from `wasi:random`.
    for component in ["planned.wasm", "wasi.wasm"] {
        let digest = |threads: &str| {
            let (output, folder) = run(
                component,
                "{}",
                &[
                    "--runtime.max_sessions",
                    "40",
                    "--runtime.num_plugin_threads",
                    threads,
                ],
            );
            assert_code(&output, 0);
            let summary = json(&latest(folder.path()), "metrics/summary_stats.json");
            let digest = summary["workload"]["digest"].as_str().map(str::to_owned);
            digest.unwrap_or_else(|| panic!("no digest in {summary}"))
        };
        assert_eq!(digest("1"), digest("4"), "{component}");
    }
}

#[test]
fn a_refused_configuration_exits_2() {
    let (output, _folder) = run("planned.wasm", "{ turns: 0 }", &[]);
    assert_code(&output, 2);
    let message = stderr(&output);
    assert!(message.contains("a session needs at least one turn"), "{message}");
}

#[test]
fn a_good_agent_runs() {
    let (output, folder) = run("agent.wasm", "{}", &[]);
    assert_code(&output, 0);
    let rows = lines(&latest(folder.path()), "metrics/request_level_metrics.jsonl");
    assert!(rows.len() >= 6, "at least one request of each of six sessions");
}

#[test]
fn rejects_files_that_are_not_plugins() {
    fails("kindless.wasm", "x", &["kindless", "exports none of"]);
    fails("future.wasm", "x", &["future", "0.3.0", "0.2.0"]);
    fails("stranger.wasm", "x", &["stranger"]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("noise.wasm");
    std::fs::write(&file, b"this is not a component").expect("a file");
    fails(file.to_str().expect("UTF-8"), "x", &["noise", "not a"]);
}

#[test]
fn a_trap_names_plugin_function_source_line_and_input() {
    fails(
        "hostile-sessions.wasm",
        "trap",
        &["hostile-sessions", "workload.sessions", "src/lib.rs:", "input:"],
    );
}

/// The last of eight shards begins with session 7, so that the check of the first sessions before
/// the run passes.
#[test]
fn a_failure_at_the_start_is_in_every_output_of_the_folder() {
    let (output, folder) = run(
        "hostile-sessions.wasm",
        "{ mode: trap-at-7 }",
        &[
            "--shard",
            "8/8",
            "--runtime.max_sessions",
            "40",
            "--traffic_scheduler.target_concurrent_sessions",
            "8",
        ],
    );
    assert_code(&output, 4);
    let run = latest(folder.path());
    let summary = json(&run, "metrics/summary_stats.json");
    assert_eq!(
        summary["Failed Plugins"][0]["plugin"], "hostile-sessions",
        "{summary}"
    );
    let certificate = json(&run, "certificate.json");
    assert_eq!(certificate["verdict"], "INVALID");
    let findings = certificate["findings"].to_string();
    assert!(
        findings.contains("nothing was measured: the plugin `hostile-sessions` failed in"),
        "{findings}"
    );
    let failed = data(&run)["failed_plugins"].clone();
    assert_eq!(failed[0]["plugin"], "hostile-sessions", "{failed}");
    let run = run.to_str().expect("UTF-8");
    let health = veeksha(["health", run, "--strict"]);
    assert_code(&health, 6);
    assert!(
        stdout(&health).contains("The plugin `hostile-sessions` (workload) failed in `workload.sessions`"),
        "{}",
        stdout(&health)
    );
    let evaluated = veeksha(["evaluate", run]);
    assert_code(&evaluated, 6);
    assert!(
        stderr(&evaluated).contains("nothing was measured: the plugin `hostile-sessions` failed in"),
        "{}",
        stderr(&evaluated)
    );
}

#[test]
fn a_failure_of_the_first_session_leaves_no_folder() {
    for command in ["check", "run", "simulate"] {
        let output = component(command, "hostile-sessions.wasm", "{ mode: trap }");
        assert_code(&output, 4);
        assert!(
            !stderr(&output).contains("results:") && stderr(&output).contains("workload.sessions"),
            "{}",
            stderr(&output)
        );
    }
    let (_, folder) = run("hostile-sessions.wasm", "{ mode: trap }", &[]);
    assert!(!folder.path().join("latest").exists());
}

#[test]
fn an_endless_loop_is_stopped_at_the_deadline() {
    fails(
        "hostile-sessions.wasm",
        "loop",
        &["workload.sessions", "call_deadline_seconds"],
    );
}

#[test]
fn memory_without_end_is_stopped_at_the_limit() {
    fails("hostile-sessions.wasm", "memory", &["memory", "memory_mib"]);
}

#[test]
fn graphs_that_cannot_run_are_named() {
    fails("hostile-sessions.wasm", "cyclic", &["wait for one another"]);
    fails("hostile-sessions.wasm", "dangling", &["parent 9"]);
    fails("hostile-sessions.wasm", "history", &["not one of its parents"]);
}

#[test]
fn memory_does_not_grow_with_a_billion_sessions() {
    let (output, _folder) = run("hostile-sessions.wasm", "{ mode: billion }", &[]);
    assert_code(&output, 0);
    fails("hostile-sessions.wasm", "too-many", &["returned 20,000"]);
}

#[test]
fn plugin_error_has_its_hint() {
    let (output, _folder) = run("hostile-sessions.wasm", "{ behaviour: refuse }", &[]);
    assert_code(&output, 2);
    assert!(stderr(&output).contains("hint:"), "{}", stderr(&output));
}

/// `command` is `check` or `run`.
fn component(command: &str, file: &str, config: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let path = root().join("tests/guests/dist").join(file);
    let text = format!(
        "session_generator: {{ type: wasm, plugin: {path:?}, config: {config} }}\n\
         client: {{ api_base: 'sim://fast' }}\n\
         runtime: {{ max_sessions: 3, benchmark_timeout: 30 }}\n"
    );
    let file = scenario(folder.path(), "guest.yml", &text);
    let output_dir = format!("output_dir={}", folder.path().display());
    veeksha([command, &file, "--set", &output_dir])
}

#[test]
fn check_refuses_components_whose_sessions_depend_on_earlier_calls() {
    for (file, config) in [
        ("hostile-sessions.wasm", "{ mode: static-counter }"),
        ("hostile-agent.wasm", "{}"),
    ] {
        let output = component("check", file, config);
        assert_code(&output, 4);
        let message = stderr(&output);
        assert!(message.contains("came out differently"), "{file}: {message}");
    }
    assert_code(&component("check", "planned.wasm", "{}"), 0);
}

#[test]
fn agents_that_refuse_their_configuration_are_usage_errors() {
    for command in ["check", "run"] {
        let output = component(command, "sdk-agent.wasm", "{ steps: 0 }");
        assert_code(&output, 2);
        let message = stderr(&output);
        assert!(message.contains("at least one step"), "{command}: {message}");
        assert!(
            message.contains("set `steps` to 1 or more"),
            "{command}: {message}"
        );
    }
}

#[test]
fn flavors_that_refuse_their_configuration_are_usage_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = root().join("scenarios/traces/mooncake.jsonl");
    let text = format!(
        "session_generator: {{ type: trace, trace_file: {trace:?}, flavor: {{ type: mooncake, block_size: 0 }} }}\n\
         client: {{ api_base: 'sim://fast' }}\n"
    );
    let file = scenario(folder.path(), "flavor.yml", &text);
    let output = veeksha(["check", &file]);
    assert_code(&output, 2);
    assert!(
        stderr(&output).contains("flavor.block_size: must be at least 1"),
        "{}",
        stderr(&output)
    );
}

/// Runs a scenario of a generator in virtual and in real time, on `sessions` sessions. Returns
/// standard error and the number of requests of each.
fn in_both_times(generator: &str, sessions: u32) -> [(String, Value); 2] {
    ["simulate", "run"].map(|command| {
        let folder = tempfile::tempdir().expect("a folder");
        let text = format!(
            "return {{ session_generator = {generator},\n\
             traffic_scheduler = {{ type = 'concurrent', target_concurrent_sessions = 2, rampup_seconds = 0 }},\n\
             client = {{ api_base = 'sim://fast' }}, runtime = {{ max_sessions = {sessions} }} }}\n"
        );
        let file = scenario(folder.path(), "fails.lua", &text);
        let output_dir = folder.path().join("out");
        let output = veeksha([command, &file, "--output_dir", output_dir.to_str().expect("UTF-8")]);
        assert_code(&output, 4);
        let summary = json(&latest(&output_dir), "metrics/summary_stats.json");
        (stderr(&output), summary["Number of Requests"].clone())
    })
}

#[test]
fn agents_that_fail_before_their_first_request_cost_only_their_sessions() {
    let agent = "{ type = 'lua', agent = function(session)\n\
                 if session.index % 5 == 3 then error('there is no plan') end\n\
                 session:request { user = 'x', output = 2 }\nend }";
    for (message, requests) in in_both_times(agent, 20) {
        assert_eq!(requests, 16, "{message}");
        assert_eq!(message.matches("error: plugin").count(), 1, "{message}");
        assert!(message.contains("repeated: 3 more times"), "{message}");
        assert!(message.contains("input: session = 3, start"), "{message}");
        assert!(!message.contains("never started"), "{message}");
    }
}

#[test]
fn failing_generators_report_the_sessions_that_never_started() {
    let sessions = "{ type = 'lua', sessions = function(index)\n\
                    if index == 3 then error('there is no plan') end\n\
                    return { { user = 'x', output = 2 } }\nend }";
    for (message, requests) in in_both_times(sessions, 20) {
        assert_eq!(requests, 3, "{message}");
        let expected =
            "the workload ended before session 3, because its plugin failed: 17 of 20 sessions never started";
        assert!(message.contains(expected), "{message}");
    }
}

/// An agent that fails in each of thirty sessions, after its first answer.
#[test]
fn failing_agents_are_in_every_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = r#"
return {
  session_generator = { type = "lua", agent = function(session)
    session:request { user = synthetic(20), output = 4 }
    error("there is no plan")
  end },
  traffic_scheduler = { type = "concurrent", target_concurrent_sessions = 4, rampup_seconds = 0 },
  client = { api_base = "sim://fast" },
  runtime = { max_sessions = 30, benchmark_timeout = 0 },
  evaluators = { { type = "performance", goodput = { "ttfc < 60s" } } },
}
"#;
    let file = scenario(folder.path(), "agents.lua", text);
    let output_dir = folder.path().join("out");
    let output = veeksha(["run", &file, "--output_dir", output_dir.to_str().expect("UTF-8")]);
    assert_code(&output, 4);
    let message = stderr(&output);
    assert!(message.contains("there is no plan"), "{message}");
    assert_eq!(message.matches("error: plugin").count(), 1, "{message}");
    assert!(message.contains("repeated: 29 more times"), "{message}");

    let table = stdout(&output);
    assert!(
        table.contains("Plugin failures") && table.contains("failed in 30 sessions"),
        "{table}"
    );

    let run = latest(&output_dir);
    // The answered requests were good; those that the agents would have sent were due.
    let throughput = json(&run, "metrics/throughput_metrics.json");
    assert_eq!(throughput["goodput"], Value::Null);
    assert!(throughput["good_requests_per_second"].as_f64() > Some(0.0));
    let remarks = json(&run, "metrics/slo_results.json")["remarks"].to_string();
    assert!(remarks.contains("the agents of 30 sessions failed"), "{remarks}");
    let in_summary = &json(&run, "metrics/summary_stats.json")["Failed Plugins"][0];
    assert_eq!(
        (&in_summary["part"], &in_summary["failures"]),
        (&"workload".into(), &30.into())
    );
    let in_slos = &json(&run, "metrics/slo_results.json")["failed_plugins"][0];
    assert_eq!(in_slos, in_summary);
    let certificate = json(&run, "certificate.json");
    let findings = certificate["findings"].as_array().expect("findings");
    let lost = findings
        .iter()
        .find(|finding| {
            finding["what"]
                .as_str()
                .is_some_and(|what| what.contains("failed 30 times"))
        })
        .unwrap_or_else(|| panic!("{findings:#?}"));
    assert_eq!(lost["verdict"], "DEGRADED");
    let page = std::fs::read_to_string(run.join("report.html")).expect("a page");
    assert!(page.contains("failed 30 times"));
    let failed: Vec<_> = lines(&run, "traces/trace.jsonl")
        .into_iter()
        .filter(|line| line["event"] == "plugin_failed")
        .collect();
    assert_eq!(failed.len(), 30);
    assert!(
        failed.iter().all(|line| line["session_id"].is_u64()),
        "{failed:?}"
    );
}

#[test]
fn a_plugin_that_fails_later_leaves_the_results_so_far() {
    let (output, folder) = run(
        "hostile-sessions.wasm",
        "{ mode: trap-at-7 }",
        &["--runtime.max_sessions", "40"],
    );
    assert_code(&output, 4);
    // Session 7 and all later ones are lost; earlier ones are measured.
    let rows = lines(&latest(folder.path()), "metrics/request_level_metrics.jsonl");
    assert_eq!(rows.len(), 7);
    assert!(rows.iter().all(|row| row["success"] == true));
}
