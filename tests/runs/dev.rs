//! The watch mode: a save prints the difference, an error does not end it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::rust_projects::{is_without_compiler, offline_program, replace};
use crate::server::interrupt;
use crate::support::{assert_code, program, root, stderr, stdout, veeksha};

/// Time for a line to appear, which covers the first build of a project on a busy machine.
const LIMIT: Duration = Duration::from_secs(100);
/// The line after each cycle.
const WAITING: &str = "watching for changes";
/// A scenario whose sessions take a length from a module.
const SCENARIO: &str = r#"
local sizes = require("./sizes")
return {
  session_generator = {
    type = "lua",
    sessions = function(index, rng)
      return { requests = { { user = synthetic(sizes.prompt), output = 20 } } }
    end,
  },
  traffic_scheduler = { type = "rate", interval_generator = { type = "fixed", interval = 0.1 } },
  client = { api_base = "sim://default" },
  runtime = { max_sessions = 4 },
}
"#;

/// The program in the watch mode, with its output.
struct WatchingProgram {
    child: Child,
    lines: Receiver<String>,
}

impl WatchingProgram {
    fn start(mut program: Command, arguments: &[&str]) -> Self {
        let child = program
            .arg("dev")
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.expect("the program starts");
        let (sender, lines) = channel();
        let other = sender.clone();
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        std::thread::spawn(move || {
            out.lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        let err = BufReader::new(child.stderr.take().expect("a pipe"));
        std::thread::spawn(move || {
            err.lines()
                .map_while(Result::ok)
                .try_for_each(|line| other.send(line))
        });
        WatchingProgram { child, lines }
    }

    /// Returns the output until it has each of `texts`, in any order: it comes from two pipes.
    fn expect(&self, texts: &[&str]) -> String {
        let mut output = String::new();
        let has_all = |output: &str| texts.iter().all(|text| output.contains(text));
        while !has_all(&output) {
            match self.lines.recv_timeout(LIMIT) {
                Ok(line) => output.push_str(&format!("{line}\n")),
                Err(error) => panic!("{error}, expected {texts:?} in:\n{output}"),
            }
        }
        output
    }

    /// Interrupts the program, which is its intended end.
    fn end(mut self) {
        interrupt(&self.child);
        let status = self.child.wait().expect("it ends");
        assert_eq!(status.code(), Some(0));
    }
}

impl Drop for WatchingProgram {
    /// A failed test leaves no process.
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

/// Replaces a file as editors do: writes another one and renames it.
fn rename_over(path: &Path, text: &str) {
    let other = path.with_extension("tmp");
    std::fs::write(&other, text).expect("a file");
    std::fs::rename(&other, path).expect("a rename");
}

#[test]
fn each_save_of_a_scenario_prints_the_difference() {
    let folder = tempfile::tempdir().expect("a folder");
    let (scenario, sizes) = (folder.path().join("s.lua"), folder.path().join("sizes.lua"));
    std::fs::write(&scenario, SCENARIO).expect("a scenario");
    std::fs::write(&sizes, "return { prompt = 100 }").expect("a module");
    let mut program = program();
    program.current_dir(folder.path());
    let watching = WatchingProgram::start(program, &["s.lua", "--sessions", "3"]);
    let first = watching.expect(&["session 0: 1 node", "num_sessions", "p99(ttfc)", WAITING]);
    assert!(
        first.contains("session 2") && !first.contains("session 3"),
        "{first}"
    );

    let longer = SCENARIO.replace("output = 20", "output = 40");
    std::fs::write(&scenario, &longer).expect("a scenario");
    watching.expect(&[
        "changed: s.lua",
        "sessions: 3 of 3 changed",
        "session 0:",
        "p50(num_output_tokens)",
        "20 tokens → 40 tokens  +100 %",
        WAITING,
    ]);

    rename_over(&scenario, &longer.replace("interval = 0.1", "interval = 0.2"));
    watching.expect(&[
        "changed: s.lua",
        "sessions: 0 of 3 changed",
        "window_seconds",
        WAITING,
    ]);

    std::fs::write(&sizes, "return { prompt = 50 }").expect("a module");
    watching.expect(&["changed: sizes.lua", "sessions: 3 of 3 changed", WAITING]);

    std::fs::write(&sizes, "return { prompt = }").expect("a module");
    watching.expect(&["changed: sizes.lua", "sizes.lua:1: syntax error", WAITING]);
    // The last good results are the basis of the next difference.
    rename_over(&sizes, "return { prompt = 50 }");
    watching.expect(&["changed: sizes.lua", "no difference", WAITING]);

    std::fs::write(&scenario, longer.replace("max_sessions", "max_session")).expect("a scenario");
    watching.expect(&["did you mean `max_sessions`?", WAITING]);
    watching.end();
    let left = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(left, 2, "no run folder is written");
}

#[test]
fn one_cycle_has_the_exit_code_of_its_results() {
    let quickstart = root().join("scenarios/quickstart.lua");
    let quickstart = quickstart.to_str().expect("UTF-8");
    let output = veeksha(["dev", quickstart, "--once", "--sessions", "2"]);
    assert_code(&output, 0);
    assert!(
        stdout(&output).contains("met: p90(ttfc) <= 0.5"),
        "{}",
        stdout(&output)
    );
    let output = veeksha(["dev", quickstart, "--once", "--runtime.max_session", "2"]);
    assert_code(&output, 2);
    assert!(stderr(&output).contains("did you mean"), "{}", stderr(&output));
}

#[test]
fn a_save_of_a_source_builds_the_plugin() {
    let folder = tempfile::tempdir().expect("a folder");
    let new = [
        "plugin",
        "new",
        "coder",
        "--kind",
        "session-generator",
        "--lang",
        "rust",
    ];
    let output = offline_program(folder.path())
        .args(new)
        .output()
        .expect("the program starts");
    assert_code(&output, 0);
    let project = folder.path().join("coder");
    std::fs::copy(root().join("Cargo.lock"), project.join("Cargo.lock")).expect("a lock file");
    let output = offline_program(&project)
        .args(["plugin", "build", "--dev"])
        .output();
    let output = output.expect("the program starts");
    if is_without_compiler(&output) {
        return;
    }
    assert_code(&output, 0);
    let watching = WatchingProgram::start(offline_program(&project), &["scenario.lua"]);
    watching.expect(&["session 0:", "build ", WAITING]);
    let source = project.join("src/lib.rs");
    let text = std::fs::read_to_string(&source).expect("a source");
    replace(&source, "Session::new(requests)", "requests");
    watching.expect(&[
        "changed: src/lib.rs",
        "mismatched types",
        "the plugin does not build",
        WAITING,
    ]);
    rename_over(&source, &text);
    watching.expect(&["changed: src/lib.rs", "no difference: load", "build ", WAITING]);
    watching.end();
}
