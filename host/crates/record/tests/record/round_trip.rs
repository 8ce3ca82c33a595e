//! Recorded events are read back equal and in order, wherever parts end and wherever the run is
//! cut.

use std::{fs, ops::ControlFlow, path::Path};

use crate::support::{event, plain_request};
use proptest::{collection::vec, prelude::*};
use veeksha_events::Event;
use veeksha_record::{Record, RecordInfo, Recorder};

const SECOND: u64 = 1_000_000_000;

fn read(run: &Path) -> (Vec<Event>, RecordInfo) {
    let mut record = Record::open(run).unwrap();
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
        let mut recorder = Recorder::create(run.path(), "test 1.2").unwrap().of_config("a digest");
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
        let mut recorder = Recorder::create(run.path(), "test").unwrap();
        // By hand: a part is written with the first event that comes so much later than the oldest
        // unwritten one as the square root of that one's seconds, half a second at the least, and
        // in it.
        let (mut since, mut written, mut until) = (None, 0, None);
        for (index, (event, now)) in sequence.iter().enumerate() {
            recorder.push(event, *now).unwrap();
            let oldest = *since.get_or_insert(*now);
            let age = (SECOND / 2).max(((oldest as f64 / 1e9).sqrt() * 1e9) as u64);
            if now - oldest >= age {
                (since, written, until) = (None, index + 1, Some(*now));
            }
        }
        drop(recorder);
        if written == 0 {
            prop_assert!(Record::open(run.path()).is_err());
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
    let mut recorder = Recorder::create(run.path(), "test").unwrap();
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

/// A run in which nothing happens for a while has written what did happen.
#[test]
fn idle_recorder_writes_on_tick() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(folder.path(), "test 1").unwrap();
    let event = Event::TimeoutReached { at: 7 };
    assert_eq!(recorder.due(), None);
    recorder.push(&event, 0).unwrap();
    assert_eq!(recorder.due(), Some(SECOND / 2));
    recorder.tick(SECOND / 2 - 1).unwrap();
    assert!(
        Record::open(folder.path()).is_err(),
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
