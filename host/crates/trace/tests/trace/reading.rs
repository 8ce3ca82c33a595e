//! Formats, columns and cells.

use std::io::Write as _;

use proptest::prelude::*;
use serde_json::{Value, json};
use veeksha_ports::{Layout, TimestampUnit};
use veeksha_trace::{TraceOptions, open};

use crate::support::{Echo, Folder, LayoutExt, fields, layout, options, sessions};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn lengths() -> Layout {
    layout(&[
        "input_length:count!|input_tokens",
        "hash_ids:items",
        "session_id:text",
    ])
}

#[test]
fn projects_rows_to_the_layout() {
    let folder = Folder::new();
    let text = concat!(
        r#"{"hash_ids": [1, 2], "extra": {"a": [1]}, "input_length": 12.0}"#,
        "\r\n\n",
        r#"  {"input_tokens":18446744073709551615,"session_id":7,"hash_ids":null}"#,
    );
    let trace = folder.open(text, lengths()).unwrap();
    let expected = [
        r#"{"input_length":12,"hash_ids":[1, 2]}"#,
        r#"{"input_length":18446744073709551615,"session_id":"7"}"#,
    ];
    assert_eq!(fields(&trace), expected);
    assert_eq!(trace.facts().rows, 2);
    assert_eq!(trace.facts().groups, 2);
    assert_eq!(trace.facts().first_row, expected[0]);
    assert_eq!(trace.bytes(), text.len() as u64);
    assert_eq!(trace.skipped().total, 0);
    assert_eq!(trace.span(), None);
}

#[test]
fn every_format_gives_the_same_rows() {
    let folder = Folder::new();
    let expected = [
        r#"{"input_length":3,"hash_ids":[1,2],"session_id":"a"}"#,
        r#"{"input_length":4,"session_id":"b, \"c\"\nd"}"#,
    ];
    let rows = [
        r#"{"input_length":3,"hash_ids":[1,2],"session_id":"a"}"#,
        r#"{"input_length":4,"session_id":"b, \"c\"\nd"}"#,
    ];
    let csv =
        "\u{feff}session_id,other,input_length,hash_ids\r\na,x,3,\"[1,2]\"\r\n\"b, \"\"c\"\"\nd\",,4,\r\n";
    let pretty: Vec<Value> = rows
        .iter()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    let in_member = format!(
        "{{\"meta\": {{\"data\": [1]}}, \"data\": [{}], \"more\": null}}\n",
        rows.join(" ,\n")
    );
    for (name, bytes) in [
        ("JSON Lines", rows.join("\n").into_bytes()),
        (
            "with a byte order mark",
            format!("\u{feff}{}\n", rows.join("\n")).into_bytes(),
        ),
        ("array", format!("[{}]", rows.join(",")).into_bytes()),
        ("pretty array", serde_json::to_vec_pretty(&pretty).unwrap()),
        ("member", in_member.clone().into_bytes()),
        ("CSV", csv.as_bytes().to_vec()),
        ("gzip", gzip(csv.as_bytes())),
        ("Zstandard", zstd::encode_all(in_member.as_bytes(), 3).unwrap()),
    ] {
        let mut layout = lengths();
        layout.rows_in = Some("data".into());
        let trace = folder.open(bytes, layout).unwrap();
        let found: Vec<Value> = fields(&trace)
            .iter()
            .map(|row| serde_json::from_str(row).unwrap())
            .collect();
        assert_eq!(
            found,
            expected.map(|row| serde_json::from_str::<Value>(row).unwrap()),
            "{name}"
        );
    }
}

