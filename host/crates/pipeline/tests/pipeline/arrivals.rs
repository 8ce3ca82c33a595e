//! Arrival processes: the arrivals of the sessions, in virtual and in real time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use veeksha_events::{Event, RequestRecord};
use veeksha_model::Nanos;
use veeksha_pipeline::{Control, EventEntry, PipelineError, Plan};
use veeksha_ports::{ArrivalFactory, ArrivalSource, PluginFailure, PluginFailureKind, WorkloadInfo};
use veeksha_scheduler::{Shard, TrafficRule};

use crate::fakes::{Kind, plan};
use crate::real_time::{ENDLESS, Ran, drive};
use crate::virtual_time::{Simulated, quick, simulate};

/// A process whose session `i` arrives at `instant(i)`.
#[derive(Clone)]
struct Process {
    info: WorkloadInfo,
    instant: fn(u64) -> Nanos,
    length: u64,
    fails_at: u64,
    /// Time that a call from this session on takes.
    slow: Option<(u64, Duration)>,
}

struct Open {
    process: Process,
    next: u64,
}

impl ArrivalFactory for Process {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn open(&self) -> Result<Box<dyn ArrivalSource>, PluginFailure> {
        Ok(Box::new(Open {
            process: self.clone(),
            next: 0,
        }))
    }
}

impl ArrivalSource for Open {
    fn next(&mut self, count: u32) -> Result<Vec<Nanos>, PluginFailure> {
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        assert!(!thread.starts_with("dispatcher"), "{thread}");
        let first = self.next;
        self.next = (first + u64::from(count)).min(self.process.length);
        if let Some((from, time)) = self.process.slow
            && self.next > from
        {
            std::thread::sleep(time);
        }
        if self.next > self.process.fails_at {
            let kind = PluginFailureKind::Trap;
            return Err(PluginFailure::new("process", "process.next", kind, "lost"));
        }
        Ok((first..self.next).map(self.process.instant).collect())
    }
}

const MS: Nanos = 1_000_000;

/// Pairs of sessions that arrive at the same instant, at growing distances.
fn instant(session: u64) -> Nanos {
    let pair = session / 2;
    (pair * pair / 8 + pair) * MS / 4
}

fn process() -> Process {
    Process {
        info: WorkloadInfo {
            name: "process".into(),
            version: "1".into(),
            summary: String::new(),
            engine: "test",
            digest: String::new(),
            granted: Vec::new(),
        },
        instant,
        length: u64::MAX,
        fails_at: u64::MAX,
        slow: None,
    }
}

fn planned(process: Process, sessions: u64) -> Plan {
    let mut plan = plan();
    plan.scheduler.traffic = TrafficRule::Scheduled { replays: false };
    plan.scheduler.max_sessions = Some(sessions);
    plan.arrivals = Some(Arc::new(process));
    plan
}

/// Returns the instant at which each session started.
fn starts(entries: &[EventEntry]) -> BTreeMap<u64, Nanos> {
    let started = entries.iter().filter_map(|entry| match entry.event {
        Event::SessionStarted { session, at, .. } => Some((session.0, at)),
        _ => None,
    });
    started.collect()
}

fn expected(sessions: impl Iterator<Item = u64>) -> BTreeMap<u64, Nanos> {
    sessions.map(|session| (session, instant(session))).collect()
}

/// The arrivals are those of the process, whatever the number of threads: in virtual and in real
/// time, for whole sessions and for agents.
#[test]
fn session_i_starts_at_arrival_i() {
    const SESSIONS: u64 = 150;
    let simulated = simulate(&planned(process(), SESSIONS), &quick(), ENDLESS);
    assert_eq!(starts(&simulated.entries), expected(0..SESSIONS));
    for kind in [ENDLESS, Kind::Agents] {
        for (dispatchers, plugin_threads) in [(1, 1), (2, 1), (3, 4)] {
            let mut plan = planned(process(), SESSIONS);
            (plan.dispatchers, plan.plugin_threads) = (dispatchers, plugin_threads);
            let ran = drive(&plan, kind, &Control::default()).unwrap();
            assert_eq!(starts(&ran.entries), expected(0..SESSIONS));
            let first = |record: &&&RequestRecord| record.id.node.0 == 0;
            for record in ran.records().iter().filter(first) {
                assert_eq!(record.intended, instant(record.id.session.0));
                assert!(record.dispatched_at >= record.intended);
            }
            assert!(ran.end.plugin_failures.is_empty());
        }
    }
}

