//! Use of the library in one process: a run against the built-in simulator, a simulation, and the
//! evaluation of a run folder.

#![expect(clippy::expect_used, reason = "a test reports an error by panicking")]

use std::path::Path;

use veeksha_app::{
    CompatOptions, Conclusion, Control, EvaluateOptions, Loaded, Reevaluation, RunOptions, ShardSpec, Source,
    plan, plan_simulation, run, simulate,
};

const SCENARIO: &str = "
session_generator:
  type: synthetic
  session_graph: { type: single_request }
  channels: [ { type: text, body_length_generator: { type: fixed, value: 20 } } ]
  output_spec: { text: { output_length_generator: { type: fixed, value: 4 } } }
traffic_scheduler: { type: concurrent, target_concurrent_sessions: 2, rampup_seconds: 0 }
client: { api_base: 'sim://fast' }
runtime: { max_sessions: 12, benchmark_timeout: 0 }
";

fn load(folder: &Path) -> Loaded {
    load_with(folder, "client.api_base=sim://fast")
}

fn load_with(folder: &Path, assignment: &str) -> Loaded {
    let file = folder.join("scenario.yml");
    std::fs::write(&file, SCENARIO).expect("a scenario");
    let output = format!("output_dir={}", folder.join("out").display());
    let source = Source::read(&file).expect("a readable scenario");
    source
        .settle(&[output, assignment.to_owned()], &[], true)
        .expect("a valid scenario")
}

fn run_once(folder: &Path) -> Conclusion {
    let loaded = load(folder);
    let plan = plan(loaded, Path::new("scenario.yml"), ShardSpec::default(), false).expect("a plan");
    let options = RunOptions {
        quiet: true,
        ..RunOptions::default()
    };
    run(plan, &options, &Control::default()).expect("a run")
}

#[test]
fn runs_and_evaluates_the_run_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let measured = run_once(folder.path());
    assert_eq!(measured.results.evaluation.counts.completed, 12);
    assert_eq!(measured.results.evaluation.counts.errored, 0);
    assert!(measured.failure.is_none());
    let run = measured.folder.as_deref().expect("a run folder");
    assert!(run.join("metrics/summary_stats.json").is_file());

    let options = EvaluateOptions {
        no_cache: true,
        slos: vec!["error_rate > 0.5".to_owned()],
        ..EvaluateOptions::default()
    };
    let evaluation = Reevaluation::open(run, &options).expect("a run folder");
    let evaluated = evaluation
        .carry_out(None, &CompatOptions::default())
        .expect("an evaluation");
    assert!(evaluated.folder.is_none());
    let ttfc = |of: &Conclusion| {
        of.results
            .evaluation
            .samples
            .summary("ttfc")
            .map(|summary| summary.mean)
    };
    assert!(ttfc(&measured).is_some());
    assert_eq!(ttfc(&evaluated), ttfc(&measured));
    assert!(
        evaluated.messages.iter().any(|line| line.contains("error_rate")),
        "{:?}",
        evaluated.messages
    );
}

#[test]
fn scheme_of_the_simulator_is_case_insensitive() {
    let folder = tempfile::tempdir().expect("a folder");
    let loaded = load_with(folder.path(), "client.api_base=SIM://fast");
    let plan = plan(loaded, Path::new("s"), ShardSpec::default(), false).expect("a plan");
    let conclusion = run(plan, &RunOptions::default(), &Control::default()).expect("a run");
    assert_eq!(conclusion.results.evaluation.counts.completed, 12);
}

#[test]
fn certificate_states_why_a_self_test_failed() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = plan(load(folder.path()), Path::new("s"), ShardSpec::default(), true).expect("a plan");
    let conclusion = run(plan, &RunOptions::default(), &Control::default()).expect("a run");
    assert!(conclusion.failure.is_some());
    let run = conclusion.folder.as_deref().expect("a run folder");
    let certificate = std::fs::read_to_string(run.join("certificate.json")).expect("a certificate");
    let reason = "not made, because it failed: it needs the path of the veeksha-host program";
    assert!(certificate.contains(reason), "{certificate}");
}

#[test]
fn evaluates_into_a_folder_with_the_same_results() {
    let folder = tempfile::tempdir().expect("a folder");
    let measured = run_once(folder.path());
    let run = measured.folder.as_deref().expect("a run folder");
    let options = EvaluateOptions {
        no_cache: true,
        ..EvaluateOptions::default()
    };
    let evaluation = Reevaluation::open(run, &options).expect("a run folder");
    let target = veeksha_report::RunFolder::create_at(&folder.path().join("again"), evaluation.config())
        .expect("a new folder");
    let evaluated = evaluation
        .carry_out(Some(&target), &CompatOptions::default())
        .expect("an evaluation");
    assert_eq!(evaluated.code, measured.code);
    let read = |folder: &Path| std::fs::read(folder.join("metrics/ttfc.csv")).expect("a file");
    assert_eq!(read(target.path()), read(run));
}

#[test]
fn a_stopped_control_ends_the_run_as_interrupted() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = plan(load(folder.path()), Path::new("s"), ShardSpec::default(), false).expect("a plan");
    let control = Control::default();
    control.stop();
    let options = RunOptions {
        quiet: true,
        ..RunOptions::default()
    };
    let conclusion = run(plan, &options, &control).expect("a run");
    assert_eq!(conclusion.code, veeksha_exit::INTERRUPTED);
    assert_eq!(conclusion.results.evaluation.counts.completed, 0);
}

#[test]
fn simulations_of_one_scenario_are_equal() {
    let simulate_once = || {
        let folder = tempfile::tempdir().expect("a folder");
        let plan = plan_simulation(load(folder.path()), ShardSpec::default(), None).expect("a plan");
        let conclusion = simulate(plan, &CompatOptions::default(), &Control::default()).expect("a run");
        assert!(conclusion.results.is_simulated());
        conclusion.results.evaluation.summary_stats()
    };
    let first = simulate_once();
    assert_eq!(first["Number of Completed Requests"], 12);
    assert_eq!(first, simulate_once());
}
