//! Rows are the same wherever the edges of buffers fall.

use std::sync::Arc;

use proptest::prelude::*;
use veeksha_model::Session;
use veeksha_ports::{
    CellType, FlavorFactory, FlavorInstance, Grouping, Layout, PluginFailure, TraceColumn, TraceFacts,
    TraceGroup, WorkloadInfo,
};

use crate::options::{BadRowRule, CheckExtent, Order, TraceOptions};
use crate::replay::opening::open_within;
use crate::replay::read::GroupReader;
use crate::rows::ReadLimits;

struct Plain(WorkloadInfo);

impl FlavorFactory for Plain {
    fn info(&self) -> &WorkloadInfo {
        &self.0
    }

    fn open(&self) -> Result<Box<dyn FlavorInstance>, PluginFailure> {
        Ok(Box::new(PlainInstance))
    }
}

struct PlainInstance;

impl FlavorInstance for PlainInstance {
    fn layout(&mut self) -> Result<Layout, PluginFailure> {
        let column = |name: &str, cell| TraceColumn {
            name: name.into(),
            aliases: Vec::new(),
            cell,
            required: false,
        };
        Ok(Layout {
            columns: vec![
                column("a", CellType::Text),
                column("n", CellType::Count),
                column("l", CellType::Items),
            ],
            rows_in: Some("data".into()),
            grouping: Grouping::Row,
            arrival: None,
            keep: None,
            warms_up: false,
        })
    }

    fn sessions(&mut self, _: &TraceFacts, _: u64, _: &[TraceGroup]) -> Result<Vec<Session>, PluginFailure> {
        Ok(Vec::new())
    }

    fn warmup(&mut self, _: &TraceFacts, _: &[TraceGroup]) -> Result<Vec<Session>, PluginFailure> {
        Ok(Vec::new())
    }
}

/// Number and fields.
type NumberedRows = Vec<(u64, String)>;

/// Returns all rows and all skipped ones, or the error.
fn read(bytes: &[u8], chunk: usize, row: usize) -> Result<(NumberedRows, Vec<String>), String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    std::fs::write(&path, bytes).unwrap();
    let options = TraceOptions {
        path,
        columns: Default::default(),
        on_bad_row: BadRowRule::Skip,
        check: CheckExtent::Rows,
        max_row_bytes: row,
        order: Order::File,
        wrap: false,
        seed: 0,
        scratch: None,
    };
    let flavor = Plain(WorkloadInfo {
        name: "plain".into(),
        version: String::new(),
        summary: String::new(),
        engine: "test",
        digest: String::new(),
        granted: Vec::new(),
    });
    let no_folder = |message: String| message.replace(&folder.path().display().to_string(), "");
    let trace = open_within(options, Arc::new(flavor), ReadLimits { chunk, row })
        .map_err(|e| no_folder(e.to_string()))?;
    let trace = &*trace.0;
    let mut reader = GroupReader::new(trace);
    let rows = (0..trace.groups.len()).map(|group| {
        let group = reader.group(trace, 0, trace.groups.rows(group)).unwrap();
        (group.rows[0].number, group.rows[0].fields.clone())
    });
    let rows = rows.collect();
    let skipped = trace.skipped.listed.iter().map(|bad| no_folder(bad.to_string()));
    Ok((rows, skipped.collect()))
}

const FILES: [&str; 5] = [
    "{\"a\":\"x\\\"y\",\"n\":12}\r\n\n{\"n\":1}\n{\"l\":[1,[2]],\"n\":3,\"a\":7}\nbad\n{\"a\":\"\u{e9}\u{1F600}\"}",
    "a,n,l\r\nx,1,\"[1,\r\n2]\"\r\n\"q\"\"q\",2,\r\n\r\n,3,[]\r\ntoo,many,cells,4\r\ny,5,\"[\n]\"",
    "[{\"n\":1} , {\"a\":\"]\"},\n{\"n\":-1},{\"l\":\"[1]\"}\n]\n",
    "{\"x\": {\"data\": [1]}, \"n\": 1234567, \"data\":[{\"n\":10},{\"n\":20}], \"y\": 12345}",
    "{\n  \"a\": \"pretty\",\n  \"l\": [\n    1\n  ]\n}\n",
];

#[test]
fn every_chunk_size_gives_the_same_rows() {
    for text in FILES {
        let whole = read(text.as_bytes(), 1 << 20, 1 << 20).unwrap();
        assert!(!whole.0.is_empty());
        for chunk in 1..text.len() + 2 {
            assert_eq!(
                read(text.as_bytes(), chunk, 1 << 20),
                Ok(whole.clone()),
                "{chunk}: {text}"
            );
        }
    }
}

#[test]
fn rows_equal_a_reference_reader() {
    let rows = |text: &str| {
        let (rows, skipped) = read(text.as_bytes(), 7, 1 << 20).unwrap();
        (
            rows.into_iter()
                .map(|(number, fields)| format!("{number} {fields}"))
                .collect::<Vec<_>>(),
            skipped,
        )
    };
    let (lines, bad) = rows(FILES[0]);
    assert_eq!(lines[0], r#"1 {"a":"x\"y","n":12}"#);
    assert_eq!(lines[2], r#"3 {"a":"7","n":3,"l":[1,[2]]}"#);
    assert_eq!(lines[3], "5 {\"a\":\"\u{e9}\u{1F600}\"}");
    assert_eq!(
        bad,
        ["/trace, row 4 (line 5): not JSON: expected a value at byte 0, near `bad`"]
    );
    let (records, bad) = rows(FILES[1]);
    let expected = [
        "1 {\"a\":\"x\",\"n\":1,\"l\":[1,\r\n2]}",
        r#"2 {"a":"q\"q","n":2}"#,
        r#"3 {"n":3,"l":[]}"#,
    ];
    assert_eq!(records[..3], expected);
    assert_eq!(records[3], "5 {\"a\":\"y\",\"n\":5,\"l\":[\n]}");
    // The second record has two lines, a blank line follows the third.
    assert_eq!(bad, ["/trace, row 4 (line 7): 4 cells, but the header has 3"]);
    assert_eq!(rows(FILES[3]).0, ["1 {\"n\":10}", "2 {\"n\":20}"]);
}

proptest! {
    /// With broken files and overlong rows too, the result does not depend on the buffer.
    #[test]
    fn broken_files_too(
        file in 0usize..5,
        edits in prop::collection::vec((any::<prop::sample::Index>(), "[\"\\\\{}\\[\\],:\n\r0a]"), 0..4),
        chunk in 1usize..40,
        row in prop::sample::select(vec![5usize, 12, 25, 1 << 20]),
    ) {
        let mut chars: Vec<char> = FILES[file].chars().collect();
        for (at, with) in edits {
            let at = at.index(chars.len());
            chars[at] = with.chars().next().unwrap();
        }
        let text: String = chars.iter().collect();
        prop_assert_eq!(read(text.as_bytes(), chunk, row), read(text.as_bytes(), 1 << 20, row), "{:?}", text);
    }
}
