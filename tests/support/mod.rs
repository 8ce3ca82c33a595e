//! Shared helpers of the integration tests: running the program and reading its output.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .expect("the repository")
}

/// Returns a command for the program in the repository's root, without the developer's API key and
/// with a cache that is shared by the test run.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_veeksha-host"));
    command.current_dir(root());
    command
        .env_remove("OPENAI_API_KEY")
        .env_remove("OPENAI_API_BASE")
        .env("NO_COLOR", "1");
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

/// Runs the program with these arguments. Accuracy thresholds are disabled, because other tests
/// compete for the cores; `certificate.rs` tests runs that miss them.
pub(crate) fn veeksha<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    let arguments: Vec<_> = arguments.into_iter().collect();
    let mut command = program();
    command.args(&arguments);
    let is_run = arguments.first().is_some_and(|first| first.as_ref() == "run");
    let stated = |argument: &S| argument.as_ref().to_string_lossy().contains("certificate");
    if is_run && !arguments.iter().any(stated) {
        command.args(UNJUDGED);
    }
    command.output().expect("the program starts")
}

/// Thresholds that every run meets.
pub(crate) const UNJUDGED: [&str; 4] = [
    "--certificate.degraded",
    "1000000",
    "--certificate.invalid",
    "1000000",
];

/// Standard error as text.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Standard output as text.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Asserts an exit code; the panic message contains the complete output.
#[track_caller]
pub(crate) fn assert_code(output: &Output, code: i32) {
    let said = format!("--- stdout\n{}\n--- stderr\n{}", stdout(output), stderr(output));
    assert_eq!(output.status.code(), Some(code), "{said}");
}

/// Writes a scenario into a folder and returns its path.
pub(crate) fn scenario(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a writable folder");
    path.to_str().expect("UTF-8").to_owned()
}
