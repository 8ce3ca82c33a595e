//! Handmade runs under limits: which requests wait, for which limit, how long, and what is reported
//! of those that were never sent.

use veeksha_model::{Nanos, SessionId};
use veeksha_scheduler::{
    ConcurrencyLimits, GracePeriod, Interval, NodePlan, Scheduler, SchedulerConfig, SchedulerInput,
    SessionKind, SessionPlan, Shard, TrafficRule,
};

mod hand;
use hand::{EVERY_SECOND, agent, answered, config, failed, id, node, on, session};

fn scheduled(sessions: Option<u32>, in_flight: Option<u32>, in_prefill: Option<u32>) -> Scheduler<u32> {
    Scheduler::new(SchedulerConfig {
        limits: ConcurrencyLimits {
            sessions,
            in_flight,
            in_prefill,
        },
        ..config(TrafficRule::Scheduled { replays: true })
    })
}

fn arriving(id: u64, at: Nanos, nodes: Vec<NodePlan<u32>>) -> SchedulerInput<u32> {
    SchedulerInput::Session(SessionPlan {
        arrives_at: Some(at),
        id: SessionId(id),
        nodes,
        kind: SessionKind::Planned,
        cancel: Vec::new(),
    })
}

fn one() -> Vec<NodePlan<u32>> {
    vec![node(0, &[], 0)]
}

fn first_chunk(session: u64, node: u32, at: Nanos) -> SchedulerInput<u32> {
    SchedulerInput::FirstChunk {
        request: id(session, node),
        at,
    }
}

#[test]
fn requests_wait_for_one_in_flight_to_end() {
    let mut s = scheduled(None, Some(1), None);
    for (id, at) in [(0, 0), (1, 10), (2, 20)] {
        on(&mut s, 0, arriving(id, at, one()));
    }
    // Sessions start at their arrivals: only what they send waits.
    assert_eq!(on(&mut s, 10, SchedulerInput::Tick), ["start 1 at 10 of 1"]);
    assert_eq!(on(&mut s, 20, SchedulerInput::Tick), ["start 2 at 20 of 1"]);
    assert_eq!(s.next_wake(), None);
    // Ended at 35, known at 37: the limit held 1/0 for 25, and the last 2 are the shell's.
    assert_eq!(
        on(&mut s, 37, answered(0, 0, 35)),
        [
            "finish 0 completed at 35 of 1",
            "send 1/0 at 10 of 1 after [] held 0+25+0"
        ]
    );
    assert_eq!(
        on(&mut s, 50, failed(1, 0, 50)),
        [
            "finish 1 errored at 50 of 1",
            "send 2/0 at 20 of 1 after [] held 0+30+0"
        ]
    );
    on(&mut s, 60, answered(2, 0, 60));
    // There is capacity again: nothing is held.
    assert_eq!(
        on(&mut s, 70, arriving(3, 70, one()))[1],
        "send 3/0 at 70 of 1 after []"
    );
}

/// Two in flight, one of them in prefill. Each stretch of the wait belongs to the limit that was in
/// the way then.
#[test]
fn held_time_is_split_by_limit() {
    let begin = || {
        let mut s = scheduled(None, Some(2), Some(1));
        for id in 0..3 {
            on(&mut s, 0, arriving(id, 0, one()));
        }
        assert_eq!(
            on(&mut s, 8, first_chunk(0, 0, 8)),
            ["send 1/0 at 0 of 1 after [] held 0+0+8"]
        );
        s
    };
    // The prefill limit holds until 8, then the two in flight. The first chunk of 1/0 frees no
    // capacity in flight.
    let mut s = begin();
    assert!(on(&mut s, 12, first_chunk(1, 0, 12)).is_empty());
    assert_eq!(
        on(&mut s, 30, answered(0, 0, 30))[1],
        "send 2/0 at 0 of 1 after [] held 0+22+8"
    );
    // The reverse: capacity in flight at 10, and until 15 the prefill of 1/0 holds again.
    let mut s = begin();
    assert_eq!(
        on(&mut s, 10, answered(0, 0, 10)),
        ["finish 0 completed at 10 of 1"]
    );
    assert_eq!(
        on(&mut s, 15, first_chunk(1, 0, 15)),
        ["send 2/0 at 0 of 1 after [] held 0+2+13"]
    );
}

/// The prefill limit holds until the chunk's arrival; the delay of the report is not the limit's.
/// An arrival in the future counts from the call.
#[test]
fn prefill_is_freed_at_the_arrival_of_the_first_chunk() {
    for (reported, arrived, held) in [(12, 8, 8), (12, 20, 12)] {
        let mut s = scheduled(None, None, Some(1));
        for id in 0..2 {
            on(&mut s, 0, arriving(id, 0, one()));
        }
        assert_eq!(
            on(&mut s, reported, first_chunk(0, 0, arrived)),
            [format!("send 1/0 at 0 of 1 after [] held 0+0+{held}")]
        );
    }
}