#[test]
fn the_shards_of_a_run_divide_the_arrivals() {
    const SESSIONS: u64 = 40;
    let mut together = BTreeMap::new();
    for index in 0..3 {
        let mut plan = planned(process(), SESSIONS);
        plan.shard = Shard { index, count: 3 };
        plan.dispatchers = 2;
        let ran = drive(&plan, ENDLESS, &Control::default()).unwrap();
        let simulated = simulate(&plan, &quick(), ENDLESS);
        assert_eq!(starts(&ran.entries), starts(&simulated.entries));
        together.extend(starts(&ran.entries));
    }
    assert_eq!(together, expected(0..SESSIONS));
}

#[test]
fn the_run_ends_with_the_process() {
    for length in [1, 63, 64, 65, 90] {
        let process = Process { length, ..process() };
        let plan = planned(process, 1000);
        let simulated = simulate(&plan, &quick(), ENDLESS);
        assert_eq!(starts(&simulated.entries), expected(0..length));
        for pregenerate in [false, true] {
            let mut plan = plan.clone();
            plan.pregenerate = pregenerate;
            let ran = drive(&plan, ENDLESS, &Control::default()).unwrap();
            assert_eq!(starts(&ran.entries), expected(0..length));
            assert!(missed(&ran).is_empty());
        }
    }
}

#[test]
fn a_process_that_fails_ends_the_source_and_names_its_session() {
    let at_once = Process {
        fails_at: 0,
        ..process()
    };
    let error = drive(&planned(at_once, 10), ENDLESS, &Control::default())
        .err()
        .unwrap();
    assert!(matches!(error, PipelineError::Plugin(_)), "{error}");

    let later = planned(
        Process {
            fails_at: 300,
            ..process()
        },
        1000,
    );
    let simulated = simulate(&later, &quick(), ENDLESS);
    let ran = drive(&later, ENDLESS, &Control::default()).unwrap();
    for (end, entries) in [(&simulated.end, &simulated.entries), (&ran.end, &ran.entries)] {
        assert_eq!(end.plugin_failures.len(), 1);
        assert_eq!(end.plugin_failures[0].message, "lost");
        let started = starts(entries);
        assert_eq!(started, expected(0..started.len() as u64));
        let failed = entries.iter().find_map(|entry| match &entry.event {
            Event::PluginFailed(failed) => failed.session,
            _ => None,
        });
        assert_eq!(failed.map(|session| session.0), Some(started.len() as u64));
        assert!(started.len() >= 200 && started.len() <= 300, "{}", started.len());
    }
}

/// A process that stops to advance, in a part of a run with one of 1,000 sessions: all arrivals
/// count.
fn standing(max_sessions: Option<u64>) -> Plan {
    let standing = Process {
        instant: |session| if session < 5 { 0 } else { MS },
        ..process()
    };
    let mut plan = planned(standing, 0);
    plan.scheduler.traffic = TrafficRule::Scheduled { replays: false };
    plan.scheduler.max_sessions = max_sessions;
    plan.scheduler.benchmark_timeout = Some(2_000 * MS);
    plan.shard = Shard {
        index: 0,
        count: 1000,
    };
    plan
}

/// Five sessions arrive before, and 100,000 may arrive together.
#[test]
fn a_process_that_never_advances_ends_the_workload() {
    let plan = standing(None);
    let expected = "session 100005: more than 100000 sessions arrive at 1000000 ns";
    // A run reads the arrivals of its first sessions before it starts.
    let error = drive(&plan, Kind::HastyAgents, &Control::default())
        .err()
        .unwrap();
    assert!(error.to_string().contains(expected), "{error}");
    let Simulated { end, entries } = simulate(&plan, &quick(), Kind::HastyAgents);
    assert_eq!(end.plugin_failures.len(), 1);
    assert!(end.plugin_failures[0].message.starts_with(expected));
    // Those of the last batch do not start.
    let started = starts(&entries).len();
    assert!((1..=101).contains(&started), "{started}");
    assert_eq!(end.unstarted.map(|sessions| sessions.count), Some(None));
}

