//! Other programs read the record: pandas' and Arrow's reader, polars, DuckDB; each that Python
//! finds on this machine.

use std::process::Command;

use crate::skip::skip;
use crate::support::plain_request;
use veeksha_events::Event;
use veeksha_model::{Chunk, ChunkKind, NodeId, RequestId, SessionId};
use veeksha_record::RunRecorder;

/// Prints the same values with each reader: sums of lists, a label, nulls, names of events.
const SCRIPT: &str = r#"
import sys
folder = sys.argv[2]
requests, events = folder + "/requests.parquet", folder + "/events.parquet"
if sys.argv[1] == "pyarrow":
    import pyarrow.parquet as pq
    rows, others = pq.read_table(requests).to_pylist(), pq.read_table(events).to_pylist()
elif sys.argv[1] == "pandas":
    import pandas
    frame = pandas.read_parquet(requests, dtype_backend="numpy_nullable")
    other = pandas.read_parquet(events, dtype_backend="numpy_nullable")
    rows, others = frame.to_dict("records"), other.to_dict("records")
    for row in rows + others:
        for name, cell in row.items():
            if cell is pandas.NA:
                row[name] = None
elif sys.argv[1] == "polars":
    import polars
    rows, others = polars.read_parquet(requests).to_dicts(), polars.read_parquet(events).to_dicts()
else:
    import duckdb
    def fetch(path):
        found = duckdb.sql(f"select * from '{path}'")
        return [dict(zip(found.columns, row)) for row in found.fetchall()]
    rows, others = fetch(requests), fetch(events)
for row in rows:
    print(
        row["session_id"],
        sum(int(at) for at in row["chunk_at_ns"]),
        [int(kind) for kind in row["chunk_kind"]],
        [bool(merged) for merged in row["chunk_merged"]],
        dict(zip(row["label_names"], row["label_values"])),
        [int(parent) for parent in row["parents"]],
        row["history_parent"],
        row["finish_reason"],
        bool(row["measured"]),
    )
for row in others:
    print(row["position"], row["event"], row["at_ns"], row["session_id"], row["intended_ns"])
"#;

#[test]
fn other_readers_return_equal_values() {
    let run = tempfile::tempdir().unwrap();
    let empty = tempfile::tempdir().unwrap();
    let mut recorder = RunRecorder::create(run.path(), "test").unwrap();
    let id = RequestId {
        session: SessionId(3),
        node: NodeId(0),
    };
    let dispatched = Event::Dispatched {
        request: id,
        intended: 5,
        at: 7,
    };
    recorder.push(&dispatched, 0).unwrap();
    for session in [3, 4] {
        let mut event = plain_request(session);
        if let Event::Finished(record) = &mut event {
            let chunk = |at, kind, merged| Chunk {
                at,
                lag: 0,
                bytes: 9,
                kind,
                merged,
            };
            record.chunks = match session {
                3 => vec![
                    chunk(10, ChunkKind::Content, false),
                    chunk(30, ChunkKind::Done, true),
                ],
                _ => Vec::new(),
            };
            record.labels = match session {
                3 => vec![("tier".into(), "gold".into()), ("sprache".into(), "süß".into())],
                _ => Vec::new(),
            };
            record.parents = vec![NodeId(1).into(); (session - 3) as usize];
            record.history_parent = (session == 4).then_some(NodeId(1));
            record.status = veeksha_events::Status::Ok {
                finish_reason: "stop".into(),
            };
            record.measured = session == 3;
        }
        recorder.push(&event, 0).unwrap();
    }
    recorder.push(&Event::RunEnded { at: 50 }, 0).unwrap();
    recorder.finish().unwrap();
    RunRecorder::create(empty.path(), "test")
        .unwrap()
        .finish()
        .unwrap();

    let expected = "3 40 [2, 6] [False, True] {'tier': 'gold', 'sprache': 'süß'} [] None stop True\n\
        4 0 [] [] {} [1] 1 stop False\n\
        0 dispatched 7 3 5\n\
        3 run_ended 50 None None\n";
    let python = std::env::var("VEEKSHA_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    for reader in ["pyarrow", "pandas", "polars", "duckdb"] {
        let found = Command::new(&python)
            .args(["-c", &format!("import {reader}")])
            .output();
        if !found.is_ok_and(|found| found.status.success()) {
            skip(reader, &format!("{python} has no module {reader}"));
            continue;
        }
        for (run, expected) in [(&run, expected), (&empty, "")] {
            let read = Command::new(&python)
                .args(["-c", SCRIPT, reader])
                .arg(run.path().join("record"))
                .output()
                .unwrap();
            let (seen, complaints) = (
                String::from_utf8_lossy(&read.stdout),
                String::from_utf8_lossy(&read.stderr),
            );
            assert_eq!(seen, expected, "{reader}: {complaints}");
            assert!(read.status.success(), "{reader}: {complaints}");
        }
    }
}
