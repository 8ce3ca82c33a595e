//! Duplicate and lost requests.

use veeksha_events::{Event, NeverSentReason};

use crate::support::{
    ACCOUNTING, S, check, dispatched, ended, failed, finished, health, id, near, over, passed, rate, request,
    session_of, sessions_at, started, value_of,
};

#[test]
fn passes_when_every_request_is_reported_once() {
    let report = health(rate(1.0), &sessions_at(&[0, S, 2 * S]));
    passed(check(&report, ACCOUNTING));
    near(value_of(check(&report, ACCOUNTING), "requests finished"), 3.0);
    near(value_of(check(&report, ACCOUNTING), "requests lost"), 0.0);
    // The first request failed, so the second one was withdrawn.
    let first = request(0, 0, 0, S);
    let withdrawn = Event::NeverSent {
        request: id(0, 1),
        reason: NeverSentReason::SessionCancelled,
        at: S,
    };
    let events = vec![
        started(0, 0, 2),
        dispatched(&first),
        finished(&first),
        withdrawn,
        over(0, S, 2),
    ];
    passed(check(&health(rate(1.0), &ended(events, 2 * S)), ACCOUNTING));
}

#[test]
fn duplicate_request_fails() {
    let record = request(0, 0, 0, S);
    for again in [finished(&record), dispatched(&record)] {
        // Duplicates both while the session is open and after it is closed.
        for place in [2, 3, 4] {
            let mut events = session_of(&record);
            events.insert(place, again.clone());
            let report = health(rate(1.0), &ended(events, 2 * S));
            failed(check(&report, ACCOUNTING), "more than once: 0/0");
        }
    }
    let never = Event::NeverSent {
        request: id(0, 0),
        reason: NeverSentReason::Held,
        at: 0,
    };
    for place in [0, 2, 4] {
        let mut events = session_of(&record);
        events.insert(place, never.clone());
        failed(
            check(&health(rate(1.0), &ended(events, 2 * S)), ACCOUNTING),
            "as never sent: 0/0",
        );
    }
}

#[test]
fn request_without_outcome_is_lost() {
    let record = request(7, 0, 0, S);
    let begun = vec![started(7, 0, 1), dispatched(&record)];
    let report = health(rate(1.0), &ended(begun.clone(), 2 * S));
    failed(
        check(&report, ACCOUNTING),
        "1 request dispatched and neither answered nor failed when the run ended: 7/0",
    );
    near(value_of(check(&report, ACCOUNTING), "requests lost"), 1.0);
    // The session reports three requests, of which two have no event.
    let events = vec![
        started(7, 0, 1),
        dispatched(&record),
        finished(&record),
        over(7, S, 3),
    ];
    let report = health(rate(1.0), &ended(events, 2 * S));
    failed(
        check(&report, ACCOUNTING),
        "2 requests planned but reported neither as sent nor as never sent: session 7 (2)",
    );
    // Finished without an earlier event.
    let events = vec![started(7, 0, 1), finished(&record), over(7, S, 1)];
    failed(
        check(&health(rate(1.0), &ended(events, 2 * S)), ACCOUNTING),
        "without having been dispatched: 7/0",
    );
    // A truncated record cannot show losses.
    let report = health(rate(1.0), &begun);
    passed(check(&report, ACCOUNTING));
    assert!(check(&report, ACCOUNTING).findings[0].contains("the record is truncated"));
}
