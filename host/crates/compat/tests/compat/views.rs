//! One sequence of requests with every corner case, through each tool's own code and through its
//! view.
//!
//! The tools produced the files `tests/fixtures/<tool>.json`, see the README there; the numbers in
//! the comments are worked out by hand from the sequence and the tool's source.

use serde_json::{Value, json};
use veeksha_compat::{Tool, View, ViewOptions, ViewReport};
use veeksha_events::{Event, NeverSentReason};
use veeksha_model::{ChunkKind, NodeId, RequestId, SessionId};

use crate::fixture::{Request, record};
use crate::golden::{differences, fixture_json, golden};

fn report(tool: Tool, options: ViewOptions) -> ViewReport {
    let mut view = View::new(tool, options).unwrap();
    golden().iter().for_each(|event| view.on(event));
    view.finish()
}

fn goodput(thresholds: &[&str]) -> ViewOptions {
    ViewOptions {
        goodput: thresholds.iter().map(|text| text.parse().unwrap()).collect(),
        ..ViewOptions::default()
    }
}

fn without(mut value: Value, keys: &[&str]) -> Value {
    let object = value.as_object_mut().unwrap();
    for key in keys {
        assert!(object.remove(*key).is_some(), "{key} is not there");
    }
    value
}

#[track_caller]
fn same(seen: &Value, expected: &Value) {
    let differences = differences("", seen, expected);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn close(report: &ViewReport, name: &str, expected: f64, samples: u64) {
    let metric = report.metric(name).unwrap_or_else(|| panic!("{name}"));
    let value = metric.value.unwrap();
    assert!(
        (value - expected).abs() < 1e-9 * expected.abs().max(1.0),
        "{name}: {value} instead of {expected}"
    );
    assert_eq!(metric.samples, samples, "{name}");
}

/// Metric for which the view follows a vLLM release and not the commit of the fixture.
const PEAK: &str = "max_concurrent_requests";

#[test]
fn vllm_equals_the_tools_output() {
    let options = ViewOptions {
        percentiles: vec![50.0, 99.0, 99.9],
        ..goodput(&["ttft:60", "tpot:30", "e2el:130"])
    };
    let report = report(Tool::Vllm, options);
    let rest = ["rtfx", "num_prompts", "request_rate", "max_concurrency", PEAK];
    let expected = without(fixture_json("vllm.json"), &[PEAK]);
    same(&without(report.json().clone(), &rest), &expected);
    // The fixture's commit prints the exact peak, 2; releases print the busiest whole second since
    // the first start at 0.5 ms: all but the request that starts at 1500 ms.
    close(&report, PEAK, 9.0, 10);

    // TTFT ends with the first event that has choices, even a role. Begun to first such event, in
    // the order of the sequence: 49.5, 49.5, 39.5, 39.5, 29.5 (empty answer), 29.5 (error event: a
    // success), 49.5, 39.5, 99.5, 1100: sum 1525.5.
    close(&report, "mean_ttft_ms", 152.55, 10);
    // Latency ends with the finish event, not with usage or [DONE]: 120.5, 120.5, 70.5, 40.5, 30.5,
    // 59.5, 150.5, 99.5, 180, 1400.
    close(&report, "mean_e2el_ms", 227.2, 10);
    // Output: 4 + 8 + 6 + 1 + 0 + 3 (tokenizer: no usage after an error event) + 12 + 4 + 3
    // (tokenizer) + 5 = 46.
    close(&report, "total_output_tokens", 46.0, 10);
    // TPOT of two tokens and more: 71/3, 71/7, 31/5, 30/2, 101/11, 60/3, 80.5/2, 300/4; the answers
    // of 1 and 0 tokens have none.
    let tpot = [71.0 / 3.0, 71.0 / 7.0, 6.2, 15.0, 101.0 / 11.0, 20.0, 40.25, 75.0];
    close(&report, "mean_tpot_ms", tpot.iter().sum::<f64>() / 8.0, 8);
    // The run lasts from its zero to the last event of all, 2951 ms.
    close(&report, "duration", 2.951, 13);
    close(&report, "request_throughput", 10.0 / 2.951, 10);
    // Good: TTFT <= 60, TPOT <= 30 (0 for one token and none), E2EL <= 130: all but 850 ms chunks
    // (150.5), new connection, last.
    close(&report, "request_goodput", 7.0 / 2.951, 10);
}

#[test]
fn sglang_equals_the_tools_output() {
    let report = report(Tool::Sglang, goodput(&["ttft:60", "tpot:30", "e2el:130"]));
    let tool = fixture_json("sglang.json");
    // The result file renames some of the code's metrics.
    let renamed = [
        ("total_input", "total_input_tokens"),
        ("total_input_text", "total_input_text_tokens"),
        ("total_input_vision", "total_input_vision_tokens"),
        ("total_output", "total_output_tokens"),
        ("total_output_retokenized", "total_output_tokens_retokenized"),
    ];
    let mut expected = tool.as_object().unwrap().clone();
    for (code, file) in renamed {
        let value = expected.remove(code).unwrap();
        expected.insert(file.to_owned(), value);
    }
    // Computed, but not part of the result file.
    for key in [
        "output_throughput_retokenized",
        "total_throughput_retokenized",
        "max_itl_ms",
    ] {
        assert!(expected.remove(key).is_some(), "{key}");
    }
    let rest = ["backend", "request_rate", "max_concurrency", "accept_length"];
    same(&without(report.json().clone(), &rest), &Value::Object(expected));

    // TTFT ends with the first text or reasoning; the tool call and the empty answer have 0:
    // 59.5, 59.5, 0, 39.5, 0, 39.5, 49.5, 49.5, 99.5, 1100: sum 1496.5.
    close(&report, "mean_ttft_ms", 149.65, 10);
    // Latency ends with the last line, [DONE] or the error event:
    // 125.5, 130.5, 75.5, 42.5, 32.5, 79.5, 160.5, 104.5, 189.5, 1451: sum 2391.5.
    close(&report, "mean_e2e_latency_ms", 239.15, 10);
    // Output: without usage the requested length, 6 after the error event and 5 for the new
    // connection: 4+8+6+1+0+6+12+4+5+5.
    close(&report, "total_output_tokens", 51.0, 10);
    // From the first start, 0.5 ms, to 2951 ms; goodput of 13 sent.
    close(&report, "duration", 2.9505, 13);
    close(&report, "slo_attainment", 6.0 / 13.0, 13);
}

/// A rate of sessions is a rate of requests only where each session is one request. For 40 sessions
/// per second of two requests each, the tools print what they print without a rate, and the view
/// notes it.
#[test]
fn session_rate_is_omitted_for_multi_request_sessions() {
    let options = ViewOptions {
        session_rate: Some(40.0),
        ..ViewOptions::default()
    };
    let result = |tool, requests: u32| {
        let mut view = View::new(tool, options.clone()).unwrap();
        for event in golden() {
            let mut event = event.clone();
            if let Event::Finished(record) = &mut event {
                record.session_requests = requests;
            }
            view.on(&event);
        }
        view.finish()
    };
    let words = "The load requested 40 sessions per second, of up to 2 requests each";
    for tool in [Tool::Vllm, Tool::Sglang, Tool::InferencePerf] {
        let (one, two) = (result(tool, 1), result(tool, 2));
        assert!(one.text().contains("40.0"), "{}", one.text());
        assert!(!two.text().contains("40.0"), "{}", two.text());
        assert!(!one.text().contains("The load requested"), "{}", one.text());
        assert!(
            two.notes.iter().any(|note| note.starts_with(words)),
            "{:?}",
            two.notes
        );
        if tool != Tool::InferencePerf {
            assert_eq!(one.json()["request_rate"], 40.0);
            assert_eq!(two.json()["request_rate"], "inf");
        }
    }
    // Tools that print no requested rate need no note.
    let aiperf = result(Tool::Aiperf, 2);
    assert!(!aiperf.text().contains("The load requested"), "{}", aiperf.text());
}

#[test]
fn guidellm_equals_the_tools_output() {
    let options = ViewOptions {
        session_rate: Some(10.0),
        ..goodput(&["ttft:60", "tpot:20", "e2el:130"])
    };
    let report = report(Tool::Guidellm, options);
    same(
        &report.json()["benchmarks"][0]["metrics"],
        &fixture_json("guidellm.json"),
    );

    // Start: when the request was written. First event with text, reasoning or tool call, of the
    // eight good answers: 59, 59, 49, 39, 49, 49, 40, 1099: sum 1443.
    close(&report, "time_to_first_token_ms.successful.mean", 1443.0 / 8.0, 8);
    // "ITL": (last - first) / (tokens - 1), weighted by tokens - 1: the sum of spans over the sum
    // of weights. Spans 60, 60, 20, -, 100, 50, 80, 300; weights 3, 7, 5, 0, 11, 3, 2, 4.
    close(
        &report,
        "inter_token_latency_ms.successful.mean",
        670.0 / 35.0,
        35,
    );
    // "TPOT": (last - start) / tokens, weighted by tokens: 119, 119, 69, 39, 149, 99, 120, 1399
    // over 43 tokens.
    close(
        &report,
        "time_per_output_token_ms.successful.mean",
        2113.0 / 43.0,
        43,
    );
    // The empty answer, the refusal, the broken body and the error event are errored, the cancelled
    // one is incomplete.
    close(&report, "request_totals.errored", 4.0, 13);
    close(&report, "request_totals.incomplete", 1.0, 13);
}

#[test]
fn genai_perf_equals_the_tools_output() {
    let report = report(
        Tool::GenaiPerf,
        goodput(&["time_to_first_token:60", "inter_token_latency:25"]),
    );
    same(report.json(), &fixture_json("genai-perf.json"));

    // Reads with visible text, of the seven answers that have any; first read: 59.5, 99.5
    // (reasoning does not count), 39.5, 49.5, 49.5, 99.5, 1100: sum 1497.
    close(&report, "time_to_first_token.avg", 1497.0 / 7.0, 7);
    // Two texts out of one read are one response: the second response of that answer came 50 ms
    // after the first. 20, 20, 50, 50, 40, 100.
    close(&report, "time_to_second_token.avg", 280.0 / 6.0, 6);
    // Nine answers over the time from 0.5 ms to 2900 ms; two of them without text, which no other
    // metric counts.
    close(&report, "request_throughput.avg", 9.0 / 2.8995, 7);
    close(&report, "request_count.avg", 7.0, 7);
}

#[test]
fn inference_perf_equals_the_tools_output() {
    let thresholds = [
        "ttft:0.06",
        "tpot:0.05",
        "request_latency:0.13",
        "itl:0.1",
        "ntpot:0.1",
    ];
    let report = report(Tool::InferencePerf, goodput(&thresholds));
    let mut expected = fixture_json("inference-perf.json");
    let successes = expected["successes"].as_object_mut().unwrap();
    // The body size is not recorded, and media are not supported here.
    for key in ["request_size_bytes", "image", "video", "audio"] {
        assert!(successes.remove(key).is_some());
    }
    let throughput = successes["throughput"].as_object_mut().unwrap();
    for key in ["images_per_sec", "videos_per_sec", "audios_per_sec"] {
        assert_eq!(throughput.remove(key), Some(json!(0.0)));
    }
    same(report.json(), &expected);

    // TTFT needs two tokens of visible text: 59.5, 99.5, 39.5 (the error event), 49.5, 49.5, 99.5,
    // 1100: sum 1497.
    close(
        &report,
        "successes.latency.time_to_first_token.mean",
        1.497 / 7.0,
        7,
    );
    // Every token of an event has its time: 3 gaps of 20; 20 of 1 + 3 tokens and two zeros; 20 and
    // a zero; 3 + (50, 0, 0) + (50, 0, 0, 0, 0); 0, 50, 0; 40, 40; 0, 100, 0, 200.
    let sum = 60.0 + 20.0 + 20.0 + 100.0 + 50.0 + 80.0 + 300.0;
    let gaps = 3 + 3 + 2 + 11 + 3 + 2 + 4;
    close(
        &report,
        "successes.latency.inter_token_latency.mean",
        sum / 1000.0 / gaps as f64,
        gaps,
    );
    // Goodput covers successes only: the three failures are not among its ten requests.
    close(&report, "successes.goodput_metrics.total_requests", 10.0, 10);
}

/// Asserts the tool's own table, character by character; a half in the third decimal may be rounded
/// either way.
#[track_caller]
fn prints(tool: Tool, options: ViewOptions, file: &str) {
    let options = ViewOptions {
        session_rate: Some(10.0),
        max_concurrency: Some(8),
        ..options
    };
    let text = report(tool, options).text();
    // See `PEAK`.
    let expected = crate::golden::fixture(file).replace(
        "Peak concurrent requests:                2.00",
        "Peak concurrent requests:                9.00",
    );
    assert!(text.lines().count() > expected.lines().count());
    for (seen, expected) in text.lines().zip(expected.lines()) {
        let number = |line: &str| {
            line.get(41..)
                .and_then(|value| value.trim_end().parse::<f64>().ok())
        };
        let close = number(seen)
            .zip(number(expected))
            .is_some_and(|(a, b)| (a - b).abs() < 0.0101);
        let same = seen == expected
            || (close && seen.get(..41) == expected.get(..41) && seen.len() == expected.len());
        assert!(same, "{seen}\n{expected}");
    }
}

#[test]
fn tables_equal_the_tools_tables() {
    let vllm = ViewOptions {
        percentiles: vec![50.0, 99.0, 99.9],
        ..goodput(&["ttft:60", "tpot:30", "e2el:130"])
    };
    prints(Tool::Vllm, vllm, "vllm.txt");
    prints(
        Tool::Sglang,
        goodput(&["ttft:60", "tpot:30", "e2el:130"]),
        "sglang.txt",
    );
}

#[test]
fn notes_list_what_a_view_cannot_reproduce() {
    let notes = |tool| report(tool, ViewOptions::default()).notes;
    let states = |tool, words: &str| {
        let notes = notes(tool);
        assert!(
            notes.iter().any(|note| note == words),
            "{tool}: {}",
            notes.join("\n")
        );
    };
    for tool in Tool::ALL {
        states(tool, "Requests that opened a new connection: 1.");
        states(
            tool,
            "Requests dispatched after the end of the measurement, which are left out: 1.",
        );
        let first =
            format!("A view applies the arithmetic of {tool} to the answers that this host received;");
        assert!(notes(tool).iter().any(|note| note.starts_with(&first)));
    }
    states(
        Tool::Vllm,
        "Answers with an error event inside the stream that count as successes, as vLLM ignores such events: 1.",
    );
    // No usage was received after the error event and on the new connection.
    states(
        Tool::Sglang,
        "Answers without the server's token counts, for which sglang uses the requested length: 2.",
    );
    states(
        Tool::GenaiPerf,
        "Answers without visible text, which no metric but request_throughput counts: 2.",
    );
    // The tool call, the empty answer and the answer of one token.
    states(
        Tool::InferencePerf,
        "Answers with fewer than two tokens of visible text, which have no TTFT, TPOT and ITL here: 3.",
    );
    states(
        Tool::Guidellm,
        "Failed or cancelled answers that had started; each of their events counts as one token, as in GuideLLM: 3.",
    );
}

#[test]
fn unsent_request_changes_only_the_notes() {
    let mut view = View::new(Tool::Vllm, ViewOptions::default()).unwrap();
    golden().iter().for_each(|event| view.on(event));
    view.on(&Event::NeverSent {
        request: RequestId {
            session: SessionId(99),
            node: NodeId(0),
        },
        reason: NeverSentReason::Held,
        at: 1,
    });
    let with = view.finish();
    assert_eq!(with.metrics, report(Tool::Vllm, ViewOptions::default()).metrics);
    let words = "Requests of the workload that were never sent, which no tool counts: 1.";
    assert!(with.notes.iter().any(|note| note == words));
}

/// Without a single request the tables are still complete, and a division by zero gives null.
#[test]
fn empty_run_has_views() {
    for tool in Tool::ALL {
        let report = View::new(tool, ViewOptions::default()).unwrap().finish();
        assert!(report.text().contains(tool.reference_version()), "{tool}");
        assert!(
            report
                .metrics
                .iter()
                .all(|metric| metric.samples == 0 || tool == Tool::Guidellm)
        );
    }
    let vllm = View::new(Tool::Vllm, ViewOptions::default()).unwrap().finish();
    assert_eq!(vllm.json()["request_throughput"], Value::Null);
    assert_eq!(vllm.json()["mean_ttft_ms"], json!(0.0));
}

/// 16 sequential requests of 100 ms each, four at a time: 16 in the busiest second, 4 at once.
#[test]
fn vllm_counts_concurrent_requests_per_whole_second() {
    let mut view = View::new(Tool::Vllm, ViewOptions::default()).unwrap();
    for number in 0..16_u32 {
        let start = f64::from(number / 4) * 100.0;
        let request = Request::at(u64::from(number), [start; 4])
            .chunk(start + 50.0, ChunkKind::Content)
            .chunk(start + 100.0, ChunkKind::Finish)
            .output(1, false);
        view.on(&Event::Finished(Box::new(record(&request))));
    }
    let report = view.finish();
    close(&report, PEAK, 16.0, 16);
    let note = "at one instant there were at most 4.";
    assert!(
        report.notes.iter().any(|text| text.ends_with(note)),
        "{:?}",
        report.notes
    );
}

/// `elif usage := data.get("usage")`: usage next to `choices` is not read. The client counts two
/// tokens in two chunks, the server nine.
#[test]
fn vllm_ignores_usage_on_an_event_with_choices() {
    let usage = |event: Option<ChunkKind>| {
        let mut request = Request::at(0, [0.0; 4])
            .chunk(50.0, ChunkKind::Content)
            .chunk(60.0, ChunkKind::Content)
            .chunk(61.0, ChunkKind::Finish)
            .output(9, true)
            .chunk_tokens(&[1, 1])
            .server_prompt(99);
        if let Some(kind) = event {
            request = request.chunk(62.0, kind);
        }
        let mut view = View::new(Tool::Vllm, ViewOptions::default()).unwrap();
        view.on(&Event::Finished(Box::new(record(&request))));
        view.finish()
    };
    let separate = usage(Some(ChunkKind::Usage));
    close(&separate, "total_output_tokens", 9.0, 1);
    close(&separate, "total_input_tokens", 99.0, 1);
    let with_choices = usage(None);
    close(&with_choices, "total_output_tokens", 2.0, 1);
    assert_ne!(with_choices.json()["total_input_tokens"], 99);
    let note = "Answers whose usage came on an event with choices, which vLLM ignores; their tokens are the client's count: 1.";
    assert!(with_choices.notes.iter().any(|text| text == note));
    assert!(!separate.notes.iter().any(|text| text == note));
}

#[test]
fn concurrent_sessions_of_one_request_are_the_maximum_request_concurrency() {
    let report = |sessions: u32, requests: u32, limit: Option<u32>| {
        let options = ViewOptions {
            concurrent_sessions: Some(sessions),
            max_concurrency: limit,
            ..ViewOptions::default()
        };
        let mut view = View::new(Tool::Vllm, options).unwrap();
        for mut event in golden() {
            if let Event::Finished(record) = &mut event {
                record.session_requests = requests;
            }
            view.on(&event);
        }
        view.finish()
    };
    let line = "Maximum request concurrency:             16        ";
    assert!(report(16, 1, None).text().contains(line));
    assert_eq!(report(16, 1, None).json()["max_concurrency"], 16);
    assert_eq!(report(16, 1, Some(8)).json()["max_concurrency"], 8);
    // Sessions of two requests may have more requests in flight than there are sessions.
    let omitted = report(16, 2, None);
    assert_eq!(omitted.json()["max_concurrency"], Value::Null);
    assert!(
        omitted
            .text()
            .contains("The load ran 16 sessions concurrently, of up to 2 requests each")
    );
}
