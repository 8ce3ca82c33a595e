//! AIPerf's files of the golden sequence, compared with those that AIPerf's own code produced.

use serde_json::{Value, json};
use veeksha_compat::{AiperfExport, AiperfFiles, AiperfInfo};
use veeksha_events::Event;

use crate::golden::{EPOCH, differences, events, fixture, fixture_json, golden};

fn info() -> AiperfInfo {
    AiperfInfo {
        benchmark_id: "run-7".into(),
        version: "veeksha-host 0.1.0".into(),
        seed: Some(42),
        cli_command: "veeksha-host run scenario.yml --compat aiperf".into(),
        input_config: json!({ "endpoint": { "type": "chat" } }),
        tokenizer: Some("the embedded tokenizer".into()),
        goodput: vec![
            "time_to_first_token:60".parse().unwrap(),
            "output_token_throughput_per_user:20".parse().unwrap(),
        ],
        slice: Some(1_000_000_000),
    }
}

fn export(events: &[Event]) -> AiperfFiles {
    let mut export = AiperfExport::new(info()).unwrap();
    events.iter().for_each(|event| export.on(event));
    export.finish()
}

/// Returns true for a metric that this host cannot compute, or that AIPerf derives from message
/// texts.
fn is_unknown(tag: &str) -> bool {
    let http = [
        "http_req_blocked",
        "http_req_sending",
        "http_req_duration",
        "http_req_connection_overhead",
        "http_req_total",
        "http_req_data_sent",
        "http_req_data_received",
        "http_req_chunks_sent",
        "http_req_chunks_received",
    ];
    http.contains(&tag) || tag == "context_overflow_count"
}

fn known(metrics: &Value) -> Value {
    let metrics = metrics.as_object().unwrap().iter();
    let known = metrics.filter(|(tag, _)| !is_unknown(tag));
    known.map(|(tag, metric)| (tag.clone(), metric.clone())).collect()
}

