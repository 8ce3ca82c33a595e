//! Messages for invalid traces, and the output of the trace commands.

use std::path::Path;

use serde_json::Value;

use crate::support::{assert_code, scenario, stderr, stdout, veeksha};

/// Runs a scenario with a trace of these bytes and returns the message, without the folder's name.
fn refused(name: &str, trace: &[u8], generator: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join(name), trace).expect("a writable folder");
    let yaml = format!(
        "session_generator: {{ type: trace, trace_file: {name}, wrap_mode: false, {generator} }}\nclient: {{ api_base: 'sim://fast' }}\n"
    );
    let file = scenario(folder.path(), "s.yml", &yaml);
    let output_dir = folder.path().join("out");
    let output = veeksha([
        "simulate",
        &file,
        "--output_dir",
        output_dir.to_str().expect("UTF-8"),
    ]);
    assert_code(&output, 2);
    assert!(!output_dir.exists(), "nothing has started");
    stderr(&output).replace(&format!("{}/", folder.path().display()), "")
}

const LOG: &str = "flavor: { type: request_log }";
const GRAPH: &str = "flavor: { type: timed_synthetic_session }";

#[test]
fn unusable_rows_are_reported() {
    let good = r#"{"input_length": 10, "output_length": 5}"#;
    let row = |second: &str| format!("{good}\n{second}\n").into_bytes();
    let long = format!(
        "{{\"input_length\": 10, \"output_length\": 5, \"note\": \"{}\"}}",
        "x".repeat(3 << 20)
    );
    let cases: Vec<(&str, &str, Vec<u8>, &str)> = vec![
        ("missing-column", "t.jsonl", row(r#"{"input_length": 10}"#), LOG),
        (
            "wrong-type",
            "t.jsonl",
            row(r#"{"input_length": "ten", "output_length": 5}"#),
            LOG,
        ),
        (
            "negative-length",
            "t.jsonl",
            row(r#"{"input_length": -10, "output_length": 5}"#),
            LOG,
        ),
        (
            "length-zero",
            "t.jsonl",
            row(r#"{"input_length": 0, "output_length": 5}"#),
            LOG,
        ),
        (
            "half-a-line",
            "t.jsonl",
            format!("{good}\n{{\"input_length\": 10, \"outp").into_bytes(),
            LOG,
        ),
        (
            "not-utf-8",
            "t.jsonl",
            [
                good.as_bytes(),
                b"\n{\"input_length\": 1, \"output_length\": 2, \"x\": \"\xff\"}\n",
            ]
            .concat(),
            LOG,
        ),
        ("empty", "t.jsonl", Vec::new(), LOG),
        (
            "gigantic-line",
            "t.jsonl",
            row(&long),
            "max_row_mib: 1, flavor: { type: request_log }",
        ),
        (
            "csv-cells",
            "t.csv",
            b"input_length,output_length\n10,5\n10\n".to_vec(),
            LOG,
        ),
        (
            "csv-missing-column",
            "t.csv",
            b"input_len,output_length\n10,5\n".to_vec(),
            LOG,
        ),
        (
            "renamed-from-nowhere",
            "t.csv",
            b"input_length,output_length\n10,5\n".to_vec(),
            "columns: { prompt: input_length }, flavor: { type: request_log }",
        ),
        (
            "no-arrivals",
            "t.jsonl",
            row(good),
            "flavor: { type: request_log } }\ntraffic_scheduler: { type: fixed_schedule",
        ),
    ];
    for (name, file, trace, generator) in cases {
        insta::assert_snapshot!(format!("trace-{name}"), refused(file, &trace, generator));
    }
}

#[test]
fn invalid_graphs_are_rejected() {
    let node = |context: &str| {
        format!(
            r#"{{"session_id": 1, "input_length": 9, "new_input_length": 9, "output_length": 5{context}}}"#
        )
    };
    let graph = |id: u32, parents: &str, history: &str| {
        node(&format!(
            r#", "session_context": {{"node_id": {id}, "parent_nodes": {parents}, "history_parent": {history}, "wait_after_ready": 0}}"#
        ))
    };
    for (name, rows) in [
        ("mixed-context", [graph(0, "[]", "null"), node("")]),
        ("duplicate-node", [graph(0, "[]", "null"), graph(0, "[]", "null")]),
        ("history-outside", [graph(0, "[]", "null"), graph(1, "[]", "0")]),
        ("cycle", [graph(0, "[1]", "null"), graph(1, "[0]", "null")]),
    ] {
        insta::assert_snapshot!(
            format!("trace-{name}"),
            refused("t.jsonl", rows.join("\n").as_bytes(), GRAPH)
        );
    }
}

#[test]
fn missing_trace_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = scenario(
        folder.path(),
        "s.yml",
        "session_generator: { type: trace, trace_file: nowhere.jsonl, flavor: { type: azure } }\n",
    );
    let output = veeksha(["check", &file]);
    assert_code(&output, 2);
    assert!(
        stderr(&output).contains("nowhere.jsonl: file or folder not found"),
        "{}",
        stderr(&output)
    );
}

/// Skipped rows are counted and listed, and the others are sent.
#[test]
fn bad_rows_can_be_skipped() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(
        folder.path().join("t.jsonl"),
        "{\"input_length\": 10, \"output_length\": 5}\n{\"input_length\": -1, \"output_length\": 5}\nnot json\n{\"input_length\": 0, \"output_length\": 5}\n{\"input_length\": 12, \"output_length\": 5}\n",
    )
    .expect("a writable folder");
    let file = scenario(
        folder.path(),
        "s.yml",
        "session_generator: { type: trace, trace_file: t.jsonl, wrap_mode: false, on_bad_row: skip, flavor: { type: request_log } }\nclient: { api_base: 'sim://fast' }\n",
    );
    let output = veeksha([
        "simulate",
        &file,
        "--output_dir",
        folder.path().to_str().expect("UTF-8"),
    ]);
    assert_code(&output, 0);
    let said = stderr(&output).replace(&format!("{}/", folder.path().display()), "");
    insta::assert_snapshot!("trace-skipped", said);
    assert!(
        stdout(&output).contains("Requests answered"),
        "{}",
        stdout(&output)
    );
}

/// A missing image is reported with its row before anything is sent, or the row is skipped.
#[test]
fn unsendable_media_are_rejected() {
    let rows = "{\"text\": \"a\", \"output_length\": 2}\n{\"text\": \"b\", \"image\": \"gone.png\", \"output_length\": 2}\n";
    let flavor = "media_folder: ., flavor: { type: single_turn }";
    insta::assert_snapshot!(
        "trace-missing-picture",
        refused("t.jsonl", rows.as_bytes(), flavor)
    );
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("t.jsonl"), rows).expect("a writable folder");
    let yaml = format!(
        "session_generator: {{ type: trace, trace_file: t.jsonl, wrap_mode: false, on_bad_row: skip, {flavor} }}\nclient: {{ api_base: 'sim://fast' }}\n"
    );
    let file = scenario(folder.path(), "s.yml", &yaml);
    let output = veeksha([
        "simulate",
        &file,
        "--output_dir",
        folder.path().to_str().expect("UTF-8"),
    ]);
    assert_code(&output, 0);
    assert!(
        stderr(&output).contains("1 row of the trace skipped"),
        "{}",
        stderr(&output)
    );
}

/// A scenario that skips rows rejected by its flavor is inspected as it is replayed.
#[test]
fn inspect_skips_the_rows_that_a_run_skips() {
    for name in ["burstgpt", "sharegpt", "wildchat"] {
        let output = trace(&["inspect", &format!("scenarios/traces/{name}.lua")]);
        assert_code(&output, 0);
        assert!(stderr(&output).contains("skipped"), "{name}: {}", stderr(&output));
    }
    let output = trace(&["inspect", "scenarios/traces/burstgpt.csv"]);
    assert_code(&output, 2);
    assert!(stderr(&output).contains("on_bad_row"), "{}", stderr(&output));
}

/// Input files are never overwritten.
#[test]
fn inputs_are_not_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = |name: &str| {
        let path = folder.path().join(name);
        std::fs::copy(
            format!("{}/../scenarios/traces/{name}", env!("CARGO_MANIFEST_DIR")),
            &path,
        )
        .expect("a copy");
        path.to_str().expect("UTF-8").to_owned()
    };
    let (rows, lua) = (copy("azure.csv"), copy("azure.lua"));
    let inside = folder.path().to_str().expect("UTF-8").to_owned();
    for arguments in [
        &["convert", &lua, "--to", "request_log", "--output", &lua][..],
        &["convert", &lua, "--to", "request_log", "--output", &rows],
        &["inspect", &rows, "--plot", &rows],
        &["synthesize", &inside, "--flavor", "azure", "--output", &rows],
    ] {
        let before = (
            std::fs::read(&rows).expect("rows"),
            std::fs::read(&lua).expect("lua"),
        );
        let output = trace(arguments);
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        let after = (
            std::fs::read(&rows).expect("rows"),
            std::fs::read(&lua).expect("lua"),
        );
        assert_eq!(before, after, "{arguments:?}");
    }
}

fn trace(arguments: &[&str]) -> std::process::Output {
    veeksha([&["trace"], arguments].concat())
}

#[test]
fn a_trace_is_inspected() {
    for (name, arguments) in [
        ("inspect-azure", &["inspect", "scenarios/traces/azure.csv"][..]),
        ("inspect-mooncake", &["inspect", "scenarios/traces/mooncake.lua"]),
    ] {
        let output = trace(arguments);
        assert_code(&output, 0);
        insta::assert_snapshot!(name, stdout(&output));
    }
    let output = trace(&["inspect", "scenarios/traces/azure.csv", "--json"]);
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(report["flavor"], "azure");
    assert_eq!(report["rows"], 6);
    assert_eq!(report["portrait"]["requests"], 6);
}

#[test]
fn trace_distributions_are_plotted() {
    let folder = tempfile::tempdir().expect("a folder");
    let plot = folder.path().join("portrait.svg");
    let plot_name = plot.to_str().expect("UTF-8");
    assert_code(
        &trace(&["inspect", "scenarios/traces/azure.csv", "--plot", plot_name]),
        0,
    );
    let svg = std::fs::read_to_string(&plot).expect("the plot");
    assert!(svg.starts_with("<svg") && svg.contains("prompt tokens") && svg.trim_end().ends_with("</svg>"));
}

/// A converted trace is readable by its target flavor and has the same lengths.
#[test]
fn converted_trace_can_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let means = |path: &str, more: &[&str]| {
        let output = trace(&[&["inspect", path, "--json"], more].concat());
        assert_code(&output, 0);
        let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
        let portrait = &report["portrait"];
        (
            portrait["requests"].as_u64(),
            portrait["output_tokens"]["mean"].as_f64(),
            portrait["new_prompt_tokens"]["total"].as_f64(),
        )
    };
    let source = "scenarios/traces/mooncake.lua";
    for (format, more) in [
        ("timed_synthetic_session", &[][..]),
        ("mooncake", &["--set", "flavor.block_size=64"]),
        ("request_log", &[]),
    ] {
        let file = folder.path().join(format!("{format}.jsonl"));
        let name = file.to_str().expect("UTF-8");
        let output = trace(&[
            "convert",
            source,
            "--to",
            format,
            "--output",
            name,
            "--block-size",
            "64",
        ]);
        assert_code(&output, 0);
        let flavor = ["--flavor", format];
        let again = means(name, &[&flavor, more].concat());
        let before = means(source, &[]);
        assert_eq!((again.0, again.1), (before.0, before.1), "{format}");
    }
}

