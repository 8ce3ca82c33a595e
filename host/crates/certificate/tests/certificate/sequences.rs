//! Short handwritten runs. Times are in milliseconds.

use veeksha_events::{Event, NeverSentReason, RequestRecord, Status};
use veeksha_metrics::{Evaluation, Evaluator, Slo};
use veeksha_model::{ErrorClass, Nanos, NodeId, RequestId, SessionId};

fn ms(millis: u64) -> Nanos {
    millis * 1_000_000
}

fn id(session: u64, node: u32) -> RequestId {
    RequestId {
        session: SessionId(session),
        node: NodeId(node),
    }
}

/// An answered request without chunks, dispatched one millisecond after `intended`.
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
        ..RequestRecord::answered(id(session, node))
    }
}

pub(crate) fn failed(
    mut record: RequestRecord,
    class: ErrorClass,
    http_status: Option<u16>,
) -> RequestRecord {
    record.status = Status::Failed {
        class,
        message: "made to fail".into(),
    };
    record.http_status = http_status;
    record
}

pub(crate) fn finished(record: RequestRecord) -> Event {
    Event::Finished(Box::new(record))
}

pub(crate) fn never_sent(session: u64, node: u32, reason: NeverSentReason) -> Event {
    Event::NeverSent {
        request: id(session, node),
        reason,
        at: ms(0),
    }
}

pub(crate) fn evaluate(slos: Vec<Slo>, events: impl IntoIterator<Item = Event>) -> Evaluation {
    let mut evaluator = Evaluator::new(slos);
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
