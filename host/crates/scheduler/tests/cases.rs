//! Hand-made runs, with instants and ends that follow from the definitions.

use veeksha_model::{Nanos, SessionId};
use veeksha_scheduler::{
    GracePeriod, LOOKAHEAD, Scheduler, SchedulerConfig, SchedulerInput, Shard, TrafficRule,
};

mod hand;
use hand::{EVERY_SECOND, agent, answered, config, failed, node, on, session};

const S: Nanos = 1_000_000_000;

#[test]
fn diamond_waits_for_last_parent_plus_think_time() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    let diamond = vec![
        node(0, &[], 5),
        node(1, &[0], 0),
        node(2, &[0], 10),
        node(3, &[2, 1], 7),
    ];
    assert_eq!(on(&mut s, 0, session(0, diamond)), ["start 0 at 0 of 4"]);
    assert_eq!(s.next_wake(), Some(5));
    assert_eq!(
        on(&mut s, 5, SchedulerInput::Tick),
        ["send 0/0 at 5 of 4 after []"]
    );
    // Completed at 100, known at 103: the child counts from 100.
    assert_eq!(
        on(&mut s, 103, answered(0, 0, 100)),
        ["send 0/1 at 100 of 4 after [0]"]
    );
    assert_eq!(
        on(&mut s, 110, SchedulerInput::Tick),
        ["send 0/2 at 110 of 4 after [0]"]
    );
    assert!(on(&mut s, 200, answered(0, 2, 190)).is_empty());
    // max(190, 180) + 7: its instant is past when its last parent becomes known, and stays what it
    // is.
    assert_eq!(
        on(&mut s, 300, answered(0, 1, 180)),
        ["send 0/3 at 197 of 4 after [0 2]"]
    );
}

#[test]
fn diamond_is_released_by_last_parent() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    on(
        &mut s,
        0,
        session(0, vec![node(0, &[], 0), node(1, &[], 0), node(2, &[1, 0], 7)]),
    );
    assert!(on(&mut s, 50, answered(0, 0, 50)).is_empty());
    assert!(on(&mut s, 60, answered(0, 1, 40)).contains(&"send 0/2 at 57 of 3 after [1]".to_string()));
    assert_eq!(
        on(&mut s, 70, answered(0, 2, 69)),
        ["finish 0 completed at 69 of 3"]
    );
}

#[test]
fn session_ends_at_its_latest_completion_not_at_the_last_reported() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    on(&mut s, 0, session(0, vec![node(0, &[], 0), node(1, &[], 0)]));
    assert!(on(&mut s, 60, answered(0, 0, 60)).is_empty());
    assert_eq!(
        on(&mut s, 70, answered(0, 1, 50)),
        ["finish 0 completed at 60 of 2"]
    );
}

#[test]
fn completion_in_the_future_counts_from_the_call() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    on(&mut s, 0, session(0, vec![node(0, &[], 0), node(1, &[0], 0)]));
    assert_eq!(
        on(&mut s, 50, answered(0, 0, 100)),
        ["send 0/1 at 50 of 2 after [0]"]
    );
}

#[test]
fn arrivals_keep_their_instant_when_the_source_is_late() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    let one = || vec![node(0, &[], 0)];
    assert_eq!(on(&mut s, 0, session(0, one()))[0], "start 0 at 0 of 1");
    assert_eq!(s.next_wake(), None);
    let late = on(&mut s, 3 * S, session(1, one()));
    assert_eq!(
        late,
        [
            "starved from 1000000000 to 3000000000",
            "start 1 at 1000000000 of 1",
            "send 1/0 at 1000000000 of 1 after []"
        ]
    );
    // Delivered in time, called late: the scheduled instant stays, and it is not starvation.
    on(&mut s, 3 * S, session(4, one()));
    assert_eq!(s.next_wake(), Some(4 * S));
    assert_eq!(
        on(&mut s, 5 * S, SchedulerInput::Tick),
        [
            "start 4 at 4000000000 of 1",
            "send 4/0 at 4000000000 of 1 after []"
        ]
    );
}

