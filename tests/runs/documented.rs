//! Every key and column in a run folder is named in `docs/results.md`, and lines of interim metrics
//! match its description.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::results::latest;
use crate::simulated::{labelled, path};
use crate::support::{UNJUDGED, assert_code, program, root, scenario, stdout, veeksha};

/// Returns the documented names: the texts in backticks, whole and split into words.
fn named() -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join("docs/results.md")).expect("the document");
    let mut named = BTreeSet::new();
    for (index, code) in text.split('`').enumerate() {
        if index % 2 == 0 {
            continue;
        }
        named.insert(code.to_owned());
        let words = code.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
        named.extend(words.map(str::to_owned));
    }
    named
}

/// Returns the names of the metrics and of the run-level metrics, which `veeksha-host metrics`
/// explains.
fn metrics() -> (BTreeSet<String>, BTreeSet<String>) {
    let output = veeksha(["metrics", "--json"]);
    assert_code(&output, 0);
    let list: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let of = |key: &str| {
        let metrics = list.as_array().expect("a list").iter();
        metrics
            .filter_map(|metric| metric[key].as_str().map(str::to_owned))
            .collect()
    };
    (of("name"), of("display"))
}

/// Collects the keys of a file, each with its parent keys.
fn keys(value: &Value, above: &str, found: &mut BTreeSet<(String, String)>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                found.insert((above.to_owned(), key.clone()));
                keys(value, &format!("{above}/{key}"), found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, above, found)),
        _ => {}
    }
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found)
        } else {
            found.push(path)
        }
    }
}

/// Returns true for files that are documented elsewhere: Chrome's format, other tools' files, and
/// content of the scenario.
fn is_elsewhere(file: &str) -> bool {
    file.contains("chrome_trace") || file.contains("dialect_") || file.starts_with("aiperf/")
}

/// Returns true for keys that are names: of a metric, a length, a class of failures, a label, or a
/// number as text.
fn is_a_name(above: &str, key: &str, metrics: &BTreeSet<String>, displays: &BTreeSet<String>) -> bool {
    let display = key.rsplit_once(" (").map(|(display, _)| display);
    let of_metric = key.rsplit_once('_').map(|(metric, _)| metric);
    // Files of a group name its label.
    let is_label = above == "csv" && key.starts_with("label ");
    is_label
        || metrics.contains(key)
        || display.is_some_and(|display| displays.contains(display))
        || displays.contains(key)
        || of_metric.is_some_and(|metric| metrics.contains(metric))
        || key.parse::<u64>().is_ok()
        || ["/error_code_freq", "/error_class_freq", "/labels", "/content"].contains(&above)
        || above.ends_with("/run_metrics")
        || above.ends_with("/values")
        || above.ends_with("/distributions")
}

