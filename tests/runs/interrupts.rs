//! Ctrl-C: the first one keeps the results, the second one ends the program at once.

use std::process::Stdio;
use std::time::Duration;

use crate::results::{json, latest, lines};
use crate::server::interrupt;
use crate::support::program;

fn start(output_dir: &str) -> std::process::Child {
    let mut command = program();
    command.args(["run", "scenarios/quickstart.lua", "--output_dir", output_dir]);
    command.args([
        "--runtime.max_sessions",
        "10000",
        "--runtime.benchmark_timeout",
        "600",
    ]);
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

/// Waits until some requests have been written.
fn wait_for_rows(folder: &std::path::Path) {
    for _ in 0..200 {
        std::thread::sleep(Duration::from_millis(100));
        let rows = std::fs::read_to_string(folder.join("latest/metrics/request_level_metrics.jsonl"));
        if rows.is_ok_and(|rows| rows.lines().count() >= 3) {
            return;
        }
    }
    panic!("no rows after 20 s");
}

#[test]
fn first_interrupt_keeps_the_results() {
    let folder = tempfile::tempdir().expect("a folder");
    let child = start(folder.path().to_str().expect("UTF-8"));
    wait_for_rows(folder.path());
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(
        output.status.code(),
        Some(130),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let run = latest(folder.path());
    let rows = lines(&run, "metrics/request_level_metrics.jsonl");
    let summary = json(&run, "metrics/summary_stats.json");
    let answered = rows.iter().filter(|row| row["success"] == true).count();
    assert!(answered >= 3);
    assert_eq!(summary["Number of Completed Requests"], answered);
    let trace = lines(&run, "traces/trace.jsonl");
    assert!(trace.iter().any(|line| line["event"] == "interrupted"));
    assert!(trace.iter().any(|line| line["event"] == "run_ended"));
    assert_eq!(json(&run, "health_check_results.json")["interrupted"], true);
    let health = std::fs::read_to_string(run.join("health_check_results.txt")).expect("the checks");
    assert!(health.contains("The run was interrupted"), "{health}");
}

#[test]
fn second_interrupt_ends_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let child = start(folder.path().to_str().expect("UTF-8"));
    wait_for_rows(folder.path());
    interrupt(&child);
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
}

/// Virtual time stops immediately; the results are those of the simulated part.
#[test]
fn a_simulation_that_is_stopped_keeps_its_results() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = program();
    command
        .args(["simulate", "scenarios/quickstart.lua", "--output_dir"])
        .arg(folder.path());
    command.args([
        "--runtime.max_sessions",
        "10000000",
        "--runtime.benchmark_timeout",
        "0",
    ]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    wait_for_rows(folder.path());
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert_eq!(said.matches("results are kept").count(), 1, "{said}");
    let run = latest(folder.path());
    let summary = json(&run, "metrics/summary_stats.json");
    assert!(summary["Number of Completed Requests"].as_u64() >= Some(3));
    assert_eq!(summary["interrupted"], true);
    assert!(run.join("record/requests.parquet").exists());
}

/// Commands other than runs end at once, print a message, and leave no incomplete files.
#[test]
fn interrupted_evaluation_leaves_no_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let many = crate::simulated::labelled(30_000, "", "");
    let run = crate::simulated::simulated(
        folder.path(),
        "s.lua",
        &many,
        &["-q", "--runtime.benchmark_timeout", "0"],
    );
    let to = folder.path().join("again/it");
    for arguments in [
        &["health"][..],
        &["evaluate"],
        &["evaluate", "--to"],
        &["compare"],
    ] {
        let mut command = program();
        command.arg(arguments[0]).arg(&run);
        if arguments[0] == "compare" {
            command.arg(&run);
        }
        if arguments.len() > 1 {
            command.arg("--to").arg(&to);
        }
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        std::thread::sleep(Duration::from_millis(400));
        interrupt(&child);
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(130), "{arguments:?}: {said}");
        assert_eq!(said.matches("interrupted").count(), 1, "{said}");
        assert!(!folder.path().join("again").exists(), "{arguments:?}");
        assert!(!run.join("evaluations").exists(), "{arguments:?}");
    }
}
