//! Every view and AIPerf's files are well-formed for any run.

use proptest::prelude::*;
use serde_json::Value;
use veeksha_compat::{AiperfExport, AiperfInfo, Tool, View, ViewOptions};
use veeksha_events::Event;
use veeksha_model::{
    Chunk, ChunkKind, ErrorClass, NodeId, RequestId, RequestRecord, SessionId, Status, Usage,
};

use crate::fixture::{Request, record};
use crate::golden::differences;

const CLASSES: [ErrorClass; 9] = [
    ErrorClass::Connect,
    ErrorClass::Tls,
    ErrorClass::Timeout,
    ErrorClass::Status,
    ErrorClass::Protocol,
    ErrorClass::InStream,
    ErrorClass::Truncated,
    ErrorClass::Cancelled,
    ErrorClass::Codec,
];

/// An instant of a run, occasionally an implausible one.
fn instant() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => 0..5_000_000_000_u64,
        1 => Just(0_u64),
        1 => Just((1_u64 << 53) - 1),
    ]
}

fn chunk() -> impl Strategy<Value = Chunk> {
    (instant(), 0..ChunkKind::ALL.len(), any::<bool>()).prop_map(|(at, kind, merged)| Chunk {
        at,
        lag: 0,
        bytes: 1,
        kind: ChunkKind::ALL[kind],
        merged,
    })
}

prop_compose! {
    fn any_record()(
        stamps in (instant(), instant(), proptest::option::of(instant()), proptest::option::of(instant())),
        ends in (proptest::option::of(instant()), instant()),
        chunks in proptest::collection::vec(chunk(), 0..12),
        in_order in any::<bool>(),
        chunk_tokens in proptest::collection::vec(0..5_u32, 0..12),
        class in proptest::option::of(0..CLASSES.len()),
        tokens in (0..2000_u32, 0..50_u32, 0..100_u32, proptest::option::of(0..100_u32)),
        usage in proptest::option::of((0..2000_u32, 0..100_u32, proptest::option::of(0..500_u32), proptest::option::of(0..200_u32))),
        session in 0..20_u64,
        measured in prop::bool::weighted(0.9),
        reused in any::<bool>(),
        status in proptest::option::of(prop_oneof![Just(200_u16), Just(429), Just(500), Just(418)]),
    ) -> RequestRecord {
        let mut record = record(&Request::default());
        record.id = RequestId { session: SessionId(session), node: NodeId(0) };
        (record.intended, record.dispatched_at, record.picked_up_at, record.sent_at) = stamps;
        (record.first_byte_at, record.completed_at) = ends;
        record.chunks = chunks;
        if in_order {
            record.chunks.sort_by_key(|chunk| chunk.at);
        }
        record.chunk_tokens = chunk_tokens;
        if let Some(class) = class {
            record.status = Status::Failed { class: CLASSES[class], message: "a \"reason\", with commas".into() };
        }
        (record.total_prompt_tokens, record.template_tokens) = (tokens.0, tokens.1);
        (record.output_tokens, record.target_output_tokens) = (tokens.2, tokens.3);
        record.usage = usage.map(|(prompt, completion, cached, reasoning)| Usage { prompt, completion, cached, reasoning });
        record.output_tokens_from_usage = usage.is_some();
        (record.measured, record.connection_reused, record.http_status) = (measured, reused, status);
        record
    }
}

fn view(tool: Tool, options: &ViewOptions, records: &[RequestRecord]) -> veeksha_compat::ViewReport {
    let mut view = View::new(tool, options.clone()).unwrap();
    for record in records {
        view.on(&Event::Finished(Box::new(record.clone())));
    }
    view.finish()
}

