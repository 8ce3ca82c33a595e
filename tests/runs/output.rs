//! Output that cannot be written is reported by the exit code; a reader that closed the pipe is not
//! an error.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::results::{json, latest};
use crate::simulated::{labelled, path, simulated};
use crate::support::{UNJUDGED, assert_code, program, scenario, stderr, stdout};

/// Returns every command with long output, each with a separate run and scenario.
fn commands(folder: &Path) -> Vec<Vec<String>> {
    let run = simulated(folder, "old.lua", &labelled(6, "", ""), &[]);
    let file = scenario(folder, "s.lua", &labelled(4, "", ""));
    let out = folder.join("runs");
    let (run, out) = (path(&run), path(&out));
    let mut running = vec!["run", &file, "--output_dir", out];
    running.extend(UNJUDGED);
    let commands = [
        &running[..],
        &["simulate", &file, "--output_dir", out],
        &["evaluate", run],
        &["evaluate", run, "--json"],
        &["health", run],
        &["metrics"],
        &["check", &file],
        &["schema"],
        &["--help"],
        &["completions", "bash"],
    ];
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    commands.into_iter().map(owned).collect()
}

#[test]
fn unwritable_output_is_one_error() {
    let folder = tempfile::tempdir().expect("a folder");
    for arguments in commands(folder.path()) {
        let full = File::options()
            .write(true)
            .open("/dev/full")
            .expect("a device that is full");
        let output = program()
            .args(&arguments)
            .stdout(full)
            .output()
            .expect("the program starts");
        assert_code(&output, 1);
        let said = stderr(&output);
        let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("error")).collect();
        assert_eq!(errors.len(), 1, "{arguments:?}: {said}");
        assert!(
            errors[0].contains("standard output") && errors[0].contains("No space"),
            "{arguments:?}: {said}"
        );
    }
    // The run itself is complete.
    let run = latest(&folder.path().join("runs"));
    assert_eq!(
        json(&run, "metrics/summary_stats.json")["Number of Completed Requests"],
        8
    );
}

#[test]
fn closed_pipe_is_not_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    for arguments in commands(folder.path()) {
        let mut child = program()
            .args(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        drop(child.stdout.take());
        let mut said = String::new();
        let mut errors = child.stderr.take().expect("a pipe");
        errors.read_to_string(&mut said).expect("UTF-8");
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(0), "{arguments:?}: {said}");
        assert!(!said.contains("error") && !said.contains("panicked"), "{said}");
    }
}

/// The reader of the table has no effect on the exit code and the files of a run.
#[test]
fn a_run_with_a_closed_pipe_is_complete() {
    let folder = tempfile::tempdir().expect("a folder");
    let missed = r#"{ type = "performance", slos = { "p99(ttfc) < 1us" } }"#;
    let file = scenario(folder.path(), "s.lua", &labelled(6, missed, ""));
    let files = |name: &str, has_reader: bool| {
        let out = folder.path().join(name);
        let mut child = program()
            .args(["run", &file, "--output_dir", path(&out)])
            .args(UNJUDGED)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        if !has_reader {
            drop(child.stdout.take());
        }
        let status = child.wait_with_output().expect("it ends").status;
        assert_eq!(status.code(), Some(3));
        let run = latest(&out);
        let names = |folder: &Path| -> Vec<String> {
            let entries = std::fs::read_dir(folder).expect("a folder");
            let mut names: Vec<String> = entries
                .map(|entry| {
                    entry
                        .expect("an entry")
                        .file_name()
                        .to_string_lossy()
                        .into_owned()
                })
                .collect();
            names.sort_unstable();
            names
        };
        [names(&run), names(&run.join("metrics"))]
    };
    assert_eq!(files("closed", false), files("open", true));
}

/// Without a table, one line still reports the missed objectives.
#[test]
fn quiet_commands_explain_their_exit_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let missed = r#"{ type = "performance", slos = { "p99(ttfc) < 1us", "error_rate < 1%" } }"#;
    let file = scenario(folder.path(), "s.lua", &labelled(6, missed, ""));
    let out = folder.path().join("out");
    let quiet = |arguments: &[&str], code: i32| -> Output {
        let output = program().args(arguments).output().expect("the program starts");
        assert_code(&output, code);
        assert_eq!(stdout(&output), "");
        output
    };
    let says_it = |output: &Output| {
        let said = stderr(output);
        let lines: Vec<&str> = said
            .lines()
            .filter(|line| line.starts_with("not met: "))
            .collect();
        assert_eq!(lines.len(), 1, "{said}");
        assert!(
            lines[0].contains("ttfc") && !lines[0].contains("error_rate"),
            "{said}"
        );
    };
    says_it(&quiet(&["simulate", &file, "-q", "--output_dir", path(&out)], 3));
    let run = latest(&out);
    says_it(&quiet(&["evaluate", path(&run), "--quiet"], 3));
    let met = quiet(&["evaluate", path(&run), "--quiet", "--slo", "p99(ttfc) < 1h"], 0);
    assert!(!stderr(&met).contains("not met"), "{}", stderr(&met));
    // With a tolerated error of 0 the run is INVALID.
    let distrust = [
        "--certificate.degraded",
        "1e-12",
        "--certificate.invalid",
        "1e-11",
    ];
    let arguments = [&["run", &file, "-q", "--output_dir", path(&out)][..], &distrust].concat();
    let invalid = quiet(&arguments, 6);
    assert!(stderr(&invalid).contains("INVALID"), "{}", stderr(&invalid));
}
