//! Agents that fail: each costs its session, once.

use std::collections::BTreeMap;

use veeksha_events::{Event, SessionEnd};
use veeksha_model::Request;
use veeksha_pipeline::{Control, EventEntry, Plan, RunEnd};

use crate::fakes::{Kind, MadeStep, plan, request};
use crate::real_time::drive;
use crate::virtual_time::{quick, simulate};

/// Two more requests, which end the session when the first is answered.
const LATER: MadeStep = |_| Ok(vec![request(10, &[])]);

const ONE: MadeStep = |_| Ok(vec![request(0, &[])]);

fn unknown_client(node: u32) -> Request {
    Request {
        client: Some("unknown".into()),
        ..request(node, &[])
    }
}

/// The outcomes of the same plan in virtual and in real time, on one thread of each kind and on
/// several.
fn outcomes(plan: &Plan, kind: Kind) -> Vec<(RunEnd, Vec<EventEntry>)> {
    let simulated = simulate(plan, &quick(), kind);
    let mut outcomes = vec![(simulated.end, simulated.entries)];
    for threads in [1, 3] {
        let mut plan = plan.clone();
        (plan.dispatchers, plan.plugin_threads) = (threads, threads);
        let ran = drive(&plan, kind, &Control::default()).unwrap();
        outcomes.push((ran.end, ran.entries));
    }
    outcomes
}

fn ends(entries: &[EventEntry]) -> BTreeMap<u64, SessionEnd> {
    let ends = entries.iter().filter_map(|entry| match entry.event {
        Event::SessionFinished { session, end, .. } => Some((session.0, end)),
        _ => None,
    });
    ends.collect()
}

/// The number of recorded failures of each session.
fn failures(entries: &[EventEntry]) -> BTreeMap<u64, u32> {
    let mut failures = BTreeMap::new();
    for entry in entries {
        if let Event::PluginFailed(failed) = &entry.event {
            *failures.entry(failed.session.unwrap().0).or_default() += 1;
        }
    }
    failures
}

fn fails_at_start(session: u64) -> bool {
    session % 5 == 3
}

/// Of 20 sessions, those whose start fails are over; the others are answered. The reason is an
/// error of the agent, or a first step that cannot be sent.
#[test]
fn an_agent_that_fails_at_its_start_costs_its_session() {
    let raises: MadeStep = |session| {
        if fails_at_start(session) {
            Err("boom")
        } else {
            ONE(session)
        }
    };
    let cannot_be_sent: MadeStep = |session| {
        if fails_at_start(session) {
            Ok(vec![unknown_client(0)])
        } else {
            ONE(session)
        }
    };
    for first in [raises, cannot_be_sent] {
        let kind = Kind::SteppingAgents {
            length: None,
            first,
            second: LATER,
        };
        for (end, entries) in outcomes(&plan(), kind) {
            let expected = |session| {
                if fails_at_start(session) {
                    SessionEnd::Errored
                } else {
                    SessionEnd::Completed
                }
            };
            let expected: BTreeMap<u64, _> = (0..20).map(|session| (session, expected(session))).collect();
            assert_eq!(ends(&entries), expected);
            let once: BTreeMap<u64, u32> = [3, 8, 13, 18].map(|session| (session, 1)).into();
            assert_eq!(failures(&entries), once);
            // One is listed, with the number of the others.
            assert_eq!(end.plugin_failures.len(), 1, "{:?}", end.plugin_failures);
            assert_eq!(
                (end.plugin_failures[0].repeated, end.unlisted_plugin_failures),
                (3, 0)
            );
            assert_eq!(end.unstarted, None);
        }
    }
}

