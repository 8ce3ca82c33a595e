//! A newcomer's first run, and its files.

use crate::results::{json, latest, lines};
use crate::server::Sim;
use crate::support::{assert_code, program, stdout, veeksha};

#[test]
fn the_quickstart_runs_and_its_files_agree() {
    let folder = tempfile::tempdir().expect("a folder");
    let output_dir = folder.path().to_str().expect("UTF-8");
    let output = veeksha([
        "run",
        "scenarios/quickstart.lua",
        "--output_dir",
        output_dir,
        "--runtime.max_sessions",
        "12",
    ]);
    assert_code(&output, 0);
    assert!(
        stdout(&output).contains("Time to First Chunk (TTFC)"),
        "{}",
        stdout(&output)
    );

    let run = latest(folder.path());
    let rows = lines(&run, "metrics/request_level_metrics.jsonl");
    let trace = lines(&run, "traces/trace.jsonl");
    let summary = json(&run, "metrics/summary_stats.json");
    let throughput = json(&run, "metrics/throughput_metrics.json");
    let slos = json(&run, "metrics/slo_results.json");

    // 12 sessions of two or three requests, each dispatched, answered and written once.
    assert_eq!(summary["Number of Sessions Seen"], 12);
    assert!((24..=36).contains(&rows.len()), "{} rows", rows.len());
    assert_eq!(summary["Number of Requests"], rows.len());
    assert_eq!(summary["Number of Errored Requests"], 0);
    let dispatched = trace.iter().filter(|line| line["event"] == "dispatched").count();
    assert_eq!(dispatched, rows.len());
    assert_eq!(slos["all_slos_met"], true);
    assert_eq!(slos["results"].as_array().map(Vec::len), Some(2));
    assert!(throughput.is_object());

    let config = std::fs::read_to_string(run.join("config.yml")).expect("config.yml");
    assert!(config.contains("max_sessions: 12"), "{config}");

    for row in &rows {
        let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"));
        assert_eq!(row["success"], true);
        // The order of events in the life of a request.
        let life = [
            "scheduler_ready_at",
            "scheduler_dispatched_at",
            "client_picked_up_at",
            "sent_at",
            "first_byte_at",
        ];
        for pair in life.windows(2) {
            assert!(
                number(pair[0]) <= number(pair[1]),
                "{} after {} in {row}",
                pair[0],
                pair[1]
            );
        }
        assert!(number("first_byte_at") <= number("client_completed_at"));
        assert!(number("client_completed_at") <= number("result_processed_at"));
        // Exact prompts, and the requested numbers of tokens.
        assert_eq!(
            row["num_delta_prompt_tokens"],
            row["target_num_delta_prompt_tokens"]
        );
        assert_eq!(row["num_output_tokens"], row["num_requested_output_tokens"]);
        // Times add up: first chunk + gaps = total.
        let gaps: f64 = row["tbc"]
            .as_array()
            .expect("tbc")
            .iter()
            .filter_map(|gap| gap.as_f64())
            .sum();
        assert!(
            (number("ttfc") + gaps - number("end_to_end_latency")).abs() < 1e-6,
            "{row}"
        );
    }
}

/// Its relaxed thresholds are those of the simulator only.
#[test]
fn the_quickstart_judges_a_server_by_the_default_thresholds() {
    let folder = tempfile::tempdir().expect("a folder");
    let output_dir = folder.path().to_str().expect("UTF-8");
    let thresholds = |target: &[&str]| {
        let short = ["--runtime.max_sessions", "2"];
        let mut command = program();
        command.args(["run", "scenarios/quickstart.lua", "--output_dir", output_dir]);
        command.args(short).args(target);
        let output = command.output().expect("it runs");
        let certificate = json(&latest(folder.path()), "certificate.json");
        let used = &certificate["thresholds"];
        let used = (used["degraded"].as_f64(), used["invalid"].as_f64());
        (
            used,
            stdout(&output).contains("the scenario sets its own thresholds"),
        )
    };
    assert_eq!(thresholds(&[]), ((Some(0.5), Some(0.5)), true));
    let sim = Sim::start(&["--profile", "fast"]);
    assert_eq!(
        thresholds(&["--client.api_base", &sim.api_base]),
        ((Some(0.01), Some(0.05)), false)
    );
    sim.stop();
}

#[test]
fn history_has_the_actual_responses() {
    let folder = tempfile::tempdir().expect("a folder");
    let output_dir = folder.path().to_str().expect("UTF-8");
    let output = veeksha([
        "run",
        "scenarios/quickstart.lua",
        "--output_dir",
        output_dir,
        "--runtime.max_sessions",
        "6",
    ]);
    assert_code(&output, 0);
    let mut rows = lines(&latest(folder.path()), "metrics/request_level_metrics.jsonl");
    rows.sort_by_key(|row| (row["session_id"].as_u64(), row["node_id"].as_u64()));
    let tokens = |row: &serde_json::Value, key: &str| row[key].as_u64().expect("a count");
    let mut later_turns = 0;
    for pair in rows
        .windows(2)
        .filter(|pair| pair[0]["session_id"] == pair[1]["session_id"])
    {
        let before = tokens(&pair[0], "num_total_prompt_tokens") + tokens(&pair[0], "num_output_tokens");
        let now = tokens(&pair[1], "num_total_prompt_tokens");
        assert_eq!(now, before + tokens(&pair[1], "num_delta_prompt_tokens"));
        later_turns += 1;
    }
    assert!(later_turns >= 6);
}