#[test]
fn ramp_advances_and_free_slots_are_refilled() {
    let mut s = Scheduler::new(config(TrafficRule::Concurrent { target: 2, ramp: 10 }));
    assert!(on(&mut s, 0, SchedulerInput::Tick).is_empty());
    for id in 0..4 {
        assert!(on(&mut s, 0, session(id, vec![node(0, &[], 0), node(1, &[0], 100)])).is_empty());
    }
    assert_eq!(s.next_wake(), Some(5));
    assert_eq!(
        on(&mut s, 5, SchedulerInput::Tick),
        ["start 0 at 5 of 2", "send 0/0 at 5 of 2 after []"]
    );
    assert_eq!(s.next_wake(), Some(10));
    assert_eq!(
        on(&mut s, 12, SchedulerInput::Tick),
        ["start 1 at 10 of 2", "send 1/0 at 10 of 2 after []"]
    );
    // Think time keeps the place.
    assert!(on(&mut s, 20, answered(0, 0, 20)).is_empty());
    on(&mut s, 120, SchedulerInput::Tick);
    assert_eq!(
        on(&mut s, 130, answered(0, 1, 125)),
        [
            "finish 0 completed at 125 of 2",
            "start 2 at 125 of 2",
            "send 2/0 at 125 of 2 after []"
        ]
    );
}

#[test]
fn failure_withdraws_unsent_requests() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    on(
        &mut s,
        0,
        session(
            0,
            vec![
                node(0, &[], 0),
                node(1, &[], 0),
                node(2, &[], 500),
                node(3, &[1], 0),
            ],
        ),
    );
    assert_eq!(
        on(&mut s, 10, failed(0, 0, 10)),
        [
            "never 0/2 session_cancelled at 10",
            "never 0/3 session_cancelled at 10"
        ]
    );
    assert_eq!(
        on(&mut s, 20, answered(0, 1, 20)),
        ["finish 0 cancelled at 20 of 4"]
    );
    assert!(on(&mut s, 600, SchedulerInput::Tick).is_empty());
    // Nothing left to withdraw: errored, not cancelled.
    on(&mut s, S, session(1, vec![node(0, &[], 0)]));
    assert_eq!(
        on(&mut s, S + 5, failed(1, 0, S + 5)),
        ["finish 1 errored at 1000000005 of 1"]
    );
}

#[test]
fn without_cancellation_children_follow_failed_turn() {
    let mut s = Scheduler::new(SchedulerConfig {
        cancel_session_on_failure: false,
        ..config(EVERY_SECOND)
    });
    on(
        &mut s,
        0,
        session(0, vec![node(0, &[], 0), node(1, &[0], 0), node(2, &[1], 0)]),
    );
    on(&mut s, 5, answered(0, 0, 5));
    assert_eq!(
        on(&mut s, 9, failed(0, 1, 9)),
        ["send 0/2 at 9 of 3 after [0 1!]"]
    );
    assert_eq!(
        on(&mut s, 12, answered(0, 2, 12)),
        ["finish 0 errored at 12 of 3"]
    );
}

#[test]
fn an_agent_sees_failures_and_may_try_again() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    on(&mut s, 0, agent(0, vec![node(0, &[], 0)]));
    on(&mut s, 0, SchedulerInput::SourceEnded);
    assert_eq!(on(&mut s, 5, failed(0, 0, 5)), ["ask 0/0 false at 5"]);
    let retry = SchedulerInput::Step {
        session: SessionId(0),
        nodes: vec![node(1, &[], 3)],
        cancel: Vec::new(),
        done: false,
    };
    // The retry names no parent: it counts from the completion that the agent answered.
    assert!(on(&mut s, 6, retry).is_empty());
    assert_eq!(
        on(&mut s, 8, SchedulerInput::Tick),
        ["send 0/1 at 8 of 2 after []"]
    );
    assert_eq!(on(&mut s, 20, answered(0, 1, 20)), ["ask 0/1 true at 20"]);
    let done = SchedulerInput::Step {
        session: SessionId(0),
        nodes: vec![],
        cancel: Vec::new(),
        done: true,
    };
    assert_eq!(
        on(&mut s, 25, done),
        ["finish 0 errored at 25 of 2", "forget 0", "done"]
    );
}