#[test]
fn a_result_without_a_first_chunk_ends_the_prefill_and_none_ends_it_twice() {
    let mut s = scheduled(None, None, Some(1));
    for id in 0..5 {
        on(&mut s, 0, arriving(id, 0, one()));
    }
    assert_eq!(
        on(&mut s, 3, failed(0, 0, 3))[1],
        "send 1/0 at 0 of 1 after [] held 0+0+3"
    );
    assert_eq!(
        on(&mut s, 5, answered(1, 0, 5))[1],
        "send 2/0 at 0 of 1 after [] held 0+0+5"
    );
    assert_eq!(on(&mut s, 7, first_chunk(2, 0, 7)).len(), 1);
    // 2/0 has left the prefill; 3/0 is in it, and unknown and earlier requests change nothing.
    for ignored in [
        first_chunk(2, 0, 8),
        first_chunk(0, 0, 8),
        first_chunk(9, 9, 8),
        first_chunk(4, 0, 8),
    ] {
        assert!(on(&mut s, 8, ignored).is_empty());
    }
    assert_eq!(on(&mut s, 9, answered(2, 0, 9)), ["finish 2 completed at 9 of 1"]);
    assert_eq!(
        on(&mut s, 11, first_chunk(3, 0, 11)),
        ["send 4/0 at 0 of 1 after [] held 0+0+11"]
    );
}

#[test]
fn sessions_wait_in_the_order_of_arrival_and_keep_their_instant() {
    let mut s = scheduled(Some(1), None, None);
    on(&mut s, 0, arriving(0, 0, one()));
    on(&mut s, 0, arriving(1, 20, one()));
    // Two roots: one is due when the session arrives, one when its place has long been free.
    on(
        &mut s,
        0,
        arriving(2, 10, vec![node(0, &[], 5), node(1, &[], 100)]),
    );
    assert_eq!(s.next_wake(), None);
    // The place is free at 40; the session counts from its arrival at 10, its first root from 15.
    assert_eq!(
        on(&mut s, 41, answered(0, 0, 40)),
        [
            "finish 0 completed at 40 of 1",
            "start 2 at 10 of 2",
            "send 2/0 at 15 of 2 after [] held 25+0+0"
        ]
    );
    assert!(on(&mut s, 60, answered(2, 0, 60)).is_empty());
    assert_eq!(
        on(&mut s, 110, SchedulerInput::Tick),
        ["send 2/1 at 110 of 2 after []"]
    );
    assert_eq!(
        on(&mut s, 130, answered(2, 1, 130)),
        [
            "finish 2 completed at 130 of 2",
            "start 1 at 20 of 1",
            "send 1/0 at 20 of 1 after [] held 110+0+0"
        ]
    );
}

#[test]
fn session_wait_precedes_in_flight_wait() {
    let mut s = scheduled(Some(1), Some(1), None);
    on(&mut s, 0, arriving(0, 0, one()));
    on(&mut s, 0, arriving(1, 10, vec![node(0, &[], 0), node(1, &[], 0)]));
    assert_eq!(
        on(&mut s, 40, answered(0, 0, 40))[2],
        "send 1/0 at 10 of 2 after [] held 30+0+0"
    );
    assert_eq!(
        on(&mut s, 60, answered(1, 0, 60)),
        ["send 1/1 at 10 of 2 after [] held 30+20+0"]
    );
}

/// A delay of the source is not attributed to a limit.
#[test]
fn starvation_is_not_held() {
    let mut s = scheduled(Some(1), None, None);
    on(&mut s, 0, arriving(0, 0, one()));
    assert!(on(&mut s, 20, arriving(1, 10, one())).is_empty());
    assert_eq!(
        on(&mut s, 30, answered(0, 0, 30)),
        [
            "finish 0 completed at 30 of 1",
            "starved from 10 to 20",
            "start 1 at 10 of 1",
            "send 1/0 at 10 of 1 after [] held 10+0+0"
        ]
    );
    // An agent that thinks until 70 about an answer of 50, while the only place in flight is taken
    // until 90.
    let mut s = scheduled(None, Some(1), None);
    on(&mut s, 0, agent(0, one()));
    on(&mut s, 0, arriving(1, 40, one()));
    on(&mut s, 40, SchedulerInput::Tick);
    on(&mut s, 50, answered(0, 0, 50));
    let step = SchedulerInput::Step {
        session: SessionId(0),
        nodes: vec![node(1, &[0], 0)],
        cancel: Vec::new(),
        done: true,
    };
    assert!(on(&mut s, 70, step).is_empty());
    assert_eq!(
        on(&mut s, 90, answered(1, 0, 90))[1],
        "send 0/1 at 50 of 2 after [0] held 0+20+0"
    );
}

