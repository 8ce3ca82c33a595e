//! Records that are incomplete, not regular files, or of an aborted run: they are reported without
//! blocking.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::results::{json, latest};
use crate::server::interrupt;
use crate::simulated::{ends_with, evaluate, evaluated, labelled, path, simulated};
use crate::support::{UNJUDGED, assert_code, program, scenario, stderr, stdout, veeksha};

/// A check that would fail the run if it were called.
const CHECK: &str = r#"{ type = "lua", name = "last", check = function() return { { name = "never", met = false, threshold = 1 } } end },"#;

/// Starts a long run against the built-in simulator.
fn start(folder: &Path, more: &[&str]) -> Child {
    let file = scenario(folder, "s.lua", &labelled(100_000, CHECK, ""));
    let out = folder.join("out");
    let mut command = program();
    command.args(["run", &file, "--quiet", "--output_dir", path(&out)]);
    command.args(UNJUDGED).args(more);
    command.stderr(Stdio::null()).stdout(Stdio::null());
    command.spawn().expect("the program starts")
}

/// Waits until the path exists.
fn wait_for(path: &Path) {
    let there = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        path.exists()
    });
    assert!(there, "no {} after 30 s", path.display());
}

fn kill(mut child: Child) {
    let killed = Command::new("kill")
        .args(["-KILL", &child.id().to_string()])
        .status();
    assert!(killed.expect("kill").success());
    child.wait().expect("it ends");
}

/// A killed run leaves the files written so far, which are evaluated.
#[test]
fn the_record_of_a_killed_run_is_evaluated_as_far_as_it_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let child = start(folder.path(), &["--client.api_base", "sim://fast"]);
    let out = folder.path().join("out");
    wait_for(&out.join("latest/record/requests-00000.parquet"));
    kill(child);

    let run = latest(&out);
    let again = folder.path().join("again");
    let output = evaluate(&run, &["--to", path(&again)]);
    assert_code(&output, 0);
    assert!(
        stderr(&output).contains("the record ends after"),
        "{}",
        stderr(&output)
    );
    let summary = json(&again, "metrics/summary_stats.json");
    let completed = summary["Number of Completed Requests"].as_u64().expect("a count");
    assert!(completed > 0);
    assert_eq!(summary["record_complete"], false);
    // The check at the end was not called, so it is unknown if all objectives are met.
    let slos = json(&again, "metrics/slo_results.json");
    assert_eq!(slos["all_slos_met"], Value::Null, "{slos}");
    assert!(
        slos["remarks"]
            .to_string()
            .contains("the verdict of the check of `last` is unknown, because the record is incomplete"),
        "{slos}"
    );
    // Both are truncated, at different positions: the text is written line by line, the record part
    // by part.
    let text = std::fs::read_to_string(run.join("metrics/request_level_metrics.jsonl")).expect("rows");
    let rows = text
        .lines()
        .filter(|line| serde_json::from_str::<Value>(line).is_ok());
    let rows: Vec<Value> = rows
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let known = rows
        .iter()
        .take(completed as usize)
        .filter(|row| row["success"] == true)
        .count();
    assert!(
        rows.len() < completed as usize || known as u64 == completed,
        "{known} of {completed}"
    );
    let report = std::fs::read_to_string(again.join("report.html")).expect("a page");
    assert!(report.contains("cut short"), "the page reports it too");
}

/// An unreadable table of requests reveals nothing about the run: neither that nothing was sent,
/// nor the results.
#[test]
fn nothing_is_known_without_the_table_of_requests() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.lua", &labelled(15, "", ""), &[]);
    let table = run.join("record/requests.parquet");
    let whole = std::fs::read(&table).expect("a table");
    let mut torn = whole.clone();
    let middle = torn.len() / 4;
    torn[middle] ^= 0xff;
    for bytes in [Some(&whole[..3000]), Some(&torn[..]), None] {
        match bytes {
            Some(bytes) => std::fs::write(&table, bytes).expect("a file"),
            None => std::fs::remove_file(&table).expect("removed"),
        }
        let again = tempfile::tempdir().expect("a folder");
        let to = again.path().join("to");
        let output = evaluate(&run, &["--to", path(&to)]);
        assert_code(&output, 6);
        let why = "the result of the run is unknown: the record's table of requests could not be read";
        let printed = stderr(&output);
        assert!(printed.contains(&format!("warning: {why}")), "{printed}");
        assert!(!printed.contains("before its first request"), "{printed}");
        let findings = json(&to, "certificate.json")["findings"].to_string();
        assert!(
            findings.contains(why) && !findings.contains("before its first request"),
            "{findings}"
        );
    }
}