#[test]
fn stuck_agent_ends_its_session() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    on(&mut s, 0, agent(0, vec![node(0, &[], 0), node(1, &[], 0)]));
    let nothing = || SchedulerInput::Step {
        session: SessionId(0),
        nodes: vec![],
        cancel: Vec::new(),
        done: false,
    };
    on(&mut s, 5, answered(0, 0, 5));
    assert!(on(&mut s, 6, nothing()).is_empty(), "another node is in flight");
    on(&mut s, 7, answered(0, 1, 7));
    assert_eq!(
        on(&mut s, 8, nothing()),
        ["finish 0 errored at 8 of 2", "forget 0"]
    );
    // One without any node never moves either.
    assert_eq!(
        on(&mut s, S, agent(1, vec![])),
        [
            "start 1 at 1000000000 of 0",
            "finish 1 errored at 1000000000 of 0",
            "forget 1"
        ]
    );
}

#[test]
fn failed_agent_loses_unsent_requests() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    on(&mut s, 0, agent(0, vec![node(0, &[], 0), node(1, &[], 50)]));
    assert_eq!(
        on(
            &mut s,
            5,
            SchedulerInput::AgentFailed {
                session: SessionId(0)
            }
        ),
        ["never 0/1 plugin_failed at 5"]
    );
    assert_eq!(
        on(&mut s, 9, answered(0, 0, 9)),
        ["finish 0 errored at 9 of 2", "forget 0"]
    );
    // One that fails at its start still takes its turn.
    let failed = SchedulerInput::AgentFailed {
        session: SessionId(1),
    };
    assert!(on(&mut s, 10, agent(1, vec![])).is_empty());
    assert!(on(&mut s, 10, failed).is_empty());
    assert_eq!(
        on(&mut s, S, SchedulerInput::Tick),
        [
            "start 1 at 1000000000 of 0",
            "finish 1 errored at 1000000000 of 0",
            "forget 1"
        ]
    );
    assert_eq!(s.next_wanted(), Some(SessionId(2)));
}

/// One session a second; session 0 answers at 2.5 s, later ones never. The timeout is at 2 s.
fn timed(grace: GracePeriod) -> Scheduler<u32> {
    let mut s = Scheduler::new(SchedulerConfig {
        benchmark_timeout: Some(2 * S),
        grace,
        ..config(EVERY_SECOND)
    });
    for id in 0..6 {
        on(&mut s, 0, session(id, vec![node(0, &[], 0), node(1, &[0], 0)]));
    }
    assert_eq!(
        on(&mut s, S, SchedulerInput::Tick),
        [
            "start 1 at 1000000000 of 2",
            "send 1/0 at 1000000000 of 2 after []"
        ]
    );
    assert_eq!(s.next_wake(), Some(2 * S));
    s
}

#[test]
fn without_grace_the_timeout_ends_the_run() {
    let mut s = timed(GracePeriod::Bounded(0));
    assert_eq!(
        on(&mut s, 2 * S, SchedulerInput::Tick),
        [
            "timeout at 2000000000",
            "cancel",
            "never 0/1 run_ended at 2000000000",
            "never 1/1 run_ended at 2000000000"
        ]
    );
    assert_eq!((s.in_flight(), s.next_wake(), s.wanted()), (2, None, 0));
    assert_eq!(
        on(&mut s, 2 * S + 1, failed(0, 0, 2 * S + 1)),
        ["finish 0 incomplete at 2000000001 of 2"]
    );
    assert_eq!(
        on(&mut s, 2 * S + 2, failed(1, 0, 2 * S + 2)),
        ["finish 1 incomplete at 2000000002 of 2", "done"]
    );
    assert!(s.is_done());
}

