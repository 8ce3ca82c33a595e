//! Runs against runs: the same twice, a slower one, another workload, several to a side, and what pipelines read.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::simulated::{labelled, path, simulated};
use crate::support::{assert_code, stderr, stdout, veeksha};

/// The runs that these tests compare, made once: two of one scenario, one on a slower engine, one of another workload.
struct Runs {
    _folder: tempfile::TempDir,
    folder: PathBuf,
    first: PathBuf,
    second: PathBuf,
    slower: PathBuf,
    other: PathBuf,
}

fn runs() -> &'static Runs {
    static RUNS: std::sync::OnceLock<Runs> = std::sync::OnceLock::new();
    RUNS.get_or_init(|| {
        let temporary = tempfile::tempdir().expect("a folder");
        let folder = temporary.path().to_owned();
        let run = |name: &str, more: &[&str]| {
            let within = folder.join(name);
            std::fs::create_dir_all(&within).expect("a folder");
            simulated(&within, "s.lua", &labelled(80, "", ""), more)
        };
        Runs {
            first: run("same", &[]),
            second: run("same", &[]),
            slower: run("slower", &["--profile", "slow"]),
            other: run("other", &["--seed", "8"]),
            folder: folder.clone(),
            _folder: temporary,
        }
    })
}

fn compare(sides: &[&Path], more: &[&str]) -> Output {
    let mut arguments = vec!["compare"];
    arguments.extend(sides.iter().map(|side| path(side)));
    arguments.extend(more);
    veeksha(arguments)
}

/// The comparison as JSON; nothing else is printed.
fn compared(sides: &[&Path], more: &[&str], code: i32) -> Value {
    let output = compare(sides, &[&["--json", "-"], more].concat());
    assert_code(&output, code);
    serde_json::from_str(&stdout(&output)).expect("one JSON object and nothing else")
}

fn verdicts<'a>(comparison: &'a Value, metric: &str) -> Vec<&'a str> {
    let figures = comparison["candidates"][0]["figures"]
        .as_array()
        .expect("figures");
    let of_it = figures.iter().filter(|figure| figure["name"] == metric);
    of_it
        .map(|figure| figure["verdict"].as_str().expect("a verdict"))
        .collect()
}

#[test]
fn the_same_twice_shows_no_difference() {
    let runs = runs();
    let comparison = compared(
        &[&runs.first, &runs.second],
        &["--fail-if", "worse(any) or not_comparable"],
        0,
    );
    let candidate = &comparison["candidates"][0];
    assert_eq!(candidate["comparable"], true, "{}", candidate["obstacles"]);
    assert_eq!(comparison["fail_if"]["fails"], false);
    let figures = candidate["figures"].as_array().expect("figures");
    assert!(figures.len() > 20, "{} figures", figures.len());
    for figure in figures {
        let verdict = figure["verdict"].as_str().expect("a verdict");
        assert!(
            matches!(verdict, "no_difference_seen" | "not_enough_data"),
            "{figure}"
        );
        assert!(
            figure["difference"].is_null() || figure["difference"].as_f64() == Some(0.0),
            "{figure}"
        );
    }
    assert!(!verdicts(&comparison, "ttfc").is_empty());
    let table = compare(&[&runs.first, &runs.second], &[]);
    assert_code(&table, 0);
    assert!(
        stdout(&table).contains("no difference seen"),
        "{}",
        stdout(&table)
    );
}