#[track_caller]
fn same(seen: &Value, expected: &Value) {
    let differences = differences("", seen, expected);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn json_equals_aiperfs() {
    let files = export(&golden());
    let mut seen = files.json.as_object().unwrap().clone();
    let mut take = |key: &str| seen.remove(key).unwrap_or_else(|| panic!("{key}"));
    assert_eq!(take("schema_version"), "1.4");
    assert_eq!(take("aiperf_version"), "veeksha-host 0.1.0");
    assert_eq!(take("benchmark_id"), "run-7");
    assert_eq!(take("input_config"), info().input_config);
    let run_info = json!({
        "benchmark_id": "run-7", "random_seed": 42, "trial": 0,
        "cli_command": "veeksha-host run scenario.yml --compat aiperf",
    });
    assert_eq!(take("run_info"), run_info);
    assert_eq!(
        (take("was_cancelled"), take("is_complete")),
        (json!(false), json!(true))
    );
    // The run's zero is one second after 1970; the last event came 2951 ms later.
    assert_eq!(take("start_time"), "1970-01-01T00:00:01Z");
    assert_eq!(take("end_time"), "1970-01-01T00:00:03.951Z");
    let errors = take("error_summary");
    let of = |kind: &str| {
        let errors = errors.as_array().unwrap().iter();
        errors
            .clone()
            .find(|error| error["error_details"]["type"] == kind)
            .unwrap()
            .clone()
    };
    assert_eq!(errors.as_array().unwrap().len(), 5);
    let expected = json!({
        "error_details": { "code": 503, "type": "status", "message": "the server is full" }, "count": 1,
    });
    assert_eq!(of("status"), expected);
    assert_eq!(of("InvalidInferenceResultError")["count"], 1);
    same(&Value::Object(seen), &known(&fixture_json("aiperf.json")));
}

#[test]
fn json_equals_values_worked_out_by_hand() {
    let json = export(&golden()).json;
    let close = |tag: &str, stat: &str, expected: f64| {
        let value = json[tag][stat].as_f64().unwrap_or_else(|| panic!("{tag}.{stat}"));
        assert!(
            (value - expected).abs() < 1e-9 * expected.abs().max(1.0),
            "{tag}.{stat}: {value}"
        );
    };
    // Eight answers with content; begun to the first of it: 59.5, 59.5, 49.5, 39.5, 49.5, 49.5,
    // 99.5, 1100.
    close("time_to_first_token", "avg", 1506.5 / 8.0);
    // To the last of it: 119.5, 119.5, 69.5, 39.5, 149.5, 99.5, 179.5, 1400.
    close("request_latency", "avg", 2176.5 / 8.0);
    // (Latency - TTFT) / (tokens - 1): 60/3, 60/7, 20/5, none for one token, 100/11, 50/3, 80/2,
    // 300/4.
    let itl = 20.0 + 60.0 / 7.0 + 4.0 + 100.0 / 11.0 + 50.0 / 3.0 + 40.0 + 75.0;
    close("inter_token_latency", "avg", itl / 7.0);
    // Four errors and the answer without content among 13: rates over the 2951 ms of the phase.
    close("request_count", "avg", 8.0);
    close("error_request_count", "avg", 5.0);
    close("request_throughput", "avg", 8.0 / 2.951);
    // From the first start, 0.5 ms, to the last content, 2900 ms.
    close("benchmark_duration", "avg", 2.8995);
    // Output, reasoning included: 4 + 8 + 6 + 1 + 12 + 4 + 3 + 5.
    close("total_osl", "avg", 43.0);
    close("total_reasoning_tokens", "avg", 4.0);
    // With five failures as infinite values, the median of 13 is the seventh smallest: 179.5 ms.
    close("adj_request_latency", "p50", 179.5);
    assert_eq!(json["adj_request_latency"]["p99"], Value::Null);
    // Good: a TTFT of at most 60 ms and at least 20 tokens/s/user, so an ITL of at most 50 ms: five
    // of the seven that have an ITL.
    close("good_request_count", "avg", 5.0);
    close("good_request_fraction", "avg", 5.0 / 13.0);
    // Requested 8 and got 6 (tolerance 0.4); requested 5 and got 3.
    close("osl_mismatch_count", "avg", 2.0);
    close("overall_usage_prompt_cache_read_pct", "avg", 16.0 / 97.0 * 100.0);
}

/// Returns the rows of AIPerf's CSV without those that this host cannot compute.
fn known_rows(csv: &str) -> Vec<String> {
    let unknown = [
        "HTTP Blocked",
        "HTTP Sending",
        "HTTP Duration",
        "HTTP Connection Overhead",
        "HTTP Total Time",
        "HTTP Data",
        "HTTP Chunks",
        "Context Overflow Count",
    ];
    let rows = csv.split("\r\n").map(str::to_owned);
    rows.filter(|row| !unknown.iter().any(|unknown| row.contains(unknown)))
        .collect()
}

#[test]
fn csv_equals_aiperfs() {
    let files = export(&golden());
    similar(&known_rows(&files.csv), &known_rows(&fixture("aiperf.csv")));
}

/// Asserts equal rows, except that the last of two decimals may be rounded differently.
#[track_caller]
fn similar(seen: &[String], expected: &[String]) {
    assert_eq!(
        seen.len(),
        expected.len(),
        "\n{}\n\n{}",
        seen.join("\n"),
        expected.join("\n")
    );
    for (seen, expected) in seen.iter().zip(expected) {
        let (one, other): (Vec<_>, Vec<_>) = (seen.split(',').collect(), expected.split(',').collect());
        let same = |(one, other): (&&str, &&str)| match (one.parse::<f64>(), other.parse::<f64>()) {
            (Ok(a), Ok(b)) if a.is_finite() => (a - b).abs() < 0.0101,
            _ => one == other,
        };
        let same = one.len() == other.len() && one.iter().zip(&other).all(same);
        assert!(same, "\n{seen}\n{expected}");
    }
}

#[test]
fn time_slices_equal_aiperfs() {
    let slices = export(&golden()).timeslices.unwrap();
    let seen = slices.json["timeslices"].as_array().unwrap();
    let expected = fixture_json("aiperf_slices.json");
    let expected = expected.as_array().unwrap();
    assert_eq!(seen.len(), expected.len());
    for (seen, expected) in seen.iter().zip(expected) {
        same(seen, &known(expected));
    }
    assert_eq!(slices.json["input_config"], info().input_config);
    similar(
        &known_rows(&slices.csv),
        &known_rows(&fixture("aiperf_slices.csv")),
    );
}

/// 36 requests of recorded conversations, converted and compared with AIPerf's files of them.
#[test]
fn recorded_run_equals_aiperfs_files() {
    let recorded = events("recorded.json");
    let files = export(&recorded);
    let expected = known(&fixture_json("recorded_aiperf.json"));
    let seen = files.json.as_object().unwrap().iter();
    // `json_equals_aiperfs` checks the metadata around the metrics.
    let metrics = seen.filter(|(_, value)| value.get("unit").is_some());
    let metrics: Value = metrics
        .map(|(tag, metric)| (tag.clone(), metric.clone()))
        .collect();
    same(&metrics, &expected);
    similar(
        &known_rows(&files.csv),
        &known_rows(&fixture("recorded_aiperf.csv")),
    );

    let mut export = AiperfExport::new(info()).unwrap();
    let mut rows = Vec::new();
    for event in &recorded {
        export.on(event);
        rows.extend(export.jsonl_line(event));
    }
    assert_eq!(rows.len(), 36);
    let expected = fixture_json("recorded_aiperf_rows.json");
    for (row, expected) in rows.iter().zip(expected.as_array().unwrap()) {
        let row: Value = serde_json::from_slice(row).unwrap();
        assert_eq!(row["metadata"]["session_num"], expected["session"]);
        same(&row["metrics"], &known(&expected["metrics"]));
    }
    // The first request by hand, from its line in recorded.json: taken up at 92.267188 ms, first
    // token at 126.478671, last at 315.00103; 22 tokens.
    let first: Value = serde_json::from_slice(&rows[0]).unwrap();
    let value = |tag: &str| first["metrics"][tag]["value"].as_f64().unwrap();
    assert!((value("time_to_first_token") - 34.211483).abs() < 1e-9);
    assert!((value("request_latency") - 222.733842).abs() < 1e-9);
    assert!((value("inter_token_latency") - (222.733842 - 34.211483) / 21.0).abs() < 1e-9);
    assert_eq!(value("output_sequence_length"), 22.0);
}

#[test]
fn omits_slices_without_a_slice_length() {
    let export = AiperfExport::new(AiperfInfo {
        slice: None,
        ..info()
    })
    .unwrap();
    assert_eq!(export.finish().timeslices, None);
}

#[test]
fn rows_equal_aiperfs() {
    let mut export = AiperfExport::new(info()).unwrap();
    let mut rows = Vec::new();
    for event in golden() {
        export.on(&event);
        rows.extend(export.jsonl_line(&event));
    }
    let expected = fixture_json("aiperf_rows.json");
    let expected = expected.as_array().unwrap();
    // The drained request has no row.
    assert_eq!((rows.len(), expected.len()), (13, 13));
    for (row, expected) in rows.iter().zip(expected) {
        let text = std::str::from_utf8(row).unwrap();
        assert!(
            text.ends_with('\n') && text.matches('\n').count() == 1,
            "a row is one line"
        );
        let row: Value = serde_json::from_str(text).unwrap();
        assert_eq!(row["metadata"]["session_num"], expected["session"]);
        let mut wanted = known(&expected["metrics"]);
        // AIPerf omits the list without gaps, and so does this host.
        if wanted["inter_chunk_latency"] == Value::Null {
            wanted.as_object_mut().unwrap().remove("inter_chunk_latency");
        }
        same(&row["metrics"], &wanted);
    }
    let row = |at: usize| serde_json::from_slice::<Value>(&rows[at]).unwrap();
    let first = json!({
        "session_num": 0, "x_request_id": "0/0", "x_correlation_id": "0", "conversation_id": "0",
        "root_correlation_id": "0", "turn_index": 0, "credit_issued_ns": EPOCH + 200_000,
        "request_start_ns": EPOCH + 500_000, "request_ack_ns": EPOCH + 50_000_000,
        "request_end_ns": EPOCH + 126_000_000, "worker_id": "veeksha-host",
        "record_processor_id": "veeksha-host", "benchmark_phase": "profiling", "phase_index": 0,
        "was_cancelled": false, "context_overflow_skip": false, "agent_depth": 0,
    });
    assert_eq!((&row(0)["metadata"], row(0).get("error")), (&first, None));
    assert_eq!(
        row(5)["error"],
        json!({ "code": 503, "type": "status", "message": "the server is full" })
    );
    assert_eq!(row(4)["error"]["type"], "InvalidInferenceResultError");
    let cancelled = &row(11)["metadata"];
    assert_eq!(
        (&cancelled["was_cancelled"], &cancelled["cancellation_time_ns"]),
        (&json!(true), &json!(EPOCH + 1_100_000_000))
    );
}

#[test]
fn truncated_run_is_marked_incomplete() {
    let mut events = golden();
    events.pop();
    let cut = export(&events).json;
    assert_eq!(
        (&cut["is_complete"], &cut["was_cancelled"]),
        (&json!(false), &json!(false))
    );
    assert_eq!(cut["incomplete_reason"], "The record ends before the run did.");
    events.push(Event::Interrupted { at: 3_000_000_000 });
    let cancelled = export(&events).json;
    assert_eq!(
        (&cancelled["is_complete"], &cancelled["was_cancelled"]),
        (&json!(false), &json!(true))
    );
    // An empty run still gives a file.
    let empty = export(&[]).json;
    assert_eq!(empty["request_count"], Value::Null);
    assert_eq!(empty["error_summary"], json!([]));
}

#[test]
fn rejects_threshold_for_unknown_aiperf_metric() {
    let wrong = AiperfInfo {
        goodput: vec!["ttft:500".parse().unwrap()],
        ..info()
    };
    let error = AiperfExport::new(wrong).unwrap_err().to_string();
    assert!(
        error.starts_with("the goodput of aiperf has no metric `ttft`: expected one of request_latency,"),
        "{error}"
    );
}
