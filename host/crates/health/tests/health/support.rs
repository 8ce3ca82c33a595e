//! Hand-made runs: requests, sessions, and assertions on a report.

use veeksha_events::{Event, RequestRecord, SessionEnd, ThreadSample};
use veeksha_health::{
    ColdCache, Expected, ExpectedTraffic, GapVariation, Health, HealthCheck, HealthOutcome, HealthReport,
};
use veeksha_model::{Nanos, NodeId, RequestId, SessionId};

pub(crate) const MS: Nanos = 1_000_000;
pub(crate) const S: Nanos = 1_000_000_000;

pub(crate) fn id(session: u64, node: u32) -> RequestId {
    RequestId {
        session: SessionId(session),
        node: NodeId(node),
    }
}

/// Returns a request dispatched 1 ms after it was due, picked up 1 ms later, sent 1 ms later,
/// processed 1 ms after its end, with the requested lengths.
pub(crate) fn request(session: u64, node: u32, intended: Nanos, completed: Nanos) -> RequestRecord {
    RequestRecord {
        intended,
        dispatched_at: intended + MS,
        picked_up_at: Some(intended + 2 * MS),
        sent_at: Some(intended + 3 * MS),
        completed_at: completed,
        processed_at: completed + MS,
        stamps: Default::default(),
        target_prompt_tokens: 100,
        prompt_tokens: 100,
        total_prompt_tokens: 100,
        target_output_tokens: Some(50),
        output_tokens: 50,
        ..RequestRecord::answered(id(session, node))
    }
}

pub(crate) fn started(session: u64, at: Nanos, requests: u32) -> Event {
    Event::SessionStarted {
        session: SessionId(session),
        at,
        requests,
    }
}

pub(crate) fn dispatched(record: &RequestRecord) -> Event {
    Event::Dispatched {
        request: record.id,
        intended: record.intended,
        at: record.dispatched_at,
    }
}

pub(crate) fn finished(record: &RequestRecord) -> Event {
    Event::Finished(Box::new(record.clone()))
}

pub(crate) fn over(session: u64, at: Nanos, requests: u32) -> Event {
    Event::SessionFinished {
        session: SessionId(session),
        at,
        end: SessionEnd::Completed,
        requests,
    }
}

/// Returns all events of a session of one request.
pub(crate) fn session_of(record: &RequestRecord) -> Vec<Event> {
    let session = record.id.session.0;
    vec![
        started(session, record.intended, 1),
        dispatched(record),
        finished(record),
        over(session, record.completed_at, 1),
    ]
}

pub(crate) fn health(expected: Expected, events: &[Event]) -> HealthReport {
    let mut health = Health::new(expected);
    events.iter().for_each(|event| health.on(event));
    health.finish()
}

pub(crate) fn rate(sessions_per_second: f64) -> Expected {
    Expected::of(ExpectedTraffic::Rate {
        sessions_per_second,
        gaps: GapVariation::Even,
    })
}

pub(crate) fn concurrent(target: u32, ramp: Nanos) -> Expected {
    Expected::of(ExpectedTraffic::Concurrent { target, ramp })
}

pub(crate) fn check<'a>(report: &'a HealthReport, name: &str) -> &'a HealthCheck {
    report.check(name).unwrap_or_else(|| panic!("no check {name}"))
}

pub(crate) fn value_of(check: &HealthCheck, name: &str) -> f64 {
    let value = check.values.iter().find(|value| value.name == name);
    value
        .unwrap_or_else(|| panic!("`{name}` is missing in {check:?}"))
        .value
}

pub(crate) fn near(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-9, "{value} is not {expected}");
}

pub(crate) fn passed(check: &HealthCheck) {
    assert_eq!(check.outcome, HealthOutcome::Passed, "{check:?}");
}

pub(crate) fn failed(check: &HealthCheck, words: &str) {
    assert_eq!(check.outcome, HealthOutcome::Failed, "{check:?}");
    assert!(!check.fixes.is_empty(), "{check:?}");
    assert!(
        check.findings.iter().any(|finding| finding.contains(words)),
        "{words}: {check:?}"
    );
}

pub(crate) fn skipped(check: &HealthCheck, words: &str) {
    assert!(
        matches!(&check.outcome, HealthOutcome::Skipped(why) if why.contains(words)),
        "{check:?}"
    );
}

pub(crate) fn ended(mut events: Vec<Event>, at: Nanos) -> Vec<Event> {
    events.push(Event::RunEnded { at });
    events
}

/// Returns the events of sessions of one request of half a second each, at these instants.
pub(crate) fn sessions_at(instants: &[Nanos]) -> Vec<Event> {
    let records = instants
        .iter()
        .enumerate()
        .map(|(session, at)| request(session as u64, 0, *at, at + S / 2));
    ended(records.flat_map(|record| session_of(&record)).collect(), 100 * S)
}

/// Returns two requests; the second waits for the first and thinks for 0.2 s. The first completes
/// at 1 s, so the second is due at 1.2 s.
pub(crate) fn turn(change: impl Fn(&mut RequestRecord)) -> Vec<Event> {
    let first = request(0, 0, 0, S);
    let mut second = request(0, 1, 1200 * MS, 2 * S);
    second.parents = vec![NodeId(0).into()];
    second.wait_after_ready = 200 * MS;
    change(&mut second);
    let end = second.completed_at;
    let events = vec![
        started(0, 0, 2),
        dispatched(&first),
        finished(&first),
        dispatched(&second),
        finished(&second),
        over(0, end, 2),
    ];
    ended(events, 10 * S)
}

pub(crate) fn one(change: impl Fn(&mut RequestRecord)) -> Vec<Event> {
    let mut record = request(0, 0, 0, S);
    change(&mut record);
    ended(session_of(&record), 2 * S)
}

pub(crate) fn sample(thread: &str, span: Nanos, busy: Nanos) -> Event {
    Event::ThreadSampled(ThreadSample {
        thread: thread.into(),
        at: 0,
        span,
        busy,
        waiting: span / 10,
    })
}

pub(crate) const RATE: &str = "Session Dispatch Rate";
pub(crate) const ARRIVAL: &str = "Intra-Session Request Arrival";
pub(crate) const CANCELLATION: &str = "Request Cancellation";
pub(crate) const PROMPT: &str = "Prompt Length";
pub(crate) const LIFECYCLE: &str = "Lifecycle Timing Delays";
pub(crate) const CONCURRENCY: &str = "Session Concurrency";
pub(crate) const SENT: &str = "Requests Sent";
pub(crate) const ACCOUNTING: &str = "Request Accounting";
pub(crate) const SATURATION: &str = "Client Saturation";
pub(crate) const CACHE: &str = "Cold Cache";
pub(crate) const PLUGINS: &str = "Plugins";
pub(crate) const OUTPUT: &str = "Output Length";

/// Expectation for a server cache that is empty at the start.
pub(crate) fn cold() -> Expected {
    Expected {
        cold_cache: Some(ColdCache::default()),
        ..rate(1.0)
    }
}
