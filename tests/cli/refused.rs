//! Error messages of the commands that read runs.

use crate::support::{assert_code, program, root, scenario, stderr, veeksha};

/// Returns the output of a command, without the folder's name.
#[track_caller]
fn printed(folder: &std::path::Path, arguments: &[&str], code: i32) -> String {
    let output = veeksha(arguments);
    assert_code(&output, code);
    stderr(&output).replace(folder.to_str().expect("UTF-8"), "FOLDER")
}

const SCENARIO: &str = r#"
session_generator:
  type: synthetic
  session_graph: { type: single_request }
  channels: [ { type: text, body_length_generator: { type: fixed, value: 20 } } ]
  output_spec: { text: { output_length_generator: { type: fixed, value: 4 } } }
traffic_scheduler: { type: concurrent, target_concurrent_sessions: 1, rampup_seconds: 0 }
client: { type: openai_chat_completions, api_base: "sim://default" }
runtime: { max_sessions: 3 }
"#;

#[test]
fn evaluate_and_compare_reject_invalid_arguments() {
    let folder = tempfile::tempdir().expect("a folder");
    let within = folder.path();
    let file = scenario(within, "s.yml", SCENARIO);
    let out = within.join("out");
    assert_code(
        &veeksha(["simulate", &file, "--output_dir", out.to_str().expect("UTF-8")]),
        0,
    );
    // The default name of a run contains a time.
    let run = within.join("run");
    std::fs::rename(out.join("latest").canonicalize().expect("the run"), &run).expect("renamed");
    let run = run.to_str().expect("UTF-8");
    let nowhere = within.join("nowhere");
    let nowhere = nowhere.to_str().expect("UTF-8");

    insta::assert_snapshot!("evaluate-no-run", printed(within, &["evaluate", nowhere], 2));
    insta::assert_snapshot!(
        "evaluate-unknown-metric",
        printed(within, &["evaluate", run, "--slo", "p99(tftc) < 1s"], 2)
    );
    insta::assert_snapshot!(
        "evaluate-unit",
        printed(within, &["evaluate", run, "--slo", "p99(ttfc) < 5%"], 2)
    );
    insta::assert_snapshot!(
        "evaluate-not-an-objective",
        printed(within, &["evaluate", run, "--slo", "p99(ttfc) is 500ms"], 2)
    );
    insta::assert_snapshot!(
        "evaluate-goodput-of-a-run-metric",
        printed(within, &["evaluate", run, "--goodput", "error_rate < 1%"], 2)
    );
    insta::assert_snapshot!(
        "evaluate-no-plugin",
        printed(within, &["evaluate", run, "--plugin", nowhere], 2)
    );
    insta::assert_snapshot!(
        "evaluate-unknown-tool",
        printed(within, &["evaluate", run, "--as", "vlm"], 2)
    );
    insta::assert_snapshot!(
        "evaluate-json-and-folder",
        printed(within, &["evaluate", run, "--json", "--to", nowhere], 2)
    );
    insta::assert_snapshot!("health-no-run", printed(within, &["health", nowhere], 2));
    insta::assert_snapshot!("compare-one-run", printed(within, &["compare", run], 2));
    insta::assert_snapshot!(
        "compare-fail-if-syntax",
        printed(within, &["compare", run, run, "--fail-if", "worse(ttfc) or"], 2)
    );
    insta::assert_snapshot!(
        "compare-fail-if-unknown",
        printed(within, &["compare", run, run, "--fail-if", "worse(tftc)"], 2)
    );
    insta::assert_snapshot!(
        "compare-metrics-unknown",
        printed(within, &["compare", run, run, "--metrics", "tftc"], 2)
    );
}

#[test]
fn sweeps_and_live_pages() {
    let folder = tempfile::tempdir().expect("a folder");
    let within = folder.path();
    let faults = scenario(within, "f.yml", "seed: !expand [1, x, 3]\nclient: { modle: m }\n");
    insta::assert_snapshot!("check-sweep", printed(within, &["check", &faults], 2));
    let missing = scenario(within, "s.yml", "seed: 1\nclient: !include nothing.yml\n");
    insta::assert_snapshot!("include-missing", printed(within, &["check", &missing], 2));
    let circle = scenario(within, "c.yml", "client: !include c.yml\n");
    insta::assert_snapshot!("include-circle", printed(within, &["check", &circle], 2));
    let nothing = scenario(within, "e.yml", "seed: !expand []\n");
    insta::assert_snapshot!("expand-nothing", printed(within, &["check", &nothing], 2));
    let many: Vec<String> = (0..10_001).map(|seed| seed.to_string()).collect();
    let many = scenario(within, "m.yml", &format!("seed: !expand [{}]\n", many.join(", ")));
    insta::assert_snapshot!("expand-too-many", printed(within, &["simulate", &many], 2));
    assert!(root().join("scenarios/sweep.yml").exists());

    let file = scenario(within, "live.yml", SCENARIO);
    let open = program()
        .env_remove("VEEKSHA_LIVE_TOKEN")
        .args(["run", &file, "--live", "0.0.0.0:0"])
        .output()
        .expect("the program starts");
    assert_code(&open, 2);
    insta::assert_snapshot!("live-open", stderr(&open));
    let short = printed(
        within,
        &["run", &file, "--live", "127.0.0.1:0", "--live-token", "short"],
        2,
    );
    insta::assert_snapshot!("live-short-token", short);
}

#[test]
fn objectives_that_the_workload_cannot_have_are_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let within = folder.path();
    let slos = "evaluators: [ { type: performance, slos: [ 'p99(tbc) < 50ms', 'mean(session_think_time) < 1s', 'p99(ttfc) < 1s' ] } ]";
    let text = format!("{SCENARIO}{slos}\n").replace("value: 4", "value: 1");
    let file = scenario(within, "s.yml", &text);
    insta::assert_snapshot!("check-slo-impossible", printed(within, &["check", &file], 2));
}