#[test]
fn reads_a_mixed_folder_in_name_order() {
    let folder = Folder::new();
    folder.file("b.csv", "input_length\n3\n");
    folder.file("a.txt", gzip(br#"{"input_length": 1}"#));
    folder.file("c.json", "{\n  \"input_length\":\n 4\n}\n");
    folder.file("a2", "[{\"input_length\": 2}]");
    folder.file(".hidden", "nonsense");
    folder.file("d", "");
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    let trace = open(options(folder.path()), Echo::of(lengths())).unwrap();
    let expected: Vec<String> = (1..=4).map(|i| format!("{{\"input_length\":{i}}}")).collect();
    assert_eq!(fields(&trace), expected);
    let numbers: Vec<u64> = sessions(&trace, 0, 9)
        .iter()
        .map(|session| session.rows[0].0)
        .collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
}

#[test]
fn renames_take_precedence_over_names_and_aliases() {
    let folder = Folder::new();
    let renamed = |from: &str, to: &str| TraceOptions {
        columns: [(from.to_owned(), to.to_owned())].into(),
        ..options(folder.path().join("trace"))
    };
    folder.file("trace", "prompt,input_length,input_tokens\n1,2,3\n,5,6\n");
    let read = |options| fields(&open(options, Echo::of(lengths())).unwrap());
    assert_eq!(
        read(renamed("prompt", "input_length")),
        [r#"{"input_length":1}"#, r#"{"input_length":5}"#]
    );
    // An alias renames its column, and a renamed name has no other meaning.
    assert_eq!(
        read(renamed("prompt", "input_tokens")),
        [r#"{"input_length":1}"#, r#"{"input_length":5}"#]
    );
    let away = fields(&open(renamed("input_length", "session_id"), Echo::of(lengths())).unwrap());
    assert_eq!(away[0], r#"{"input_length":3,"session_id":"2"}"#);
    folder.file(
        "trace",
        "{\"prompt\":1,\"input_length\":2}\n{\"input_length\":5,\"prompt\":null}\n",
    );
    assert_eq!(
        read(renamed("prompt", "input_length")),
        [r#"{"input_length":1}"#, r#"{"input_length":5}"#]
    );
}

#[test]
fn arrivals_are_relative_to_the_earliest() {
    let folder = Folder::new();
    let at = |text: &str, unit| {
        let trace = folder
            .open(text, layout(&["t:anything"]).arrivals("t", unit))
            .unwrap();
        sessions(&trace, 0, 9)
            .iter()
            .map(|session| session.arrives_at)
            .collect::<Vec<_>>()
    };
    // Two rows of the Azure trace of 2023, and one without a time.
    let azure = "t,x\n2023-11-16 18:17:04.0319600,1\n2023-11-16 18:17:03.9799600,2\n,3\n";
    assert_eq!(
        at(azure, TimestampUnit::DateTime),
        [Some(52_000_000), Some(0), None]
    );
    let epoch = "{\"t\":1700000000.123456789}\n{\"t\":1.7e9}\n{\"t\":\"1700000000.5\"}";
    assert_eq!(
        at(epoch, TimestampUnit::Seconds),
        [Some(123_456_789), Some(0), Some(500_000_000)]
    );
    assert_eq!(
        at("{\"t\":-3}\n{\"t\":0.5}", TimestampUnit::Milliseconds),
        [Some(0), Some(3_500_000)]
    );
}

#[test]
fn grouping_and_arrival_columns_need_not_be_listed() {
    let folder = Folder::new();
    let text = "a,g,t\n1,x,5\n2,y,6\n3,x,7\n";
    let grouped = layout(&["a:count"])
        .grouped("g")
        .arrivals("t", TimestampUnit::Seconds);
    let found = sessions(&folder.open(text, grouped).unwrap(), 0, 9);
    assert_eq!(found[0].key, "x");
    assert_eq!(found[0].rows[1], (3, Some(2_000_000_000), "{\"a\":3}".into()));
}

/// Rows that can be written in every format: text, a count and a list.
fn table() -> impl Strategy<Value = Vec<(String, Option<u64>, Vec<u32>)>> {
    let text = prop_oneof![any::<String>(), "[a-z,\"\r\n ]{0,12}"];
    let row = (
        text,
        proptest::option::of(any::<u64>()),
        prop::collection::vec(any::<u32>(), 0..5),
    );
    prop::collection::vec(row, 1..12)
}

fn csv_cell(text: &str) -> String {
    if text.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

proptest! {
    #[test]
    fn any_table_is_the_same_in_every_format(table in table(), newline in "\r?\n") {
        let folder = Folder::new();
        let mut csv = format!("session_id,input_length,hash_ids{newline}");
        let mut objects = Vec::new();
        for (text, count, ids) in &table {
            let ids = serde_json::to_string(ids).unwrap();
            let count_cell = count.map(|count| count.to_string()).unwrap_or_default();
            csv += &format!("{},{count_cell},{}{newline}", csv_cell(text), csv_cell(&ids));
            let mut object = json!({"hash_ids": serde_json::from_str::<Value>(&ids).unwrap()});
            if !text.is_empty() {
                object["session_id"] = text.as_str().into();
            }
            if let Some(count) = count {
                object["input_length"] = (*count).into();
            }
            objects.push(object);
        }
        let lines = objects.iter().map(Value::to_string).collect::<Vec<_>>().join(&newline);
        let layout = layout(&["input_length:count", "hash_ids:items", "session_id:text"]);
        let read = |bytes: Vec<u8>| -> Vec<Value> {
            let trace = folder.open(bytes, layout.clone()).unwrap();
            fields(&trace).iter().map(|row| serde_json::from_str(row).unwrap()).collect()
        };
        prop_assert_eq!(&read(csv.clone().into_bytes()), &objects, "{}", csv);
        prop_assert_eq!(&read(lines.into_bytes()), &objects);
        prop_assert_eq!(&read(serde_json::to_vec(&objects).unwrap()), &objects);
        prop_assert_eq!(&read(gzip(csv.as_bytes())), &objects);
    }
}
