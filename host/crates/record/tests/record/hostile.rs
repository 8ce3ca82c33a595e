//! Malicious files and irregular files: an error or a report, in little time and memory.

use std::{
    fs::{self, File},
    io::{Seek, Write},
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use crate::support::plain_request;
use parquet::{
    file::{
        metadata::{KeyValue, ParquetMetaDataReader},
        properties::WriterProperties,
        writer::SerializedFileWriter,
    },
    schema::types::{Type, TypePtr},
};
use tempfile::TempDir;
use veeksha_events::Event;
use veeksha_record::{RecordError, RecordInfo, RunRecord, RunRecorder, open_plain};

const TABLES: [&str; 2] = ["requests.parquet", "events.parquet"];

fn run() -> TempDir {
    let run = tempfile::tempdir().unwrap();
    let mut recorder = RunRecorder::create(run.path(), "test").unwrap();
    recorder.push(&plain_request(3), 0).unwrap();
    recorder.push(&Event::RunEnded { at: 9 }, 0).unwrap();
    recorder.finish().unwrap();
    run
}

fn file(run: &TempDir, name: &str) -> PathBuf {
    run.path().join("record").join(name)
}

fn read(run: &Path) -> Result<(u64, RecordInfo), RecordError> {
    let mut record = RunRecord::open(run)?;
    let mut events = 0;
    let _ = record.for_each(|_| {
        events += 1;
        ControlFlow::<()>::Continue(())
    })?;
    Ok((events, record.info().clone()))
}

#[test]
fn rejects_pipes_devices_and_folders() {
    let run = run();
    for name in TABLES {
        let path = file(&run, name);
        fs::remove_file(&path).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let (events, info) = match read(run.path()) {
            Ok(read) => read,
            // Now the other one is none either.
            Err(error) => {
                let text = error.to_string();
                assert!(
                    text.contains("events.parquet: it is not a regular file"),
                    "{text}"
                );
                continue;
            }
        };
        assert_eq!((events, info.complete), (1, false));
        assert_eq!(info.damaged[0], format!("{name}: it is not a regular file"));
    }
    for path in ["/dev/zero", "/dev"] {
        let path = Path::new(path);
        let error = open_plain(path).unwrap_err();
        assert!(
            !path.exists() || error.to_string() == "it is not a regular file",
            "{error}"
        );
    }
    let run = self::run();
    let events = file(&run, TABLES[1]);
    fs::remove_file(&events).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &events).unwrap();
    let (_, info) = read(run.path()).unwrap();
    assert_eq!(info.damaged[0], "events.parquet: it is not a regular file");
}

/// Every length that a file can be cut to: it is named, and the other table is read.
#[test]
fn truncated_file_is_never_complete() {
    let run = run();
    for name in TABLES {
        let path = file(&run, name);
        let bytes = fs::read(&path).unwrap();
        for length in 0..bytes.len() {
            fs::write(&path, &bytes[..length]).unwrap();
            let record = RunRecord::open(run.path()).unwrap();
            let info = record.info();
            let rows = info.requests + info.events;
            assert_eq!((rows, info.complete), (1, false), "{name}, {length} bytes");
            assert!(info.damaged[0].starts_with(name), "{info:?}");
        }
        fs::write(&path, bytes).unwrap();
    }
    assert_eq!(read(run.path()).unwrap().0, 2);
}

/// Every byte turned round, one at a time.
#[test]
fn flipped_byte_never_makes_an_event() {
    let run = run();
    let path = file(&run, "events.parquet");
    let bytes = fs::read(&path).unwrap();
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] = !flipped[at];
        fs::write(&path, flipped).unwrap();
        let mut record = match RunRecord::open(run.path()) {
            Ok(record) => record,
            // It claims another version.
            Err(error) => {
                assert!(matches!(error, RecordError::Version { .. }), "byte {at}: {error}");
                continue;
            }
        };
        let mut others = Vec::new();
        let read = record.for_each(|event| {
            if !matches!(event, Event::Finished(_)) {
                others.push(event.clone());
            }
            ControlFlow::<()>::Continue(())
        });
        assert!(read.is_ok(), "byte {at}: the requests are there");
        assert!(
            others.is_empty() || others == [Event::RunEnded { at: 9 }],
            "byte {at}: {others:?}"
        );
    }
}