#[test]
fn rejects_non_runs_and_reports_damage() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.lua", &labelled(10, "", ""), &[]);

    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).expect("a folder");
    let output = evaluate(&empty, &[]);
    assert_code(&output, 2);
    assert!(stderr(&output).contains("holds no record"), "{}", stderr(&output));
    std::fs::create_dir(empty.join("record")).expect("a folder");
    let output = evaluate(&empty, &[]);
    assert_code(&output, 2);
    assert!(
        stderr(&output).contains("killed before anything of it was recorded"),
        "{}",
        stderr(&output)
    );
    let output = evaluate(&folder.path().join("nowhere"), &[]);
    assert_code(&output, 2);
    assert!(stderr(&output).contains("nowhere"), "{}", stderr(&output));

    // A scenario that is not the run's does not determine the requested work.
    let config = run.join("config.yml");
    let written = std::fs::read_to_string(&config).expect("config.yml");
    let another = "config.yml is not the one that the run was recorded with";
    assert!(!stderr(&evaluate(&run, &["--json"])).contains(another));
    std::fs::write(&config, written.replace("seed:", "# edited\nseed:")).expect("a file");
    let output = evaluate(&run, &["--json"]);
    assert_code(&output, 0);
    assert!(stderr(&output).contains(another), "{}", stderr(&output));

    // A scenario of a later version: the record is valid, and the objectives are unknown.
    std::fs::write(&config, format!("{written}\nkey_of_the_future: 1\n")).expect("a file");
    let output = evaluate(&run, &["--json"]);
    assert_code(&output, 0);
    assert!(
        stderr(&output).contains("key_of_the_future"),
        "{}",
        stderr(&output)
    );
    std::fs::write(&config, b"\xff\xfe").expect("a file");
    let output = evaluate(&run, &["--json"]);
    assert_code(&output, 0);
    assert!(stderr(&output).contains("UTF-8"), "{}", stderr(&output));
    std::fs::remove_file(&config).expect("removed");
    let output = evaluate(&run, &["--json"]);
    assert_code(&output, 0);
    assert!(
        stderr(&output).contains("config.yml cannot be read"),
        "{}",
        stderr(&output)
    );
    let summary: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(summary["Number of Requests"], 20);

    // A truncated file, and a file of another kind.
    let requests = run.join("record/requests.parquet");
    let bytes = std::fs::read(&requests).expect("the record");
    for damaged in [&bytes[..bytes.len() / 2], b"not a Parquet file", b""] {
        std::fs::write(&requests, damaged).expect("a file");
        let output = evaluate(&run, &["--json"]);
        assert!(matches!(output.status.code(), Some(2 | 6)), "{}", stderr(&output));
        assert!(stderr(&output).contains("requests"), "{}", stderr(&output));
        assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
    }
}

