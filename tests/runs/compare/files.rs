//! Files written by a comparison, which are complete or absent.

use super::*;

/// A log or a file cannot be widened: every metric has its full name, whatever `COLUMNS` is.
#[test]
fn log_has_every_metric_by_its_full_name() {
    let runs = runs();
    let said = |columns: &str| {
        let mut program = crate::support::program();
        let arguments = [
            "compare",
            path(&runs.first),
            path(&runs.slower),
            "--metrics",
            "ttfc_from_intended",
        ];
        let output = program
            .args(arguments)
            .env("COLUMNS", columns)
            .output()
            .expect("it runs");
        assert_code(&output, 0);
        stdout(&output)
    };
    for columns in ["60", "100", "300", "none", ""] {
        let said = said(columns);
        for statistic in ["mean", "p50", "p90", "p99"] {
            let name = format!("ttfc_from_intended {statistic} ");
            assert!(said.contains(&name), "{columns}: {name} in {said}");
        }
        assert!(
            !said.contains('\u{2026}') || !said.contains("inten\u{2026}"),
            "{said}"
        );
    }
    // On a wider terminal, notes are on the line of their metric.
    assert!(said("400").lines().count() < said("100").lines().count());
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

/// The names of sides and their runs are printed in full, whatever their length and number.
#[test]
fn names_are_not_cut() {
    let runs = runs();
    let long = runs.folder.join("x".repeat(150));
    std::fs::create_dir_all(&long).expect("a folder");
    for run in [&runs.first, &runs.second] {
        #[cfg(unix)]
        std::os::unix::fs::symlink(run, long.join(run.file_name().expect("a name"))).expect("a link");
    }
    let output = compare(&[&long, &runs.slower], &["--metrics", "ttfc"]);
    assert_code(&output, 0);
    let said = stdout(&output);
    assert!(said.contains(&"x".repeat(150)), "{said}");
    for run in [&runs.first, &runs.second] {
        assert!(
            said.contains(run.file_name().and_then(|name| name.to_str()).expect("a name")),
            "{said}"
        );
    }
}

/// An incomplete output must be recognizable as such.
#[cfg(target_os = "linux")]
#[test]
fn unwritable_output_is_not_a_success() {
    let runs = runs();
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("a device");
    let mut program = crate::support::program();
    let output = program
        .args([
            "compare",
            path(&runs.first),
            path(&runs.second),
            "--metrics",
            "ttfc",
        ])
        .stdout(full)
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("standard output"), "{}", stderr(&output));
}

/// A full disk must not destroy the existing file. The test uses a file size limit, whose signal is
/// ignored, so that a write beyond it fails like one to a full disk.
#[cfg(unix)]
#[test]
fn incomplete_write_keeps_the_old_file() {
    let runs = runs();
    let folder = tempfile::tempdir().expect("a folder");
    for flag in ["--json", "--html", "--junit"] {
        let file = folder.path().join("old");
        std::fs::write(&file, "what was there").expect("a file");
        let output = std::process::Command::new("sh")
            .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh"])
            .arg(crate::support::program().get_program())
            .args([
                "compare",
                path(&runs.first),
                path(&runs.second),
                flag,
                path(&file),
            ])
            .output()
            .expect("it runs");
        assert_code(&output, 1);
        assert!(stderr(&output).contains("cannot write"), "{}", stderr(&output));
        let left = std::fs::read_to_string(&file).expect("the old file");
        assert_eq!(left, "what was there", "{flag}");
        let names = std::fs::read_dir(folder.path()).expect("a folder");
        assert_eq!(names.count(), 1, "{flag} leaves no other file");
    }
    let nowhere = folder.path().join("missing/page.html");
    let output = compare(&[&runs.first, &runs.second], &["--html", path(&nowhere)]);
    assert_code(&output, 1);
}

#[test]
fn two_outputs_need_two_files() {
    let runs = runs();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("out");
    let same = folder.path().join(".").join("out");
    for existing in [false, true] {
        if existing {
            std::fs::write(&file, "old").expect("a file");
        }
        let output = compare(
            &[&runs.first, &runs.second],
            &["--json", path(&file), "--junit", path(&same)],
        );
        assert_code(&output, 2);
        assert!(
            stderr(&output).contains("--json and --junit both name"),
            "{}",
            stderr(&output)
        );
    }
    assert_eq!(std::fs::read_to_string(&file).expect("the old file"), "old");
}

#[test]
fn each_format_replaces_the_table_on_request() {
    let runs = runs();
    let folder = tempfile::tempdir().expect("a folder");
    let sides = [path(&runs.first), path(&runs.slower)];
    for (flag, begins, ends) in [
        ("--json", "{", "}\n"),
        ("--html", "<!doctype html>", "</html>\n"),
        ("--junit", "<?xml ", "</testsuites>\n"),
    ] {
        let output = crate::support::program()
            .current_dir(folder.path())
            .args(["compare", sides[0], sides[1], flag, "-"])
            .output()
            .expect("the program starts");
        assert_code(&output, 0);
        let printed = stdout(&output);
        assert!(
            printed.to_ascii_lowercase().starts_with(begins),
            "{flag}: {printed}"
        );
        assert!(printed.ends_with(ends), "{flag}: {printed}");
        let file = folder.path().join("file");
        assert_code(&compare(&[&runs.first, &runs.slower], &[flag, path(&file)]), 0);
        let written = std::fs::read_to_string(&file).expect("the file");
        assert_eq!(printed.trim_end(), written.trim_end(), "{flag}");
        std::fs::remove_file(&file).expect("the file");
        let there = std::fs::read_dir(folder.path()).expect("the folder").count();
        assert_eq!(there, 0, "a file in addition to what {flag} printed");
    }
}

#[test]
fn at_most_one_format_is_printed() {
    let runs = runs();
    for (more, said) in [
        (
            &["--html", "-", "--junit", "-"][..],
            "--html - and --junit - both write",
        ),
        (
            &["--json", "-", "--html", "-"],
            "--json - and --html - both write",
        ),
        (&["--junit", "-", "--github"], "--junit - and --github both write"),
    ] {
        let output = compare(&[&runs.first, &runs.second], more);
        assert_code(&output, 2);
        assert_eq!(stdout(&output), "");
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
}
