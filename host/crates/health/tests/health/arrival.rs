//! Intra-session request arrival.

use veeksha_events::{Event, RequestRecord};
use veeksha_health::{Expected, ExpectedTraffic};
use veeksha_model::{NodeId, ToolRunRecord, Trigger};

use crate::support::{
    ARRIVAL, MS, RATE, S, check, failed, health, id, near, passed, rate, sessions_at, skipped, turn, value_of,
};

#[test]
fn turn_sent_after_parent_and_think_time_passes() {
    let report = health(rate(1.0), &turn(|_| ()));
    let check = check(&report, ARRIVAL);
    passed(check);
    near(value_of(check, "requests"), 1.0);
    near(check.distributions[0].summary.mean, 0.001);
    skipped(report.check(RATE).unwrap(), "fewer than two");
}

#[test]
fn early_or_late_turn_fails() {
    // Dispatched at 1.1 s: 0.1 s early.
    let report = health(rate(1.0), &turn(|second| second.dispatched_at = 1100 * MS));
    failed(check(&report, ARRIVAL), "0/1 by 100 ms");
    near(check(&report, ARRIVAL).distributions[0].summary.min, -0.1);
    // At 1.35 s: 150 ms late.
    let report = health(rate(1.0), &turn(|second| second.dispatched_at = 1350 * MS));
    failed(check(&report, ARRIVAL), "0/1 by 150 ms");
    // The same lateness, of which a limit caused 100 ms.
    let held = |second: &mut RequestRecord| {
        second.dispatched_at = 1350 * MS;
        second.held.in_flight = 100 * MS;
    };
    let report = health(rate(1.0), &turn(held));
    passed(check(&report, ARRIVAL));
    near(check(&report, ARRIVAL).distributions[0].summary.max, 0.05);
    // One request may be late if the expectation allows it.
    let lenient = Expected {
        late_share: 1.0,
        ..rate(1.0)
    };
    passed(check(
        &health(lenient, &turn(|second| second.dispatched_at = 1350 * MS)),
        ARRIVAL,
    ));
}

#[test]
fn replayed_turn_is_not_due_before_its_recorded_instant() {
    // Recorded at 5 s; the parent is complete long before.
    let later = |second: &mut RequestRecord| {
        second.intended = 5 * S;
        second.dispatched_at = 5 * S + MS;
        second.completed_at = 6 * S;
    };
    passed(check(
        &health(Expected::of(ExpectedTraffic::FixedSchedule), &turn(later)),
        ARRIVAL,
    ));
    failed(check(&health(rate(1.0), &turn(later)), ARRIVAL), "3.8 s");
}

#[test]
fn the_order_of_events_does_not_matter() {
    let events = turn(|second| second.dispatched_at = 1350 * MS);
    let expected = health(rate(1.0), &events);
    let mut backwards = events;
    backwards.reverse();
    assert_eq!(health(rate(1.0), &backwards), expected);
}

#[test]
fn skipped_without_dependent_requests() {
    skipped(
        check(&health(rate(1.0), &sessions_at(&[0, S])), ARRIVAL),
        "no measured request",
    );
}

#[test]
fn drained_requests_are_not_judged() {
    let late_and_drained = |second: &mut RequestRecord| {
        second.dispatched_at = 1350 * MS;
        second.measured = false;
    };
    let report = health(rate(1.0), &turn(late_and_drained));
    skipped(check(&report, ARRIVAL), "no measured request");
    near(value_of(check(&report, "Client Saturation"), "requests"), 1.0);
}

/// The first request is due at 0 and dispatched at 1 ms. The instant at which the scheduler decided
/// that is between the two.
#[test]
fn turn_that_waits_for_a_dispatch_is_judged_from_the_earliest_instant() {
    let at = |instant: u64| {
        turn(move |second| {
            second.parents[0].trigger = Trigger::Dispatched;
            second.parents[0].delay = 300 * MS;
            second.dispatched_at = instant * MS;
        })
    };
    for sound in [500, 501, 600] {
        passed(check(&health(rate(1.0), &at(sound)), ARRIVAL));
    }
    failed(check(&health(rate(1.0), &at(499)), ARRIVAL), "0/1 by 1 ms");
    failed(check(&health(rate(1.0), &at(651)), ARRIVAL), "0/1 by 150 ms");
    // An answer without a generated chunk triggers at its end.
    let chunk = |second: &mut RequestRecord| second.parents[0].trigger = Trigger::FirstChunk;
    passed(check(&health(rate(1.0), &turn(chunk)), ARRIVAL));
}

/// A tool run after the first request ends at 1.5 s; the second request waits for it.
fn turn_after_tool_run(dispatched: u64) -> Vec<Event> {
    let mut events = turn(|second| {
        second.parents = vec![NodeId(7).into()];
        second.dispatched_at = dispatched;
        second.completed_at = 3 * S;
    });
    let run = ToolRunRecord {
        id: id(0, 7),
        class: "sandbox".into(),
        parents: vec![NodeId(0).into()],
        ready_at: S,
        started_at: S,
        completed_at: 1500 * MS,
        is_cold: false,
        failed: false,
        result_tokens: 0,
        measured: true,
        labels: [].into(),
    };
    // Another thread reports the end of requests.
    let before_end = events.len() - 2;
    events.insert(before_end, Event::ToolRan(Box::new(run)));
    events
}

#[test]
fn turn_after_a_tool_run_is_judged_from_its_end() {
    let sound = turn_after_tool_run(1701 * MS);
    let report = health(rate(1.0), &sound);
    passed(check(&report, ARRIVAL));
    near(value_of(check(&report, ARRIVAL), "requests"), 1.0);
    passed(check(&report, "Request Accounting"));
    let mut backwards = sound;
    backwards.reverse();
    assert_eq!(health(rate(1.0), &backwards), report);
    let early = health(rate(1.0), &turn_after_tool_run(1600 * MS));
    failed(check(&early, ARRIVAL), "0/1 by 100 ms");
}
