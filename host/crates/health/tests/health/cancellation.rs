//! Requests that events cancel.

use veeksha_events::{Event, NeverSentReason, SessionEnd};
use veeksha_health::HealthOutcome;
use veeksha_model::{Cancellation, Edge, Nanos, NodeId, RequestRecord, Status, Trigger};

use crate::support::*;

fn edge(parent: u32, trigger: Trigger, delay: Nanos) -> Edge {
    Edge {
        parent: NodeId(parent),
        trigger,
        delay,
    }
}

fn cancelled_by(when: Vec<Edge>, mut record: RequestRecord) -> RequestRecord {
    record.cancellation = Some(Box::new(Cancellation {
        when,
        after_chunks: None,
    }));
    record.status = Status::CancelledByClient;
    record
}

/// Two requests that are sent at 0 s: the first one ends at 2 s, the second one at `end`.
fn two(end: Nanos, when: Vec<Edge>) -> Vec<Event> {
    let first = request(0, 0, 0, 2 * S);
    let second = cancelled_by(when, request(0, 1, 0, end));
    ended(
        vec![
            started(0, 0, 2),
            dispatched(&first),
            dispatched(&second),
            finished(&first),
            finished(&second),
            over(0, end.max(2 * S), 2),
        ],
        10 * S,
    )
}

fn outcome(events: &[Event]) -> HealthOutcome {
    let report = health(rate(1.0), events);
    let check = report.check(CANCELLATION);
    check.map_or_else(|| panic!("no such check"), |check| check.outcome.clone())
}

#[test]
fn a_request_ends_at_the_first_event_that_cancels_it() {
    let when = || {
        vec![
            edge(0, Trigger::Completed, 100 * MS),
            edge(1, Trigger::Dispatched, 5 * S),
        ]
    };
    assert_eq!(outcome(&two(2 * S + 101 * MS, when())), HealthOutcome::Passed);
    assert_eq!(outcome(&two(4 * S, when())), HealthOutcome::Failed);
    // It may end before: its answer was complete, or its agent cancelled it.
    assert!(matches!(outcome(&two(S, when())), HealthOutcome::Skipped(_)));
    let own = vec![edge(1, Trigger::Dispatched, 3 * S)];
    assert_eq!(outcome(&two(3 * S + MS, own.clone())), HealthOutcome::Passed);
    assert_eq!(outcome(&two(5 * S, own)), HealthOutcome::Failed);
}

/// A request that waits for one that will not be sent is due at the instant of the cancellation.
#[test]
fn a_request_that_is_cancelled_before_it_is_sent_releases_others() {
    let mut child = request(0, 1, 3 * S, 4 * S);
    child.parents = vec![NodeId(0).into()];
    let events = |at| {
        let never = Event::NeverSent {
            request: request(0, 0, 0, 0).id,
            reason: NeverSentReason::CancelledByClient,
            at,
        };
        let end = Event::SessionFinished {
            session: child.id.session,
            at: 4 * S,
            end: SessionEnd::Completed,
            requests: 2,
        };
        let events = vec![started(0, 0, 2), never, dispatched(&child), finished(&child), end];
        health(rate(1.0), &ended(events, 5 * S))
    };
    let outcome = |at, name| events(at).check(name).unwrap().outcome.clone();
    assert_eq!(outcome(3 * S, ARRIVAL), HealthOutcome::Passed);
    assert_eq!(outcome(2 * S, ARRIVAL), HealthOutcome::Failed, "late");
    for name in [ACCOUNTING, SENT] {
        assert_eq!(outcome(3 * S, name), HealthOutcome::Passed, "{name}");
    }
}

/// The part of an answer is short because nothing more was wanted.
#[test]
fn the_length_of_a_part_is_not_checked() {
    let events = one(|record| {
        record.status = Status::CancelledByClient;
        record.target_output_tokens = Some(1000);
        record.output_exact = true;
        record.output_tokens = 3;
    });
    let report = health(rate(1.0), &events);
    let outcome = &report.check(OUTPUT).unwrap().outcome;
    assert!(matches!(outcome, HealthOutcome::Skipped(_)), "{outcome:?}");
}