#[test]
fn bounded_grace_holds_the_load_and_then_ends() {
    let mut s = timed(GracePeriod::Bounded(S));
    assert_eq!(
        on(&mut s, 2 * S, SchedulerInput::Tick),
        [
            "timeout at 2000000000",
            "start 2 at 2000000000 of 2",
            "send 2/0 at 2000000000 of 2 after [] unmeasured"
        ]
    );
    assert_eq!(
        on(&mut s, 5 * S / 2, answered(0, 0, 5 * S / 2)),
        ["send 0/1 at 2500000000 of 2 after [0] unmeasured"]
    );
    assert_eq!(s.next_wake(), Some(3 * S));
    let end = on(&mut s, 3 * S, SchedulerInput::Tick);
    assert_eq!(
        end,
        [
            "cancel",
            "never 1/1 run_ended at 3000000000",
            "never 2/1 run_ended at 3000000000"
        ]
    );
}

/// Session 3 was due at 3 S, when the run was over, although the calls came later.
#[test]
fn late_calls_do_not_move_the_timeout_or_the_end_of_grace() {
    let mut s = timed(GracePeriod::Bounded(S));
    let late = on(&mut s, 2 * S + 500, SchedulerInput::Tick);
    assert_eq!(late[0], "timeout at 2000000000");
    assert_eq!(
        on(&mut s, 3 * S + 400, SchedulerInput::Tick),
        [
            "cancel",
            "never 0/1 run_ended at 3000000400",
            "never 1/1 run_ended at 3000000400",
            "never 2/1 run_ended at 3000000400"
        ]
    );
    // Session 2 was due at the timeout, session 3 after it, and neither was missed.
    let mut s = timed(GracePeriod::Bounded(0));
    assert_eq!(
        on(&mut s, 3 * S + 400, SchedulerInput::Tick),
        [
            "timeout at 2000000000",
            "cancel",
            "never 0/1 run_ended at 3000000400",
            "never 1/1 run_ended at 3000000400"
        ]
    );
}

#[test]
fn unbounded_grace_waits_for_every_measured_request_and_for_no_other() {
    let mut s = timed(GracePeriod::Unbounded);
    on(&mut s, 2 * S, SchedulerInput::Tick);
    on(&mut s, 5 * S / 2, answered(0, 0, 5 * S / 2));
    on(&mut s, 3 * S, SchedulerInput::Tick);
    // 1/0 is the last measured one; 0/1, 2/0 and 3/0 are not waited for. Its child 1/1 is never
    // sent.
    let end = on(&mut s, 3 * S + 1, answered(1, 0, 3 * S + 1));
    let never = |id: u64| format!("never {id}/1 run_ended at 3000000001");
    let expected = [
        "cancel".to_string(),
        never(1),
        "finish 1 incomplete at 3000000001 of 2".to_string(),
        never(2),
        never(3),
    ];
    assert_eq!(end, expected);
    // An answer that overtook the cancellation counts: session 0 is whole.
    assert_eq!(
        on(&mut s, 3 * S + 2, answered(0, 1, 3 * S + 2)),
        ["finish 0 completed at 3000000002 of 2"]
    );
}

#[test]
fn a_late_call_takes_the_result_before_the_timeout() {
    let mut s = timed(GracePeriod::Bounded(0));
    let late = on(&mut s, 2 * S + 9, answered(0, 0, 2 * S - 9));
    assert_eq!(late[..2], ["timeout at 2000000000", "cancel"]);
    // The child was due before the timeout, and the call came too late for it.
    assert!(late.contains(&"never 0/1 missed at 2000000009".to_string()));
}

