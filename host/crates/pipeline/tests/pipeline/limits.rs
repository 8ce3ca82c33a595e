//! Limits, in virtual time with waits worked out by hand, and with threads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use veeksha_events::{Event, NeverSentReason, RequestRecord};
use veeksha_model::{Held, Session};
use veeksha_pipeline::{Control, PipelineError, Plan, ReplaySchedule};
use veeksha_scheduler::{ConcurrencyLimits, DrawnArrivals, GracePeriod, Interval, Shard, TrafficRule};

use crate::fakes::{Kind, paced, plan, request};
use crate::real_time::{ENDLESS, drive};
use crate::replay::{made, scheduled};
use crate::virtual_time::{Simulated, quick, simulate};

const MS: u64 = 1_000_000;

fn held(sessions: u64, in_flight: u64, in_prefill: u64) -> Held {
    Held {
        sessions: sessions * MS,
        in_flight: in_flight * MS,
        in_prefill: in_prefill * MS,
    }
}

/// Session `id` arrives at five times its number.
fn arriving(requests: u32, id: u64) -> Session {
    let chain = |node: u32| {
        let parents: Vec<u32> = node.checked_sub(1).into_iter().collect();
        request(node, &parents)
    };
    Session {
        requests: (0..requests).map(chain).collect(),
        arrives_at: Some(id * 5 * MS),
        ..Session::default()
    }
}

fn limited(limits: ConcurrencyLimits) -> Plan {
    let mut plan = scheduled(ReplaySchedule::default());
    plan.scheduler.limits = limits;
    plan
}

/// Intended, dispatched, held, by request. Nothing else is late where time is virtual.
fn waits(run: &Simulated) -> BTreeMap<(u64, u32), (u64, u64, Held)> {
    let of = |record: &&RequestRecord| {
        let lateness = record.dispatched_at - record.intended - record.held.total();
        assert_eq!(lateness, 0, "{}", record.id);
        let at = (record.intended / MS, record.dispatched_at / MS, record.held);
        ((record.id.session.0, record.id.node.0), at)
    };
    run.records().iter().map(of).collect()
}

/// An answer takes 10 ms to its first token and 25 in all.
#[test]
fn virtual_waits_are_those_of_the_limits() {
    let in_flight = limited(ConcurrencyLimits {
        in_flight: Some(1),
        ..ConcurrencyLimits::default()
    });
    let run = simulate(&in_flight, &quick(), made(|_, id| arriving(1, id), 3));
    let expected = [
        ((0, 0), (0, 0, held(0, 0, 0))),
        ((1, 0), (5, 25, held(0, 20, 0))),
        ((2, 0), (10, 50, held(0, 40, 0))),
    ];
    assert_eq!(waits(&run), BTreeMap::from(expected));

    // The second goes when the first has its first token.
    let in_prefill = limited(ConcurrencyLimits {
        in_prefill: Some(1),
        ..ConcurrencyLimits::default()
    });
    let run = simulate(&in_prefill, &quick(), made(|_, id| arriving(1, id), 2));
    let expected = [((0, 0), (0, 0, held(0, 0, 0))), ((1, 0), (5, 10, held(0, 0, 5)))];
    assert_eq!(waits(&run), BTreeMap::from(expected));

    // Two turns each: 50 ms a session.
    let sessions = limited(ConcurrencyLimits {
        sessions: Some(1),
        ..ConcurrencyLimits::default()
    });
    let run = simulate(&sessions, &quick(), made(|_, id| arriving(2, id), 3));
    let expected = [
        ((0, 0), (0, 0, held(0, 0, 0))),
        ((0, 1), (25, 25, held(0, 0, 0))),
        ((1, 0), (5, 50, held(45, 0, 0))),
        ((1, 1), (75, 75, held(0, 0, 0))),
        ((2, 0), (10, 100, held(90, 0, 0))),
        ((2, 1), (125, 125, held(0, 0, 0))),
    ];
    assert_eq!(waits(&run), BTreeMap::from(expected));
}

/// At 30 ms two of four have been sent, and one more had arrived but for the limit; the last would
/// arrive later.
#[test]
fn waiting_requests_are_reported_at_the_end() {
    let mut plan = limited(ConcurrencyLimits {
        in_flight: Some(1),
        ..ConcurrencyLimits::default()
    });
    plan.scheduler.benchmark_timeout = Some(30 * MS);
    plan.scheduler.grace = GracePeriod::Bounded(0);
    let run = simulate(
        &plan,
        &quick(),
        made(
            |_, id| Session {
                arrives_at: Some(if id == 3 { 40 * MS } else { 0 }),
                ..arriving(1, id)
            },
            4,
        ),
    );
    let never: Vec<_> = run
        .entries
        .iter()
        .filter_map(|entry| match entry.event {
            Event::NeverSent { request, reason, .. } => Some((request.session.0, reason)),
            _ => None,
        })
        .collect();
    assert_eq!(never, [(2, NeverSentReason::Held)]);
    assert_eq!(run.records().len(), 2);
}

