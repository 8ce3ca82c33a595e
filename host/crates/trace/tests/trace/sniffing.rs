//! Sniffing a trace.

use std::io::Write as _;

use veeksha_trace::{Format, Sniffed, sniff};

use crate::support::Folder;

fn look(bytes: impl AsRef<[u8]>) -> Sniffed {
    let folder = Folder::new();
    sniff(&folder.file("trace", bytes)).unwrap()
}

#[test]
fn detects_formats_and_columns() {
    let lines = look("{\"a\":1,\"b\":[1]}\n{\"b\":2,\"c\\n\":3}\nnonsense\n");
    assert_eq!(lines.format, Format::JsonLines);
    assert_eq!(lines.columns, ["a", "b", "c\n"]);
    assert_eq!(lines.first_row, "{\"a\":1,\"b\":[1]}");
    assert_eq!((lines.rows_in, lines.compressed, lines.files), (None, false, 1));

    let array = look("[ {\"a\":1},\n{\"b\":2} ]");
    assert_eq!(
        (array.format, array.columns),
        (Format::JsonArray, vec!["a".into(), "b".into()])
    );
    assert_eq!(array.first_row, "{\"a\":1}");

    let document = look("{\"version\": 1, \"none\": [], \"data\": [{\"session_id\": 1}], \"rows\": [{}]}");
    assert_eq!(document.format, Format::JsonDocument);
    assert_eq!(document.rows_in.as_deref(), Some("data"));
    assert_eq!(
        document.columns,
        ["version", "none", "data", "rows", "session_id"]
    );
    assert!(document.first_row.starts_with("{\"version\": 1"));

    let object = look("{\n\"id\": 1,\n\"models\": []\n}\n");
    assert_eq!((object.format, object.rows_in), (Format::JsonObject, None));

    let csv = look("TIMESTAMP, ContextTokens ,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n");
    assert_eq!(csv.format, Format::Csv);
    assert_eq!(csv.columns, ["TIMESTAMP", "ContextTokens", "GeneratedTokens"]);
    assert_eq!(csv.first_row, "2023-11-16 18:17:03.9799600,4808,10");
}

#[test]
fn sniffs_compressed_files_and_folders() {
    let folder = Folder::new();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"{\"a\":1}\n").unwrap();
    folder.file("a", "");
    folder.file("b", gzip.finish().unwrap());
    folder.file("c", "{\"c\":1}\n");
    let found = sniff(folder.path()).unwrap();
    assert_eq!(found.columns, ["a"]);
    assert_eq!((found.compressed, found.files), (true, 3));
    assert!(
        sniff(&folder.file("d", "\n"))
            .unwrap_err()
            .to_string()
            .ends_with("d: no rows")
    );
    // Errors further down do not matter.
    assert_eq!(look("[{\"a\":1},{\"b\":").columns, ["a"]);
}

#[test]
fn sniffs_large_compressed_file_by_its_beginning() {
    // 24 MiB of rows in a member, of which 16 MiB are decompressed.
    let row = format!("{{\"a\":\"{}\"}},", "x".repeat(1 << 20));
    let document = format!("{{\"data\":[{}{{}}],\"more\":1}}", row.repeat(24));
    let found = look(zstd::encode_all(document.as_bytes(), 1).unwrap());
    assert_eq!(
        (found.format, found.rows_in.as_deref()),
        (Format::JsonDocument, Some("data"))
    );
    let lines = look(zstd::encode_all(row.replace("},", "}\n").repeat(24).as_bytes(), 1).unwrap());
    assert_eq!(
        (lines.format, lines.columns),
        (Format::JsonLines, vec!["a".to_owned()])
    );
    assert_eq!(lines.first_row.len(), 1 << 16);
}

#[test]
fn rejects_first_row_beyond_the_limit() {
    let folder = Folder::new();
    let path = folder.file(
        "trace",
        format!("{{\"a\":1,\"b\":\"{}\"}}\n", "x".repeat(64 << 20)),
    );
    assert_eq!(
        folder.without_path(&sniff(&path).unwrap_err().to_string()),
        "trace, row 1: longer than the limit of 67108864 bytes per row (`max_row_mib`)"
    );
}
