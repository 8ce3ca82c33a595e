//! Reading a record that was damaged by a crash, a disk or a third party: an error or a report,
//! never a panic, and never a value that was not measured.

use std::{
    fs::{self, File},
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::support::{event, plain_request};
use parquet::{
    data_type::Int64Type,
    file::{metadata::KeyValue, properties::WriterProperties, writer::SerializedFileWriter},
    schema::parser::parse_message_type,
};
use proptest::{prelude::*, sample::Index, strategy::ValueTree, test_runner::TestRunner};
use tempfile::TempDir;
use veeksha_events::Event;
use veeksha_record::{RecordError, RecordInfo, RunRecord, RunRecorder};

const SECOND: u64 = 1_000_000_000;

fn read(run: &Path) -> Result<(Vec<Event>, RecordInfo), RecordError> {
    let mut record = RunRecord::open(run)?;
    let mut events = Vec::new();
    let _ = record.for_each(|event| {
        events.push(event.clone());
        ControlFlow::<()>::Continue(())
    })?;
    Ok((events, record.info().clone()))
}

/// Thirty events of all kinds in parts of ten. Part 0 and 1 hold both tables.
fn cut_run() -> (TempDir, Vec<Event>) {
    let run = tempfile::tempdir().unwrap();
    let mut recorder = RunRecorder::create(run.path(), "test").unwrap();
    let mut runner = TestRunner::deterministic();
    let mut events: Vec<Event> = (0..30)
        .map(|_| event().new_tree(&mut runner).unwrap().current())
        .collect();
    for at in [0, 10, 20] {
        events[at] = Event::Starved {
            due: 1,
            at: at as u64,
        };
        events[at + 1] = plain_request(at as u64);
    }
    for (index, event) in events.iter().enumerate() {
        // The tenth event of each part comes six seconds after the others.
        let now = (index as u64 + 1) / 10 * 6 * SECOND;
        recorder.push(event, now).unwrap();
    }
    drop(recorder);
    (run, events)
}

fn finished_run() -> (TempDir, Vec<Event>) {
    let run = tempfile::tempdir().unwrap();
    let mut recorder = RunRecorder::create(run.path(), "test").unwrap();
    let mut runner = TestRunner::deterministic();
    let events: Vec<Event> = (0..40)
        .map(|_| event().new_tree(&mut runner).unwrap().current())
        .collect();
    for (index, event) in events.iter().enumerate() {
        recorder.push(event, index as u64 / 15 * 6 * SECOND).unwrap();
    }
    recorder.finish().unwrap();
    (run, events)
}

fn file(run: &TempDir, name: &str) -> PathBuf {
    run.path().join("record").join(name)
}

#[test]
fn missing_parts_are_reported() {
    let (run, events) = cut_run();
    let (seen, info) = read(run.path()).unwrap();
    assert_eq!(seen, events);
    assert_eq!(
        (info.complete, info.cut_after, info.lost),
        (false, Some(18 * SECOND), 0)
    );

    fs::remove_file(file(&run, "requests-00001.parquet")).unwrap();
    let lost = events[10..20]
        .iter()
        .filter(|event| matches!(event, Event::Finished(_)))
        .count() as u64;
    let left: Vec<Event> = (events.iter().enumerate())
        .filter(|(index, event)| !((10..20).contains(index) && matches!(event, Event::Finished(_))))
        .map(|(_, event)| event.clone())
        .collect();
    let (seen, info) = read(run.path()).unwrap();
    assert_eq!(seen, left);
    assert_eq!(info.lost, lost);
    assert_eq!(
        info.damaged,
        [format!("{lost} of 30 recorded events are not there")]
    );

    // Without the last part of both tables, its existence cannot be known.
    for table in ["requests", "events"] {
        fs::remove_file(file(&run, &format!("{table}-00002.parquet"))).unwrap();
    }
    let (seen, info) = read(run.path()).unwrap();
    assert_eq!(seen, left[..20 - lost as usize]);
    assert_eq!(info.cut_after, Some(12 * SECOND));
}

#[test]
fn a_row_group_with_a_changed_byte_is_left_out_and_counted() {
    let (run, events) = cut_run();
    let path = file(&run, "requests-00001.parquet");
    let mut bytes = fs::read(&path).unwrap();
    // The first page follows the magic number "PAR1".
    bytes[40] ^= 1;
    fs::write(&path, bytes).unwrap();
    let mut record = RunRecord::open(run.path()).unwrap();
    assert_eq!(
        (record.info().lost, record.info().damaged.len()),
        (0, 0),
        "its rows were not read yet"
    );
    let mut seen = 0;
    let _ = record
        .for_each(|_| {
            seen += 1;
            ControlFlow::<()>::Continue(())
        })
        .unwrap();
    let lost = events[10..20]
        .iter()
        .filter(|event| matches!(event, Event::Finished(_)))
        .count();
    assert_eq!((seen, record.info().lost), (30 - lost, lost as u64));
    assert_eq!(
        record.info().damaged,
        ["requests-00001.parquet: its bytes are not those that were written"]
    );
}

/// The process died after the first of the two tables was joined.
#[test]
fn crash_while_finishing_loses_nothing() {
    let whole = tempfile::tempdir().unwrap();
    let mut recorder = RunRecorder::create(whole.path(), "test").unwrap();
    let mut runner = TestRunner::deterministic();
    let events: Vec<Event> = (0..40)
        .map(|_| event().new_tree(&mut runner).unwrap().current())
        .collect();
    for (index, event) in events.iter().enumerate() {
        recorder.push(event, index as u64 / 15 * 6 * SECOND).unwrap();
    }
    // A last part of all that is left.
    recorder.tick(60 * SECOND).unwrap();
    let parts = tempfile::tempdir().unwrap();
    fs::create_dir(parts.path().join("record")).unwrap();
    for part in fs::read_dir(whole.path().join("record")).unwrap() {
        let part = part.unwrap();
        fs::copy(part.path(), parts.path().join("record").join(part.file_name())).unwrap();
    }
    recorder.finish().unwrap();
    fs::copy(file(&whole, "requests.parquet"), file(&parts, "requests.parquet")).unwrap();
    fs::write(file(&parts, "events.parquet.tmp"), b"PAR1 half a file").unwrap();
    let (seen, info) = read(parts.path()).unwrap();
    assert_eq!(seen, events);
    assert!(info.complete, "{info:?}");
    assert_eq!((info.cut_after, info.lost), (None, 0));
}

#[test]
fn a_file_that_is_cut_is_named_and_the_rest_is_read() {
    let (run, events) = cut_run();
    let path = file(&run, "requests-00000.parquet");
    let bytes = fs::read(&path).unwrap();
    for length in [0, 3, 4, 8, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&path, &bytes[..length]).unwrap();
        let (seen, info) = read(run.path()).unwrap();
        assert_eq!(seen[seen.len() - 10..], events[20..]);
        assert!(!info.complete && info.lost > 0);
        assert!(
            info.damaged[0].starts_with("requests-00000.parquet: it is not a complete Parquet file"),
            "{info:?}"
        );
    }
}

