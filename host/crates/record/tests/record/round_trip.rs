//! Recorded events are read back equal and in order, wherever parts end and wherever the run is
//! cut.

use std::{fs, ops::ControlFlow, path::Path};

use crate::support::{event, plain_request};
use proptest::{collection::vec, prelude::*};
use veeksha_events::Event;
use veeksha_record::{RecordInfo, RunRecord, RunRecorder};

const SECOND: u64 = 1_000_000_000;

fn read(run: &Path) -> (Vec<Event>, RecordInfo) {
    let mut record = RunRecord::open(run).unwrap();
    let mut events = Vec::new();
    let end = record
        .for_each(|event| {
            events.push(event.clone());
            ControlFlow::<()>::Continue(())
        })
        .unwrap();
    assert!(end.is_continue());
    (events, record.info().clone())
}

/// Events with the instants at which they are pushed; a part ends where more than five seconds have
/// passed.
fn sequence() -> impl Strategy<Value = Vec<(Event, u64)>> {
    let gap = prop_oneof![4 => Just(0), 1 => Just(SECOND), 2 => Just(7 * SECOND)];
    vec((event(), gap), 0..60).prop_map(|events| {
        let mut now = 0;
        let events = events.into_iter().map(|(event, gap)| {
            now += gap;
            (event, now)
        });
        events.collect()
    })
}

fn is_request(event: &Event) -> bool {
    matches!(event, Event::Finished(_))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_finished_record_is_the_run(sequence in sequence()) {
        let run = tempfile::tempdir().unwrap();
        let mut recorder = RunRecorder::create(run.path(), "test 1.2").unwrap().of_config("a digest");
        for (event, now) in &sequence {
            recorder.push(event, *now).unwrap();
        }
        recorder.finish().unwrap();
        let (events, info) = read(run.path());
        let pushed: Vec<Event> = sequence.iter().map(|(event, _)| event.clone()).collect();
        prop_assert_eq!(&events, &pushed);
        let requests = pushed.iter().filter(|event| is_request(event)).count() as u64;
        prop_assert!(info.run.as_ref().is_some_and(|name| name.len() == 32), "{:?}", info.run);
        prop_assert_eq!(info.clone(), RecordInfo {
            version: 1,
            program: "test 1.2".into(),
            run: info.run,
            config: Some("a digest".into()),
            complete: true,
            parts: 2,
            requests,
            events: pushed.len() as u64 - requests,
            lost: 0,
            damaged: vec![],
            cut_after: None,
        });
        let files: Vec<_> = fs::read_dir(run.path().join("record")).unwrap().map(|file| file.unwrap().file_name()).collect();
        prop_assert_eq!(files.len(), 2, "{:?}", files);
    }

    /// A recorder that is dropped is a process that was killed: what was written as parts is there,
    /// the rest is not.
    #[test]
    fn truncated_run_is_read_to_its_last_part(sequence in sequence()) {
        let run = tempfile::tempdir().unwrap();
        let mut recorder = RunRecorder::create(run.path(), "test").unwrap();
        // By hand: the first event that comes half a second or more after the oldest unwritten one
        // has everything written, itself included.
        let (mut since, mut written, mut until) = (None, 0, None);
        for (index, (event, now)) in sequence.iter().enumerate() {
            recorder.push(event, *now).unwrap();
            let oldest = *since.get_or_insert(*now);
            if now - oldest >= SECOND / 2 {
                (since, written, until) = (None, index + 1, Some(*now));
            }
        }
        drop(recorder);
        if written == 0 {
            prop_assert!(RunRecord::open(run.path()).is_err());
            return Ok(());
        }
        let (events, info) = read(run.path());
        let pushed: Vec<Event> = sequence[..written].iter().map(|(event, _)| event.clone()).collect();
        prop_assert_eq!(events, pushed);
        prop_assert_eq!((info.complete, info.lost, info.cut_after), (false, 0, until));
        prop_assert_eq!(info.damaged, Vec::<String>::new());
    }
}