#[test]
fn synthesized_trace_resembles_its_source() {
    let output = trace(&[
        "synthesize",
        "scenarios/traces/mooncake.lua",
        "--block-size",
        "64",
        "--make",
        "200",
        "--output-multiplier",
        "2",
    ]);
    assert_code(&output, 0);
    let rows: Vec<Value> = stdout(&output)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a row"))
        .collect();
    assert!(rows.len() >= 200, "at least a request for each session");
    let mean = rows
        .iter()
        .map(|row| row["output_length"].as_f64().expect("a length"))
        .sum::<f64>()
        / rows.len() as f64;
    // The example's answers have 8 to 40 tokens.
    assert!((16.0..=80.0).contains(&mean), "{mean}");
    let again = trace(&[
        "synthesize",
        "scenarios/traces/mooncake.lua",
        "--block-size",
        "64",
        "--make",
        "200",
        "--output-multiplier",
        "2",
    ]);
    assert_eq!(stdout(&again), stdout(&output), "the same seed, the same trace");
}

/// Each option of `synthesize` affects the new trace.
#[test]
fn synthesis_multipliers_apply() {
    let rows = |more: &[&str]| -> Vec<Value> {
        let base = ["synthesize", "scenarios/traces/mooncake.lua", "--make", "60"];
        let output = trace(&[&base[..], more].concat());
        assert_code(&output, 0);
        stdout(&output)
            .lines()
            .map(|line| serde_json::from_str(line).expect("a row"))
            .collect()
    };
    let sum = |rows: &[Value], key: &str| rows.iter().filter_map(|row| row[key].as_f64()).sum::<f64>();
    let last = |rows: &[Value]| {
        rows.iter()
            .filter_map(|row| row["timestamp"].as_f64())
            .fold(0.0, f64::max)
    };
    let plain = rows(&[]);
    assert_ne!(rows(&["--seed", "7"]), plain);
    assert!(sum(&rows(&["--prompt-multiplier", "3"]), "input_length") > 1.2 * sum(&plain, "input_length"));
    assert!(sum(&rows(&["--prefix-multiplier", "3"]), "input_length") > 1.2 * sum(&plain, "input_length"));
    assert!(sum(&rows(&["--output-multiplier", "3"]), "output_length") > 2.0 * sum(&plain, "output_length"));
    let (slow, fast) = (last(&plain), last(&rows(&["--speedup", "4"])));
    assert!((slow / fast - 4.0).abs() < 0.1, "{slow} and {fast}");
    // With more roots the same sessions share fewer blocks, so there are more distinct ones.
    let blocks = |rows: &[Value]| {
        let ids = rows.iter().filter_map(|row| row["hash_ids"].as_array()).flatten();
        ids.map(Value::to_string)
            .collect::<std::collections::HashSet<_>>()
            .len()
    };
    assert!(blocks(&rows(&["--root-multiplier", "8"])) > blocks(&plain));
}

