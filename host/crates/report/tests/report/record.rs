//! The record's thread, its files, and a full disk.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::tempdir;
use veeksha_events::{Event, RequestRecord, Status};
use veeksha_model::{ErrorClass, NodeId, RequestId, SessionId};
use veeksha_report::{ReportError, RunFolder, TraceFile};

const STAMP: &str = "20_11_2026-22_31_19";
const REQUESTS: &str = "metrics/request_level_metrics.jsonl";
const TRACE: &str = "traces/trace.jsonl";

pub(crate) fn record(session: u64) -> RequestRecord {
    RequestRecord {
        stamps: Default::default(),
        intended: 1_000_000_000,
        dispatched_at: 1_000_000_001,
        picked_up_at: None,
        sent_at: None,
        completed_at: 2_000_000_000,
        processed_at: 2_000_000_000,
        status: Status::Failed {
            class: ErrorClass::Connect,
            message: "connection refused".into(),
        },
        http_status: None,
        target_prompt_tokens: 1,
        prompt_tokens: 1,
        total_prompt_tokens: 1,
        output_tokens_from_usage: false,
        connection_reused: false,
        history_mode: veeksha_model::HistoryMode::Live,
        ..RequestRecord::answered(RequestId {
            session: SessionId(session),
            node: NodeId(0),
        })
    }
}

fn finished(session: u64) -> Arc<Event> {
    Arc::new(Event::Finished(Box::new(record(session))))
}

fn dispatched(session: u64) -> Arc<Event> {
    let request = record(session).id;
    Arc::new(Event::Dispatched {
        request,
        intended: 0,
        at: 1,
    })
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is whole");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn writes_a_trace_line_per_event_and_a_row_per_request() {
    let dir = tempdir().unwrap();
    let folder = RunFolder::create(dir.path(), "", STAMP).unwrap();
    let writer = folder.writer(TraceFile::On).unwrap();
    writer.record(dispatched(0), Some("what was sent".into()));
    writer.record(finished(0), None);
    writer.record(Arc::new(Event::RunEnded { at: 3_000_000_000 }), None);
    writer.finish().unwrap();

    let trace = lines(&folder.path().join(TRACE));
    let events: Vec<_> = trace.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["dispatched", "finished", "run_ended"]);
    assert_eq!(trace[0]["content"], "what was sent");
    assert_eq!(trace[1].get("content"), None);

    let rows = lines(&folder.path().join(REQUESTS));
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (&rows[0]["success"], &rows[0]["error_class"]),
        (&false.into(), &"connect".into())
    );
    assert_eq!(rows[0]["error_message"], "connection refused");
    assert_eq!(rows[0]["ttfc"], Value::Null);
    assert_eq!(rows[0]["scheduler_dispatched_at"], 1.000000001);
    assert_eq!(rows[0]["sent_at"], Value::Null);
}

#[test]
fn no_trace_file_without_trace() {
    let dir = tempdir().unwrap();
    let folder = RunFolder::create(dir.path(), "", STAMP).unwrap();
    let writer = folder.writer(TraceFile::Off).unwrap();
    writer.record(finished(0), None);
    writer.finish().unwrap();
    assert!(!folder.path().join(TRACE).exists());
    assert_eq!(lines(&folder.path().join(REQUESTS)).len(), 1);
}

#[test]
fn concurrent_senders_lose_nothing() {
    const THREADS: u64 = 4;
    const EACH: u64 = 2_000;
    let dir = tempdir().unwrap();
    let folder = RunFolder::create(dir.path(), "", STAMP).unwrap();
    let writer = folder.writer(TraceFile::Off).unwrap();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let sender = writer.sender();
            scope.spawn(move || {
                for i in 0..EACH {
                    sender.record(finished(thread * EACH + i), None);
                }
            });
        }
    });
    let straggler = writer.sender();
    writer.finish().unwrap();
    straggler.record(finished(0), None);
    let mut sessions: Vec<u64> = lines(&folder.path().join(REQUESTS))
        .iter()
        .map(|row| row["session_id"].as_u64().unwrap())
        .collect();
    sessions.sort_unstable();
    assert_eq!(sessions, (0..THREADS * EACH).collect::<Vec<_>>());
}

#[test]
fn lines_are_flushed_during_the_run() {
    let dir = tempdir().unwrap();
    let folder = RunFolder::create(dir.path(), "", STAMP).unwrap();
    let writer = folder.writer(TraceFile::Off).unwrap();
    writer.record(finished(0), None);
    let path = folder.path().join(REQUESTS);
    assert!(
        eventually(|| lines(&path).len() == 1),
        "a line waits for at most half a second"
    );
    writer.finish().unwrap();
}

#[test]
fn dropping_the_writer_flushes() {
    let dir = tempdir().unwrap();
    let folder = RunFolder::create(dir.path(), "", STAMP).unwrap();
    let writer = folder.writer(TraceFile::Off).unwrap();
    (0..100).for_each(|session| writer.record(finished(session), None));
    drop(writer);
    assert_eq!(lines(&folder.path().join(REQUESTS)).len(), 100);
}

#[test]
fn full_disk_is_reported_during_and_after_the_run() {
    let dir = tempdir().unwrap();
    let folder = RunFolder::create(dir.path(), "", STAMP).unwrap();
    // Every write to /dev/full fails as on a full disk.
    symlink("/dev/full", folder.path().join(REQUESTS)).unwrap();
    let writer = folder.writer(TraceFile::On).unwrap();
    assert_eq!(writer.failed(), None);
    writer.record(finished(0), None);
    assert!(eventually(|| writer.failed().is_some()));
    assert!(
        writer.failed().unwrap().contains(REQUESTS),
        "{:?}",
        writer.failed()
    );
    writer.record(finished(1), None);

    let error = writer.finish().unwrap_err();
    let ReportError::RecordCut {
        source, lines_lost, ..
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!((source.kind(), *lines_lost), (std::io::ErrorKind::StorageFull, 2));
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("cannot write {}/{REQUESTS}: ", folder.path().display())),
        "{text}"
    );
    assert!(
        text.ends_with("the file ends there, 2 lines are missing"),
        "{text}"
    );
    // The other file is complete.
    assert_eq!(lines(&folder.path().join(TRACE)).len(), 2);
}

#[test]
fn names_file_that_cannot_be_opened() {
    let dir = tempdir().unwrap();
    let folder = RunFolder::create(dir.path(), "", STAMP).unwrap();
    fs::create_dir(folder.path().join(REQUESTS)).unwrap();
    let error = folder.writer(TraceFile::Off).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot write ") && error.contains(REQUESTS),
        "{error}"
    );
}

/// Waits up to ten seconds, so that a busy machine does not fail the test.
fn eventually(condition: impl Fn() -> bool) -> bool {
    (0..1000).any(|_| {
        thread::sleep(Duration::from_millis(10));
        condition()
    })
}