#[test]
fn earliest_due_request_is_sent_first() {
    let mut s = scheduled(None, Some(2), None);
    on(&mut s, 0, arriving(0, 0, vec![node(0, &[], 0), node(1, &[0], 5)]));
    on(&mut s, 0, arriving(1, 0, one()));
    for (id, at) in [(7, 30), (3, 30), (5, 25)] {
        on(&mut s, 0, arriving(id, at, one()));
    }
    // The child of an answer of 20 is due at 25 as well, and its session is the lower one.
    assert_eq!(
        on(&mut s, 31, answered(0, 0, 20))[3..],
        ["send 0/1 at 25 of 2 after [0]"]
    );
    assert_eq!(
        on(&mut s, 40, answered(0, 1, 40))[1],
        "send 5/0 at 25 of 1 after [] held 0+15+0"
    );
    assert_eq!(
        on(&mut s, 50, answered(1, 0, 50))[1],
        "send 3/0 at 30 of 1 after [] held 0+20+0"
    );
}

#[test]
fn the_target_of_concurrent_traffic_is_at_most_the_limit() {
    let traffic = TrafficRule::Concurrent { target: 5, ramp: 0 };
    let limits = ConcurrencyLimits {
        sessions: Some(2),
        ..ConcurrencyLimits::default()
    };
    let mut s = Scheduler::new(SchedulerConfig {
        limits,
        ..config(traffic)
    });
    for id in 0..4 {
        on(&mut s, 0, session(id, one()));
    }
    assert_eq!(s.in_flight(), 2);
    // The next session is due when its place is free: nothing held it.
    assert_eq!(
        on(&mut s, 9, answered(1, 0, 9)),
        [
            "finish 1 completed at 9 of 1",
            "start 2 at 9 of 1",
            "send 2/0 at 9 of 1 after []"
        ]
    );
}

#[test]
fn held_requests_can_be_withdrawn() {
    let mut s = scheduled(None, Some(1), None);
    on(
        &mut s,
        0,
        arriving(0, 0, vec![node(0, &[], 0), node(1, &[], 0), node(2, &[], 50)]),
    );
    on(&mut s, 0, arriving(1, 5, one()));
    on(&mut s, 5, SchedulerInput::Tick);
    assert_eq!(
        on(&mut s, 10, failed(0, 0, 10)),
        [
            "never 0/1 session_cancelled at 10",
            "never 0/2 session_cancelled at 10",
            "finish 0 cancelled at 10 of 3",
            "send 1/0 at 5 of 1 after [] held 0+5+0"
        ]
    );
}

/// At the end of a run, each due request has its reason; so does each that was not due yet.
#[test]
fn held_requests_are_reported_at_the_end() {
    let limited = |sessions, in_flight| {
        Scheduler::new(SchedulerConfig {
            limits: ConcurrencyLimits {
                sessions,
                in_flight,
                in_prefill: None,
            },
            benchmark_timeout: Some(100),
            grace: GracePeriod::Bounded(0),
            ..config(TrafficRule::Scheduled { replays: true })
        })
    };
    let two = || vec![node(0, &[], 0), node(1, &[0], 0)];
    let mut s = limited(None, Some(1));
    for (id, at) in [(0, 0), (1, 10), (2, 100), (3, 150)] {
        on(&mut s, 0, arriving(id, at, two()));
    }
    on(&mut s, 10, SchedulerInput::Tick);
    // Session 2 arrives at the end itself, which is too late.
    assert_eq!(
        on(&mut s, 103, SchedulerInput::Tick),
        [
            "timeout at 100",
            "cancel",
            "never 0/1 run_ended at 103",
            "never 1/0 held at 103",
            "never 1/1 run_ended at 103",
            "finish 1 incomplete at 103 of 2"
        ]
    );
    // A session without a place is known and was due: it appears with everything it would have
    // sent.
    let mut s = limited(Some(1), None);
    for (id, at) in [(0, 0), (1, 10), (2, 100)] {
        on(&mut s, 0, arriving(id, at, two()));
    }
    on(&mut s, 10, SchedulerInput::Tick);
    assert_eq!(
        on(&mut s, 100, SchedulerInput::Tick),
        [
            "timeout at 100",
            "cancel",
            "start 1 at 10 of 2",
            "never 0/1 run_ended at 100",
            "never 1/0 held at 100",
            "never 1/1 run_ended at 100",
            "finish 1 incomplete at 100 of 2"
        ]
    );
    // Nothing kept it back, and the call came too late.
    let mut s = limited(Some(2), Some(2));
    on(&mut s, 0, arriving(0, 99, one()));
    assert_eq!(
        on(&mut s, 103, SchedulerInput::Tick),
        [
            "timeout at 100",
            "start 0 at 99 of 1",
            "never 0/0 missed at 103",
            "finish 0 incomplete at 103 of 1",
            "done"
        ]
    );
}