#[test]
fn every_key_and_column_is_documented() {
    let folder = tempfile::tempdir().expect("a folder");
    let performance = r#"{
      type = "performance",
      slos = { "p99(ttfc) < 1h", "error_rate < 100%", "p90(ttfc, window = 100ms) < 1h", "p50(ttfc{tier=\"gold\"}) < 1h" },
      goodput = { "ttfc < 1h" },
      text_channel = { decode_window_enabled = true },
    }"#;
    let file = scenario(folder.path(), "s.lua", &labelled(30, performance, ""));
    let out = folder.path().join("out");
    let mut arguments = vec!["run", &file, "-q", "--self-test", "--output_dir", path(&out)];
    arguments.extend(UNJUDGED);
    assert_code(&veeksha(&arguments), 0);
    let faulty = folder.path().join("faulty");
    let arguments = [
        "simulate",
        &file,
        "-q",
        "--profile",
        "faulty",
        "--output_dir",
        path(&faulty),
    ];
    let failing = veeksha(arguments);
    assert!([Some(0), Some(3), Some(5)].contains(&failing.status.code()));
    let replayed = folder.path().join("replayed");
    let arguments = [
        "simulate",
        "scenarios/traces/mooncake.lua",
        "-q",
        "--output_dir",
        path(&replayed),
    ];
    assert_code(&veeksha(arguments), 0);

    let named = named();
    let (metrics, displays) = metrics();
    let mut missing = BTreeSet::new();
    for run in [latest(&out), latest(&faulty), latest(&replayed)] {
        let mut found = Vec::new();
        files(&run, &mut found);
        assert!(found.len() > 60, "the files of a run");
        for path in found {
            let file = path
                .strip_prefix(&run)
                .expect("a file of the run")
                .display()
                .to_string();
            let text = || std::fs::read_to_string(&path).expect("text");
            let mut here = BTreeSet::new();
            match path.extension().and_then(|end| end.to_str()) {
                Some("json") if !is_elsewhere(&file) => {
                    keys(&serde_json::from_str(&text()).expect("JSON"), "", &mut here);
                }
                Some("jsonl") if !is_elsewhere(&file) => {
                    for line in text().lines() {
                        keys(&serde_json::from_str(line).expect("JSON"), "", &mut here);
                    }
                }
                Some("csv") if !is_elsewhere(&file) => {
                    let text = text();
                    let header = text.lines().next().unwrap_or_default().to_owned();
                    here.extend(header.split(',').map(|name| ("csv".to_owned(), name.to_owned())));
                }
                _ => {}
            }
            for (above, key) in here {
                if !key.is_empty() && !named.contains(&key) && !is_a_name(&above, &key, &metrics, &displays) {
                    missing.insert(format!("{file} {above}: {key}"));
                }
            }
        }
    }
    let missing: Vec<String> = missing.into_iter().collect();
    assert!(
        missing.is_empty(),
        "docs/results.md does not name\n{}",
        missing.join("\n")
    );
}

/// The table of interim metrics matches real lines: each part has its position and its documented
/// unit.
#[test]
fn interim_lines_are_as_documented() {
    let text = std::fs::read_to_string(root().join("docs/results.md")).expect("the document");
    let (_, section) = text.split_once("## Interim lines").expect("a section");
    let section = section.split("\n## ").next().expect("its text");
    // `| part | unit | what |`
    let rows: Vec<Vec<&str>> = section
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    let folder = tempfile::tempdir().expect("a folder");
    let file = scenario(folder.path(), "s.lua", &labelled(100, "", ""));
    let mut command = program();
    command
        .args(["run", &file, "-q", "--stream-metrics", "0.3", "--output_dir"])
        .arg(folder.path());
    let output = command
        .args(UNJUDGED)
        .stderr(Stdio::piped())
        .output()
        .expect("the program starts");
    assert_code(&output, 0);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<&str> = said.lines().filter(|line| line.contains(" | done ")).collect();
    assert!(lines.len() >= 3, "{said}");
    for line in lines {
        let parts: Vec<&str> = line.split(" | ").map(str::trim).collect();
        assert_eq!(parts.len(), rows.len(), "{line}");
        for (part, row) in parts.iter().zip(&rows) {
            let [name, unit, ..] = row.as_slice() else {
                panic!("a part, its unit and what it is: {row:?}");
            };
            let words = name
                .trim_matches('`')
                .split(' ')
                .filter(|word| !word.starts_with('<'));
            for word in words {
                assert!(
                    part.split_whitespace().any(|of| of == word),
                    "no {word} in {part:?}"
                );
            }
            let values = part
                .split_whitespace()
                .filter(|word| word.parse::<f64>().is_ok())
                .count();
            let units: Vec<&str> = part
                .split_whitespace()
                .filter(|word| ["ns", "µs", "ms", "s"].contains(word))
                .collect();
            match *unit {
                // A time is followed by its unit, or not known yet.
                "time" => assert!(
                    units.len() == values
                        && part.split_whitespace().filter(|word| *word == "-").count() + values == 2,
                    "{part:?}"
                ),
                "count" | "1/s" => assert!(units.is_empty(), "{part:?}"),
                "h:min:s" => assert_eq!(part.split(':').count(), 3, "{part:?}"),
                other => panic!("no unit {other}"),
            }
        }
    }
}
