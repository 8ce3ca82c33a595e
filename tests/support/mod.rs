//! What the tests from outside share: running the program and hearing what it says.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .expect("the repository")
}

/// The program, in the repository's root, with no key of the developer's own and a cache that lasts for the test run.
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

/// Runs the program with these arguments.
pub(crate) fn veeksha<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    program().args(arguments).output().expect("the program starts")
}

/// Standard error as text.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Standard output as text.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Asserts an exit code, showing everything that was said if it is another.
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