/// A part of a trace, and text measured with another tokenizer.
#[test]
fn inspected_part_is_configurable() {
    let portrait = |more: &[&str]| -> Value {
        let output = trace(&[&["inspect", "scenarios/traces/wildchat.lua", "--json"], more].concat());
        assert_code(&output, 0);
        serde_json::from_str::<Value>(&stdout(&output)).expect("JSON")["portrait"].clone()
    };
    let whole = portrait(&[]);
    assert_eq!(portrait(&["--sessions", "1"])["sessions"], 1);
    assert_eq!(whole["sessions"], 2);
    assert_eq!(portrait(&["--no-cache"]), whole);
    // A tokenizer that lacks all letters of the trace: each word, and each mark between words, is
    // one unknown token.
    let folder = tempfile::tempdir().expect("a folder");
    let vocabulary: serde_json::Map<String, Value> = (0..300)
        .map(|word: u32| {
            let letter = |place: u32| char::from(b'a' + (word / place % 26) as u8);
            let text: String = [letter(26), letter(1), letter(26)].iter().collect();
            (text, Value::from(word + 1))
        })
        .chain([("[UNK]".to_owned(), Value::from(0))])
        .collect();
    let tokenizer = serde_json::json!({
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    });
    let file = folder.path().join("tokenizer.json");
    std::fs::write(&file, tokenizer.to_string()).expect("a writable folder");
    let other = portrait(&["--tokenizer", file.to_str().expect("UTF-8")]);
    assert_eq!(other["requests"], whole["requests"]);
    assert_ne!(
        other["new_prompt_tokens"]["total"],
        whole["new_prompt_tokens"]["total"]
    );
    let output = trace(&[
        "inspect",
        "scenarios/traces/wildchat.lua",
        "--tokenizer",
        "/nowhere",
    ]);
    assert_code(&output, 2);
    assert!(stderr(&output).contains("/nowhere"), "{}", stderr(&output));
}

