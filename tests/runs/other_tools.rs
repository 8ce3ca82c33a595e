//! A run in the definitions of other tools: their tables, files and keys.

use serde_json::Value;

use crate::results::{json, lines};
use crate::simulated::{ends_with, evaluate, labelled, path, simulated};
use crate::support::{assert_code, stderr, stdout};

/// Each tool with a label in its closing table.
const TOOLS: [(&str, &str); 6] = [
    ("vllm", "TTFT"),
    ("sglang", "TTFT"),
    ("guidellm", "TTFT"),
    ("genai-perf", "Time To First Token"),
    ("inference-perf", "token"),
    ("aiperf", "Time to First Token"),
];

#[test]
fn each_tool_has_a_table_and_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked: Vec<&str> = TOOLS.iter().flat_map(|(name, _)| ["--as", name]).collect();
    let (output, run) = ends_with(folder.path(), "s.lua", &labelled(40, "", ""), &asked, 0);
    let plain = simulated(folder.path(), "t.lua", &labelled(4, "", ""), &[]);
    let said = stdout(&output);
    for (name, words) in TOOLS {
        assert!(
            said.to_lowercase().contains(&words.to_lowercase()),
            "{name}: {said}"
        );
        let file = format!("metrics/dialect_{}.json", name.replace('-', "_"));
        let view = json(&run, &file);
        assert!(
            view.as_object().is_some_and(|keys| !keys.is_empty()),
            "{name}: {view}"
        );
        assert!(!plain.join(&file).exists(), "{name}: only where it is asked for");
    }
    // The record gives the same results as the run.
    let again = folder.path().join("again");
    assert_code(
        &evaluate(&run, &[&asked[..], &["--to", path(&again)]].concat()),
        0,
    );
    for (name, _) in TOOLS {
        let file = format!("metrics/dialect_{}.json", name.replace('-', "_"));
        assert_eq!(json(&run, &file), json(&again, &file), "{name}");
    }
    // vLLM's keys, and values that do not depend on a definition.
    let vllm = json(&run, "metrics/dialect_vllm.json");
    assert_eq!(vllm["completed"], 80, "{vllm}");
    let tokens: u64 = lines(&run, "metrics/request_level_metrics.jsonl")
        .iter()
        .filter_map(|row| row["num_output_tokens"].as_u64())
        .sum();
    assert_eq!(vllm["total_output_tokens"], tokens);
    for key in [
        "duration",
        "request_throughput",
        "output_throughput",
        "mean_ttft_ms",
        "median_ttft_ms",
        "p99_ttft_ms",
        "mean_tpot_ms",
        "mean_itl_ms",
    ] {
        assert!(vllm[key].is_number(), "no {key} in {vllm}");
    }
}

