//! Runs of one workload on one server: a remark reports that the second run found its prompts in
//! the cache, and suggests a remedy.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::compared;
use crate::results::latest;
use crate::server::Sim;
use crate::support::{assert_code, scenario, veeksha};

/// Returns a scenario of sixty sessions of one request, with this generator.
fn scenario_of(generator: &str) -> String {
    format!(
        r#"return {{
            seed = 5,
            session_generator = {generator},
            traffic_scheduler = {{ type = "rate", interval_generator = {{ type = "poisson", arrival_rate = 60 }} }},
            runtime = {{ max_sessions = 60, benchmark_timeout = 60 }},
            evaluators = {{ {{ type = "performance" }} }},
        }}"#
    )
}

/// Prompts of 200 to 600 tokens, each of which fills several cache blocks.
const SYNTHETIC: &str = r#"{
    type = "synthetic", session_graph = { type = "single_request" },
    channels = { { type = "text", body_length_generator = { type = "uniform", min = 200, max = 600 } } },
    output_spec = { text = { output_length_generator = { type = "fixed", value = 4 } } },
}"#;

fn run_on(server: &Sim, folder: &Path, scenario: &str, name: &str) -> PathBuf {
    let output_dir = folder.join(name);
    let output = veeksha([
        "run",
        scenario,
        "-q",
        "--client.api_base",
        &server.api_base,
        "--client.model",
        "sim",
        "--output_dir",
        &output_dir.display().to_string(),
    ]);
    assert_code(&output, 0);
    latest(&output_dir)
}

/// Returns the remark on the cache.
fn said(comparison: &Value) -> Option<String> {
    let remarks = comparison["candidates"][0]["remarks"]
        .as_array()
        .expect("remarks");
    let mut said = remarks.iter().filter_map(Value::as_str);
    said.find(|remark| remark.contains("prefix cache"))
        .map(str::to_owned)
}

#[test]
fn repeated_prompts_are_remarked_as_warm_cache() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = scenario(folder.path(), "s.lua", &scenario_of(SYNTHETIC));
    let run = |server: &Sim, name| run_on(server, folder.path(), &scenario, name);
    let server = Sim::start(&[]);
    let (cold, warm) = (run(&server, "repeats"), run(&server, "repeats"));
    let again = run(&Sim::start(&[]), "restarted");
    // The remark does not depend on the other options.
    let seen = said(&compared(
        &[&cold, &warm],
        &["--metrics", "ttfc", "--allow-invalid"],
        0,
    ));
    let seen = seen.expect("the cache is spoken of");
    assert!(
        seen.starts_with("the server had 0 % of the prompt tokens of "),
        "{seen}"
    );
    let judged = compared(&[&cold, &warm], &["--allow-invalid"], 0);
    let rows = judged["candidates"][0]["rows"].as_array().expect("rows");
    let verdict = |name: &str| &rows.iter().find(|row| row["name"] == name).expect(name)["verdict"];
    assert_eq!(verdict("ttfc"), "cache_states_differ");
    // The repeats of one side differ, too.
    let repeats = folder.path().join("repeats");
    let seen = said(&compared(
        &[&repeats, &again],
        &["--metrics", "ttfc", "--allow-invalid"],
        0,
    ));
    let seen = seen.expect("the cache is spoken of");
    assert!(seen.starts_with("the server had 0 % to 9"), "{seen}");
    let restarted = said(&compared(&[&cold, &again], &["--allow-invalid"], 0));
    assert_eq!(restarted, None);
}

/// The text of a trace has a separate salt in each run: the same work with different text.
#[test]
fn salted_traces_start_with_a_cold_cache() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows: String = (0..60)
        .map(|row| {
            let length = 300 + row * 37 % 200;
            format!("{{\"timestamp\": {row}, \"input_length\": {length}, \"output_length\": 4, \"hash_ids\": [{row}]}}\n")
        })
        .collect();
    std::fs::write(folder.path().join("t.jsonl"), rows).expect("a trace");
    let server = Sim::start(&[]);
    let compared = |salt: &str| {
        let generator = format!(
            r#"{{ type = "trace", trace_file = "t.jsonl", flavor = {{ type = "mooncake", block_size = 512 }}, salt = {salt} }}"#
        );
        let scenario = scenario(folder.path(), "t.lua", &scenario_of(&generator));
        let run = |name: &str| run_on(&server, folder.path(), &scenario, name);
        let sides = [run(&format!("{salt} one")), run(&format!("{salt} two"))];
        compared(&[&sides[0], &sides[1]], &["--allow-invalid"], 0)
    };
    let salted = compared("\"run\"");
    assert_eq!(salted["candidates"][0]["comparable"], true, "{salted}");
    assert_eq!(said(&salted), None);
    assert!(said(&compared("7")).is_some());
}