#[test]
fn wrong_usage_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let odd = folder.path().join("odd.csv");
    std::fs::write(&odd, "a,b\n1,2\n").expect("a writable folder");
    let odd = odd.to_str().expect("UTF-8");
    for (arguments, printed) in [
        (&["inspect", odd][..], "no flavor has these columns: a, b"),
        (&["inspect", "scenarios/quickstart.lua"], "replays no trace"),
        (
            &["inspect", odd, "--flavor", "moonshine"],
            "there is no such flavor; it must be one of azure, ",
        ),
        (
            &["convert", "scenarios/traces/azure.csv", "--to", "csv"],
            "expected one of request_log, ",
        ),
        (
            &["convert", "scenarios/traces/azure.csv", "--to", "multi_turn"],
            "session 0 of ",
        ),
        (&["inspect", "/nowhere"], "/nowhere: file or folder not found"),
        (
            &["synthesize", "scenarios/traces/azure.csv", "--speedup", "0"],
            "speedup",
        ),
    ] {
        let output = trace(arguments);
        assert_code(&output, 2);
        assert!(
            stderr(&output).contains(printed),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
    let lengths = folder.path().join("lengths.csv");
    std::fs::write(&lengths, "timestamp,input_length,output_length\n0,5,5\n1,6,6\n")
        .expect("a writable folder");
    let output = trace(&["inspect", lengths.to_str().expect("UTF-8")]);
    assert_code(&output, 2);
    assert!(
        stderr(&output).contains("seconds to the flavor `request_log` and milliseconds to `mooncake`"),
        "{}",
        stderr(&output)
    );
    // A failed conversion preserves the existing file and leaves no other.
    let kept = folder.path().join("kept.jsonl");
    std::fs::write(&kept, "precious").expect("a writable folder");
    let kept_name = kept.to_str().expect("UTF-8");
    let output = trace(&[
        "convert",
        "scenarios/traces/mooncake.lua",
        "--to",
        "single_turn",
        "--output",
        kept_name,
    ]);
    assert_code(&output, 2);
    assert_eq!(std::fs::read_to_string(&kept).expect("the file"), "precious");
    let left = std::fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(left, 3, "no unfinished file is left");

    let same = Path::new(odd);
    let output = trace(&[
        "convert",
        odd,
        "--flavor",
        "request_log",
        "--set",
        "columns.a=input_length",
        "--set",
        "columns.b=output_length",
        "--to",
        "request_log",
        "--output",
        odd,
    ]);
    assert_code(&output, 2);
    assert!(stderr(&output).contains("is read by this command"));
    assert_eq!(std::fs::read_to_string(same).expect("the trace"), "a,b\n1,2\n");
}
