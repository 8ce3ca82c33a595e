//! The folder of a run on a real file system.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;

use serde_json::json;
use tempfile::tempdir;
use veeksha_report::{ReportError, RunFolder, write_named};

const STAMP: &str = "20_11_2026-22_31_19";

fn latest(output_dir: &Path) -> PathBuf {
    fs::read_link(output_dir.join("latest")).unwrap()
}

/// The first eight digits of the BLAKE3 of empty input, from the test vectors of the BLAKE3 authors
/// (`input_len` 0).
const DIGEST_OF_NOTHING: &str = "af1349b9";

#[test]
fn folder_name_contains_timestamp_and_config_digest() {
    let dir = tempdir().unwrap();
    let output_dir = dir.path().join("not/yet/there");
    let folder = RunFolder::create(&output_dir, "", STAMP).unwrap();
    let name = format!("{STAMP}-{DIGEST_OF_NOTHING}");
    assert_eq!(folder.path(), output_dir.join(&name));
    assert_eq!(latest(&output_dir), Path::new(&name));
    assert!(folder.path().join("metrics").is_dir());
    assert!(
        !folder.path().join("traces").exists(),
        "an evaluation writes no trace"
    );
}

#[test]
fn duplicate_name_gets_a_number_and_latest_follows() {
    let dir = tempdir().unwrap();
    let names: Vec<String> = (0..3)
        .map(|_| {
            let folder = RunFolder::create(dir.path(), "seed: 1\n", STAMP).unwrap();
            let name = folder.path().file_name().unwrap().to_str().unwrap().to_owned();
            assert_eq!(latest(dir.path()), Path::new(&name));
            assert_eq!(
                fs::read_to_string(dir.path().join("latest/config.yml")).unwrap(),
                "seed: 1\n"
            );
            name
        })
        .collect();
    assert_eq!(names[1], format!("{}-2", names[0]));
    assert_eq!(names[2], format!("{}-3", names[0]));
}

#[test]
fn concurrent_runs_never_share_a_folder() {
    const RUNS: usize = 16;
    let dir = tempdir().unwrap();
    let barrier = Barrier::new(RUNS);
    let start = || {
        barrier.wait();
        RunFolder::create(dir.path(), "seed: 1\n", STAMP)
            .unwrap()
            .path()
            .to_owned()
    };
    let paths: HashSet<PathBuf> = thread::scope(|scope| {
        let threads: Vec<_> = (0..RUNS).map(|_| scope.spawn(start)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(paths.len(), RUNS);
    assert!(paths.contains(&dir.path().join(latest(dir.path()))));
    // Nothing temporary is left: the runs and the link.
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), RUNS + 1);
}

#[test]
fn replaces_dangling_latest_but_not_a_folder() {
    let dir = tempdir().unwrap();
    symlink("gone", dir.path().join("latest")).unwrap();
    RunFolder::create(dir.path(), "", STAMP).unwrap();
    assert_ne!(latest(dir.path()), Path::new("gone"));

    let dir = tempdir().unwrap();
    fs::write(dir.path().join("latest"), "mine").unwrap();
    let error = RunFolder::create(dir.path(), "", STAMP).unwrap_err();
    assert!(matches!(error, ReportError::LatestNotALink { .. }));
    let expected = format!(
        "{}/latest is not a link; move it away, or choose another folder",
        dir.path().display()
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no run is left");
    assert_eq!(fs::read_to_string(dir.path().join("latest")).unwrap(), "mine");
}

#[test]
fn names_output_folder_that_cannot_be_created() {
    // A file blocks the path: unlike missing permissions this also affects the superuser.
    let dir = tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = RunFolder::create(&file.join("results"), "", STAMP)
        .unwrap_err()
        .to_string();
    let expected = format!("cannot create the folder {}/results: ", file.display());
    assert!(error.starts_with(&expected), "{error}");

    // No user can create folders here, not even the superuser.
    let error = RunFolder::create(Path::new("/proc/veeksha"), "", STAMP).unwrap_err();
    assert!(matches!(error, ReportError::CreateFolder { .. }), "{error}");
}

#[test]
fn replaces_named_file_atomically() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("page.html");
    write_named(&file, "old").unwrap();
    write_named(&file, "new").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "new");

    // Writing through a link changes the target, and the link is kept.
    let link = dir.path().join("link");
    symlink("page.html", &link).unwrap();
    write_named(&link, "through").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "through");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());

    // A device is written to and kept; a full one gives an error.
    write_named(Path::new("/dev/null"), "gone").unwrap();
    #[cfg(target_os = "linux")]
    assert!(matches!(
        write_named(Path::new("/dev/full"), "no"),
        Err(ReportError::Write { .. })
    ));

    // A name so long that the temporary file cannot be created: the write fails, and the existing
    // file is kept.
    let long = dir.path().join("x".repeat(255));
    fs::write(&long, "old").unwrap();
    assert!(matches!(
        write_named(&long, "new"),
        Err(ReportError::Write { .. })
    ));
    assert_eq!(fs::read_to_string(&long).unwrap(), "old");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
}

