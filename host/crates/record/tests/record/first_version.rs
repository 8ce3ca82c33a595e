//! A record of version 1 that lies in the project stays readable, bit by bit the same events:
//! codes, names and columns of the format do not change their meaning. `tests/fixtures/version_1`
//! was written by `write_the_fixture` when version 1 was new.

use std::{ops::ControlFlow, path::PathBuf};

use veeksha_events::{
    Event, NeverSentReason, PluginCall, RequestRecord, RunInfo, SessionEnd, Status, ThreadSample,
};
use veeksha_model::{
    Better, Chunk, ChunkKind, ErrorClass, Held, HistoryMode, MetricDefinition, MetricSample, NodeId,
    Recorded, RequestId, SessionId, StampSource, Usage,
};
use veeksha_record::{RunRecord, RunRecorder};

fn fixture() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/version_1")
}

fn id(session: u64, node: u32) -> RequestId {
    RequestId {
        session: SessionId(session),
        node: NodeId(node),
    }
}

/// A record in which every field has a distinct value.
fn answered() -> RequestRecord {
    let kinds = [
        ChunkKind::Role,
        ChunkKind::Reasoning,
        ChunkKind::Content,
        ChunkKind::Tool,
        ChunkKind::Finish,
        ChunkKind::Usage,
        ChunkKind::Done,
        ChunkKind::Comment,
    ];
    let chunk = |(index, kind): (usize, ChunkKind)| Chunk {
        at: 2_000_000_000 + 20_000_000 * index as u64,
        lag: 7_000 + index as u32,
        bytes: 150 + index as u32,
        kind,
        merged: index == 5,
    };
    RequestRecord {
        id: id(7, 2),
        session_requests: 4,
        parents: vec![NodeId(0).into(), NodeId(1).into()],
        history_parent: Some(NodeId(1)),
        wait_after_ready: 250_000_000,
        cancellation: None,
        intended: 1_000_000_001,
        held: Held {
            sessions: 1,
            in_flight: 2,
            in_prefill: 3,
        },
        dispatched_at: 1_000_000_011,
        picked_up_at: Some(1_000_000_012),
        sent_at: Some(1_000_000_013),
        first_byte_at: Some(1_900_000_000),
        completed_at: 2_060_000_000,
        processed_at: 2_150_000_000,
        stamps: StampSource::Kernel,
        chunks: kinds.into_iter().enumerate().map(chunk).collect(),
        chunk_tokens: vec![2, 1, 3],
        status: Status::Ok {
            finish_reason: "tool_calls".into(),
        },
        http_status: Some(200),
        target_prompt_tokens: 101,
        prompt_tokens: 102,
        total_prompt_tokens: 1_103,
        target_output_tokens: Some(64),
        output_tokens: 6,
        output_tokens_from_usage: true,
        usage: Some(Usage {
            prompt: 1_110,
            completion: 6,
            cached: Some(960),
            reasoning: Some(2),
        }),
        connection_reused: true,
        server: 3,
        resolve: Some(11),
        connect: Some(12),
        tls: Some(13),
        retried: true,
        measured: true,
        template_tokens: 9,
        history_mode: HistoryMode::Recorded,
        recorded: Some(Recorded {
            at: Some(900_000_000),
            latency: Some(1_200_000_000),
            prompt_tokens: Some(1_111),
            output_tokens: Some(66),
        }),
        ideal_cached_tokens: Some(1_000),
        cache: None,
        body_digest: None,
        response_id: None,
        trace_id: None,
        // The fixture lacks the column.
        output_exact: false,
        labels: vec![("tier".into(), "gold".into()), ("leer".into(), String::new())],
    }
}

