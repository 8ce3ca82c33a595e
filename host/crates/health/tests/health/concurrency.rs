//! Session concurrency.

use veeksha_events::Event;
use veeksha_model::Nanos;

use crate::support::{
    CONCURRENCY, S, check, concurrent, ended, failed, health, near, passed, rate, request, session_of,
    skipped, value_of,
};

/// Returns the events of sessions of one request that span these intervals.
fn spans(spans: &[(Nanos, Nanos)]) -> Vec<Event> {
    let mut events = Vec::new();
    for (session, (from, to)) in spans.iter().enumerate() {
        let mut record = request(session as u64, 0, *from, *to);
        record.dispatched_at = *from;
        events.extend(session_of(&record));
    }
    let end = spans.iter().map(|(_, to)| *to).max().unwrap_or_default();
    ended(events, end)
}

#[test]
fn requested_concurrency_passes() {
    // Two at a time; the last begins at 6 s, so the load is full from 0 to 6 s; one is left from 8
    // s to 9 s.
    let report = health(
        concurrent(2, 0),
        &spans(&[
            (0, 3 * S),
            (0, 5 * S),
            (3 * S, 6 * S),
            (5 * S, 8 * S),
            (6 * S, 9 * S),
        ]),
    );
    let check = check(&report, CONCURRENCY);
    passed(check);
    near(value_of(check, "full load: time at the target"), 6.0);
    near(value_of(check, "full load: time below the target"), 0.0);
    near(value_of(check, "missing at full load"), 0.0);
    near(value_of(check, "afterwards: time at the target"), 2.0);
    near(value_of(check, "afterwards: time below the target"), 1.0);
    near(value_of(check, "full load: sessions (mean)"), 2.0);
    near(value_of(check, "full load: sessions (std)"), 0.0);
}

#[test]
fn missing_sessions_fail_by_their_share() {
    // Full until 8 s, when the last begins: 16 session-seconds. One is missing from 4 to 6 s: 2 of
    // 16.
    let report = health(
        concurrent(2, 0),
        &spans(&[(0, 8 * S), (0, 4 * S), (6 * S, 9 * S), (8 * S, 9 * S)]),
    );
    let check = check(&report, CONCURRENCY);
    near(value_of(check, "missing at full load"), 0.125);
    near(value_of(check, "full load: time below the target"), 2.0);
    near(value_of(check, "full load: sessions (mean)"), 1.75);
    near(value_of(check, "full load: sessions (min)"), 1.0);
    // Variance: 1/4 of the time 1, else 2: 1/4 * 3/4.
    near(
        value_of(check, "full load: sessions (std)"),
        (3.0_f64 / 16.0).sqrt(),
    );
    failed(check, "12.5 %");
}

#[test]
fn session_above_the_target_fails() {
    // A third from 1 to 2 s.
    let report = health(
        concurrent(2, 0),
        &spans(&[(0, 4 * S), (0, 4 * S), (S, 2 * S), (4 * S, 5 * S)]),
    );
    let check = check(&report, CONCURRENCY);
    near(value_of(check, "full load: time above the target"), 1.0);
    failed(check, "for 1 s in total: up to 1 too many");
}

#[test]
fn ramp_opens_places_one_by_one() {
    // Two places in 4 s: the first at 2 s, the second at 4 s. Steps as asked for, then full until
    // the last begins at 7 s.
    let report = health(
        concurrent(2, 4 * S),
        &spans(&[(2 * S, 8 * S), (4 * S, 7 * S), (7 * S, 9 * S)]),
    );
    let found = check(&report, CONCURRENCY);
    passed(found);
    near(value_of(found, "ramp: time at the target"), 4.0);
    near(value_of(found, "ramp: sessions (mean)"), 0.5);
    near(value_of(found, "full load: time at the target"), 3.0);
    // Both at once at 2 s: one too many for 2 s.
    let report = health(
        concurrent(2, 4 * S),
        &spans(&[(2 * S, 8 * S), (2 * S, 7 * S), (7 * S, 9 * S)]),
    );
    failed(check(&report, CONCURRENCY), "for 2 s in total");
}

#[test]
fn late_session_is_missing_for_its_delay() {
    // The place is free from 0; the request is sent at 2 s of 10.
    let mut record = request(0, 0, 0, 10 * S);
    record.dispatched_at = 2 * S;
    let mut events = session_of(&record);
    let next = request(1, 0, 10 * S, 11 * S);
    events.extend(session_of(&next));
    let report = health(concurrent(1, 0), &ended(events, 11 * S));
    // The next one is 1 ms late: full until 10.001 s, of which 2.001 s were empty.
    near(
        value_of(check(&report, CONCURRENCY), "missing at full load"),
        2.001 / 10.001,
    );
    failed(check(&report, CONCURRENCY), "20 %");
}

#[test]
fn missing_sessions_after_the_timeout_pass() {
    let mut events = spans(&[(0, 4 * S), (0, 4 * S), (8 * S, 9 * S)]);
    failed(check(&health(concurrent(2, 0), &events), CONCURRENCY), "missing");
    events.insert(0, Event::TimeoutReached { at: 4 * S });
    passed(check(&health(concurrent(2, 0), &events), CONCURRENCY));
    skipped(
        check(&health(rate(1.0), &events), CONCURRENCY),
        "no target concurrency",
    );
    skipped(
        check(&health(concurrent(2, 0), &[]), CONCURRENCY),
        "no session began",
    );
}