/// A result that ends the run frees no capacity: the waiting requests were held to the end.
#[test]
fn requests_waiting_at_the_end_are_held() {
    let mut s = Scheduler::new(SchedulerConfig {
        limits: ConcurrencyLimits {
            in_flight: Some(1),
            ..ConcurrencyLimits::default()
        },
        benchmark_timeout: Some(100),
        ..config(TrafficRule::Scheduled { replays: true })
    });
    on(&mut s, 0, arriving(0, 0, one()));
    on(&mut s, 0, arriving(1, 10, one()));
    // Due after the timeout: it would not have counted.
    on(&mut s, 0, arriving(2, 110, one()));
    on(&mut s, 10, SchedulerInput::Tick);
    on(&mut s, 110, SchedulerInput::Tick);
    assert_eq!(
        on(&mut s, 120, answered(0, 0, 120)),
        [
            "finish 0 completed at 120 of 1",
            "never 1/0 held at 120",
            "finish 1 incomplete at 120 of 1",
            "never 2/0 run_ended at 120",
            "finish 2 incomplete at 120 of 1",
            "done"
        ]
    );
}

/// One session a second is asked for and the source delivers two: at 4.5 s those of 2, 3 and 4 s
/// are missing, and no more.
#[test]
fn arrivals_that_were_never_delivered_are_counted() {
    let second = 1_000_000_000;
    let mut s = Scheduler::new(config(EVERY_SECOND));
    on(&mut s, 0, session(0, one()));
    on(&mut s, 0, session(1, one()));
    on(&mut s, second, SchedulerInput::Tick);
    assert_eq!(
        on(&mut s, 9 * second / 2, SchedulerInput::Stop),
        ["cancel", "missed 3 at 4500000000"]
    );
    // Some of them are another shard's, and some do not exist.
    let missed = |count, max_sessions, ended| {
        let mut s: Scheduler<u32> = Scheduler::new(SchedulerConfig {
            shard: Shard { index: 1, count },
            max_sessions,
            ..config(EVERY_SECOND)
        });
        if ended {
            on(&mut s, 0, session(4, one()));
            on(&mut s, 0, SchedulerInput::SourceEnded);
        }
        on(&mut s, 9 * second / 2, SchedulerInput::Stop)
    };
    // Of 0 to 4 the shard owns 1 and 4.
    assert_eq!(missed(3, None, false), ["missed 2 at 4500000000", "done"]);
    assert_eq!(missed(3, Some(4), false), ["missed 1 at 4500000000", "done"]);
    assert_eq!(missed(3, None, true)[0], "start 4 at 4000000000 of 1");
    // An interval of nothing has no end of arrivals.
    let mut s: Scheduler<u32> = Scheduler::new(config(TrafficRule::Rate(Interval::Fixed { interval: 0.0 })));
    assert_eq!(
        on(&mut s, 1, SchedulerInput::Stop),
        ["missed 1000000 at 1", "done"]
    );
}

#[test]
fn shard_limits_add_up() {
    for most in 1..9u32 {
        for count in 1..=most {
            let sent = |index| {
                let mut s = Scheduler::new(SchedulerConfig {
                    limits: ConcurrencyLimits {
                        in_flight: Some(most),
                        ..ConcurrencyLimits::default()
                    },
                    shard: Shard { index, count },
                    ..config(TrafficRule::Scheduled { replays: true })
                });
                for id in 0..100 {
                    on(&mut s, 0, arriving(id, 0, one()));
                }
                assert!(s.in_flight() > 0);
                s.in_flight() as u32
            };
            assert_eq!((0..count).map(sent).sum::<u32>(), most, "{count} shards");
        }
    }
    let limits = ConcurrencyLimits {
        sessions: Some(7),
        in_flight: Some(5),
        in_prefill: None,
    };
    let of = |traffic| SchedulerConfig {
        limits,
        ..config(traffic)
    };
    assert_eq!(of(EVERY_SECOND).most_shards(), 5);
    let traffic = TrafficRule::Concurrent { target: 3, ramp: 0 };
    assert_eq!(of(traffic).most_shards(), 3);
    // A shard without a part has nothing to do.
    let mut s: Scheduler<u32> = Scheduler::new(SchedulerConfig {
        shard: Shard { index: 5, count: 6 },
        ..of(EVERY_SECOND)
    });
    assert_eq!(s.next_wanted(), None);
    assert_eq!(on(&mut s, 0, SchedulerInput::Tick), ["done"]);
}