/// Without its scenario the missed objectives of the run are unknown: the evaluation must not
/// report that all were met.
#[test]
fn all_slos_met_is_unknown_without_the_scenario() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = r#"{ type = "performance", slos = { "p99(ttfc) < 1us" } }"#;
    let (_, run) = ends_with(folder.path(), "s.lua", &labelled(10, asked, ""), &[], 3);
    let config = run.join("config.yml");
    let again = |name: &str, more: &[&str], code: i32| {
        json(
            &evaluated(&run, &folder.path().join(name), more, code),
            "metrics/slo_results.json",
        )
    };
    for (name, text, why) in [
        ("another", "key_of_the_future: 1\n", "key_of_the_future"),
        ("empty", "", "config.yml is empty"),
    ] {
        std::fs::write(&config, text).expect("a file");
        let slos = again(name, &[], 0);
        assert_eq!(slos["all_slos_met"], Value::Null, "{slos}");
        let remark = slos["remarks"][0].as_str().expect("a remark");
        assert!(remark.contains("are unknown") && remark.contains(why), "{remark}");
    }
    std::fs::remove_file(&config).expect("removed");
    assert_eq!(again("gone", &[], 0)["all_slos_met"], Value::Null);
    // Goodput conditions are not objectives; those of the command line decide.
    let conditions = again("conditions", &["--goodput", "ttfc <= 1h"], 0);
    assert_eq!(conditions["all_slos_met"], Value::Null);
    let decided = again("decided", &["--slo", "p99(ttfc) < 1h"], 0);
    assert_eq!(decided["all_slos_met"], true);
    assert_eq!(decided["remarks"], Value::Array(Vec::new()));
    assert_eq!(
        again("missed", &["--slo", "p99(ttfc) < 1us"], 3)["all_slos_met"],
        false
    );
}

/// The first part is written within about a second of the first event, and truncation is detected.
#[test]
fn run_killed_early_has_an_incomplete_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let child = start(folder.path(), &["--client.api_base", "sim://fast"]);
    let out = folder.path().join("out");
    wait_for(&out.join("latest/record/events-00000.parquet"));
    kill(child);
    let run = latest(&out);
    // Two parts that are at least half a second old each: younger than the five seconds of earlier
    // versions.
    let parts = std::fs::read_dir(run.join("record")).expect("the record").count();
    assert!(parts <= 8, "{parts} files");
    let health = veeksha(["health", path(&run)]);
    assert_code(&health, 0);
    assert!(
        stdout(&health).starts_with("The record is incomplete"),
        "{}",
        stdout(&health)
    );
    let health: Value =
        serde_json::from_str(&stdout(&veeksha(["health", path(&run), "--json"]))).expect("JSON");
    assert_eq!(health["record_is_whole"], false);
    let strict = veeksha(["health", path(&run), "--strict"]);
    assert_code(&strict, 6);
    assert!(
        stderr(&strict).contains("the record is incomplete"),
        "{}",
        stderr(&strict)
    );
}

#[test]
fn pipes_do_not_block() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.lua", &labelled(4, "", ""), &[]);
    for file in ["record/requests.parquet", "config.yml", "record/events.parquet"] {
        let path = run.join(file);
        std::fs::remove_file(&path).expect("removed");
        assert!(
            Command::new("mkfifo")
                .arg(&path)
                .status()
                .expect("mkfifo")
                .success()
        );
        for command in ["evaluate", "health"] {
            let output = veeksha([command, crate::simulated::path(&run)]);
            assert!(output.status.code().is_some());
            assert!(
                stderr(&output).contains("it is not a regular file"),
                "{}",
                stderr(&output)
            );
        }
    }
    let other = simulated(folder.path(), "other.lua", &labelled(4, "", ""), &[]);
    let compared = veeksha(["compare", path(&run), path(&other)]);
    assert!(
        stderr(&compared).contains("it is not a regular file"),
        "{}",
        stderr(&compared)
    );
}

/// A server that accepts requests and never answers; the user interrupts the run.
#[test]
fn run_interrupted_before_any_response_reports_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let base = format!("http://{}/v1", server.local_addr().expect("an address"));
    let silent = std::thread::spawn(move || server.incoming().take(64).collect::<Vec<_>>().len());
    let child = start(
        folder.path(),
        &["--client.api_base", &base, "--client.model", "m"],
    );
    let out = folder.path().join("out");
    wait_for(&out.join("latest/record/events-00000.parquet"));
    interrupt(&child);
    child.wait_with_output().expect("it ends");
    drop(silent);
    let run = latest(&out);
    let output = evaluate(&run, &["--json"]);
    assert_code(&output, 6);
    assert!(
        stderr(&output).contains("nothing was measured"),
        "{}",
        stderr(&output)
    );
}