/// It holds for session 0 as well.
#[test]
fn a_run_starts_without_its_first_session() {
    let kind = Kind::SteppingAgents {
        length: Some(3),
        first: |session| if session == 0 { Err("boom") } else { ONE(session) },
        second: LATER,
    };
    for pregenerate in [false, true] {
        let mut plan = plan();
        plan.pregenerate = pregenerate;
        for (_, entries) in outcomes(&plan, kind) {
            let [first, others @ ..] = &ends(&entries).into_values().collect::<Vec<_>>()[..] else {
                panic!("no sessions");
            };
            assert_eq!(*first, SessionEnd::Errored);
            assert_eq!(others, [SessionEnd::Completed; 2]);
        }
    }
}

/// Three requests that are answered at once lead to three steps, none of which can be sent.
#[test]
fn a_session_fails_once_however_many_of_its_steps_cannot_be_sent() {
    for second in [
        (|_| Ok(vec![unknown_client(10)])) as MadeStep,
        (|_| Err("boom")) as MadeStep,
    ] {
        let kind = Kind::SteppingAgents {
            length: Some(6),
            first: |_| Ok((0..3).map(|node| request(node, &[])).collect()),
            second,
        };
        for (end, entries) in outcomes(&plan(), kind) {
            let once: BTreeMap<u64, u32> = (0..6).map(|session| (session, 1)).collect();
            assert_eq!(failures(&entries), once);
            assert_eq!(end.plugin_failures[0].repeated, 5);
        }
    }
}

/// In a queue of concurrent sessions no time passes while every one fails at its start.
#[test]
fn a_workload_ends_after_a_thousand_failed_starts_in_a_row() {
    let after_ten: MadeStep = |session| if session < 10 { ONE(session) } else { Err("boom") };
    for (length, total) in [(None, None), (Some(1_000_000), Some(1_000_000))] {
        let mut plan = plan();
        plan.scheduler.max_sessions = None;
        let kind = Kind::SteppingAgents {
            length,
            first: after_ten,
            second: LATER,
        };
        for (end, entries) in outcomes(&plan, kind) {
            assert_eq!(ends(&entries).len(), 1010);
            assert_eq!(failures(&entries).len(), 1000);
            assert_eq!(end.plugin_failures.len(), 1);
            let unstarted = end.unstarted.unwrap();
            assert_eq!((unstarted.first.0, unstarted.total), (1010, total));
            assert_eq!(unstarted.count, total.map(|total| total - 1010));
            assert!(
                unstarted.reason.starts_with("1000 sessions in a row"),
                "{unstarted}"
            );
        }
    }
}

/// Nor while every one has nothing to send.
#[test]
fn an_endless_workload_of_empty_sessions_ends() {
    let mut plan = plan();
    plan.scheduler.max_sessions = None;
    let kind = Kind::SteppingAgents {
        length: None,
        first: |_| Ok(Vec::new()),
        second: LATER,
    };
    for (end, entries) in outcomes(&plan, kind) {
        assert_eq!(ends(&entries).len(), 1000);
        assert!(end.unstarted.is_some());
    }
}

/// One session in between that can start is enough.
#[test]
fn failed_starts_with_others_between_them_do_not_end_the_workload() {
    let mut plan = plan();
    plan.scheduler.max_sessions = Some(2500);
    let kind = Kind::SteppingAgents {
        length: None,
        first: |session| {
            if session % 900 == 899 {
                ONE(session)
            } else {
                Err("boom")
            }
        },
        second: LATER,
    };
    for (end, entries) in outcomes(&plan, kind) {
        assert_eq!(ends(&entries).len(), 2500);
        assert_eq!(end.unstarted, None);
    }
}

/// A generator of whole sessions that fails is at its end.
#[test]
fn planned_sessions_after_a_failure_never_start_and_are_counted() {
    let kind = Kind::Chains {
        length: Some(15),
        fails_at: 9,
    };
    for (end, entries) in outcomes(&plan(), kind) {
        assert_eq!(ends(&entries).len(), 9);
        let unstarted = end.unstarted.unwrap().to_string();
        assert_eq!(
            unstarted,
            "the workload ended before session 9, because its plugin failed: 6 of 15 sessions never started"
        );
    }
}