#[test]
fn a_finished_table_that_is_cut_is_damage_and_both_are_an_error() {
    let (run, events) = finished_run();
    for name in ["requests.parquet", "events.parquet"] {
        let path = file(&run, name);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 100]).unwrap();
        if name == "requests.parquet" {
            let (seen, info) = read(run.path()).unwrap();
            let others: Vec<Event> = events
                .iter()
                .filter(|event| !matches!(event, Event::Finished(_)))
                .cloned()
                .collect();
            assert_eq!(seen, others);
            assert_eq!(info.lost as usize, events.len() - others.len());
            assert!(!info.complete && info.cut_after.is_none());
        }
    }
    let error = read(run.path()).unwrap_err();
    assert!(matches!(error, RecordError::Unreadable { .. }));
    let text = error.to_string();
    assert!(
        text.contains("requests.parquet: it is not a complete")
            && text.contains("events.parquet: it is not a complete"),
        "{text}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever byte is changed: what is handed out was recorded, and what was recorded is handed
    /// out or missed.
    #[test]
    fn a_changed_byte_is_never_a_changed_event(
        finished: bool, which: Index, at in proptest::collection::vec((any::<Index>(), 1..=255_u8), 1..3)
    ) {
        let (run, events) = if finished { finished_run() } else { cut_run() };
        let mut files: Vec<PathBuf> = fs::read_dir(run.path().join("record")).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        let path = which.get(&files);
        let mut bytes = fs::read(path).unwrap();
        for (at, change) in at {
            let at = at.index(bytes.len());
            bytes[at] ^= change;
        }
        fs::write(path, bytes).unwrap();
        if let Ok((seen, info)) = read(run.path()) {
            let mut recorded = events.iter();
            for event in &seen {
                prop_assert!(recorded.any(|recorded| recorded == event), "{event:?} was not recorded there");
            }
            prop_assert!(seen.len() == events.len() || !info.damaged.is_empty(), "{info:?}");
        }
    }

    #[test]
    fn any_bytes_are_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200), framed: bool) {
        let run = tempfile::tempdir().unwrap();
        fs::create_dir(run.path().join("record")).unwrap();
        let mut file_bytes = bytes;
        if framed {
            file_bytes.splice(0..0, *b"PAR1");
            file_bytes.extend(*b"PAR1");
        }
        fs::write(file(&run, "events.parquet"), file_bytes).unwrap();
        prop_assert!(RunRecord::open(run.path()).is_err());
    }
}

