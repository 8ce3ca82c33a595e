//! What the tests from outside share: running the program, reading its results.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository")
}

/// The program, in the repository's root, with no key of the developer's own and a cache that lasts for the test run.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_veeksha-host"));
    command.current_dir(root());
    command.env_remove("OPENAI_API_KEY").env_remove("OPENAI_API_BASE").env("NO_COLOR", "1");
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

/// Runs the program with these arguments.
pub fn veeksha<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    program().args(arguments).output().expect("the program starts")
}

/// Standard error as text.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Standard output as text.
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Asserts an exit code, showing everything that was said if it is another.
#[track_caller]
pub fn assert_code(output: &Output, code: i32) {
    let said = format!("--- stdout\n{}\n--- stderr\n{}", stdout(output), stderr(output));
    assert_eq!(output.status.code(), Some(code), "{said}");
}

/// The newest run below an output folder.
pub fn latest(output_dir: &Path) -> PathBuf {
    output_dir.join("latest").canonicalize().expect("a link to the latest run")
}

/// A JSON file of a run.
pub fn json(run: &Path, file: &str) -> Value {
    let text = std::fs::read_to_string(run.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    assert!(!text.contains("NaN") && !text.contains("Infinity"), "{file} is not strict JSON");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// A JSON-lines file of a run.
pub fn lines(run: &Path, file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    assert!(text.is_empty() || text.ends_with('\n'), "{file} ends in the middle of a line");
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON object on each line")).collect()
}

/// Writes a scenario into a folder and returns its path.
pub fn scenario(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a writable folder");
    path.to_str().expect("UTF-8").to_owned()
}

/// A simulated server in a process of its own.
pub struct Sim {
    child: Child,
    /// Its base URL, with `/v1`.
    pub api_base: String,
}

impl Sim {
    /// Starts `veeksha-host sim --port 0` with more arguments and waits for its address.
    pub fn start(arguments: &[&str]) -> Sim {
        let mut command = program();
        command.args(["sim", "--port", "0"]).args(arguments).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("the simulator starts");
        let stdout = child.stdout.take().expect("a pipe");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("a line with the address");
        let start = line.find("http://").unwrap_or_else(|| panic!("no address in {line:?}"));
        let api_base = line[start..].split_whitespace().next().expect("an address").to_owned();
        Sim { child, api_base }
    }

    /// Asks it to stop as Ctrl-C does, and waits.
    pub fn stop(mut self) {
        interrupt(&self.child);
        let _ = self.child.wait();
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends SIGINT.
pub fn interrupt(child: &Child) {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.expect("kill").success());
}