#[test]
fn a_slower_engine_is_worse_and_the_other_way_round_better() {
    let runs = runs();
    let worse = compared(&[&runs.first, &runs.slower], &["--fail-if", "worse(ttfc)"], 3);
    assert_eq!(worse["fail_if"]["fails"], true);
    assert!(
        verdicts(&worse, "ttfc").contains(&"worse"),
        "{:?}",
        verdicts(&worse, "ttfc")
    );
    let figure = worse["candidates"][0]["figures"].as_array().expect("figures");
    let mean = figure.iter().find(|figure| {
        figure["name"] == "ttfc" && figure["statistic"].as_str().is_some_and(|of| of.contains("mean"))
    });
    let mean = mean.expect("the mean TTFC");
    let (low, high) = (mean["interval"][0].as_f64(), mean["interval"][1].as_f64());
    assert!(
        low > Some(0.0) && high > low,
        "the interval excludes no change: {mean}"
    );
    let difference =
        mean["candidate"]["value"].as_f64().expect("B") - mean["baseline"]["value"].as_f64().expect("A");
    assert!((mean["difference"].as_f64().expect("a difference") - difference).abs() < 1e-12);

    let better = compared(
        &[&runs.slower, &runs.first],
        &["--fail-if", "worse(any)", "--metrics", "ttfc"],
        0,
    );
    assert!(verdicts(&better, "ttfc").contains(&"better"));
    for (term, code) in [
        ("p90(ttfc) > +5%", 3),
        ("mean(ttfc) > +1h", 0),
        ("error_rate > 1%", 0),
        ("p99(ttfc) > 1ms and not worse(error_rate)", 3),
        ("not (worse(ttfc) or worse(tbc))", 0),
    ] {
        let output = compare(
            &[&runs.first, &runs.slower],
            &["--fail-if", term, "--metrics", "ttfc,tbc"],
        );
        assert_eq!(output.status.code(), Some(code), "{term}: {}", stderr(&output));
        assert_eq!(
            stderr(&output).contains("fails"),
            code == 3,
            "{term}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn another_workload_is_not_comparable() {
    let runs = runs();
    let comparison = compared(&[&runs.first, &runs.other], &["--metrics", "ttfc"], 0);
    let candidate = &comparison["candidates"][0];
    assert_eq!(candidate["comparable"], false);
    assert!(!candidate["obstacles"].as_array().expect("obstacles").is_empty());
    assert!(
        verdicts(&comparison, "ttfc")
            .iter()
            .all(|verdict| *verdict == "not_comparable")
    );
    // The setting that made it so is listed.
    let settings = candidate["settings"].as_array().expect("settings");
    assert!(
        settings.iter().any(|setting| setting["name"] == "seed"),
        "{settings:?}"
    );
    for term in ["not_comparable", "worse(ttfc)"] {
        let only = ["--fail-if", term, "--metrics", "ttfc"];
        let output = compare(&[&runs.first, &runs.other], &only);
        assert_eq!(
            output.status.code(),
            Some(3),
            "{term}: what cannot be decided fails: {}",
            stderr(&output)
        );
    }
    let output = compare(&[&runs.first, &runs.other], &["--metrics", "ttfc"]);
    assert!(stdout(&output).contains("Not comparable"), "{}", stdout(&output));
}

#[test]
fn a_folder_of_runs_is_a_side() {
    let runs = runs();
    let several = runs.folder.join("same/out");
    let comparison = compared(&[&several, &runs.slower], &["--metrics", "ttfc"], 0);
    assert_eq!(
        comparison["baseline"]["runs"].as_array().map(Vec::len),
        Some(2),
        "the link to the latest is no run"
    );
    let figures = comparison["candidates"][0]["figures"]
        .as_array()
        .expect("figures");
    let ttfc = figures
        .iter()
        .find(|figure| figure["name"] == "ttfc")
        .expect("ttfc");
    assert_eq!(ttfc["baseline"]["between_runs"]["runs"], 2);
    // Three sides: each further one against the first.
    let three = compared(
        &[&runs.first, &runs.second, &runs.slower],
        &["--metrics", "ttfc"],
        0,
    );
    assert_eq!(three["candidates"].as_array().map(Vec::len), Some(2));
}

#[test]
fn what_is_looked_at_can_be_chosen() {
    let runs = runs();
    let comparison = compared(&[&runs.first, &runs.slower], &["--metrics", "ttfc,tbc"], 0);
    assert!(!verdicts(&comparison, "ttfc").is_empty() && !verdicts(&comparison, "tbc").is_empty());
    assert!(verdicts(&comparison, "end_to_end_latency").is_empty());
    let all = compare(&[&runs.first, &runs.second], &["--all"]);
    let some = compare(&[&runs.first, &runs.second], &[]);
    assert!(stdout(&all).lines().count() > stdout(&some).lines().count());
    // The same difference, where so little does not matter.
    let ignored = ["--metrics", "tbc", "--ignore-below", "99.9%"];
    let seen = compared(&[&runs.slower, &runs.first], &["--metrics", "tbc"], 0);
    assert!(verdicts(&seen, "tbc").contains(&"better"));
    let ignored = compared(&[&runs.slower, &runs.first], &ignored, 0);
    assert!(
        !verdicts(&ignored, "tbc").contains(&"better"),
        "{:?}",
        verdicts(&ignored, "tbc")
    );
}

#[test]
fn pipelines_read_json_html_junit_and_annotations() {
    let runs = runs();
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let (json, html, junit) = (at("c.json"), at("c.html"), at("c.xml"));
    let files = [
        "--json",
        path(&json),
        "--html",
        path(&html),
        "--junit",
        path(&junit),
        "--github",
    ];
    let output = compare(
        &[&runs.first, &runs.slower],
        &[&files[..], &["--fail-if", "worse(ttfc)"]].concat(),
    );
    assert_code(&output, 3);
    let read = |path: &Path| std::fs::read_to_string(path).expect("a file");

    let comparison: Value = serde_json::from_str(&read(&json)).expect("strict JSON");
    assert_eq!(comparison["fail_if"]["expression"], "worse(ttfc)");

    let html = read(&html);
    assert!(
        html.starts_with("<!DOCTYPE html>") || html.starts_with("<!doctype html>"),
        "{}",
        &html[..60]
    );
    for outside in ["src=\"http", "href=\"http", "@import", "url(http"] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(html.contains("worse"));

    let junit = crate::reports::elements(&read(&junit));
    assert_eq!(junit.first().map(String::as_str), Some("testsuites"));
    assert!(junit.iter().filter(|name| *name == "testcase").count() > 20);
    assert_eq!(
        junit.iter().filter(|name| *name == "failure").count(),
        1,
        "the decision alone fails"
    );

    let said = stdout(&output);
    let annotations: Vec<&str> = said.lines().filter(|line| line.starts_with("::")).collect();
    assert!(
        annotations.iter().any(|line| line.starts_with("::error title=")),
        "{annotations:?}"
    );
    assert!(
        annotations
            .iter()
            .any(|line| line.starts_with("::warning title=")),
        "{annotations:?}"
    );
    assert!(
        annotations.iter().any(|line| line.starts_with("::notice title=")),
        "{annotations:?}"
    );
}

#[test]
fn what_cannot_be_compared_or_asked_is_refused() {
    let runs = runs();
    for (term, says) in [
        ("worse(tftc)", "ttfc"),
        ("worse(ttfc", "column"),
        ("p99(ttfc) > +5tokens", "column"),
        ("p99(ttfc) > 5%", "column"),
        ("slower(ttfc)", "column 1"),
        ("", "--fail-if"),
    ] {
        let output = compare(&[&runs.first, &runs.second], &["--fail-if", term]);
        assert_eq!(output.status.code(), Some(2), "{term}: {}", stderr(&output));
        assert!(
            stderr(&output).contains("--fail-if") && stderr(&output).contains(says),
            "{term}: {}",
            stderr(&output)
        );
        assert_eq!(stdout(&output), "", "{term}");
    }
    let output = compare(&[&runs.first, &runs.second], &["--metrics", "tftc"]);
    assert_code(&output, 2);
    assert!(
        stderr(&output).contains("did you mean `ttfc`?"),
        "{}",
        stderr(&output)
    );
    let output = compare(&[&runs.first], &[]);
    assert_code(&output, 2);
    let empty = tempfile::tempdir().expect("a folder");
    let output = compare(&[&runs.first, empty.path()], &[]);
    assert_code(&output, 2);
    assert!(stderr(&output).contains("holds no record"), "{}", stderr(&output));
    let output = compare(&[&runs.first, &runs.second], &["--confidence", "2"]);
    assert_code(&output, 2);
}
