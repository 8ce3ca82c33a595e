//! Any bytes give rows or an error with a position.

use std::io::Write as _;

use proptest::prelude::*;
use veeksha_ports::{Grouping, Layout, MostFrequent, TimestampUnit};
use veeksha_trace::{BadRowRule, CheckExtent, Order, TraceOptions, open, sniff};

use crate::support::{Echo, Folder, LayoutExt, layout, options, source};

fn layouts() -> Vec<Layout> {
    let columns = || {
        layout(&[
            "id:text",
            "n:count|m",
            "x:number",
            "l:items",
            "o:members",
            "b:truth",
            "up:text",
            "a:anything",
        ])
    };
    let mut pools = columns();
    pools.grouping = Grouping::Pools;
    let mut kept = columns().grouped("id");
    kept.rows_in = Some("data".into());
    kept.keep = Some(MostFrequent {
        column: "n".into(),
        count: 2,
    });
    let mut timed = columns().tree("id", "up").arrivals("x", TimestampUnit::Seconds);
    timed.rows_in = Some("data".into());
    vec![
        columns().arrivals("a", TimestampUnit::DateTime),
        pools,
        kept,
        timed,
    ]
}

/// Opens any input and reads all of it.
fn survive(bytes: &[u8], on_bad_row: BadRowRule, by_arrival: bool, max_row_bytes: usize) {
    let folder = Folder::new();
    let path = folder.file("trace", bytes);
    let _ = sniff(&path);
    for layout in layouts() {
        let order = if by_arrival {
            Order::ByArrival {
                start: None,
                end: None,
            }
        } else {
            Order::Shuffled
        };
        let options = TraceOptions {
            on_bad_row,
            order,
            max_row_bytes,
            check: CheckExtent::Whole,
            ..options(&path)
        };
        match open(options, Echo::of(layout)) {
            Ok(trace) => {
                let n = trace.sessions_per_epoch();
                assert!(n > 0 && trace.facts().rows > 0);
                let sessions = source(&trace).sessions(0, n as u32).unwrap();
                assert_eq!(sessions.len() as u64, n);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

const LINES: &str = concat!(
    "{\"id\":\"a\",\"n\":1,\"x\":0.5,\"l\":[1,2],\"o\":{\"k\":null},\"b\":true,\"up\":null,\"a\":\"2023-11-16\"}\n",
    "{\"id\":\"b\",\"m\":12.0,\"x\":1e2,\"l\":\"[3]\",\"o\":\"{}\",\"b\":false,\"up\":\"a\"}\r\n\n",
    "{\"id\":\"c\\u00e9\",\"n\":18446744073709551615,\"x\":-3,\"up\":-1}\n",
);
const CSV: &str =
    "id,n,x,l,o,b,up,other\na,1,0.5,\"[1,2]\",\"{\"\"k\"\": null}\",true,,\"x\ny\"\r\nb,2,1e2,[3],{},0,a,é\n";

fn seeds() -> Vec<Vec<u8>> {
    let array = format!("[{}]", LINES.trim().replace("\r\n\n", ",").replace('\n', ","));
    let document = format!("{{\"meta\": [{{}}], \"data\":\n {array}, \"more\": 1}}");
    let pretty = serde_json::to_vec_pretty(
        &serde_json::from_str::<serde_json::Value>(LINES.lines().next().unwrap()).unwrap(),
    );
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(CSV.as_bytes()).unwrap();
    vec![
        LINES.into(),
        CSV.into(),
        array.into(),
        document.clone().into(),
        pretty.unwrap(),
        gzip.finish().unwrap(),
        zstd::encode_all(document.as_bytes(), 1).unwrap(),
    ]
}

#[test]
fn seed_corpus_opens() {
    let folder = Folder::new();
    for seed in seeds() {
        let trace = folder.open(seed, layouts().remove(3)).unwrap();
        assert!((1..=3).contains(&trace.facts().rows));
    }
}

#[test]
fn any_truncated_file_is_handled() {
    for seed in &seeds()[..5] {
        for end in 0..seed.len() {
            survive(&seed[..end], BadRowRule::Skip, end % 2 == 0, 1 << 20);
        }
    }
}

proptest! {
    #[test]
    fn changed_files_are_survived(
        seed in 0usize..7,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 1..6),
        skip in any::<bool>(),
        by_arrival in any::<bool>(),
        max_row_bytes in prop::sample::select(vec![1usize, 20, 90, 1 << 20]),
    ) {
        let mut bytes = seeds().swap_remove(seed);
        for (at, byte, kind) in edits {
            let at = at.index(bytes.len().max(1)).min(bytes.len().saturating_sub(1));
            match kind {
                _ if bytes.is_empty() => {}
                0 => bytes[at] = byte,
                1 => bytes[at] ^= 1 << (byte % 8),
                2 => bytes.insert(at, b"\"\\{}[],:\n\r \xef\xbb\xbf-0e."[usize::from(byte) % 18]),
                _ => drop(bytes.drain(at..(at + usize::from(byte % 16)).min(bytes.len()))),
            }
        }
        survive(&bytes, if skip { BadRowRule::Skip } else { BadRowRule::Refuse }, by_arrival, max_row_bytes);
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300), start in "[{\\[\"a]?", skip in any::<bool>()) {
        let bytes = [start.as_bytes(), &bytes].concat();
        survive(&bytes, if skip { BadRowRule::Skip } else { BadRowRule::Refuse }, false, 64);
    }
}

#[test]
fn changed_file_is_an_error() {
    let folder = Folder::new();
    let rows: String = (0..5000)
        .map(|i| format!("{{\"id\":\"{i}\",\"n\":{i}}}\n"))
        .collect();
    let path = folder.file("trace", &rows);
    let mut n = layout(&["id:text", "n:count!"]);
    n.warms_up = true;
    let trace = open(options(&path), Echo::of(n)).unwrap();
    let mut source = source(&trace);
    assert_eq!(source.sessions(0, 2).unwrap().len(), 2);
    // Truncated in place.
    std::fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(10)
        .unwrap();
    let error = source.sessions(4000, 2).unwrap_err();
    assert_eq!(
        folder.without_path(&error.to_string()),
        "plugin `echo` failed in `reading rows`: trace, row 4001: the file was truncated; the file has \
         changed since it was opened\n  code: VP0001 (docs/plugin-errors.md)"
    );
    // Other bytes in the same places.
    std::fs::write(&path, rows.replace('"', "'")).unwrap();
    let error = folder.without_path(&source.sessions(4000, 2).unwrap_err().to_string());
    assert!(error.contains("trace, row 4001: not JSON"), "{error}");
    assert!(
        error.ends_with("the file has changed since it was opened\n  code: VP0001 (docs/plugin-errors.md)"),
        "{error}"
    );
    std::fs::write(&path, rows.replace("\"n\":", "\"n\":-").replace("-0}", "0}")).unwrap();
    let _ = source.sessions(4000, 64);
    let _ = trace.warmup();
    // Replacing the file does not matter: the opened one is still read.
    std::fs::write(&path, &rows).unwrap();
    std::fs::remove_file(&path).unwrap();
    folder.file("trace", "other");
    assert_eq!(source.sessions(0, 5000).unwrap().len(), 5000);
}