/// A Parquet file with one column of numbers and some metadata.
fn foreign(path: &Path, message: &str, pairs: &[(&str, &str)]) {
    let schema = Arc::new(parse_message_type(message).unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let mut file = SerializedFileWriter::new(File::create(path).unwrap(), schema, properties).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column
        .typed::<Int64Type>()
        .write_batch(&[1, 2, 3], None, None)
        .unwrap();
    column.close().unwrap();
    group.close().unwrap();
    for (key, value) in pairs {
        file.append_key_value_metadata(KeyValue::new((*key).to_owned(), (*value).to_owned()));
    }
    file.close().unwrap();
}

fn error_of(path: &str, message: &str, pairs: &[(&str, &str)]) -> String {
    let run = tempfile::tempdir().unwrap();
    fs::create_dir(run.path().join("record")).unwrap();
    foreign(&file(&run, path), message, pairs);
    read(run.path()).unwrap_err().to_string()
}

#[test]
fn foreign_files_are_rejected() {
    let message = "message requests { required int64 position; }";
    let ours = [
        ("veeksha.record.version", "1"),
        ("veeksha.record.table", "requests"),
        ("veeksha.record.first_position", "0"),
        ("veeksha.record.end_position", "3"),
        ("veeksha.record.until_ns", "0"),
    ];
    let error = error_of("requests.parquet", message, &[]);
    assert!(
        error.ends_with("requests.parquet: it is a Parquet file, but not one of a record"),
        "{error}"
    );
    let error = error_of("events.parquet", message, &ours);
    assert!(error.contains("it does not hold the table events"), "{error}");
    let error = error_of("requests.parquet", message, &ours);
    assert!(
        error.contains("requests.parquet: its columns are not those of version 1"),
        "{error}"
    );
    let error = error_of("requests.parquet", message, &ours[..3]);
    assert!(
        error.contains("veeksha.record.first_position") || error.contains("end_position"),
        "{error}"
    );
    let later = [
        ("veeksha.record.version", "2"),
        ("veeksha.record.program", "veeksha-host 9.0"),
    ];
    let error = error_of("requests.parquet", message, &later);
    assert!(
        error.contains("version 2")
            && error.contains("reads version 1")
            && error.contains("veeksha-host 9.0"),
        "{error}"
    );
}

#[test]
fn missing_record_has_a_hint() {
    let run = tempfile::tempdir().unwrap();
    let text = |run: &Path| RunRecord::open(run).err().unwrap().to_string();
    let error = text(&run.path().join("nowhere"));
    assert!(
        error.contains("record/requests.parquet") && error.ends_with("the folder does not exist"),
        "{error}"
    );
    let error = text(run.path());
    assert!(
        error.contains("record/events.parquet") && error.contains("which contains config.yml and record/"),
        "{error}"
    );
    let config = run.path().join("config.yml");
    fs::write(&config, "seed: 1\n").unwrap();
    let error = text(&config);
    assert!(
        error.contains("it is a file; pass the folder of a run"),
        "{error}"
    );
    fs::create_dir(run.path().join("metrics")).unwrap();
    fs::write(run.path().join("metrics/request_level_metrics.jsonl"), "{}\n").unwrap();
    let error = text(run.path());
    assert!(error.contains("seems to be a run of Veeksha"), "{error}");

    // A run that was killed before its first part: there is nothing yet, or half a file.
    fs::create_dir(run.path().join("record")).unwrap();
    for tmp in [false, true] {
        if tmp {
            fs::write(file(&run, "events-00000.parquet.tmp"), b"PAR1").unwrap();
        }
        let error = text(run.path());
        assert!(
            error.contains("killed before anything of it was recorded, or the disk had no space for it")
                && !error.contains("Veeksha"),
            "{error}"
        );
    }

    // One of ours that ended: its record was taken away, all of it or what was in it.
    for (name, whole) in [("certificate.json", true), ("report.html", false)] {
        let (run, _) = finished_run();
        fs::create_dir(run.path().join("metrics")).unwrap();
        fs::write(run.path().join("metrics/request_level_metrics.jsonl"), "{}\n").unwrap();
        fs::write(run.path().join(name), "").unwrap();
        fs::remove_dir_all(run.path().join("record")).unwrap();
        if !whole {
            fs::create_dir(run.path().join("record")).unwrap();
        }
        let error = text(run.path());
        assert!(
            error.contains("its record was removed")
                && !error.contains("Veeksha")
                && !error.contains("killed"),
            "{error}"
        );
    }

    let (run, _) = finished_run();
    let error = text(&run.path().join("record"));
    assert!(error.contains("pass its parent folder"), "{error}");
}

#[test]
fn a_record_is_never_mixed_with_another() {
    for (run, _) in [finished_run(), cut_run()] {
        let error = RunRecorder::create(run.path(), "test").err().unwrap();
        assert!(matches!(error, RecordError::Occupied { .. }), "{error}");
    }
}

/// What a part cannot hold is kept by smaller files; the run goes on being recorded.
#[test]
fn events_of_a_refused_part_are_kept_in_smaller_files() {
    let run = tempfile::tempdir().unwrap();
    let mut recorder = RunRecorder::create(run.path(), "test").unwrap();
    let event = |at| Event::Interrupted { at };
    recorder.push(&event(0), 0).unwrap();
    // A folder in the way of the part's temporary name.
    let obstacle = file(&run, "events-00000.parquet.tmp");
    fs::create_dir(&obstacle).unwrap();
    let error = recorder.push(&event(1), 6 * SECOND).unwrap_err();
    assert!(error.to_string().contains("events-00000.parquet"), "{error}");
    fs::remove_dir(&obstacle).unwrap();
    recorder.push(&event(2), 6 * SECOND).unwrap();
    recorder.push(&event(3), 12 * SECOND).unwrap();
    // Blocked for good: a smaller file keeps the rest.
    let blocked = file(&run, "events-00002.parquet.tmp");
    fs::create_dir(&blocked).unwrap();
    recorder.push(&event(4), 13 * SECOND).unwrap();
    let error = recorder.finish().unwrap_err();
    assert!(error.to_string().contains("events-00002.parquet"), "{error}");
    let (seen, info) = read(run.path()).unwrap();
    assert_eq!(seen, [event(0), event(1), event(2), event(3), event(4)]);
    assert_eq!((info.complete, info.lost), (false, 0));
}

/// A part that cannot be written, for want of a descriptor or of space, is written when it can be.
#[test]
fn refused_parts_are_written_later() {
    let run = tempfile::tempdir().unwrap();
    let mut recorder = RunRecorder::create(run.path(), "test").unwrap();
    let event = |at| Event::Interrupted { at };
    recorder.push(&event(0), 0).unwrap();
    let blocked = file(&run, "events-00000.parquet.tmp");
    fs::create_dir(&blocked).unwrap();
    assert!(recorder.push(&event(1), SECOND).is_err());
    fs::remove_dir(&blocked).unwrap();
    recorder.push(&event(2), SECOND).unwrap();
    recorder.finish().unwrap();
    let (seen, info) = read(run.path()).unwrap();
    assert_eq!(seen, [event(0), event(1), event(2)]);
    assert_eq!((info.complete, info.lost), (true, 0));
}

/// A part that holds only the end of a run must not become the whole table by a new name.
#[test]
fn single_part_that_is_not_the_whole_run_is_not_renamed() {
    let run = tempfile::tempdir().unwrap();
    let mut recorder = RunRecorder::create(run.path(), "test").unwrap();
    let event = |at| Event::Interrupted { at };
    recorder.push(&event(0), 0).unwrap();
    let blocked = file(&run, "events-00000.parquet.tmp");
    fs::create_dir(&blocked).unwrap();
    assert!(recorder.push(&event(1), SECOND).is_err());
    recorder.push(&event(2), SECOND).unwrap();
    assert!(recorder.finish().is_err());
    let (seen, info) = read(run.path()).unwrap();
    assert_eq!(seen, [event(2)]);
    assert_eq!((info.complete, info.lost), (false, 2));
}

#[test]
fn reading_can_be_stopped() {
    let (run, events) = finished_run();
    let mut record = RunRecord::open(run.path()).unwrap();
    let mut seen = 0;
    let end = record.for_each(|_| {
        seen += 1;
        if seen == 7 {
            ControlFlow::Break("enough")
        } else {
            ControlFlow::Continue(())
        }
    });
    assert_eq!(end.unwrap(), ControlFlow::Break("enough"));
    // And begun again.
    let mut count = 0;
    let _ = record
        .for_each(|_| {
            count += 1;
            ControlFlow::<()>::Continue(())
        })
        .unwrap();
    assert_eq!((seen, count), (7, events.len()));
}
