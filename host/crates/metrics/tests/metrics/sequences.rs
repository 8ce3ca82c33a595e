//! Short handwritten runs. Times are in milliseconds.

use veeksha_events::{Event, NeverSentReason, RequestRecord, SessionEnd, Status};
use veeksha_metrics::{Catalogue, ConstantSlo, Evaluation, Metric, Objectives, RunEvaluator, Setup, Stated};
use veeksha_model::{Chunk, ChunkKind, ErrorClass, Nanos, NodeId, RequestId, SessionId, ToolRunRecord};
use veeksha_slo::Objective;

pub(crate) fn ms(millis: u64) -> Nanos {
    millis * 1_000_000
}

pub(crate) fn id(session: u64, node: u32) -> RequestId {
    RequestId {
        session: SessionId(session),
        node: NodeId(node),
    }
}

/// An answered request without chunks; `intended`, dispatched one millisecond later.
pub(crate) fn answered(session: u64, node: u32, intended: u64, completed: u64) -> RequestRecord {
    RequestRecord {
        stamps: Default::default(),
        intended: ms(intended),
        dispatched_at: ms(intended + 1),
        picked_up_at: Some(ms(intended + 2)),
        sent_at: Some(ms(intended + 4)),
        completed_at: ms(completed),
        processed_at: ms(completed + 3),
        target_prompt_tokens: 10,
        prompt_tokens: 10,
        total_prompt_tokens: 30,
        connection_reused: false,
        history_mode: veeksha_model::HistoryMode::Live,
        ..RequestRecord::answered(id(session, node))
    }
}

pub(crate) fn with_chunks(
    mut record: RequestRecord,
    tokens: u32,
    chunks: &[(u64, ChunkKind)],
) -> RequestRecord {
    record.output_tokens = tokens;
    let chunk = |&(at, kind): &(u64, ChunkKind)| Chunk {
        lag: 0,
        at: ms(at),
        bytes: 20,
        kind,
        merged: false,
    };
    record.chunks = chunks.iter().map(chunk).collect();
    record
}

pub(crate) fn failed(
    mut record: RequestRecord,
    class: ErrorClass,
    http_status: Option<u16>,
) -> RequestRecord {
    record.status = Status::Failed {
        class,
        message: "a failure of the test".into(),
    };
    record.http_status = http_status;
    record
}

pub(crate) fn drained(mut record: RequestRecord) -> RequestRecord {
    record.measured = false;
    record
}

pub(crate) fn dispatched(record: &RequestRecord) -> Event {
    Event::Dispatched {
        request: record.id,
        intended: record.intended,
        at: record.dispatched_at,
    }
}

pub(crate) fn finished(record: RequestRecord) -> Event {
    Event::Finished(Box::new(record))
}

/// A measured run of the tool `sandbox`, of no duration.
pub(crate) fn tool_record(session: u64, node: u32) -> ToolRunRecord {
    ToolRunRecord {
        id: id(session, node),
        class: "sandbox".into(),
        parents: Vec::new(),
        ready_at: 0,
        started_at: 0,
        completed_at: 0,
        is_cold: false,
        failed: false,
        result_tokens: 7,
        measured: true,
        labels: [].into(),
    }
}

/// The dispatch and the end of a request.
pub(crate) fn both(record: RequestRecord) -> [Event; 2] {
    [dispatched(&record), finished(record)]
}

pub(crate) fn session_started(session: u64, at: u64) -> Event {
    Event::SessionStarted {
        session: SessionId(session),
        at: ms(at),
        requests: 1,
    }
}

pub(crate) fn session_finished(session: u64, at: u64, end: SessionEnd, requests: u32) -> Event {
    Event::SessionFinished {
        session: SessionId(session),
        at: ms(at),
        end,
        requests,
    }
}

pub(crate) fn never_sent(session: u64, node: u32, reason: NeverSentReason) -> Event {
    Event::NeverSent {
        request: id(session, node),
        reason,
        at: ms(0),
    }
}

pub(crate) fn slo(metric: Metric, percentile: f64, value: f64) -> ConstantSlo {
    ConstantSlo {
        name: None,
        metric,
        percentile,
        value,
    }
}

pub(crate) fn evaluate(slos: Vec<ConstantSlo>, events: impl IntoIterator<Item = Event>) -> Evaluation {
    let mut evaluator = RunEvaluator::new(slos);
    events.into_iter().for_each(|event| evaluator.on(&event));
    evaluator.finish()
}

#[track_caller]
pub(crate) fn close(actual: Option<f64>, expected: f64) {
    let actual = actual.expect("a value");
    assert!(
        (actual - expected).abs() <= 1e-12 * expected.abs().max(1.0),
        "{actual} instead of {expected}"
    );
}

/// The tokens of each generated chunk.
pub(crate) fn with_chunk_tokens(mut record: RequestRecord, tokens: &[u32]) -> RequestRecord {
    record.chunk_tokens = tokens.to_vec();
    record.output_tokens = tokens.iter().sum();
    record
}

pub(crate) fn labelled(mut record: RequestRecord, labels: &[(&str, &str)]) -> RequestRecord {
    let label = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    record.labels = labels.iter().map(label).collect();
    record
}

/// A request that waits for others.
pub(crate) fn after(mut record: RequestRecord, parents: &[u32], wait: u64) -> RequestRecord {
    record.parents = parents
        .iter()
        .copied()
        .map(|parent| NodeId(parent).into())
        .collect();
    record.wait_after_ready = ms(wait);
    record
}

pub(crate) fn run_in(setup: Setup, events: impl IntoIterator<Item = Event>) -> Evaluation {
    let mut evaluator = RunEvaluator::new(setup);
    events.into_iter().for_each(|event| evaluator.on(&event));
    evaluator.finish()
}

/// Objectives as text.
pub(crate) fn asking(slos: &[&str]) -> Setup {
    let catalogue = Catalogue::built_in();
    let stated = slos
        .iter()
        .map(|text| Stated::from(Objective::parse(text).expect("an objective")));
    Setup {
        objectives: Objectives::check(stated.collect(), Vec::new(), Vec::new(), &catalogue)
            .expect("answerable objectives"),
        catalogue,
        ..Setup::default()
    }
}
