//! Client saturation.

use veeksha_events::{Event, RequestRecord};

use crate::support::{
    MS, S, SATURATION, check, failed, figure, health, near, one, passed, rate, sample, skipped,
};

#[test]
fn threads_that_are_busy_all_the_time_fail() {
    // Two samples of half a second make a stretch: (0.5 + 0.45) of 1 s.
    let events = [
        sample("client-0", S / 2, S / 2),
        sample("client-0", S / 2, 450 * MS),
    ];
    let report = health(rate(1.0), &events);
    failed(check(&report, SATURATION), "client-0 was on a processor for 95 %");
    near(figure(check(&report, SATURATION), "client-0 busiest"), 0.95);
    near(
        figure(check(&report, SATURATION), "client-0 without a processor"),
        0.1,
    );
    // At the limit it is not above it; a plugin may be as busy as it likes; a short stretch means nothing.
    let events = [
        sample("client-0", S, 900 * MS),
        sample("plugin-0", S, S),
        sample("dispatcher-0", S / 2, S / 2),
    ];
    passed(check(&health(rate(1.0), &events), SATURATION));
    failed(
        check(&health(rate(1.0), &[sample("dispatcher-0", S, S)]), SATURATION),
        "dispatcher-0",
    );
}

#[test]
fn late_requests_and_late_plugins_fail() {
    let late = |record: &mut RequestRecord| record.dispatched_at = record.intended + 150 * MS;
    let report = health(rate(1.0), &one(late));
    failed(
        check(&report, SATURATION),
        "1 of 1 request (100 %) dispatched more than 100 ms",
    );
    let held = one(|record| {
        late(record);
        record.held.in_prefill = 60 * MS;
    });
    passed(check(&health(rate(1.0), &held), SATURATION));
    let starved = |late| {
        let mut events = one(|_| ());
        events.push(Event::Starved { due: S, at: S + late });
        health(rate(1.0), &events)
    };
    passed(check(&starved(100 * MS), SATURATION));
    failed(
        check(&starved(101 * MS), SATURATION),
        "1 session made by the plugin more than 100 ms",
    );
    skipped(
        check(&health(rate(1.0), &[]), SATURATION),
        "no thread was watched",
    );
}
