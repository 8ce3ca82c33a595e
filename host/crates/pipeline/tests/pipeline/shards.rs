//! One run in several processes: together they send what one alone would.

use std::collections::BTreeMap;

use proptest::prelude::*;
use veeksha_events::Event;
use veeksha_model::{HistoryMode, RequestId, Session};
use veeksha_pipeline::{Control, PipelineError, Plan, ReplaySchedule};
use veeksha_scheduler::{Interval, Shard, TrafficRule};
use veeksha_stats::RandomStream;

use crate::fakes::{Kind, plan, replayed, request};
use crate::real_time::drive;
use crate::virtual_time::{Simulated, quick, simulate};

/// A session of one to four requests, each after some of those before it.
fn drawn(seed: u64, id: u64) -> Session {
    let mut draws = RandomStream::new(seed, id, "session").draws();
    let arrives_at = u64::from(draws.below(2_000)) * 1_000_000;
    let mut requests = Vec::new();
    for node in 0..=draws.below(4) {
        let parents: Vec<u32> = (0..node).filter(|_| draws.below(2) == 0).collect();
        let mode = [HistoryMode::Live, HistoryMode::Recorded, HistoryMode::Fresh][draws.below(3) as usize];
        let mut request = replayed(mode, Some(arrives_at), request(node, &parents));
        request.wait_after_ready = u64::from(draws.below(5)) * 1_000_000;
        requests.push(request);
    }
    Session {
        requests,
        arrives_at: Some(arrives_at),
        labels: vec![("session".into(), id.to_string())],
        ..Session::default()
    }
}

fn workload(seed: u64, length: Option<u64>, only: Shard) -> Kind {
    Kind::Generated {
        seed,
        length,
        session: drawn,
        only,
    }
}

/// Every session with its start, and every request with what was sent: each exactly once.
#[derive(Debug, Default, PartialEq)]
struct Sent {
    starts: BTreeMap<u64, Option<u64>>,
    requests: BTreeMap<RequestId, String>,
}

impl Sent {
    /// `by_schedule`: whether a start depends on the session alone, or also on what else is going
    /// on.
    fn add(&mut self, run: &Simulated, by_schedule: bool) {
        assert!(
            run.end.plugin_failures.is_empty(),
            "{:?}",
            run.end.plugin_failures
        );
        for entry in &run.entries {
            match &entry.event {
                Event::SessionStarted { session, at, .. } => {
                    let start = by_schedule.then_some(*at);
                    assert!(self.starts.insert(session.0, start).is_none(), "{session} twice");
                }
                Event::Finished(record) => {
                    let sent = format!(
                        "{:?} {:?} {} {} {:?} {:?} {:?}",
                        record.parents,
                        record.history_parent,
                        record.wait_after_ready,
                        record.total_prompt_tokens,
                        record.target_output_tokens,
                        record.recorded,
                        record.labels
                    );
                    assert!(
                        self.requests.insert(record.id, sent).is_none(),
                        "{} twice",
                        record.id
                    );
                }
                _ => {}
            }
        }
    }
}

fn traffic() -> impl Strategy<Value = TrafficRule> {
    prop_oneof![
        Just(TrafficRule::Scheduled { replays: true }),
        Just(TrafficRule::Rate(Interval::Poisson { rate: 20.0 })),
        (5u32..12, 0u64..200).prop_map(|(target, ramp)| TrafficRule::Concurrent {
            target,
            ramp: ramp * 1_000_000
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_shards_together_send_exactly_the_whole(
        seed in any::<u64>(),
        traffic in traffic(),
        count in 1u32..6,
        limits in prop_oneof![
            (0u64..40).prop_map(|max| (Some(max), None)),
            (0u64..40).prop_map(|length| (None, Some(length))),
            (0u64..40, 0u64..40).prop_map(|(max, length)| (Some(max), Some(length))),
        ],
    ) {
        let (max_sessions, length) = limits;
        let mut plan = plan();
        plan.scheduler.traffic = traffic;
        plan.scheduler.max_sessions = max_sessions;
        plan.schedule = ReplaySchedule { offset: 3, speedup: 1.5 };
        let by_schedule = !matches!(traffic, TrafficRule::Concurrent { .. });
        let mut whole = Sent::default();
        whole.add(&simulate(&plan, &quick(), workload(seed, length, Shard::WHOLE)), by_schedule);
        let expected = max_sessions.unwrap_or(u64::MAX).min(length.unwrap_or(u64::MAX));
        prop_assert_eq!(whole.starts.len() as u64, expected);
        let mut together = Sent::default();
        for index in 0..count {
            plan.shard = Shard { index, count };
            // A source that is asked for a session of another shard fails.
            let run = simulate(&plan, &quick(), workload(seed, length, plan.shard));
            together.add(&run, by_schedule);
        }
        prop_assert_eq!(together, whole);
    }
}

/// The same with threads and the real clock, planned and reactive, several dispatchers in each
/// process.
#[test]
fn shards_of_a_real_run_are_parts_of_it_whatever_their_threads() {
    let count = 3;
    for threads in [1, 4] {
        for reactive in [false, true] {
            let mut ids = BTreeMap::new();
            for index in 0..count {
                let shard = Shard { index, count };
                let plan = Plan {
                    shard,
                    dispatchers: threads,
                    completion_threads: threads,
                    plugin_threads: threads,
                    ..plan()
                };
                let kind = if reactive {
                    Kind::Agents
                } else {
                    workload(1, None, shard)
                };
                let ran = drive(&plan, kind, &Control::default()).unwrap();
                for record in ran.records() {
                    assert!(shard.owns(record.id.session.0));
                    assert!(ids.insert(record.id, ()).is_none(), "{} twice", record.id);
                }
                // 20 sessions over all: 7, 7 and 6.
                assert_eq!(ran.ends().len(), [7, 7, 6][index as usize]);
            }
        }
    }
}

/// Arrivals are those of the session's own number in the whole run.
#[test]
fn a_shard_arrives_when_the_whole_would() {
    let mut plan = crate::fakes::paced();
    plan.shard = Shard { index: 1, count: 2 };
    plan.dispatchers = 2;
    let ran = drive(&plan, workload(4, None, plan.shard), &Control::default()).unwrap();
    for entry in &ran.entries {
        if let Event::SessionStarted { session, at, .. } = entry.event {
            assert_eq!(at, session.0 * 2_000_000);
        }
    }
    assert_eq!(ran.ends().len(), 10);
}

#[test]
fn rejects_impossible_shard() {
    let refused = |traffic, index, count| {
        let mut plan = plan();
        plan.scheduler.traffic = traffic;
        plan.shard = Shard { index, count };
        drive(&plan, workload(0, None, plan.shard), &Control::default()).err()
    };
    let rate = TrafficRule::Rate(Interval::Fixed { interval: 0.001 });
    assert!(matches!(
        refused(rate, 3, 3),
        Some(PipelineError::NoSuchShard { index: 3, count: 3 })
    ));
    assert!(matches!(
        refused(rate, 0, 0),
        Some(PipelineError::NoSuchShard { .. })
    ));
    // Two places cannot be shared by three.
    let two = TrafficRule::Concurrent { target: 2, ramp: 0 };
    for index in 0..3 {
        let error = refused(two, index, 3).unwrap();
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
        assert!(error.to_string().contains("no more than 2 shards"), "{error}");
    }
    assert!(refused(two, 1, 2).is_none());
}
