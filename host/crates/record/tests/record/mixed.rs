//! Tables of two runs in one folder: files of another run are named and left out.

use std::{fs, ops::ControlFlow};

use crate::support::plain_request;
use tempfile::TempDir;
use veeksha_events::Event;
use veeksha_record::{RecordInfo, RunRecord, RunRecorder};

const SECOND: u64 = 1_000_000_000;

/// A run of three parts; each has a request and another event that identify the run.
fn parts(of: u64) -> (TempDir, RunRecorder) {
    let run = tempfile::tempdir().unwrap();
    let mut recorder = RunRecorder::create(run.path(), "test").unwrap();
    for part in 0..3 {
        recorder.push(&plain_request(of), part * 60 * SECOND).unwrap();
        let other = Event::Interrupted { at: of };
        recorder.push(&other, part * 60 * SECOND + 30 * SECOND).unwrap();
    }
    (run, recorder)
}

fn killed(of: u64) -> TempDir {
    parts(of).0
}

fn finished(of: u64) -> TempDir {
    let (run, recorder) = parts(of);
    recorder.finish().unwrap();
    run
}

/// Whose events are handed out.
fn owners(run: &TempDir) -> (Vec<u64>, RecordInfo) {
    let mut record = RunRecord::open(run.path()).unwrap();
    let mut owners = Vec::new();
    let _ = record
        .for_each(|event| {
            owners.push(match event {
                Event::Finished(record) => record.id.session.0,
                Event::Interrupted { at } => *at,
                // Not from either run.
                _ => 0,
            });
            ControlFlow::<()>::Continue(())
        })
        .unwrap();
    (owners, record.info().clone())
}

fn copy(from: &TempDir, to: &TempDir, name: &str) {
    let file = |run: &TempDir| run.path().join("record").join(name);
    fs::copy(file(from), file(to)).unwrap();
}

#[test]
fn parts_of_another_run_are_left_out() {
    let (ours, theirs) = (killed(1), killed(2));
    assert_eq!(owners(&ours).0, [1; 6]);
    copy(&theirs, &ours, "events-00000.parquet");
    copy(&theirs, &ours, "requests-00002.parquet");
    let (seen, info) = owners(&ours);
    assert_eq!(seen, [1; 4]);
    assert_eq!(
        info.damaged[..2],
        [
            "requests-00002.parquet: it is of another run than requests-00000.parquet",
            "events-00000.parquet: it is of another run than requests-00000.parquet"
        ]
    );
    assert!(!info.complete);
}

/// Two tables, each of another run: the requests are what a run is about.
#[test]
fn tables_of_two_runs_are_not_one_record() {
    let (ours, theirs) = (finished(1), finished(2));
    copy(&theirs, &ours, "events.parquet");
    let (seen, info) = owners(&ours);
    assert_eq!((seen, info.complete), (vec![1; 3], false));
    assert_eq!(
        info.damaged[0],
        "events.parquet: it is of another run than requests.parquet"
    );
}

/// More of a stranger than of the run whose folder it was: then it is the stranger's record that is
/// read, and the rest is named.
#[test]
fn run_of_most_files_is_read() {
    let (ours, theirs) = (killed(1), killed(2));
    for name in ["requests-00000", "requests-00001", "events-00001", "events-00002"] {
        copy(&theirs, &ours, &format!("{name}.parquet"));
    }
    let (seen, info) = owners(&ours);
    assert_eq!(seen, [2; 4]);
    assert!(info.damaged[0].starts_with("requests-00002.parquet: it is of another run"));
    assert!(info.damaged[1].starts_with("events-00000.parquet: it is of another run"));
}

/// A record that was written before files bore the name of their run, and one of its files among
/// those that do.
#[test]
fn unnamed_files_do_not_join_a_named_run() {
    let old = format!("{}/tests/fixtures/version_1/record", env!("CARGO_MANIFEST_DIR"));
    let ours = finished(1);
    fs::copy(
        format!("{old}/events.parquet"),
        ours.path().join("record/events.parquet"),
    )
    .unwrap();
    let (seen, info) = owners(&ours);
    assert_eq!(seen, [1; 3]);
    assert!(
        info.damaged[0].starts_with("events.parquet: it is of another run"),
        "{info:?}"
    );
}
