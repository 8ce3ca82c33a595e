//! Folder names that would control a terminal or inject a workflow command: they are printed
//! without effect.
#![cfg(unix)]

use serde_json::Value;

use super::{compare, runs};
use crate::simulated::path;
use crate::support::{assert_code, stderr, stdout};

/// A line break, a color, a C1 control, a bidirectional override, and the delimiters of workflow
/// command properties.
const NAME: &str = "b\n::error::injected, a:b%0A\u{1b}[31m\u{9b}1m\u{202e}c";

fn assert_harmless(text: &str, where_: &str) {
    for hostile in ['\u{1b}', '\u{9b}', '\u{202e}'] {
        assert!(!text.contains(hostile), "{where_}: {text:?}");
    }
    assert!(
        text.lines()
            .all(|line| !line.trim_start().starts_with("::error::")),
        "{where_}: {text}"
    );
}

#[test]
fn folder_names_cannot_control_the_terminal() {
    let runs = runs();
    // The name of a link is that of its target, so the enclosing folder has this name.
    let side = runs.folder.join("hostile").join(NAME);
    std::fs::create_dir_all(&side).expect("a folder");
    std::os::unix::fs::symlink(&runs.slower, side.join("run")).expect("a link");
    let files = ["json", "html", "xml"].map(|end| runs.folder.join(format!("hostile.{end}")));
    let output = compare(
        &[&runs.first, &side],
        &[
            "--github",
            "--fail-if",
            "worse(ttfc)",
            "--json",
            path(&files[0]),
            "--html",
            path(&files[1]),
            "--junit",
            path(&files[2]),
        ],
    );
    assert_code(&output, 3);
    assert_harmless(&stdout(&output), "stdout");
    assert_harmless(&stderr(&output), "stderr");
    let commands: Vec<String> = stdout(&output)
        .lines()
        .filter(|line| line.starts_with("::"))
        .map(str::to_owned)
        .collect();
    // One error for the gate, one warning for each metric that is worse, one notice. No part of the
    // name ends a property.
    assert_eq!(
        commands
            .iter()
            .filter(|line| line.starts_with("::error "))
            .count(),
        1
    );
    for command in &commands {
        let title = command.split("::").nth(1).unwrap_or_default();
        let title = title.split_once(" title=").expect("a title").1;
        assert!(!title.contains([',', ':']), "{command}");
        assert!(
            title.contains("b\u{fffd}%3A%3Aerror%3A%3Ainjected%2C a%3Ab%250A"),
            "{command}"
        );
    }
    let [json, html, junit] = files.map(|file| std::fs::read_to_string(file).expect("a file"));
    for (text, name) in [(&json, "json"), (&html, "html"), (&junit, "junit")] {
        assert_harmless(text, name);
    }
    // Data contain the original name.
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["candidates"][0]["label"], NAME);

    // A problem with a folder is also reported in one line.
    let empty = runs.folder.join("empty").join(NAME);
    std::fs::create_dir_all(&empty).expect("a folder");
    let output = compare(&[&runs.first, &empty], &[]);
    assert_code(&output, 2);
    assert_harmless(&stderr(&output), "an empty folder");
}