/// A workload of four sessions: the fifth arrival never existed. An endless workload misses the
/// sessions that had arrived.
#[test]
fn arrivals_without_a_session_are_counted() {
    let missed = |length| {
        let mut plan = plan();
        plan.scheduler.max_sessions = None;
        plan.scheduler.traffic = TrafficRule::Rate(Interval::Fixed { interval: 0.000_001 });
        plan.scheduler.limits.sessions = Some(1);
        plan.scheduler.benchmark_timeout = Some(20 * MS);
        plan.scheduler.grace = GracePeriod::Bounded(0);
        let kind = Kind::Generated {
            seed: 0,
            length,
            session: |_, id| arriving(1, id),
            only: Shard::WHOLE,
        };
        let run = simulate(&plan, &quick(), kind);
        let sum = |count: fn(&Event) -> u64| run.entries.iter().map(|entry| count(&entry.event)).sum::<u64>();
        let started = sum(|event| u64::from(matches!(event, Event::SessionStarted { .. })));
        let missed = sum(|event| match event {
            Event::ArrivalsMissed { sessions, .. } => *sessions,
            _ => 0,
        });
        (started, missed)
    };
    assert_eq!(missed(Some(4)), (4, 0));
    // One each microsecond: 20,000 before the end at 20 ms, whether they were made or not.
    let (started, missed) = missed(None);
    assert!(started >= 1 && missed > 0);
    assert_eq!(started + missed, 20_000);
}

/// Returns the arrivals of the sessions, and the number of requests sent.
fn arrivals(plan: &Plan) -> (BTreeMap<u64, u64>, usize) {
    let ran = drive(plan, ENDLESS, &Control::default()).unwrap();
    let arrivals = ran.entries.iter().filter_map(|entry| match entry.event {
        Event::SessionStarted { session, at, .. } => Some((session.0, at)),
        _ => None,
    });
    for record in ran.records() {
        let lateness = (record.dispatched_at - record.intended).checked_sub(record.held.total());
        assert!(
            lateness.is_some(),
            "{}: held for longer than it waited",
            record.id
        );
    }
    (arrivals.collect(), ran.records().len())
}

#[test]
fn arrivals_are_the_same_with_any_number_of_threads_and_any_limits() {
    let interval = Interval::Poisson { rate: 1_000.0 };
    let mut plan = paced();
    plan.scheduler.traffic = TrafficRule::Rate(interval);
    let mut whole = DrawnArrivals::new(interval, plan.scheduler.seed, Shard::WHOLE);
    let expected: BTreeMap<u64, u64> = (0..20).filter_map(|id| Some((id, whole.take(id)?))).collect();
    let few = ConcurrencyLimits {
        sessions: Some(5),
        in_flight: Some(6),
        in_prefill: Some(7),
    };
    for limits in [ConcurrencyLimits::default(), few] {
        for (dispatchers, spin) in [(1, 0), (2, 100_000), (5, 0)] {
            plan.scheduler.limits = limits;
            (plan.dispatchers, plan.spin) = (dispatchers, spin);
            assert_eq!(
                arrivals(&plan),
                (expected.clone(), 40),
                "{dispatchers} dispatchers, {limits:?}"
            );
        }
    }
}

/// More dispatchers than a limit has parts do not make an error: those that would have none are not
/// started.
#[test]
fn a_limit_is_shared_by_no_more_dispatchers_than_it_has_room_for() {
    let started = Arc::new(Mutex::new(Vec::new()));
    let mut plan = paced();
    plan.dispatchers = 5;
    plan.scheduler.limits.in_flight = Some(2);
    let seen = started.clone();
    plan.on_dispatcher_start = Some(Arc::new(move |index| {
        let name = std::thread::current().name().unwrap().to_owned();
        seen.lock().unwrap().push((index, name));
    }));
    assert_eq!(arrivals(&plan).1, 40);
    let mut started = started.lock().unwrap().clone();
    started.sort();
    assert_eq!(
        started,
        [(0, "dispatcher-0".to_owned()), (1, "dispatcher-1".to_owned())]
    );
}

#[test]
fn a_limit_that_cannot_be_shared_is_refused() {
    let refused = |limits, count| {
        let mut plan = paced();
        plan.scheduler.limits = limits;
        plan.shard = Shard { index: 0, count };
        drive(&plan, made(|_, id| arriving(1, id), 9), &Control::default()).err()
    };
    let of = |sessions, in_flight, in_prefill| ConcurrencyLimits {
        sessions,
        in_flight,
        in_prefill,
    };
    for (limits, what) in [
        (of(Some(2), None, None), "sessions at a time"),
        (of(Some(9), Some(2), None), "requests in flight"),
        (of(None, None, Some(2)), "requests in prefill"),
    ] {
        let error = refused(limits, 3).unwrap();
        assert!(
            matches!(
                error,
                PipelineError::TooManyShards {
                    count: 3,
                    most: 2,
                    ..
                }
            ),
            "{error}"
        );
        let message = error.to_string();
        assert!(
            message.contains(what) && message.contains("no more than 2 shards"),
            "{message}"
        );
        assert!(refused(limits, 1).is_none());
    }
}