fn thresholds(tool: Tool) -> ViewOptions {
    let metrics: &[&str] = match tool {
        Tool::Vllm | Tool::Sglang | Tool::Guidellm => &["ttft:50", "tpot:20", "e2el:500"],
        Tool::GenaiPerf => &["request_latency:500", "output_token_throughput_per_user:5"],
        Tool::InferencePerf => &["ttft:0.05", "itl:0.02"],
        Tool::Aiperf => &["request_latency:500", "output_sequence_length:3"],
    };
    ViewOptions {
        goodput: metrics.iter().map(|text| text.parse().unwrap()).collect(),
        ..ViewOptions::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_run_gives_well_formed_views(records in proptest::collection::vec(any_record(), 0..12)) {
        for tool in Tool::ALL {
            for options in [ViewOptions::default(), thresholds(tool)] {
                let report = view(tool, &options, &records);
                // Strict JSON has no NaN or infinity.
                let text = report.json().to_string();
                let read = serde_json::from_str::<Value>(&text).unwrap();
                prop_assert!(differences("", &read, report.json()).is_empty());
                for metric in &report.metrics {
                    prop_assert!(metric.value.is_none_or(f64::is_finite), "{} of {tool}", metric.name);
                }
                let name = report.metrics.iter().filter(|metric| metric.name == report.metrics[0].name);
                prop_assert_eq!(name.count(), report.metrics.len().min(1), "names are there once");
                prop_assert!(report.text().contains("Arithmetic of"));
            }
        }
    }

    #[test]
    fn unmeasured_requests_change_only_the_notes(
        records in proptest::collection::vec(any_record(), 0..8),
        drained in any_record(),
    ) {
        let mut with = records.clone();
        with.push(RequestRecord { measured: false, ..drained });
        for tool in Tool::ALL {
            let (without, with) = (
                view(tool, &thresholds(tool), &records),
                view(tool, &thresholds(tool), &with),
            );
            prop_assert_eq!(without.metrics, with.metrics);
        }
    }

    #[test]
    fn requests_are_counted_once(records in proptest::collection::vec(any_record(), 0..12)) {
        let measured = records.iter().filter(|record| record.measured).count() as f64;
        let of = |tool, names: &[&str]| {
            let report = view(tool, &ViewOptions::default(), &records);
            let values = names.iter().map(|name| report.metric(name).unwrap().value.unwrap());
            values.sum::<f64>()
        };
        prop_assert_eq!(of(Tool::Vllm, &["completed", "failed"]), measured);
        prop_assert_eq!(of(Tool::InferencePerf, &["successes.count", "failures.count"]), measured);
        let statuses = ["request_totals.successful", "request_totals.incomplete", "request_totals.errored"];
        prop_assert_eq!(of(Tool::Guidellm, &statuses), measured);
        if measured > 0.0 {
            prop_assert_eq!(of(Tool::Aiperf, &["completed_request_count.avg"]), measured);
        }
    }

    #[test]
    fn any_run_gives_well_formed_aiperf_files(records in proptest::collection::vec(any_record(), 0..12)) {
        let info = AiperfInfo {
            goodput: thresholds(Tool::Aiperf).goodput,
            slice: Some(700_000_000_000_000),
            ..AiperfInfo::default()
        };
        let mut export = AiperfExport::new(info).unwrap();
        let mut rows = 0;
        for record in &records {
            let event = Event::Finished(Box::new(record.clone()));
            export.on(&event);
            if let Some(row) = export.jsonl_line(&event) {
                let row: Value = serde_json::from_slice(&row).unwrap();
                prop_assert_eq!(&row["metadata"]["session_num"], &Value::from(record.id.session.0));
                rows += 1;
            }
        }
        prop_assert_eq!(rows, records.iter().filter(|record| record.measured).count());
        let files = export.finish();
        let text = files.json.to_string();
        let read = serde_json::from_str::<Value>(&text).unwrap();
        prop_assert!(differences("", &read, &files.json).is_empty());
        // Every row of a table has as many cells as its heading.
        let mut reader = files.csv.split("\r\n").filter(|row| !row.is_empty()).map(|row| row.split(',').count());
        prop_assert!(reader.all(|cells| cells == 15 || cells == 2), "{}", files.csv);
    }
}

/// The order in which requests finish changes the results by rounding only, except for tools that
/// compare lists by position.
#[test]
fn event_order_does_not_matter() {
    let forward = crate::golden::golden();
    let backward: Vec<Event> = forward.iter().rev().cloned().collect();
    for tool in Tool::ALL {
        let report = |events: &[Event]| {
            let mut view = View::new(tool, ViewOptions::default()).unwrap();
            events.iter().for_each(|event| view.on(event));
            view.finish()
        };
        let differences = differences("", report(&forward).json(), report(&backward).json());
        assert!(differences.is_empty(), "{tool}: {}", differences.join("\n"));
    }
}