/// Rewrites the file with other columns, without rows, and with valid metadata.
fn with_columns(path: &Path, columns: Vec<TypePtr>) {
    rewrite(path, columns, |_| String::new());
}

/// Rewrites the file with other columns and without rows. `checksums` converts the list of
/// checksums; the other metadata are kept.
fn rewrite(path: &Path, columns: Vec<TypePtr>, checksums: fn(String) -> String) {
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(&File::open(path).unwrap())
        .unwrap();
    let metadata = metadata.file_metadata();
    let schema = Type::group_type_builder(metadata.schema().name())
        .with_fields(columns)
        .build()
        .unwrap();
    let properties = Arc::new(WriterProperties::builder().build());
    let mut file = SerializedFileWriter::new(File::create(path).unwrap(), schema.into(), properties).unwrap();
    for pair in metadata.key_value_metadata().unwrap() {
        let mut value = pair.value.clone().unwrap_or_default();
        if pair.key.ends_with("xxh3_of_row_groups") {
            value = checksums(value);
        }
        file.append_key_value_metadata(KeyValue::new(pair.key.clone(), value));
    }
    file.close().unwrap();
}

#[test]
fn surplus_checksums_are_rejected() {
    for name in TABLES {
        let run = run();
        let path = file(&run, name);
        let metadata = ParquetMetaDataReader::new()
            .parse_and_finish(&File::open(&path).unwrap())
            .unwrap();
        let columns = metadata.file_metadata().schema().get_fields().to_vec();
        rewrite(&path, columns, |checksums| checksums);
        let damaged = read(run.path()).unwrap().1.damaged.join("; ");
        assert!(
            damaged.contains("another number of row groups than of checksums"),
            "{name}: {damaged}"
        );
    }
}

/// Except the last columns, which the first files of version 1 (`tests/fixtures/version_1` is one
/// of them) do not have.
#[test]
fn every_column_must_be_there_and_of_its_type() {
    for name in TABLES {
        let run = run();
        let path = file(&run, name);
        let bytes = fs::read(&path).unwrap();
        let metadata = ParquetMetaDataReader::new()
            .parse_and_finish(&File::open(&path).unwrap())
            .unwrap();
        let columns = metadata.file_metadata().schema().get_fields().to_vec();
        with_columns(&path, columns.clone());
        let (_, info) = read(run.path()).unwrap();
        assert_eq!(
            info.damaged.len(),
            1,
            "the columns are right, and only rows are missing: {info:?}"
        );
        for index in 0..columns.len() {
            let mut without = columns.clone();
            without.remove(index);
            let mut strange = columns.clone();
            let other = match index {
                0 => parquet::basic::Type::DOUBLE,
                _ => parquet::basic::Type::INT96,
            };
            let cell = Type::primitive_type_builder(columns[index].name(), other);
            strange[index] = cell.build().unwrap().into();
            // Files of an earlier host end before the newest column.
            let may_be_absent = index + 1 == columns.len();
            let cases = [(without, may_be_absent), (strange, false)];
            for (columns, is_sound) in cases {
                fs::write(&path, &bytes).unwrap();
                with_columns(&path, columns);
                let (_, info) = read(run.path()).unwrap();
                let refused = format!("{name}: its columns are not those of version 1");
                assert_eq!(info.damaged[0] == refused, !is_sound, "{:?}", info.damaged);
            }
        }
    }
}

/// A file of a gigabyte of nothing whose end claims that all of it is the index: little is read of
/// it.
#[test]
fn a_huge_index_is_refused_before_it_is_read() {
    let run = run();
    let path = file(&run, "events.parquet");
    let mut huge = File::create(&path).unwrap();
    huge.set_len(1 << 30).unwrap();
    huge.seek(std::io::SeekFrom::End(0)).unwrap();
    huge.write_all(&((1_u32 << 30) - 8).to_le_bytes()).unwrap();
    huge.write_all(b"PAR1").unwrap();
    drop(huge);
    let (_, info) = read(run.path()).unwrap();
    assert!(
        info.damaged[0].contains("its index claims to have 1073741816 bytes"),
        "{info:?}"
    );
}
