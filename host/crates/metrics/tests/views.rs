//! Every view of a run shows the same samples: summary, slices, request lines, Lua, the report
//! page, the Chrome trace, the live view and the statistics by prompt length.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test may panic, also in its functions")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::Value;
use veeksha_events::{Event, RequestRecord, Status, request_line};
use veeksha_lua::{LuaGrants, LuaLimits, LuaScenario};
use veeksha_metrics::{ConstantSlo, LiveDistribution, Metric, PrefillStats, RunEvaluator, latencies};
use veeksha_model::{Chunk, ChunkKind, ErrorClass, NodeId, RequestId, SessionId};
use veeksha_page::{PageData, RequestSample};
use veeksha_ports::OpenMetric;
use veeksha_report::{ChromeTrace, ChromeTraceLimits};

/// The metrics that Lua exposes by name.
const IN_LUA: [Metric; 3] = [Metric::Ttfc, Metric::Tpot, Metric::EndToEnd];

const SCRIPT: &str = "
local function reading(name)
    return { observe = function(request) return request[name] end }
end
return { metrics = {
    of_ttfc = reading('ttfc'),
    of_tpot = reading('tpot'),
    of_end_to_end_latency = reading('end_to_end_latency'),
} }
";

fn lua() -> OpenMetric {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.lua");
    std::fs::write(&path, SCRIPT).unwrap();
    let limits = LuaLimits {
        load_deadline: Duration::from_secs(60),
        call_deadline: Duration::from_secs(60),
        memory_bytes: 32 << 20,
        ..LuaLimits::default()
    };
    let grants = LuaGrants {
        seed: 1,
        tokens: None,
        log: Arc::new(|_, _| {}),
        meter: Arc::default(),
    };
    let loaded = LuaScenario::load(&path, limits).unwrap();
    let evaluator = loaded.evaluator("", None, grants).unwrap();
    evaluator.metric.unwrap().open().unwrap()
}

