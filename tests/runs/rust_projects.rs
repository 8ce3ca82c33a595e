//! Projects in Rust: made by `plugin new`, built with the pinned toolchain, run.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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

/// The folder of the pinned toolchain, if the environment names none and it exists. The program's
/// own default is in the cache folder, which tests replace.
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

/// The program with the crates of this workspace's lock file, and one target folder.
pub(crate) fn offline_program(folder: &Path) -> Command {
    let mut program = program();
    if let Some(toolchain) = pinned_toolchain() {
        program.env("VEEKSHA_GUEST_TOOLCHAIN", toolchain);
    }
    program
        .current_dir(folder)
        .env("CARGO_NET_OFFLINE", "true")
        .env(
            "CARGO_TARGET_DIR",
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("rust-projects"),
        )
        .env_remove("RUSTFLAGS");
    program
}

/// Runs the program with these arguments.
fn offline(folder: &Path, arguments: &[&str]) -> Output {
    let mut program = offline_program(folder);
    if arguments[0] == "run" {
        program.args(arguments).args(UNJUDGED);
    } else {
        program.args(arguments);
    }
    program.output().expect("the program starts")
}

pub(crate) fn replace(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).expect("a source");
    assert!(text.contains(from), "no {from:?} in {}", path.display());
    std::fs::write(path, text.replace(from, to)).expect("a source");
}

/// The project of the manual.
const FIRST: &str = "my-questions";

/// Makes a project of a kind with the SDK of the first, so that it is compiled once.
fn project(folder: &Path, kind: &str) -> PathBuf {
    let output = offline(folder, &["plugin", "new", kind, "--kind", kind, "--lang", "rust"]);
    assert_code(&output, 0);
    let project = folder.join(kind);
    let sdk = format!("path = \"../{FIRST}/sdk/rust\"");
    replace(&project.join("Cargo.toml"), "path = \"sdk/rust\"", &sdk);
    std::fs::copy(root().join("Cargo.lock"), project.join("Cargo.lock")).expect("a lock file");
    project
}

/// Returns true if a build found no compiler. The test then counts as skipped.
pub(crate) fn is_without_compiler(output: &Output) -> bool {
    let message = stderr(output);
    let is_without = message.contains("a Rust compiler for");
    if is_without {
        skip("rust-guest", message.lines().next().unwrap_or_default());
    }
    is_without
}

fn build(project: &Path) -> Value {
    let output = offline(project, &["plugin", "build", "--json"]);
    assert_code(&output, 0);
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

fn names(value: &Value) -> Vec<&str> {
    let values = value.as_array().into_iter().flatten();
    values.filter_map(Value::as_str).collect()
}

/// Follows the manual: the commands of its first block. None if there is no compiler.
fn follow_the_manual(folder: &Path) -> Option<()> {
    let manual = std::fs::read_to_string(root().join("sdk/rust/README.md")).expect("the manual");
    let (_, block) = manual.split_once("```sh\n").expect("a block of commands");
    let (block, _) = block.split_once("```").expect("its end");
    let mut within = folder.to_owned();
    for line in block.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["cd", project] => {
                within = folder.join(project);
                std::fs::copy(root().join("Cargo.lock"), within.join("Cargo.lock")).expect("a lock file");
            }
            ["veeksha-host", arguments @ ..] => {
                let output = offline(&within, arguments);
                if is_without_compiler(&output) {
                    return None;
                }
                assert_code(&output, 0);
            }
            other => panic!("no test knows how to run {other:?}"),
        }
    }
    assert_eq!(within, folder.join(FIRST), "the other projects use its SDK");
    Some(())
}

#[test]
fn a_project_of_each_kind_builds_and_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    if follow_the_manual(folder.path()).is_none() {
        return;
    }
    for (kind, imports) in KINDS {
        let project = project(folder.path(), kind);
        let built = build(&project);
        assert_eq!(names(&built["kinds"]), [kind]);
        imports_only(kind, &names(&built["imports"]), imports);

        assert_code(&offline(&project, &["plugin", "test"]), 0);
        assert_code(&offline(&project, &["check", "scenario.lua"]), 0);
        // Virtual time has no bytes for a codec to read.
        let command = if kind == "endpoint-codec" {
            "run"
        } else {
            "simulate"
        };
        assert_code(&offline(&project, &[command, "scenario.lua"]), 0);
    }
    mistakes_are_explained(&folder.path().join(FIRST));
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
        "assert!(index < 2, \"no session {index}\");println!();\n        let mut lengths =",
    );
    let line = 1 + original
        .lines()
        .position(|line| line.contains("let mut lengths ="))
        .expect("a line");
    let output = offline(project, &["plugin", "build"]);
    assert_code(&output, 0);
    assert!(
        stderr(&output).contains(&format!("src/lib.rs:{line}: the output of `println!` is lost")),
        "{}",
        stderr(&output)
    );
    let output = offline(project, &["check", "scenario.lua"]);
    assert_code(&output, 4);
    let message = stderr(&output);
    assert!(
        message.contains(&format!("{FIRST}/src/lib.rs:{line}")),
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