#[test]
fn replaces_files_atomically() {
    let dir = tempdir().unwrap();
    let folder = RunFolder::create(dir.path(), "", STAMP).unwrap();
    folder
        .write_json("metrics/summary_stats.json", &json!({ "first": 1.5 }))
        .unwrap();
    folder
        .write_json("metrics/summary_stats.json", &json!({ "second": null }))
        .unwrap();
    let text = fs::read_to_string(folder.path().join("metrics/summary_stats.json")).unwrap();
    assert_eq!(text, "{\n  \"second\": null\n}\n");
    assert_eq!(fs::read_dir(folder.path().join("metrics")).unwrap().count(), 1);
}

#[test]
fn failed_write_names_the_file_and_leaves_no_temporary() {
    let dir = tempdir().unwrap();
    let folder = RunFolder::create(dir.path(), "", STAMP).unwrap();
    // A folder in place of the file: the rename fails after the writing.
    fs::create_dir(folder.path().join("metrics/taken.json")).unwrap();
    let error = folder.write_text("metrics/taken.json", "text").unwrap_err();
    let expected = format!(
        "cannot write {}: ",
        folder.path().join("metrics/taken.json").display()
    );
    assert!(error.to_string().starts_with(&expected), "{error}");
    assert_eq!(fs::read_dir(folder.path().join("metrics")).unwrap().count(), 1);

    // A file in place of the parent folder.
    fs::write(folder.path().join("parent"), "").unwrap();
    let error = folder
        .write_text("parent/file.txt", "text")
        .unwrap_err()
        .to_string();
    assert!(error.contains("parent"), "{error}");
}

#[test]
fn unserializable_value_names_the_file() {
    let dir = tempdir().unwrap();
    let folder = RunFolder::create(dir.path(), "", STAMP).unwrap();
    let keys_are_no_strings = std::collections::BTreeMap::from([((1, 2), 3)]);
    let error = folder
        .write_json("metrics/x.json", &keys_are_no_strings)
        .unwrap_err();
    assert!(matches!(error, ReportError::Serialise { .. }));
    assert!(error.to_string().contains("metrics/x.json"), "{error}");
}

#[test]
fn opens_a_finished_run() {
    let output = tempdir().unwrap();
    let made = RunFolder::create(output.path(), "seed: 1\n", STAMP).unwrap();
    made.write_text("metrics/summary_stats.json", "old").unwrap();
    // Like a folder that was copied in part.
    fs::remove_dir_all(made.path().join("metrics")).unwrap();
    let run = RunFolder::open(made.path()).unwrap();
    assert_eq!(run.path(), made.path());
    run.write_text("metrics/summary_stats.json", "new").unwrap();
    run.write_bytes("metrics/x.bin", &[0, 159, 146, 150]).unwrap();
    assert_eq!(
        fs::read_to_string(run.path().join("metrics/summary_stats.json")).unwrap(),
        "new"
    );
    assert_eq!(
        fs::read(run.path().join("metrics/x.bin")).unwrap(),
        [0, 159, 146, 150]
    );
    assert_eq!(
        fs::read_to_string(run.path().join("config.yml")).unwrap(),
        "seed: 1\n"
    );
}

#[test]
fn refuses_to_open_other_folders() {
    let other = tempdir().unwrap();
    fs::write(other.path().join("letter.txt"), "dear").unwrap();
    for path in [
        other.path().to_owned(),
        other.path().join("gone"),
        other.path().join("letter.txt"),
    ] {
        let error = RunFolder::open(&path).unwrap_err();
        assert!(
            matches!(&error, ReportError::NoRun { path: named } if *named == path),
            "{error}"
        );
    }
    assert_eq!(fs::read_dir(other.path()).unwrap().count(), 1);
}

#[test]
fn writes_strict_json_for_any_number() {
    let output = tempdir().unwrap();
    let run = RunFolder::create(output.path(), "seed: 1\n", STAMP).unwrap();
    run.write_json("metrics/x.json", &[f64::NAN, f64::INFINITY, -0.5])
        .unwrap();
    let text = fs::read_to_string(run.path().join("metrics/x.json")).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value, serde_json::json!([null, null, -0.5]));
}

#[test]
fn streamed_file_appears_atomically() {
    let output = tempdir().unwrap();
    let run = RunFolder::create(output.path(), "seed: 1\n", STAMP).unwrap();
    run.write_with("metrics/x.json", |file| {
        file.write_all(b"[1")?;
        file.write_all(b",2]")
    })
    .unwrap();
    let path = run.path().join("metrics/x.json");
    assert_eq!(fs::read_to_string(&path).unwrap(), "[1,2]");
    let failed = run.write_with("metrics/x.json", |file| {
        file.write_all(b"half")?;
        Err(std::io::Error::other("the source ran dry"))
    });
    assert!(failed.unwrap_err().to_string().contains("the source ran dry"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "[1,2]");
    assert_eq!(fs::read_dir(run.path().join("metrics")).unwrap().count(), 1);
}

#[test]
fn folder_name_ends_with_the_scenario_name() {
    let dir = tempdir().unwrap();
    for (name, expected) in [
        (
            "Chat, 20 users",
            format!("{STAMP}-{DIGEST_OF_NOTHING}-chat-20-users"),
        ),
        ("../../etc", format!("{STAMP}-{DIGEST_OF_NOTHING}-etc")),
        ("...", format!("{STAMP}-{DIGEST_OF_NOTHING}")),
    ] {
        let folder = RunFolder::create_named(dir.path(), Some(name), "", STAMP).unwrap();
        assert_eq!(folder.path(), dir.path().join(&expected));
    }
}