#[test]
fn stop_ends_at_once_and_ignores_what_never_started() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    on(&mut s, 0, session(0, vec![node(0, &[], 0)]));
    on(&mut s, 0, session(1, vec![node(0, &[], 0)]));
    on(&mut s, 0, agent(2, vec![node(0, &[], 0)]));
    assert_eq!(on(&mut s, 5, SchedulerInput::Stop), ["cancel", "forget 2"]);
    assert!(on(&mut s, 6, SchedulerInput::Stop).is_empty());
    assert_eq!(
        on(&mut s, 7, failed(0, 0, 7)),
        ["finish 0 incomplete at 7 of 1", "done"]
    );

    let mut idle: Scheduler<u32> = Scheduler::new(config(EVERY_SECOND));
    assert_eq!(on(&mut idle, 0, SchedulerInput::Stop), ["done"]);
}

#[test]
fn unknown_and_repeated_results_change_nothing() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    on(&mut s, 0, session(0, vec![node(0, &[], 0), node(1, &[0], 100)]));
    assert!(on(&mut s, 1, answered(7, 0, 1)).is_empty());
    assert!(on(&mut s, 1, answered(0, 1, 1)).is_empty(), "not sent yet");
    on(&mut s, 2, answered(0, 0, 2));
    assert!(on(&mut s, 3, failed(0, 0, 3)).is_empty());
    assert_eq!(s.in_flight(), 0);
    assert_eq!(
        on(&mut s, 102, SchedulerInput::Tick),
        ["send 0/1 at 102 of 2 after [0]"]
    );
}

#[test]
fn look_ahead_asks_for_what_can_start_and_a_reserve() {
    let mut s: Scheduler<u32> = Scheduler::new(config(TrafficRule::Concurrent { target: 100, ramp: 0 }));
    assert_eq!(
        (s.wanted(), s.next_wanted()),
        (LOOKAHEAD + 100, Some(SessionId(0)))
    );
    on(&mut s, 0, session(0, vec![node(0, &[], 0)]));
    assert_eq!(
        (s.wanted(), s.next_wanted()),
        (LOOKAHEAD + 99, Some(SessionId(1)))
    );

    let limited = SchedulerConfig {
        max_sessions: Some(7),
        shard: Shard { index: 1, count: 3 },
        ..config(EVERY_SECOND)
    };
    let mut s: Scheduler<u32> = Scheduler::new(limited);
    // The shard owns 1 and 4 of the sessions 0 to 6.
    assert_eq!((s.wanted(), s.next_wanted()), (2, Some(SessionId(1))));
    on(&mut s, 0, session(4, vec![]));
    assert_eq!((s.wanted(), s.next_wanted()), (1, Some(SessionId(1))));
    on(&mut s, 0, session(1, vec![]));
    assert_eq!((s.wanted(), s.next_wanted()), (0, None));
    on(&mut s, S, SchedulerInput::Tick);
    assert_eq!(
        on(&mut s, 4 * S, SchedulerInput::Tick),
        [
            "start 4 at 4000000000 of 0",
            "finish 4 completed at 4000000000 of 0",
            "done"
        ]
    );
}

#[test]
fn a_run_without_sessions_is_done() {
    let mut s: Scheduler<u32> = Scheduler::new(SchedulerConfig {
        max_sessions: Some(0),
        ..config(EVERY_SECOND)
    });
    assert_eq!(on(&mut s, 0, SchedulerInput::Tick), ["done"]);
    let mut s: Scheduler<u32> = Scheduler::new(config(EVERY_SECOND));
    assert_eq!(on(&mut s, 0, SchedulerInput::SourceEnded), ["done"]);
    // Three shards of two places: the third has nothing to do.
    let traffic = TrafficRule::Concurrent { target: 2, ramp: 0 };
    let mut s: Scheduler<u32> = Scheduler::new(SchedulerConfig {
        shard: Shard { index: 2, count: 3 },
        ..config(traffic)
    });
    assert_eq!((traffic.most_shards(), s.next_wanted()), (2, None));
    assert_eq!(on(&mut s, 0, SchedulerInput::Tick), ["done"]);
}
