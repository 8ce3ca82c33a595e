//! Folders of evaluations.

use super::*;

#[test]
fn an_evaluation_is_kept_in_the_run_s_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.lua", &labelled(4, "", ""), &[]);
    let before = result_files(&run);
    let output = evaluate(&run, &[]);
    assert_code(&output, 0);
    assert!(
        stdout(&output).contains("Time to First Chunk (TTFC)"),
        "{}",
        stdout(&output)
    );
    let kept = latest(&run.join("evaluations"));
    for file in [
        "metrics/summary_stats.json",
        "report.html",
        "config.yml",
        "metrics/ttfc.png",
    ] {
        assert!(kept.join(file).exists(), "{file}");
    }
    // The run itself is unchanged.
    assert_eq!(before, result_files(&run));
    let quiet = evaluate(&run, &["--quiet"]);
    assert_code(&quiet, 0);
    assert_eq!(stdout(&quiet), "");
}

/// Nothing can be created below a file, not even by the superuser.
#[test]
fn folder_that_cannot_be_created_has_a_hint() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.lua", &labelled(4, "", ""), &[]);
    let refused = |more: &[&str]| {
        let output = evaluate(&run, more);
        assert_code(&output, 1);
        let said = stderr(&output);
        assert!(
            said.contains("hint: --to FOLDER") && !said.contains("output_dir"),
            "{said}"
        );
    };
    refused(&["--to", "/dev/null"]);
    refused(&["--to", "/dev/null/below"]);
    std::fs::write(run.join("evaluations"), "in the way").expect("a file");
    refused(&[]);
}

/// The files are written directly into the given folder; nothing is overwritten, and a failure
/// leaves no files.
#[test]
fn the_folder_that_is_named_is_the_folder_that_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.lua", &labelled(6, "", ""), &[]);
    let again = folder.path().join("a/b/again");
    assert_code(&evaluate(&run, &["--to", path(&again)]), 0);
    for file in ["config.yml", "report.html", "metrics/summary_stats.json"] {
        assert!(again.join(file).is_file(), "{file}");
    }
    let beside: Vec<_> = std::fs::read_dir(folder.path().join("a/b"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(beside, ["again"], "no link, no other folder");
    // An existing empty folder is accepted like a missing one.
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).expect("a folder");
    assert_code(&evaluate(&run, &["--to", path(&empty)]), 0);
    assert!(empty.join("report.html").is_file());

    let before = std::fs::read_to_string(again.join("report.html")).expect("a page");
    let refused = evaluate(&run, &["--to", path(&again), "--slo", "p99(ttfc) < 1h"]);
    assert_code(&refused, 2);
    assert!(stderr(&refused).contains("not empty"), "{}", stderr(&refused));
    assert_eq!(
        std::fs::read_to_string(again.join("report.html")).expect("a page"),
        before
    );
    assert_code(&evaluate(&run, &["--to", path(&run)]), 2);

    // A failure leaves no folder.
    let nowhere = folder.path().join("x/y");
    assert_code(
        &evaluate(&run, &["--slo", "p99(nothing) < 1s", "--to", path(&nowhere)]),
        2,
    );
    assert!(!folder.path().join("x").exists());
    assert!(!run.join("evaluations").exists());
    assert_code(&evaluate(&run, &[]), 0);
    assert!(latest(&run.join("evaluations")).join("report.html").is_file());
}

/// In a run that was copied without its links, `evaluations/latest` is a folder. The evaluation is
/// complete nevertheless, and prints its results.
#[test]
fn evaluation_is_kept_if_latest_cannot_be_linked() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.lua", &labelled(6, "", ""), &[]);
    let evaluations = run.join("evaluations");
    std::fs::create_dir_all(evaluations.join("latest")).expect("a folder in the place of the link");
    for (objective, code) in [("p99(ttfc) < 1h", 0), ("p99(ttfc) < 1us", 3)] {
        let output = evaluate(&run, &["--slo", objective]);
        assert_code(&output, code);
        let told = stderr(&output);
        assert!(
            told.contains("note: cannot link `latest` to this evaluation: ")
                && told.contains("latest is not a link"),
            "{told}"
        );
        assert!(!told.contains("error:"), "{told}");
        let said = stdout(&output);
        let named = said.lines().find_map(|line| line.strip_prefix("results: "));
        let results = Path::new(named.expect("where the results are"));
        assert!(results.starts_with(&evaluations) && results.join("report.html").is_file());
    }
    let kept = std::fs::read_dir(&evaluations).expect("a folder").count();
    assert_eq!(kept, 3, "two evaluations, and what was there before");
}
