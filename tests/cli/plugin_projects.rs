//! Refusals of `plugin new` and `plugin build`.

use std::path::Path;

use crate::support::{assert_code, program, root, stderr, stdout, veeksha};

/// Makes a project in Rust and returns its folder.
fn project(folder: &Path) -> String {
    let project = folder.join("coder").to_str().expect("UTF-8").to_owned();
    let output = veeksha(["plugin", "new", &project, "--kind", "metric", "--lang", "rust"]);
    assert_code(&output, 0);
    assert!(
        stdout(&output).contains("veeksha-host plugin build"),
        "{}",
        stdout(&output)
    );
    project
}

#[track_caller]
fn refused(arguments: &[&str], part: &str) {
    let output = veeksha(arguments);
    assert_code(&output, 2);
    assert!(
        stderr(&output).contains(part),
        "no {part:?} in {}",
        stderr(&output)
    );
}

#[test]
fn new_lists_the_kinds_of_each_language() {
    let output = veeksha(["plugin", "new", "--list"]);
    assert_code(&output, 0);
    let rust = stdout(&output);
    let rust = rust
        .lines()
        .find(|line| line.starts_with("rust"))
        .expect("a line");
    assert_eq!(rust.matches(", ").count(), 7, "{rust}");
}

#[test]
fn new_refuses_what_cannot_be_a_project() {
    let folder = tempfile::tempdir().expect("a folder");
    let within = folder.path().to_str().expect("UTF-8");
    let new = |name: &str| format!("{within}/{name}");
    let metric = ["--kind", "metric", "--lang", "rust"];
    let existing = project(folder.path());
    refused(
        &[&["plugin", "new", &existing], &metric[..]].concat(),
        "exists already",
    );
    refused(
        &[&["plugin", "new", &new("Coder")], &metric[..]].concat(),
        "expected lower case letters",
    );
    refused(
        &["plugin", "new", &new("a"), "--kind", "metrics", "--lang", "rust"],
        "a similar value exists: 'metric'",
    );
    refused(&["plugin", "new", &new("a"), "--kind", "metric"], "--lang");
    refused(
        &[
            "plugin",
            "new",
            &new("a"),
            "--kind",
            "endpoint-codec",
            "--lang",
            "lua",
        ],
        "there is no template of the kind endpoint-codec in lua",
    );
    let count = std::fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(count, 1, "a refused project leaves nothing");
}

#[test]
fn build_refuses_what_it_cannot_build() {
    let folder = tempfile::tempdir().expect("a folder");
    let within = folder.path().to_str().expect("UTF-8");
    refused(
        &["plugin", "build", within],
        "`veeksha-host plugin new` writes a project with this file",
    );
    refused(&["plugin", "build", "nowhere.wasm"], "cannot read nowhere.wasm");
    let project = project(folder.path());
    let manifest = Path::new(&project).join("plugin.toml");
    let text = std::fs::read_to_string(&manifest).expect("a manifest");
    std::fs::write(&manifest, text.replace("version", "versoin")).expect("a manifest");
    refused(
        &["plugin", "build", &project],
        "plugin.toml: line 3: unknown key plugin.versoin: did you mean version?",
    );
    std::fs::write(&manifest, text).expect("a manifest");
    std::fs::remove_dir_all(Path::new(&project).join("sdk")).expect("the SDK");
    refused(&["plugin", "build", &project], "has no folder `sdk`");
}

#[test]
fn a_missing_tool_is_named_with_the_commands_that_install_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let project = project(folder.path());
    let output = program()
        .args(["plugin", "build", &project])
        .env("VEEKSHA_GUEST_TOOLCHAIN", "/nowhere")
        .output()
        .expect("the program starts");
    assert_code(&output, 2);
    let message = stderr(&output);
    for part in [
        "a Rust compiler for wasm32-unknown-unknown or wasm32-wasip2 was not found",
        "searched: $VEEKSHA_GUEST_TOOLCHAIN: /nowhere is not a toolchain",
        "install:  rustup target add wasm32-unknown-unknown",
    ] {
        assert!(message.contains(part), "no {part:?} in {message}");
    }
}

/// A file that is not a module is refused with the reason; a component stays one.
#[test]
fn build_takes_the_output_of_other_tools() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("a.wasm");
    std::fs::write(&text, "(module)").expect("a file");
    let output = veeksha(["plugin", "build", text.to_str().expect("UTF-8")]);
    assert_code(&output, 4);
    assert!(
        stderr(&output).contains("translate it with `wasm-tools parse`"),
        "{}",
        stderr(&output)
    );

    let component = root().join("tests/guests/dist/sdk-measure.wasm");
    let written = folder.path().join("out.wasm");
    let output = veeksha([
        "plugin",
        "build",
        component.to_str().expect("UTF-8"),
        "-o",
        written.to_str().expect("UTF-8"),
        "--split-debug",
        "--json",
    ]);
    assert_code(&output, 0);
    let built: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(
        built["kinds"],
        serde_json::json!(["metric", "request-check", "slo-check"])
    );
    let debug = std::fs::read(folder.path().join("out.debug.wasm")).expect("the debug file");
    assert_eq!(debug, std::fs::read(component).expect("the fixture"));
    assert!(std::fs::metadata(written).expect("the component").len() < debug.len() as u64);
}
