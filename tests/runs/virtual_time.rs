//! The same scenario in virtual time: reproducible and fast.

use std::path::Path;

use crate::results::{json, latest, lines};
use crate::support::{assert_code, program, scenario, veeksha};

fn simulate(folder: &Path, scenario: &str, more: &[&str]) -> std::path::PathBuf {
    let output_dir = folder.to_str().expect("UTF-8");
    let mut arguments = vec!["simulate", scenario, "--output_dir", output_dir];
    arguments.extend(more);
    assert_code(&veeksha(arguments), 0);
    latest(folder)
}

#[test]
fn simulations_are_reproducible_bit_by_bit() {
    for file in [
        "scenarios/quickstart.lua",
        "scenarios/agent.lua",
        "scenarios/coding_agent.lua",
        "scenarios/debate.lua",
        "scenarios/rollouts.lua",
        "scenarios/best_of_n.lua",
        "scenarios/research.lua",
        "scenarios/veeksha-example.yml",
    ] {
        let folders = [
            tempfile::tempdir().expect("a folder"),
            tempfile::tempdir().expect("a folder"),
        ];
        let [first, second] = folders
            .each_ref()
            .map(|folder| simulate(folder.path(), file, &[]));
        for result in [
            "metrics/request_level_metrics.jsonl",
            "metrics/summary_stats.json",
            "traces/trace.jsonl",
        ] {
            let [first, second] = [&first, &second].map(|run| std::fs::read(run.join(result)).expect(result));
            assert!(!first.is_empty(), "{file}: {result} is empty");
            assert_eq!(first, second, "{file}: {result} differs");
        }
    }
}

/// A path on the command line is relative to the working directory, not to the scenario's folder.
#[test]
fn profile_on_the_command_line_is_relative_to_the_working_directory() {
    let (work, scenarios) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    let text = r#"
session_generator:
  type: synthetic
  session_graph: { type: single_request }
  channels: [ { type: text, body_length_generator: { type: fixed, value: 10 } } ]
  output_spec: { text: { output_length_generator: { type: fixed, value: 4 } } }
client: { api_base: "sim://fast" }
runtime: { max_sessions: 3 }
"#;
    let file = scenario(scenarios.path(), "plain.yml", text);
    scenario(work.path(), "slow.yml", "prefill_base_ms: 1000\n");
    // A file of the same name that must not be read.
    scenario(scenarios.path(), "slow.yml", "no_such_key: 1\n");
    let mut command = program();
    command.current_dir(work.path());
    command.args(["simulate", &file, "--profile", "slow.yml", "--output_dir", "out"]);
    assert_code(&command.output().expect("the program starts"), 0);
    let rows = lines(
        &latest(&work.path().join("out")),
        "metrics/request_level_metrics.jsonl",
    );
    assert_eq!(rows.len(), 3);
    // Computing a prompt takes a second, give or take the noise.
    assert!(
        rows.iter().all(|row| row["ttfc"].as_f64() > Some(0.5)),
        "{rows:?}"
    );
}

#[test]
fn another_seed_is_another_workload() {
    let folders = [
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    ];
    let [first, second] = folders.each_ref();
    let first = simulate(first.path(), "scenarios/quickstart.lua", &["--seed", "1"]);
    let second = simulate(second.path(), "scenarios/quickstart.lua", &["--seed", "2"]);
    let rows = |run: &Path| lines(run, "metrics/request_level_metrics.jsonl");
    assert_ne!(rows(&first), rows(&second));
}

/// Fixed arrivals every 0.5 s, single requests: arrivals, counts and the closed form of the
/// engine's cost agree.
#[test]
fn a_fixed_schedule_is_kept_to_the_nanosecond() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = r#"
session_generator:
  type: synthetic
  session_graph: { type: single_request }
  channels: [ { type: text, body_length_generator: { type: fixed, value: 100 } } ]
  output_spec: { text: { output_length_generator: { type: fixed, value: 8 } } }
traffic_scheduler: { type: rate, interval_generator: { type: fixed, interval: 0.5 } }
client: { type: openai_chat_completions, api_base: "sim://fast" }
runtime: { max_sessions: 20 }
"#;
    let file = scenario(folder.path(), "fixed.yml", text);
    let run = simulate(folder.path(), &file, &[]);
    let mut rows = lines(&run, "metrics/request_level_metrics.jsonl");
    rows.sort_by_key(|row| row["session_id"].as_u64());
    assert_eq!(rows.len(), 20);
    for (index, row) in rows.iter().enumerate() {
        assert_eq!(row["scheduler_ready_at"].as_f64(), Some(index as f64 * 0.5));
        assert_eq!(row["scheduler_dispatched_at"], row["scheduler_ready_at"]);
        assert_eq!(row["num_output_tokens"], 8);
        assert_eq!(row["tbc"].as_array().map(Vec::len), Some(7));
    }
    assert_eq!(
        json(&run, "metrics/summary_stats.json")["Number of Completed Requests"],
        20
    );
}