/// More rows than a part, and than a batch of the reader; lists over many pages.
#[test]
fn a_long_record_goes_over_parts_pages_and_batches() {
    let run = tempfile::tempdir().unwrap();
    let mut recorder = RunRecorder::create(run.path(), "test").unwrap();
    let template = plain_request(0);
    let events: Vec<Event> = (0..70_000_u64)
        .map(|index| match index % 500 {
            0 => {
                let mut request = template.clone();
                if let Event::Finished(record) = &mut request {
                    record.id.session.0 = index;
                    let chunk = veeksha_model::Chunk {
                        at: index,
                        lag: 3,
                        bytes: index as u32,
                        kind: veeksha_model::ChunkKind::Tool,
                        merged: index % 3 == 0,
                    };
                    record.chunks = vec![chunk; (index / 500 % 7 * 1000) as usize];
                }
                request
            }
            _ => Event::Starved {
                due: index,
                at: index * 2,
            },
        })
        .collect();
    for event in &events {
        recorder.push(event, 0).unwrap();
    }
    // 65,536 other events fill a part.
    assert!(run.path().join("record/events-00000.parquet").exists());
    recorder.finish().unwrap();
    let (seen, info) = read(run.path());
    assert!(seen == events);
    assert_eq!(
        (info.complete, info.parts, info.requests, info.events),
        (true, 2, 140, 69_860)
    );
}

/// However long a run has lasted, a crash costs half a second; the files stay few.
#[test]
fn killed_long_run_loses_half_a_second_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = RunRecorder::create(folder.path(), "test 1").unwrap();
    let events: Vec<Event> = (0..4 * 300).map(|at| Event::TimeoutReached { at }).collect();
    for (event, quarter) in events.iter().zip(0..) {
        recorder.push(event, quarter * SECOND / 4).unwrap();
    }
    let files = fs::read_dir(folder.path().join("record")).unwrap().count();
    assert!(files < 80, "{files} files after 300 s");
    drop(recorder);
    let (read, info) = read(folder.path());
    assert!(
        read.len() + 2 >= events.len(),
        "{} of {}",
        read.len(),
        events.len()
    );
    assert_eq!(read[..], events[..read.len()]);
    assert_eq!((info.complete, info.lost, info.damaged.len()), (false, 0, 0));
}

/// A crash between a part and the removal of its increments leaves both; each event is read once.
#[test]
fn part_replaces_leftover_increments() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record");
    let mut recorder = RunRecorder::create(folder.path(), "test 1").unwrap();
    let events: Vec<Event> = (0..41).map(|at| Event::TimeoutReached { at }).collect();
    let mut kept = Vec::new();
    for (event, second) in events.iter().zip(0..) {
        recorder.push(event, second * SECOND).unwrap();
        for file in fs::read_dir(&record).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if name.matches('-').count() == 2 && !kept.iter().any(|(known, _)| *known == path) {
                kept.push((path.clone(), fs::read(&path).unwrap()));
            }
        }
    }
    drop(recorder);
    assert!(kept.len() > 4, "{}", kept.len());
    for (path, bytes) in &kept {
        fs::write(path, bytes).unwrap();
    }
    let (seen, info) = read(folder.path());
    assert_eq!(seen[..], events[..seen.len()]);
    assert!(seen.len() + 1 >= events.len(), "{}", seen.len());
    assert_eq!((info.lost, info.damaged.len()), (0, 0));
}

/// A run in which nothing happens for a while has written what did happen.
#[test]
fn idle_recorder_writes_on_tick() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = RunRecorder::create(folder.path(), "test 1").unwrap();
    let event = Event::TimeoutReached { at: 7 };
    assert_eq!(recorder.due(), None);
    recorder.push(&event, 0).unwrap();
    assert_eq!(recorder.due(), Some(SECOND / 2));
    recorder.tick(SECOND / 2 - 1).unwrap();
    assert!(
        RunRecord::open(folder.path()).is_err(),
        "less than half a second is not old"
    );
    recorder.tick(SECOND / 2).unwrap();
    assert_eq!(recorder.due(), None);
    let (events, info) = read(folder.path());
    assert_eq!((events, info.complete), (vec![event], false));
    // Nothing new, nothing written.
    recorder.tick(600 * SECOND).unwrap();
    assert_eq!(read(folder.path()).1.parts, 1);
}