/// The samples of each request in a view.
type Samples = BTreeMap<(u64, &'static str), f64>;

fn in_evaluation(records: &[RequestRecord]) -> Samples {
    let mut samples = Samples::new();
    for record in records {
        // Evaluated separately, so that the samples of each request are known.
        let mut evaluator = RunEvaluator::new(Vec::<ConstantSlo>::new());
        evaluator.on(&Event::Finished(Box::new(record.clone())));
        let evaluation = evaluator.finish();
        for metric in Metric::charted() {
            evaluation.samples.each_sample(metric.name(), |_, value, _| {
                assert!(
                    samples
                        .insert((record.id.session.0, metric.name()), value)
                        .is_none()
                );
            });
        }
    }
    samples
}

fn in_lua(lua: &mut OpenMetric, records: &[RequestRecord]) -> Samples {
    let counting = records.iter().filter(|record| record.measured && record.is_ok());
    let records: Vec<&RequestRecord> = counting.collect();
    let names: Vec<&str> = lua
        .definitions
        .iter()
        .map(|definition| {
            let metric = IN_LUA
                .into_iter()
                .find(|metric| definition.name == format!("of_{metric}"));
            metric.unwrap().name()
        })
        .collect();
    let seen = lua.collector.observe(&records).unwrap();
    seen.iter()
        .map(|sample| {
            let record = records[sample.of.unwrap() as usize];
            ((record.id.session.0, names[sample.metric as usize]), sample.value)
        })
        .collect()
}

fn in_request_lines(records: &[RequestRecord]) -> Samples {
    let mut samples = Samples::new();
    for record in records.iter().filter(|record| record.measured && record.is_ok()) {
        let mut line = Vec::new();
        request_line(&mut line, record).unwrap();
        let line: Value = serde_json::from_slice(&line).unwrap();
        for metric in Metric::charted() {
            if let Some(value) = line[metric.name()].as_f64() {
                samples.insert((record.id.session.0, metric.name()), value);
            }
        }
    }
    samples
}

/// The metrics that the Chrome trace has as arguments of a slice.
const IN_CHROME_TRACE: [Metric; 2] = [Metric::Ttfc, Metric::EndToEnd];

fn in_chrome_trace(records: &[RequestRecord]) -> Samples {
    let mut trace = ChromeTrace::new(ChromeTraceLimits::default());
    for record in records {
        trace.on(&Event::Finished(Box::new(record.clone())));
    }
    let mut written = Vec::new();
    trace.write(&mut written).unwrap();
    let slices: Vec<Value> = serde_json::from_slice(&written).unwrap();
    let mut samples = Samples::new();
    for arguments in slices.iter().map(|slice| &slice["args"]) {
        if arguments["measured"] != true || arguments["error_class"].is_string() {
            continue;
        }
        for metric in IN_CHROME_TRACE {
            if let Some(value) = arguments[metric.name()].as_f64() {
                let session = arguments["session_id"].as_u64().unwrap();
                samples.insert((session, metric.name()), value);
            }
        }
    }
    samples
}

/// The latencies by the instants that the page draws, in whole microseconds.
fn by_instants_on_page(records: &[RequestRecord]) -> Samples {
    let page = page(records);
    let requests = &page["requests"];
    let mut samples = Samples::new();
    for (row, session) in requests["session"].as_array().unwrap().iter().enumerate() {
        if requests["drained"][row] == 1 || requests["failed"][row].is_u64() {
            continue;
        }
        for (metric, column) in [(Metric::Ttfc, "first_chunk"), (Metric::EndToEnd, "last_chunk")] {
            if let Some(at) = requests[column][row].as_f64() {
                let dispatched = requests["dispatched"][row].as_f64().unwrap();
                samples.insert(
                    (session.as_u64().unwrap(), metric.name()),
                    (at - dispatched) / 1e6,
                );
            }
        }
    }
    samples
}

fn page(records: &[RequestRecord]) -> Value {
    let mut sample = RequestSample::new(1000);
    for record in records {
        sample.on(&Event::Finished(Box::new(record.clone())));
    }
    let data = PageData {
        requests: sample.finish(),
        ..PageData::default()
    };
    serde_json::from_str(&data.json()).unwrap()
}

fn on_page(records: &[RequestRecord]) -> Samples {
    let data = page(records);
    let requests = &data["requests"];
    let mut samples = Samples::new();
    for column in requests["metrics"].as_array().unwrap() {
        let metric: Metric = column["name"].as_str().unwrap().parse().unwrap();
        for (row, value) in column["values"].as_array().unwrap().iter().enumerate() {
            let is_drained = requests["drained"][row] == 1;
            let has_failed = requests["failed"][row].is_u64();
            if let Some(value) = value.as_f64().filter(|_| !is_drained && !has_failed) {
                let session = requests["session"][row].as_u64().unwrap();
                samples.insert(
                    (session, metric.name()),
                    value / column["divisor"].as_f64().unwrap(),
                );
            }
        }
    }
    samples
}

fn only(samples: &Samples, metrics: &[Metric]) -> Samples {
    let wanted = |name: &str| metrics.iter().any(|metric| metric.name() == name);
    samples
        .iter()
        .filter(|((_, name), _)| wanted(name))
        .map(|(key, value)| (*key, *value))
        .collect()
}

/// Compares two views; values may differ by this relative tolerance.
fn same(one: &Samples, other: &Samples, tolerance: f64) -> Result<(), TestCaseError> {
    prop_assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (key, value) in one {
        let found = other[key];
        prop_assert!(
            (found - value).abs() <= tolerance * value.abs(),
            "{key:?}: {value} and {found}"
        );
    }
    Ok(())
}

fn record() -> impl Strategy<Value = RequestRecord> {
    let gap = prop_oneof![Just(0u64), 1u64..2_000_000, 1_000_000u64..3_000_000_000];
    let kind = prop_oneof![
        6 => Just(ChunkKind::Content),
        1 => Just(ChunkKind::Reasoning),
        1 => Just(ChunkKind::Tool),
        1 => Just(ChunkKind::Role),
    ];
    (
        prop::collection::vec((gap, kind, 0u32..25), 0..9),
        prop::option::weighted(0.5, 0u64..50_000_000),
        prop::option::weighted(0.5, 0u32..60),
        0u64..1_000_000_000,
        0u64..50_000_000,
        prop::bool::weighted(0.8),
        prop::bool::weighted(0.8),
        any::<bool>(),
    )
        .prop_map(
            |(chunks, finish, usage, intended, late, measured, answered, counted)| {
                let mut record = RequestRecord::answered(RequestId {
                    session: SessionId(0),
                    node: NodeId(0),
                });
                record.intended = intended;
                record.dispatched_at = intended + late;
                record.sent_at = Some(record.dispatched_at + 20_000);
                let mut at = record.dispatched_at + 100_000;
                for (gap, kind, tokens) in &chunks {
                    at += gap;
                    record.chunks.push(Chunk {
                        at,
                        lag: 0,
                        bytes: 1,
                        kind: *kind,
                        merged: false,
                    });
                    if counted && kind.is_generated() {
                        record.chunk_tokens.push(*tokens);
                    }
                }
                if let Some(gap) = finish {
                    at += gap;
                    record.chunks.push(Chunk {
                        at,
                        lag: 0,
                        bytes: 1,
                        kind: ChunkKind::Finish,
                        merged: false,
                    });
                }
                let by_host = record.chunk_tokens.iter().sum();
                record.output_tokens = usage.unwrap_or(by_host);
                record.output_tokens_from_usage = usage.is_some();
                record.completed_at = at;
                record.processed_at = at;
                record.measured = measured;
                if !answered {
                    record.status = Status::Failed {
                        class: ErrorClass::Truncated,
                        message: "cut".into(),
                    };
                }
                record
            },
        )
}

fn close(summary: Option<LiveDistribution>, samples: &[f64]) -> Result<(), TestCaseError> {
    prop_assert_eq!(summary.map_or(0, |summary| summary.count), samples.len() as u64);
    if let Some(summary) = summary {
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        // Three digits, and a nanosecond of rounding.
        prop_assert!(
            (summary.mean - mean).abs() <= 2e-3 * mean + 2e-9,
            "{} and {mean}",
            summary.mean
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_view_has_the_same_samples(records in prop::collection::vec(record(), 1..12)) {
        let mut records = records;
        for (session, record) in (0u64..).zip(&mut records) {
            record.id.session = SessionId(session);
        }
        let expected = in_evaluation(&records);
        // Reading JSON back has an error in the last digit.
        same(&expected, &in_request_lines(&records), 1e-15)?;
        same(&expected, &on_page(&records), 5e-6)?;
        same(&only(&expected, &IN_CHROME_TRACE), &in_chrome_trace(&records), 1e-15)?;
        // Truncated to microseconds; the shortest latency is 100 us.
        same(&only(&expected, &IN_CHROME_TRACE), &by_instants_on_page(&records), 0.02)?;
        same(&only(&expected, &IN_LUA), &in_lua(&mut lua(), &records), 0.0)?;

        let mut evaluator = RunEvaluator::new(Vec::<ConstantSlo>::new());
        let mut prefill = PrefillStats::new();
        for record in &records {
            evaluator.on(&Event::Finished(Box::new(record.clone())));
            prefill.on(record);
        }
        let of = |metric: Metric| -> Vec<f64> { only(&expected, &[metric]).into_values().collect() };
        let live = {
            let mut live = RunEvaluator::new(Vec::<ConstantSlo>::new());
            for record in records.iter().filter(|record| record.measured) {
                live.on(&Event::Finished(Box::new(record.clone())));
            }
            live.live()
        };
        close(live.ttfc, &of(Metric::Ttfc))?;
        close(live.tpot, &of(Metric::Tpot))?;
        close(live.end_to_end, &of(Metric::EndToEnd))?;
        let mut by_length: Vec<f64> = prefill.groups().flat_map(|(_, times)| times.to_vec()).collect();
        let mut ttfc = of(Metric::Ttfc);
        by_length.sort_unstable_by(f64::total_cmp);
        ttfc.sort_unstable_by(f64::total_cmp);
        prop_assert_eq!(by_length, ttfc);

        let evaluation = evaluator.finish();
        let (_, slices) = evaluation.slices.table();
        let (columns, _) = evaluation.slices.table();
        for metric in Metric::charted() {
            let samples = of(metric);
            let count = evaluation.metric(metric).map_or(0, |summary| summary.count);
            prop_assert_eq!(count, samples.len(), "{}", metric);
            let column = columns.iter().position(|name| *name == format!("{metric}_count"));
            prop_assert_eq!(column.is_some(), metric.definition_of().in_slices, "{}", metric);
            if let Some(column) = column {
                let in_slices: f64 = slices.iter().filter_map(|slice| slice[column]).sum();
                prop_assert_eq!(in_slices, samples.len() as f64, "{}", metric);
            }
        }
    }
}

/// The end-to-end latency of these ends with the finish event.
#[test]
fn tool_call_and_unstreamed_answer_have_the_same_latency_in_every_view() {
    let chunk = |at, kind| Chunk {
        at,
        lag: 0,
        bytes: 1,
        kind,
        merged: false,
    };
    let answered = |session, chunks| {
        let mut record = RequestRecord::answered(RequestId {
            session: SessionId(session),
            node: NodeId(0),
        });
        record.chunks = chunks;
        record.output_tokens = 9;
        record.completed_at = 80_000_000;
        record
    };
    let tool_call = vec![
        chunk(10_000_000, ChunkKind::Tool),
        chunk(30_000_000, ChunkKind::Tool),
        chunk(70_000_000, ChunkKind::Finish),
    ];
    let unstreamed = vec![chunk(50_000_000, ChunkKind::Finish)];
    let records = [answered(0, tool_call), answered(1, unstreamed)];
    let expected = Samples::from([
        ((0, "ttfc"), 0.010),
        ((0, "end_to_end_latency"), 0.070),
        ((1, "end_to_end_latency"), 0.050),
    ]);
    for view in [
        only(&in_evaluation(&records), &IN_CHROME_TRACE),
        only(&in_request_lines(&records), &IN_CHROME_TRACE),
        only(&on_page(&records), &IN_CHROME_TRACE),
        by_instants_on_page(&records),
        in_chrome_trace(&records),
    ] {
        same(&expected, &view, 1e-9).unwrap();
    }
}

/// Chunks of one read: neither the host nor Lua has a TPOT for them.
#[test]
fn lua_has_no_tpot_where_the_host_has_none() {
    let mut short = RequestRecord::answered(RequestId {
        session: SessionId(0),
        node: NodeId(0),
    });
    short.output_tokens = 3;
    let chunk = |kind| Chunk {
        at: 5_000_000,
        lag: 0,
        bytes: 1,
        kind,
        merged: false,
    };
    short.chunks = vec![chunk(ChunkKind::Content); 3];
    assert_eq!(latencies(&short).tpot, None);
    let seen = in_lua(&mut lua(), &[short]);
    assert_eq!(
        seen.keys().map(|(_, name)| *name).collect::<Vec<_>>(),
        ["end_to_end_latency", "ttfc"]
    );
}
