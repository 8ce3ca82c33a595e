//! Projects in Rust: made by `plugin new`, built with the pinned toolchain, run.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::skip::skip;
use crate::support::{UNJUDGED, assert_code, program, root, stderr, stdout};

/// The kinds, with the imports that the example of each needs besides types and log.
const KINDS: [(&str, &[&str]); 8] = [
    ("session-generator", &["random"]),
    ("agent-generator", &["random"]),
    ("arrival-process", &["random"]),
    ("trace-flavor", &[]),
    ("endpoint-codec", &[]),
    ("metric", &[]),
    ("request-check", &[]),
    ("slo-check", &["results"]),
];

/// The folder of the pinned toolchain, if the environment names none and it exists. The program's own
/// default is in the cache folder, which tests replace.
fn pinned_toolchain() -> Option<PathBuf> {
    const VARIABLE: &str = "VEEKSHA_GUEST_TOOLCHAIN";
    if let Some(folder) = std::env::var_os(VARIABLE) {
        return Some(folder.into());
    }
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or(home)?;
    let folder = cache.join("veeksha-host/guest-toolchain");
    folder.join("pin").exists().then_some(folder)
}

/// Runs the program with the crates of this workspace's lock file, and one target folder.
fn offline(folder: &Path, arguments: &[&str]) -> Output {
    let mut program = program();
    if let Some(toolchain) = pinned_toolchain() {
        program.env("VEEKSHA_GUEST_TOOLCHAIN", toolchain);
    }
    if arguments[0] == "run" {
        program.args(arguments).args(UNJUDGED);
    } else {
        program.args(arguments);
    }
    program
        .current_dir(folder)
        .env("CARGO_NET_OFFLINE", "true")
        .env(
            "CARGO_TARGET_DIR",
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("rust-projects"),
        )
        .env_remove("RUSTFLAGS")
        .output()
        .expect("the program starts")
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).expect("a source");
    assert!(text.contains(from), "no {from:?} in {}", path.display());
    std::fs::write(path, text.replace(from, to)).expect("a source");
}

/// Makes a project of a kind. All but the first use its SDK, so that it is compiled once.
fn project(folder: &Path, kind: &str) -> PathBuf {
    let output = offline(folder, &["plugin", "new", kind, "--kind", kind, "--lang", "rust"]);
    assert_code(&output, 0);
    let project = folder.join(kind);
    if kind != KINDS[0].0 {
        let sdk = format!("path = \"../{}/sdk/rust\"", KINDS[0].0);
        replace(&project.join("Cargo.toml"), "path = \"sdk/rust\"", &sdk);
    }
    std::fs::copy(root().join("Cargo.lock"), project.join("Cargo.lock")).expect("a lock file");
    project
}

/// Builds a project; none if there is no compiler.
fn build(project: &Path) -> Option<Value> {
    let output = offline(project, &["plugin", "build", "--json"]);
    if stderr(&output).contains("a Rust compiler for") {
        skip("rust-guest", stderr(&output).lines().next().unwrap_or_default());
        return None;
    }
    assert_code(&output, 0);
    Some(serde_json::from_str(&stdout(&output)).expect("JSON"))
}

fn names(value: &Value) -> Vec<&str> {
    let values = value.as_array().into_iter().flatten();
    values.filter_map(Value::as_str).collect()
}

#[test]
fn a_project_of_each_kind_builds_and_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    for (kind, imports) in KINDS {
        let project = project(folder.path(), kind);
        let Some(built) = build(&project) else { return };
        assert_eq!(names(&built["kinds"]), [kind]);
        imports_only(kind, &names(&built["imports"]), imports);

        let scenario = ["check", "scenario.lua"];
        assert_code(&offline(&project, &scenario), 0);
        // Virtual time has no bytes for a codec to read.
        let command = if kind == "endpoint-codec" {
            "run"
        } else {
            "simulate"
        };
        assert_code(&offline(&project, &[command, "scenario.lua"]), 0);
    }
    mistakes_are_explained(&folder.path().join(KINDS[0].0));
}

/// A component imports what its code uses, and nothing else of the contract.
fn imports_only(kind: &str, found: &[&str], needed: &[&str]) {
    let short = |name: &&str| {
        let interface = name.strip_prefix("veeksha:plugin/")?;
        interface.strip_suffix("@0.2.0").map(str::to_owned)
    };
    let mut found: Vec<String> = found.iter().filter_map(short).collect();
    found.retain(|name| !["types", "records", "log"].contains(&name.as_str()));
    assert_eq!(found, needed, "imports of {kind}");
}

/// Each mistake of an author gives a message with its place, and the exit code 4.
fn mistakes_are_explained(project: &Path) {
    let source = project.join("src/lib.rs");
    let original = std::fs::read_to_string(&source).expect("a source");

    replace(
        &source,
        "let mut lengths =",
        "assert!(index < 2, \"no session {index}\");\n        let mut lengths =",
    );
    let line = 1 + original
        .lines()
        .position(|line| line.contains("let mut lengths ="))
        .expect("a line");
    build(project).expect("a build");
    let output = offline(project, &["check", "scenario.lua"]);
    assert_code(&output, 4);
    let message = stderr(&output);
    assert!(
        message.contains(&format!("session-generator/src/lib.rs:{line}")),
        "{message}"
    );
    assert!(message.contains("no session 2"), "{message}");
    assert!(!message.contains("sdk/rust"), "{message}");
    assert!(!message.contains(&*project.to_string_lossy()), "{message}");

    std::fs::write(&source, original.replace("Session::new(requests)", "requests")).expect("a source");
    let output = offline(project, &["plugin", "build"]);
    assert_code(&output, 4);
    let message = stderr(&output);
    assert!(
        message.contains("mismatched types") && message.contains("src/lib.rs"),
        "{message}"
    );
    assert!(message.contains("the plugin does not build: cargo"), "{message}");

    std::fs::write(&source, &original).expect("a source");
    replace(
        &project.join("plugin.toml"),
        "[\"session-generator\"]",
        "[\"metric\"]",
    );
    let output = offline(project, &["plugin", "build"]);
    assert_code(&output, 4);
    assert!(
        stderr(&output).contains(
            "plugin.toml states kinds = [\"metric\"], but the component exports \"session-generator\": export the kinds in \
             the source, or write kinds = [\"session-generator\"]"
        ),
        "{}",
        stderr(&output)
    );
}