/// AIPerf's files match its schema: every metric has its tag, a unit and values, and each request
/// has a line. Facts that the tools' values depend on but their files have no field for are printed
/// as text: the tokenizer that counted, and that the load was a rate of sessions with two requests
/// each. The run's page and its configuration also name the tokenizer.
#[test]
fn important_facts_are_written_as_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = ["--as", "vllm", "--as", "sglang", "--compat", "aiperf"];
    let (output, run) = ends_with(folder.path(), "s.lua", &labelled(40, "", ""), &asked, 0);
    let said = stdout(&output);
    let tokenizer =
        "counted here with the embedded tokenizer, which the simulator uses too; against the server's usage";
    assert_eq!(said.matches(tokenizer).count(), 2, "{said}");
    let rate = "The load requested 60 sessions per second, of up to 2 requests each";
    assert_eq!(said.matches(rate).count(), 2, "{said}");
    assert!(!said.contains("Request rate configured"), "{said}");
    assert_eq!(json(&run, "metrics/dialect_vllm.json")["request_rate"], "inf");
    let read = |file: &str| std::fs::read_to_string(run.join(file)).expect(file);
    assert!(read("aiperf/remarks.txt").contains(tokenizer));
    assert!(read("config.yml").contains("tokenizer: embedded"));
    let page = read("report.html");
    assert!(page.contains(r#"{"name":"Tokenizer","value":"the embedded tokenizer, "#));

    let single =
        r#"{ user = synthetic(10), history = 1, output = { tokens = 6, exact = true }, wait = "20ms" },"#;
    let alone = labelled(40, "", "").replace(single, "");
    let (output, run) = ends_with(folder.path(), "t.lua", &alone, &asked, 0);
    assert_eq!(json(&run, "metrics/dialect_vllm.json")["request_rate"], 60.0);
    assert!(!stdout(&output).contains("The load requested"));
}

#[test]
fn aiperf_s_files_have_aiperf_s_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(
        folder.path(),
        "s.lua",
        &labelled(60, "", ""),
        &["--compat", "aiperf"],
    );
    let export = json(&run, "aiperf/profile_export_aiperf.json");
    assert_eq!(export["schema_version"], "1.4");
    for tag in [
        "time_to_first_token",
        "inter_token_latency",
        "request_latency",
        "output_sequence_length",
    ] {
        let metric = &export[tag];
        assert!(metric["unit"].is_string(), "no unit of {tag} in {metric}");
        for statistic in ["avg", "min", "max", "p50", "p90", "p99", "std"] {
            assert!(
                metric[statistic].is_number(),
                "{statistic} of {tag} is missing in {metric}"
            );
        }
    }
    assert_eq!(export["request_count"]["avg"].as_f64(), Some(120.0));
    let rows = lines(&run, "metrics/request_level_metrics.jsonl");
    let exported = lines(&run, "aiperf/profile_export.jsonl");
    assert_eq!(exported.len(), rows.len());
    for line in &exported {
        assert!(
            line["metadata"].is_object() && line["metrics"].is_object(),
            "{line}"
        );
        assert!(line["error"].is_null(), "{line}");
        let ttft = &line["metrics"]["time_to_first_token"];
        assert_eq!(ttft["unit"], "ms", "{line}");
        assert!(ttft["value"].is_number(), "{line}");
    }
    // In virtual time a request is picked up when it is dispatched, and its first chunk has text:
    // both clocks agree.
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    let ours = mean(rows.iter().filter_map(|row| row["ttfc"].as_f64()).collect());
    let theirs = export["time_to_first_token"]["avg"].as_f64().expect("an average");
    assert!((theirs - ours * 1e3).abs() < 1e-6, "{theirs} ms, {ours} s");
    let of_lines = mean(
        exported
            .iter()
            .filter_map(|line| line["metrics"]["time_to_first_token"]["value"].as_f64())
            .collect(),
    );
    assert!((theirs - of_lines).abs() < 1e-6);
    let csv = std::fs::read_to_string(run.join("aiperf/profile_export_aiperf.csv")).expect("a table");
    assert!(csv.starts_with("Metric,"), "{csv}");
    assert!(csv.contains("Time to First Token"));
}

#[test]
fn requests_that_failed_are_errors_there_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let more = ["--compat", "aiperf", "--profile", "faulty"];
    let run = simulated(folder.path(), "s.lua", &labelled(300, "", ""), &more);
    let rows = lines(&run, "metrics/request_level_metrics.jsonl");
    let exported = lines(&run, "aiperf/profile_export.jsonl");
    let failed = rows
        .iter()
        .filter(|row| row["success"] == false && row["measured"] == true)
        .count();
    assert!(failed > 0);
    let errors = exported.iter().filter(|line| line["error"].is_object());
    assert_eq!(errors.count(), failed);
    assert_eq!(
        exported.len(),
        rows.iter().filter(|row| row["measured"] == true).count()
    );
}

