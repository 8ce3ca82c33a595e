//! Each kind of bad input: its whole message, and what remains if bad rows are skipped.

use std::collections::BTreeMap;

use veeksha_ports::{CellType, Grouping, MostFrequent, TimestampUnit};
use veeksha_trace::{BadRowRule, CheckExtent, Order, RowProblem, TraceError, TraceOptions, open, sniff};

use crate::support::{Echo, Folder, LayoutExt, fields, layout, options, sessions};

fn lengths() -> veeksha_ports::Layout {
    layout(&[
        "input_length:count!|input_tokens",
        "hash_ids:items",
        "name:text",
        "f:number",
        "m:members",
        "b:truth",
    ])
}

#[test]
fn rejects_cells_of_another_type() {
    let folder = Folder::new();
    let refusal = |row: &str| folder.refusal(format!("{{\"input_length\":1}}\n\n{row}\n"), lengths());
    for (row, message) in [
        (
            r#"{"input_length":"12"}"#,
            r#"column `input_length`: "12" is not a whole number of 0 or more"#,
        ),
        (
            r#"{"input_tokens":1.5}"#,
            "column `input_tokens` (`input_length`): 1.5 is not a whole number of 0 or more",
        ),
        (
            r#"{"input_length":-5}"#,
            "column `input_length`: -5 must be 0 or more",
        ),
        (
            r#"{"input_length":1e300}"#,
            "column `input_length`: 1e300 does not fit into 64 bits",
        ),
        (
            r#"{"input_length":1,"f":1e999}"#,
            "column `f`: 1e999 is not a finite number",
        ),
        (
            r#"{"input_length":1,"hash_ids":{"a":1}}"#,
            r#"column `hash_ids`: {"a":1} is not a JSON array"#,
        ),
        (
            r#"{"input_length":1,"m":"[1]"}"#,
            r#"column `m`: "[1]" is not a JSON object"#,
        ),
        (
            r#"{"input_length":1,"b":0}"#,
            "column `b`: 0 is not true or false",
        ),
        (r#"{"input_length":1,"name":[]}"#, "column `name`: [] is not text"),
        (r#"{"input_length":null}"#, "missing column `input_length`"),
        (
            r#"{"Input Length":1}"#,
            "missing column `input_length`; the row has `Input Length`: `columns` can rename it",
        ),
        (r#"[1]"#, "a row must be a JSON object, got an array"),
        (r#""text""#, "a row must be a JSON object, got a string"),
        (
            r#"{"input_length":10,"input_length":20}"#,
            "duplicate column `input_length`",
        ),
        (
            r#"{"input_length":10,"input_tokens":null,"input_tok\u0065ns":20}"#,
            "duplicate column `input_tokens`",
        ),
        (
            r#"{"input_length":1,}"#,
            "not JSON: expected a key in double quotes at byte 18, near `t_length\":1,}`",
        ),
        (
            r#"{"input_length":NaN}"#,
            "not JSON: NaN and Infinity are not JSON numbers at byte 16, near `put_length\":NaN}`",
        ),
        (
            r#"{"input_length":1} {}"#,
            "not JSON: unexpected text after the object at byte 19, near `_length\":1} {}`",
        ),
        (r#"{"input_length":1"#, "not JSON: ends in the middle of a value"),
    ] {
        assert_eq!(refusal(row), format!("trace, row 2 (line 3): {message}"), "{row}");
    }
    let long = format!("{{\"input_length\":\"{}\"}}", "x".repeat(500));
    let shown = format!("\"{}...", "x".repeat(59));
    assert_eq!(
        refusal(&long),
        format!("trace, row 2 (line 3): column `input_length`: {shown} is not a whole number of 0 or more")
    );
}

#[test]
fn rejects_truncated_last_line() {
    let folder = Folder::new();
    let cut = "{\"input_length\":1}\n{\"input_length\":2,\"na";
    assert_eq!(
        folder.refusal(cut, lengths()),
        "trace, row 2: ends in the middle of a JSON value; the file seems to be truncated"
    );
    // A complete last line needs no line end.
    assert_eq!(
        folder
            .open("{\"input_length\":1}", lengths())
            .unwrap()
            .facts()
            .rows,
        1
    );
    for (document, line) in [
        ("[{\"input_length\":1},\n{\"input_len", 2),
        ("[{\"input_length\":1}", 1),
        ("[", 1),
    ] {
        assert_eq!(
            folder.refusal(document, lengths()),
            format!("trace, line {line}: ends in the middle of a JSON value; the file seems to be truncated")
        );
    }
    assert_eq!(
        folder.refusal("{\n \"input_length\": 1,\n", lengths()),
        "trace, line 3: ends in the middle of a JSON value; the file seems to be truncated"
    );
}

#[test]
fn rejects_documents_with_a_broken_frame() {
    let folder = Folder::new();
    let mut in_data = lengths();
    in_data.rows_in = Some("data".into());
    for (document, message) in [
        (
            "[{\"input_length\":1}\n{\"input_length\":2}]",
            "line 2: not JSON: expected a comma or `]` at byte 0, near `{\"input_length\":2}]`",
        ),
        (
            "[{\"input_length\":1},]",
            "line 1: not JSON: expected a value at byte 0, near `]`",
        ),
        (
            "[] []",
            "line 1: not JSON: unexpected text after the end of the document at byte 0, near `[]`",
        ),
        (
            "{\"data\":[],\n}",
            "line 2: not JSON: expected a value at byte 0, near `}`",
        ),
        (
            "{\"data\":[{\"input_length\":1}\n\n;]}",
            "line 3: not JSON: expected a comma or `]` at byte 0, near `;]}`",
        ),
    ] {
        assert_eq!(
            folder.refusal(document, in_data.clone()),
            format!("trace, {message}"),
            "{document}"
        );
    }
    let rows = "[\n{\"input_length\":1},\n{\"input_length\":-1}]";
    assert_eq!(
        folder.refusal(rows, in_data),
        "trace, row 2 (line 3): column `input_length`: -1 must be 0 or more"
    );
}

#[test]
fn rejects_bytes_that_are_not_utf8() {
    let folder = Folder::new();
    assert_eq!(
        folder.refusal(
            b"{\"input_length\":1}\n{\"input_length\":1,\"x\":\"\xff\"}\n",
            lengths()
        ),
        "trace, row 2: not UTF-8 at byte 23 of the row"
    );
    assert_eq!(
        folder.refusal(b"input_length,name\n1,\xc3\n", lengths()),
        "trace, row 1 (line 2): not UTF-8 at byte 2 of the row"
    );
    assert_eq!(
        folder.refusal(b"input_\xff,name\n1,2\n", lengths()),
        "trace, line 1: invalid header:  not UTF-8 at byte 6 of the row"
    );
    assert_eq!(
        folder.refusal(b"\xff\xfei\0n\0", lengths()),
        "trace: this is UTF-16 text; traces are JSON Lines, JSON or CSV, optionally compressed with gzip or Zstandard"
    );
}

#[test]
fn rejects_overlong_rows() {
    let folder = Folder::new();
    let long = "x".repeat(200);
    let lines = format!(
        "{{\"input_length\":1}}\n{{\"input_length\":2,\"name\":\"{long}\"}}\n{{\"input_length\":3}}\n"
    );
    let csv = format!("input_length,name\n1,a\n2,{long}\n3,\"{long}\"\n4,b\n");
    let endless = format!("input_length,name\n1,a\n2,\"{long}\n3,b\n{long}");
    let array = format!("[{{\"input_length\":1}},{{\"input_length\":2,\"name\":\"{long}\"}}]");
    let within = |bytes: &str, on_bad_row| {
        let options = TraceOptions {
            max_row_bytes: 100,
            on_bad_row,
            ..options(folder.file("trace", bytes))
        };
        open(options, Echo::of(lengths()))
    };
    let refusal =
        |bytes: &str| folder.without_path(&within(bytes, BadRowRule::Refuse).unwrap_err().to_string());
    let problem = "longer than the limit of 100 bytes per row (`max_row_mib`)";
    assert_eq!(refusal(&lines), format!("trace, row 2: {problem}"));
    assert_eq!(refusal(&csv), format!("trace, row 2 (line 3): {problem}"));
    assert_eq!(refusal(&endless), format!("trace, row 2 (line 3): {problem}"));
    assert_eq!(refusal(&array), format!("trace, line 1: {problem}"));
    let left = |bytes: &str| {
        let trace = within(bytes, BadRowRule::Skip).unwrap();
        let numbers: Vec<u64> = sessions(&trace, 0, 9)
            .iter()
            .map(|session| session.rows[0].0)
            .collect();
        (numbers, trace.skipped().total)
    };
    assert_eq!(left(&lines), (vec![1, 3], 1));
    assert_eq!(left(&csv), (vec![1, 4], 2));
    // A record without an end loses its first line, and reading continues behind it.
    assert_eq!(left(&endless), (vec![1, 3], 2));
}

#[test]
fn rejects_malformed_csv() {
    let folder = Folder::new();
    for (csv, message) in [
        (
            "input_length,name\n1,a\n2\n",
            "trace, row 2 (line 3): 1 cells, but the header has 2",
        ),
        (
            "input_length,name\n1,a,b\n",
            "trace, row 1 (line 2): 3 cells, but the header has 2",
        ),
        (
            "input_length,name\n1,\"a\nb\"\n2,\"c\n",
            "trace, row 2 (line 4): a quoted cell has no closing quote",
        ),
        (
            "input_length,name,name\n",
            "trace, line 1: duplicate column `name` in the header",
        ),
        (
            "input_length,,name\n1,2,3\n",
            "trace, line 1: invalid header:  column 2 has no name",
        ),
        (
            "name,Input Length\na,1\n",
            "trace, line 1: the header has no column `input_length` (is it `Input Length`? `columns` can rename it); its columns are `name`, `Input Length`",
        ),
        (
            "name;input_length\na;1\n",
            "trace, line 1: the header has no column `input_length` (its cells seem to be separated by `;`; use commas); its columns are `name;input_length`",
        ),
        (
            "name\tinput_length\na\t1\n",
            "trace, line 1: the header has no column `input_length` (its cells seem to be separated by tabs; use commas); its columns are `name input_length`",
        ),
        (
            "x\n1\n",
            "trace, line 1: the header has no column `input_length`; its columns are `x`",
        ),
        (
            "input_length,f\n1,inf\n",
            "trace, row 1 (line 2): column `f`: inf is not a finite number",
        ),
        (
            "input_length,name\n,a\n",
            "trace, row 1 (line 2): missing column `input_length`",
        ),
        ("input_length,name\n", "trace: no rows"),
    ] {
        assert_eq!(folder.refusal(csv, lengths()), message, "{csv:?}");
    }
}

#[test]
fn rejects_empty_traces() {
    let folder = Folder::new();
    for empty in ["", "\n \n", "\u{feff}", "[]", "[\n]\n"] {
        assert_eq!(folder.refusal(empty, lengths()), "trace: no rows", "{empty:?}");
    }
    let message = |path| {
        let error = open(options(path), Echo::of(lengths())).unwrap_err();
        error
            .to_string()
            .replace(&folder.path().display().to_string(), "F")
    };
    assert_eq!(message(folder.path().join("x")), "F/x: file or folder not found");
    let other = Folder::new();
    let error = open(options(other.path()), Echo::of(lengths()))
        .unwrap_err()
        .to_string();
    assert!(error.ends_with("the folder has no files (hidden files and sub-folders are not read)"));
}

#[test]
fn rejects_malformed_dates() {
    let folder = Folder::new();
    let refusal = |text: &str, unit| folder.refusal(text, layout(&["t:anything"]).arrivals("t", unit));
    assert_eq!(
        refusal(
            "t\n2023-11-16 18:15:46.68059\nlast week\n",
            TimestampUnit::DateTime
        ),
        "trace, row 2 (line 3): column `t`: last week is not a date; use 2023-11-16T18:15:46.68Z or 2023-11-16 18:15:46.6805900"
    );
    assert_eq!(
        refusal("{\"t\":1}\n{\"t\":\"noon\"}", TimestampUnit::Seconds),
        "trace, row 2: column `t`: \"noon\" is not a number"
    );
    assert_eq!(
        refusal("{\"t\":1e30}", TimestampUnit::Seconds),
        "trace, row 1: column `t`: 1e30 is out of range for a time"
    );
}

#[test]
fn rejects_useless_renames() {
    let folder = Folder::new();
    let refusal = |text: &str, from: &str, to: &str| {
        let options = TraceOptions {
            columns: BTreeMap::from([(from.to_owned(), to.to_owned())]),
            ..options(folder.file("trace", text))
        };
        folder.without_path(
            &open(options, Echo::of(layout(&["a:count|b", "c:text"])))
                .unwrap_err()
                .to_string(),
        )
    };
    let json = "{\"a\":1,\"x\":2}\n{\"a\":1,\"y\":2}";
    for text in [json, "a,x,y\n1,2,3\n"] {
        assert_eq!(
            refusal(text, "z", "c"),
            "trace: `columns` renames `z`, which the trace does not have (expected NAME_IN_FILE: NAME); its columns are `a`, `x`, `y`"
        );
        assert_eq!(
            refusal(text, "x", "d"),
            "`columns` renames `x` to `d`, which the flavor does not read; its columns are `a`, `c`"
        );
    }
}

#[test]
fn rejects_duplicate_ids_and_cycles() {
    let folder = Folder::new();
    let tree = || layout(&["id:integer", "up:integer"]).tree("id", "up");
    let text = "id,up\n1,-1\n2,4\n3,2\n4,3\n5,1\n1,\n6,4\n";
    assert_eq!(
        folder.refusal(text, tree()),
        "trace, row 6: column `id`: the id 1 is also that of row 1"
    );
    let circle = text.replace("1,\n", "7,\n");
    assert_eq!(
        folder.refusal(&circle, tree()),
        "trace, row 2: column `up`: the rows 2, 3, 4 continue one another in a cycle"
    );
    let skipping = TraceOptions {
        on_bad_row: BadRowRule::Skip,
        ..options(folder.file("trace", text))
    };
    let trace = open(skipping, Echo::of(tree())).unwrap();
    let skipped: Vec<u64> = trace.skipped().listed.iter().map(|bad| bad.place.row).collect();
    assert_eq!(skipped, [6, 2, 3, 4]);
    let groups: Vec<(String, Vec<u64>)> = sessions(&trace, 0, 9)
        .into_iter()
        .map(|session| (session.key, session.rows.iter().map(|row| row.0).collect()))
        .collect();
    // Row 7 continued row 4, which is skipped: it becomes a root.
    assert_eq!(groups, [("1".to_owned(), vec![1, 5]), ("6".to_owned(), vec![7])]);
}

#[test]
fn rejects_impossible_orders() {
    let folder = Folder::new();
    let text = "{\"t\":1}\n{\"t\":3}\n{}\n";
    let path = folder.file("trace", text);
    let by_arrival = |start: Option<u64>, end: Option<u64>| TraceOptions {
        order: Order::ByArrival { start, end },
        ..options(&path)
    };
    let timed = || layout(&["t:number"]).arrivals("t", TimestampUnit::Seconds);
    let message =
        |options, layout| folder.without_path(&open(options, Echo::of(layout)).unwrap_err().to_string());
    assert_eq!(
        message(by_arrival(None, None), layout(&["t:number"])),
        "recorded arrivals cannot be replayed: this flavor reads none from its trace"
    );
    let mut pools = timed();
    pools.grouping = Grouping::Pools;
    assert_eq!(
        message(by_arrival(None, None), pools),
        "recorded arrivals cannot be replayed: this flavor draws its sessions at random"
    );
    assert_eq!(
        message(by_arrival(None, None), timed()),
        "trace, row 3: arrivals cannot be replayed: no row of its session has one (column `t`)"
    );
    let skip = |options| TraceOptions {
        on_bad_row: BadRowRule::Skip,
        ..options
    };
    let trace = open(skip(by_arrival(None, None)), Echo::of(timed())).unwrap();
    assert_eq!(
        (trace.facts().rows, trace.facts().groups, trace.skipped().total),
        (2, 2, 1)
    );
    assert_eq!(
        message(skip(by_arrival(Some(500_000_000), Some(2_000_000_000))), timed()),
        "no session arrived from 0.5 s to 2 s; those of the trace arrived from 0 s to 2 s"
    );
    assert_eq!(
        message(skip(by_arrival(Some(2_000_000_001), None)), timed()),
        "no session arrived from 2.000000001 s on; those of the trace arrived from 0 s to 2 s"
    );
    folder.file("trace", "{\"t\":0}\n{\"t\":10000000}\n");
    assert_eq!(
        message(by_arrival(None, None), timed()),
        "trace, row 2: it arrived 115 days after the first; arrivals up to 104 days apart can be replayed"
    );
    // A window without the late row can be replayed, and other orders do not need its arrival.
    let early = open(by_arrival(None, Some(1)), Echo::of(timed())).unwrap();
    assert_eq!(early.sessions_per_epoch(), 1);
    let trace = open(options(&path), Echo::of(timed())).unwrap();
    assert_eq!(sessions(&trace, 1, 1)[0].arrives_at, None);
}

#[test]
fn rejects_pools_without_rows() {
    let folder = Folder::new();
    folder.file("a", "{\"a\":1}");
    folder.file("b", "\n");
    let mut pools = layout(&["a:count"]);
    pools.grouping = Grouping::Pools;
    let error = open(options(folder.path()), Echo::of(pools))
        .unwrap_err()
        .to_string();
    assert_eq!(
        folder.without_path(&error),
        "b: no rows; each file of this trace is a pool and must have at least one row"
    );
}

#[test]
fn skips_counts_and_lists_bad_rows() {
    let folder = Folder::new();
    let mut text = String::new();
    for i in 1..=300 {
        text += &match i % 3 {
            0 => format!("{{\"input_length\":-{i}}}\n"),
            1 => "half {\n".to_owned(),
            _ => format!("{{\"input_length\":{i}}}\n"),
        };
    }
    text += "{\"input_le";
    let skipping = |text: &str| {
        let options = TraceOptions {
            on_bad_row: BadRowRule::Skip,
            ..options(folder.file("trace.jsonl", text))
        };
        open(options, Echo::of(lengths()))
    };
    let trace = skipping(&format!("{{}}\n{text}")).unwrap();
    assert_eq!(trace.facts().rows, 100);
    assert_eq!(trace.skipped().total, 1 + 200 + 1);
    assert_eq!(trace.skipped().listed.len(), 100);
    let listed: Vec<String> = trace.skipped().listed[..3]
        .iter()
        .map(|bad| folder.without_path(&bad.to_string()))
        .collect();
    assert_eq!(
        listed,
        [
            "trace.jsonl, row 1: missing column `input_length`",
            "trace.jsonl, row 2: not JSON: expected a value at byte 0, near `half {`",
            "trace.jsonl, row 4: column `input_length`: -3 must be 0 or more",
        ]
    );
    // Rows keep their numbers.
    assert_eq!(
        sessions(&trace, 0, 1)[0].rows,
        [(3, None, "{\"input_length\":2}".to_owned())]
    );
    assert_eq!(
        folder.without_path(&skipping("{}\n{}\n").unwrap_err().to_string()),
        "trace.jsonl: none of its 2 rows can be used; the first is missing column `input_length`"
            .replace(
                "the first is ",
                &format!("the first is {}/trace.jsonl, row 1: ", folder.path().display())
            )
            .replace(&format!("{}/", folder.path().display()), "")
    );
}

#[test]
fn reports_rows_that_the_flavor_refuses() {
    let folder = Folder::new();
    let rows = |bad: &[usize], word: &str| -> String {
        (0..500)
            .map(|i| {
                if bad.contains(&i) {
                    format!("{{\"a\":\"{word}\"}}\n")
                } else {
                    format!("{{\"a\":\"{i}\"}}\n")
                }
            })
            .collect()
    };
    let checked = |text: String, check, on_bad_row, order| {
        let options = TraceOptions {
            check,
            on_bad_row,
            order,
            ..options(folder.file("trace", text))
        };
        open(options, Echo::of(layout(&["a:text"])))
    };
    let text = rows(&[450, 70, 200], "refuse");
    // The first in order, whatever the number of threads.
    for _ in 0..10 {
        let error = checked(text.clone(), CheckExtent::Auto, BadRowRule::Refuse, Order::File).unwrap_err();
        assert_eq!(
            folder.without_path(&error.to_string()),
            "plugin `echo` failed in `flavor.sessions`: row 71: not this one [row]\n  input: trace, row 71\n  \
             code: VP0003 (docs/plugin-errors.md)"
        );
    }
    assert!(checked(text.clone(), CheckExtent::Rows, BadRowRule::Refuse, Order::File).is_ok());
    for order in [Order::File, Order::Shuffled] {
        let trace = checked(text.clone(), CheckExtent::Auto, BadRowRule::Skip, order).unwrap();
        assert_eq!(
            (
                trace.facts().rows,
                trace.facts().groups,
                trace.sessions_per_epoch()
            ),
            (497, 497, 497)
        );
        let listed: Vec<_> = trace
            .skipped()
            .listed
            .iter()
            .map(|bad| (bad.place.row, bad.problem.clone()))
            .collect();
        let refused = |row: u64| {
            let message = format!("row {row}: not this one");
            (row, RowProblem::Refused { message })
        };
        assert_eq!(listed, [refused(71), refused(201), refused(451)]);
        let mut left = fields(&trace);
        left.sort_unstable();
        assert_eq!(left.len(), 497);
        assert!(!left.iter().any(|row| row.contains("refuse")));
    }
    // A trap in the flavor is not a bad row.
    let text = rows(&[300, 90], "trap");
    for on_bad_row in [BadRowRule::Refuse, BadRowRule::Skip] {
        let error = checked(text.clone(), CheckExtent::Whole, on_bad_row, Order::File).unwrap_err();
        assert_eq!(
            folder.without_path(&error.to_string()),
            "plugin `echo` failed in `flavor.sessions`: unreachable\n  input: trace, row 91\n  \
             code: VP0004 (docs/plugin-errors.md)"
        );
    }
    let all = checked(
        "{\"a\":\"refuse\"}".into(),
        CheckExtent::Auto,
        BadRowRule::Skip,
        Order::File,
    )
    .unwrap_err();
    assert!(matches!(all, TraceError::NoGoodRows { total: 1, .. }), "{all}");
}

#[test]
fn rejects_layout_with_duplicate_column() {
    let folder = Folder::new();
    let mut twice = layout(&["a:text"]);
    twice.columns.push(twice.columns[0].clone());
    twice.columns[1].cell = CellType::Count;
    assert_eq!(
        folder.refusal("{\"a\":1}", twice),
        "plugin `echo` failed in `flavor.layout`: duplicate column `a` in its layout\n  code: VP0014 (docs/plugin-errors.md)"
    );
    // Values that no row has cannot be kept.
    let mut keep = layout(&["a:text"]);
    keep.keep = Some(MostFrequent {
        column: "b".into(),
        count: 3,
    });
    assert_eq!(folder.refusal("{\"a\":1}", keep), "trace: no rows");
}

#[test]
fn accepts_duplicate_members_that_are_not_read() {
    let folder = Folder::new();
    let rows = "{\"input_length\":1,\"x\":1,\"x\":2,\"input_tokens\":3}\n{\"input_length\":2}\n";
    let trace = folder.open(rows, lengths()).unwrap();
    assert_eq!(fields(&trace), ["{\"input_length\":1}", "{\"input_length\":2}"]);
}

#[test]
fn many_columns_take_linear_time() {
    // Comparing each with each would be 10^11 comparisons, which takes minutes.
    let folder = Folder::new();
    let header: String = (0..300_000).map(|i| format!(",c{i}")).collect();
    let path = folder.file("csv", format!("input_length{header}\n1{}\n", ",".repeat(300_000)));
    let wide = |path: &std::path::Path| {
        let options = TraceOptions {
            max_row_bytes: 1 << 26,
            ..options(path)
        };
        open(options, Echo::of(lengths())).unwrap()
    };
    assert_eq!(fields(&wide(&path)), ["{\"input_length\":1}"]);
    let columns = sniff(&path).unwrap().columns;
    assert_eq!((columns.len(), columns[4095].as_str()), (4096, "c4094"));
    let members: String = (0..300_000).map(|i| format!("\"c{i}\":0,")).collect();
    let path = folder.file("json", format!("{{{members}\"input_length\":1}}\n"));
    assert_eq!(fields(&wide(&path)), ["{\"input_length\":1}"]);
    assert_eq!(sniff(&path).unwrap().columns.len(), 4096);
}

/// A compressed file with a broken end, which only a complete decompression detects.
fn packed_and_cut(text: &str) -> Vec<u8> {
    let mut frame = zstd::encode_all(text.as_bytes(), 1).unwrap();
    frame.truncate(frame.len() - 3);
    frame
}

#[test]
fn overlong_first_row_is_not_decompressed_completely() {
    let folder = Folder::new();
    let far = 8 << 20;
    let x = "x".repeat(far);
    let refusal = |text: &str, rows_in: Option<&str>, on_bad_row| {
        let mut layout = lengths();
        layout.rows_in = rows_in.map(Into::into);
        let options = TraceOptions {
            max_row_bytes: 1000,
            on_bad_row,
            ..options(folder.file("trace", packed_and_cut(text)))
        };
        folder.without_path(&open(options, Echo::of(layout)).unwrap_err().to_string())
    };
    let problem = "longer than the limit of 1000 bytes per row (`max_row_mib`)";
    let line = |line: u32| format!("trace, line {line}: {problem}");
    let members = format!("{{{}\"input_length\":1}}\n", "\"a\":1,".repeat(far / 6));
    for (text, rows_in, message) in [
        (format!("{{\"name\":\"{x}\"}}\n"), None, line(1)),
        (members.clone(), None, line(1)),
        (format!("[{{\"name\":\"{x}\"}}]"), None, line(1)),
        (
            format!("{{\"data\":[\n{{\"name\":\"{x}\"}}]}}"),
            Some("data"),
            line(2),
        ),
        (format!("input_length,name\n1,{x}\n"), None, line(2)),
        (
            "\0".repeat(far),
            None,
            format!("trace, line 1: invalid header:  {problem}"),
        ),
    ] {
        assert_eq!(refusal(&text, rows_in, BadRowRule::Refuse), message);
    }
    // Where bad rows are skipped, a long first row is not an error; nor is a row further down, or a
    // document whose rows come late.
    let whole = "trace: cannot be decompressed (Zstandard): ";
    let lines = "{\"input_length\":1}\n".repeat(far / 20);
    for (text, rows_in, on_bad_row) in [
        (format!("{{\"name\":\"{x}\"}}\n"), None, BadRowRule::Skip),
        (lines, None, BadRowRule::Refuse),
        (members, Some("data"), BadRowRule::Refuse),
    ] {
        let message = refusal(&text, rows_in, on_bad_row);
        assert!(message.starts_with(whole), "{message}");
    }
}