#[test]
fn as_many_sessions_as_the_run_has_may_arrive_together() {
    let simulated = simulate(&standing(Some(110_000)), &quick(), Kind::HastyAgents);
    assert!(simulated.end.plugin_failures.is_empty());
    assert_eq!(starts(&simulated.entries).len(), 110);
}

fn missed(ran: &Ran) -> Vec<u64> {
    let missed = ran.entries.iter().filter_map(|entry| match entry.event {
        Event::ArrivalsMissed { sessions, .. } => Some(sessions),
        _ => None,
    });
    missed.collect()
}

/// More sessions than are read ahead, by an arrival process and by recorded arrivals: they start
/// at their instant, before the time goes on.
#[test]
fn any_number_of_sessions_starts_at_one_instant_of_virtual_time() {
    const SESSIONS: u64 = 6000;
    let together = Process {
        instant: |_| 1000 * MS,
        ..process()
    };
    let of_process = (planned(together, SESSIONS), Kind::HastyAgents);
    let mut plan = plan();
    plan.scheduler.traffic = TrafficRule::Scheduled { replays: false };
    plan.scheduler.max_sessions = None;
    let recorded = Kind::Generated {
        seed: 0,
        length: Some(SESSIONS),
        session: |_, _| veeksha_model::Session {
            requests: vec![crate::fakes::request(0, &[])],
            arrives_at: Some(1000 * MS),
            ..veeksha_model::Session::default()
        },
        only: Shard::WHOLE,
    };
    for (plan, kind) in [of_process, (plan, recorded)] {
        let simulated = simulate(&plan, &quick(), kind);
        let records = simulated.records();
        let first = records.iter().filter(|record| record.id.node.0 == 0);
        let late = first.clone().filter(|record| record.dispatched_at > 1000 * MS);
        assert_eq!((first.count(), late.count()), (SESSIONS as usize, 0));
    }
}

/// A process that is late starves the dispatcher: the sessions start when they come, and count from
/// their arrivals.
#[test]
fn a_late_process_is_starvation() {
    let slow = Process {
        slow: Some((300, Duration::from_millis(400))),
        instant: |session| session * MS / 8,
        ..process()
    };
    let ran = drive(&planned(slow, 320), ENDLESS, &Control::default()).unwrap();
    let started = starts(&ran.entries);
    assert_eq!(started.len(), 320);
    assert!(started.iter().all(|(session, at)| *at == session * MS / 8));
    let starved = ran
        .entries
        .iter()
        .filter(|entry| matches!(entry.event, Event::Starved { .. }));
    assert!(starved.count() > 0);
    let calls = ran.entries.iter().filter(|entry| match &entry.event {
        Event::PluginCalled(call) => call.thread == "arrivals",
        _ => false,
    });
    assert!(calls.count() > 0);
}

/// Sessions that the workload did not make before the end of the run are missed arrivals.
#[test]
fn arrivals_of_sessions_that_were_not_made_are_missed() {
    let slow = Kind::Generated {
        seed: 0,
        length: None,
        session: |_, id| {
            if id >= 100 {
                std::thread::sleep(Duration::from_millis(20));
            }
            veeksha_model::Session::from(vec![crate::fakes::request(0, &[])])
        },
        only: Shard::WHOLE,
    };
    let every = Process {
        instant: |session| session * MS,
        ..process()
    };
    let mut plan = planned(every, 5000);
    plan.scheduler.benchmark_timeout = Some(300 * MS);
    let ran = drive(&plan, slow, &Control::default()).unwrap();
    let started = starts(&ran.entries).len() as u64;
    assert!(started < 300, "{started}");
    assert_eq!(missed(&ran).iter().sum::<u64>() + started, 300);
}