#[test]
fn goodput_uses_the_metric_names_of_the_tool() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.lua", &labelled(20, "", ""), &[]);
    let view = |bound: &str| -> Value {
        let again = folder.path().join(bound);
        let threshold = format!("ttft:{bound}");
        let more = ["--as", "vllm", "--as-goodput", &threshold, "--to", path(&again)];
        assert_code(&evaluate(&run, &more), 0);
        json(&again, "metrics/dialect_vllm.json")
    };
    // Milliseconds: all requests are within an hour, none within a thousandth of a millisecond.
    let (all, none) = (view("3600000"), view("0.001"));
    let rate = |view: &Value, key: &str| view[key].as_f64().unwrap_or_else(|| panic!("{key} in {view}"));
    assert!((rate(&all, "request_goodput") - rate(&all, "request_throughput")).abs() < 1e-9);
    assert_eq!(rate(&none, "request_goodput"), 0.0);
}

#[test]
fn unknown_tool_is_rejected_with_the_list() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.lua", &labelled(4, "", ""), &[]);
    let output = evaluate(&run, &["--as", "vlm"]);
    assert_code(&output, 2);
    for (name, _) in TOOLS {
        assert!(stderr(&output).contains(name), "no {name} in {}", stderr(&output));
    }
    for more in [
        &["--compat", "vllm"][..],
        &["--as", "vllm", "--as-goodput", "ttft"],
        &["--as", "vllm", "--as-goodput", "tftt:5"],
    ] {
        let output = evaluate(&run, more);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {}", stderr(&output));
    }
}

/// Each tool receives its own thresholds, also for AIPerf's files.
#[test]
fn thresholds_apply_to_their_tool() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.lua", &labelled(20, "", ""), &[]);
    let again = folder.path().join("again");
    // No request meets vLLM's threshold; all meet those of inference-perf (seconds) and AIPerf
    // (milliseconds).
    let more = [
        "--as vllm --as inference-perf --as sglang --compat aiperf",
        "--as-goodput vllm=ttft:0.001 --as-goodput inference-perf=ttft:3600",
        "--as-goodput time_to_first_token:3600000 --to",
    ]
    .join(" ");
    let more: Vec<&str> = more.split(' ').chain([path(&again)]).collect();
    assert_code(&evaluate(&run, &more), 0);
    let vllm = json(&again, "metrics/dialect_vllm.json");
    assert_eq!(vllm["request_goodput"].as_f64(), Some(0.0), "{vllm}");
    let sglang = json(&again, "metrics/dialect_sglang.json").to_string();
    assert!(!sglang.contains("goodput"), "sglang was not selected: {sglang}");
    let aiperf = json(&again, "aiperf/profile_export_aiperf.json");
    assert_eq!(
        aiperf["good_request_count"]["avg"].as_f64(),
        Some(40.0),
        "{aiperf}"
    );
}

#[test]
fn threshold_that_no_tool_uses_is_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.lua", &labelled(4, "", ""), &[]);
    for (more, printed) in [
        ("--as-goodput ttft:500", "--as"),
        ("--as sglang --as-goodput vllm=ttft:500", "vllm"),
        ("--as genai-perf --as-goodput ttft:500", "time_to_first_token"),
        ("--as vllm --as inference-perf --as-goodput ttft:500", "vllm=ttft"),
        ("--as vllm --as-goodput vllm=itl:500", "itl"),
        ("--as vllm --as-goodput vlm=ttft:500", "vlm"),
    ] {
        let more: Vec<&str> = more.split(' ').collect();
        let output = evaluate(&run, &more);
        assert_code(&output, 2);
        assert!(
            stderr(&output).contains(printed),
            "no {printed:?} in {}",
            stderr(&output)
        );
        assert!(!run.join("evaluations").exists(), "{more:?}");
        let file = folder.path().join("s.lua");
        let out = folder.path().join("refused");
        let arguments = [&["simulate", path(&file), "--output_dir", path(&out)], &more[..]].concat();
        assert_code(&crate::support::veeksha(arguments), 2);
        assert!(!out.exists(), "{more:?}");
    }
}