fn failed() -> RequestRecord {
    RequestRecord {
        id: id(u64::from(u32::MAX) + 1, 0),
        parents: Vec::new(),
        history_parent: None,
        picked_up_at: None,
        sent_at: None,
        first_byte_at: None,
        stamps: StampSource::Read,
        chunks: Vec::new(),
        chunk_tokens: Vec::new(),
        status: Status::Failed {
            class: ErrorClass::InStream,
            message: "the server said: \"zu spät\"".into(),
        },
        http_status: None,
        target_output_tokens: None,
        usage: None,
        resolve: None,
        connect: None,
        tls: None,
        history_mode: HistoryMode::Fresh,
        recorded: None,
        ideal_cached_tokens: None,
        body_digest: None,
        response_id: None,
        trace_id: None,
        labels: Vec::new(),
        ..answered()
    }
}

fn events() -> Vec<Event> {
    let session = SessionId(7);
    vec![
        Event::RunStarted(RunInfo {
            epoch_wall_nanos: 1_790_000_000_000_000_001,
            epoch_monotonic_nanos: 86_400_000_000_002,
            run_id: None,
        }),
        Event::MetricDefined(MetricDefinition {
            name: "fluidity".into(),
            unit: "1".into(),
            better: Better::Higher,
            summary: "share of deadlines met".into(),
            plugin: "fluidity.wasm".into(),
        }),
        Event::SessionPlanned {
            session,
            digest: 0xfeed_beef_0123_4567,
        },
        Event::PluginCalled(PluginCall {
            thread: "plugin-0".into(),
            what: "sessions 0..64".into(),
            begin: 5,
            end: 6,
        }),
        Event::SessionStarted {
            session,
            at: 1_000_000_000,
            requests: 3,
        },
        Event::Dispatched {
            request: id(7, 2),
            intended: 1_000_000_001,
            at: 1_000_000_011,
        },
        Event::Finished(Box::new(answered())),
        Event::Sampled(MetricSample {
            metric: "fluidity".into(),
            value: 0.1 + 0.2,
            weight: 1.0,
            request: Some(id(7, 2)),
        }),
        Event::Sampled(MetricSample {
            metric: "fluidity".into(),
            value: -0.0,
            weight: 2.5,
            request: None,
        }),
        Event::Judged {
            plugin: "tiers.js".into(),
            request: id(7, 2),
            good: true,
        },
        Event::Finished(Box::new(failed())),
        Event::NeverSent {
            request: id(7, 3),
            reason: NeverSentReason::SessionCancelled,
            at: 2_150_000_001,
        },
        Event::SessionFinished {
            session,
            at: 2_150_000_002,
            end: SessionEnd::Cancelled,
            requests: 4,
        },
        Event::Starved { due: 8, at: 9 },
        Event::ThreadSampled(ThreadSample {
            thread: "client-0".into(),
            at: 2_000_000_000,
            span: 1_000_000_000,
            busy: 10_000_000,
            waiting: 1_000_000,
        }),
        Event::ClockStepped { at: 10, by: -11 },
        Event::ArrivalsMissed { sessions: 12, at: 13 },
        Event::TimeoutReached { at: 14 },
        Event::Interrupted { at: 15 },
        Event::RunEnded { at: 16 },
    ]
}

#[test]
fn the_first_version_stays_readable() {
    let mut record = RunRecord::open(&fixture()).unwrap();
    assert_eq!(
        (record.info().version, record.info().program.as_str()),
        (1, "veeksha-host 0.1.0")
    );
    let mut expected = events().into_iter();
    let _ = record
        .for_each(|event| {
            assert_eq!(Some(event), expected.next().as_ref());
            ControlFlow::<()>::Continue(())
        })
        .unwrap();
    assert_eq!(expected.next(), None);
    assert!(record.info().complete);
}

#[test]
#[ignore = "writes the fixture; only a new version of the format has reason to, into a new folder"]
fn write_the_fixture() {
    let mut recorder = RunRecorder::create(&fixture(), "veeksha-host 0.1.0").unwrap();
    for event in events() {
        recorder.push(&event, 16).unwrap();
    }
    recorder.finish().unwrap();
}
