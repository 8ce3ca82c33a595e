//! Names of folders that would steer a terminal or a workflow: they are seen, and do nothing.
#![cfg(unix)]

use serde_json::Value;

use super::{compare, runs};
use crate::simulated::path;
use crate::support::{assert_code, stderr, stdout};

/// A line of its own, a colour, a C1 control, a text that turns around, and what properties of workflow commands end at.
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
fn names_of_folders_steer_nothing() {
    let runs = runs();
    // The name of a link is that of what it leads to, so the folder around it has this one.
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
    // One error, the gate's; a warning for each figure that is worse; one notice. Nothing of the name ends a property.
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
    // Data are the name as it is.
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["candidates"][0]["label"], NAME);

    // What is wrong with a folder is told in a line, too.
    let empty = runs.folder.join("empty").join(NAME);
    std::fs::create_dir_all(&empty).expect("a folder");
    let output = compare(&[&runs.first, &empty], &[]);
    assert_code(&output, 2);
    assert_harmless(&stderr(&output), "an empty folder");
}
