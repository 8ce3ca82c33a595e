//! Handmade runs of recorded sessions: arrivals, recorded instants, and the history that is sent.

use std::sync::Arc;

use veeksha_model::{HistoryMode, Nanos, Response, SessionId};
use veeksha_scheduler::{
    GracePeriod, NodePlan, Scheduler, SchedulerConfig, SchedulerInput, SessionKind, SessionPlan, TrafficRule,
};

mod hand;
use hand::{EVERY_SECOND, agent, answered, config, failed, node, on, session};

/// A session that was recorded to arrive then.
fn recorded(id: u64, arrives_at: Nanos, nodes: Vec<NodePlan<u32>>) -> SchedulerInput<u32> {
    SchedulerInput::Session(SessionPlan {
        arrives_at: Some(arrives_at),
        id: SessionId(id),
        nodes,
        kind: SessionKind::Planned,
        cancel: Vec::new(),
    })
}

fn not_before(at: Nanos, node: NodePlan<u32>) -> NodePlan<u32> {
    NodePlan {
        not_before: Some(at),
        ..node
    }
}

#[test]
fn recorded_arrivals_start_sessions_whatever_their_ids() {
    let mut s = Scheduler::new(config(TrafficRule::Scheduled { replays: true }));
    for (id, at) in [(0, 300), (1, 100), (2, 200), (3, 100)] {
        assert!(on(&mut s, 0, recorded(id, at, vec![node(0, &[], 7)])).is_empty());
    }
    assert_eq!(s.next_wake(), Some(100));
    assert_eq!(
        on(&mut s, 100, SchedulerInput::Tick),
        ["start 1 at 100 of 1", "start 3 at 100 of 1"]
    );
    assert_eq!(s.next_wake(), Some(107));
    // Called late: the schedule's instants stay.
    assert_eq!(
        on(&mut s, 250, SchedulerInput::Tick),
        [
            "start 2 at 200 of 1",
            "send 1/0 at 107 of 1 after []",
            "send 3/0 at 107 of 1 after []",
            "send 2/0 at 207 of 1 after []"
        ]
    );
    assert_eq!(s.next_wake(), Some(300));
}

#[test]
fn a_recorded_session_that_comes_late_starts_at_once_from_its_arrival() {
    let mut s = Scheduler::new(config(TrafficRule::Scheduled { replays: true }));
    assert_eq!(
        on(&mut s, 500, recorded(0, 400, vec![node(0, &[], 0)])),
        [
            "starved from 400 to 500",
            "start 0 at 400 of 1",
            "send 0/0 at 400 of 1 after []"
        ]
    );
    // One without an arrival is never late.
    assert_eq!(
        on(&mut s, 600, session(1, vec![node(0, &[], 0)])),
        ["start 1 at 600 of 1", "send 1/0 at 600 of 1 after []"]
    );
}

#[test]
fn a_node_is_due_at_the_later_of_its_think_time_and_its_recorded_instant() {
    let mut s = Scheduler::new(config(TrafficRule::Scheduled { replays: true }));
    let nodes = vec![
        not_before(103, node(0, &[], 5)),
        not_before(120, node(1, &[], 5)),
        not_before(150, node(2, &[0], 10)),
        not_before(150, node(3, &[1], 10)),
        node(4, &[1], 10),
    ];
    on(&mut s, 0, recorded(0, 100, nodes));
    // Roots: 100 + 5 is later than 103, and earlier than 120.
    assert_eq!(on(&mut s, 100, SchedulerInput::Tick), ["start 0 at 100 of 5"]);
    assert_eq!(
        on(&mut s, 105, SchedulerInput::Tick),
        ["send 0/0 at 105 of 5 after []"]
    );
    assert_eq!(
        on(&mut s, 120, SchedulerInput::Tick),
        ["send 0/1 at 120 of 5 after []"]
    );
    // 130 + 10 is earlier than 150; 145 + 10 is later.
    assert!(on(&mut s, 130, answered(0, 0, 130)).is_empty());
    assert!(on(&mut s, 145, answered(0, 1, 145)).is_empty());
    assert_eq!(s.next_wake(), Some(150));
    assert_eq!(
        on(&mut s, 155, SchedulerInput::Tick),
        [
            "send 0/2 at 150 of 5 after [0]",
            "send 0/3 at 155 of 5 after [1]",
            "send 0/4 at 155 of 5 after [1]"
        ]
    );
}

#[test]
fn other_traffic_ignores_recorded_instants() {
    for traffic in [EVERY_SECOND, TrafficRule::Concurrent { target: 1, ramp: 0 }] {
        let mut s = Scheduler::new(config(traffic));
        assert_eq!(
            on(
                &mut s,
                0,
                recorded(0, 700, vec![not_before(900, node(0, &[], 0))])
            ),
            ["start 0 at 0 of 1", "send 0/0 at 0 of 1 after []"]
        );
        on(&mut s, 0, agent(1, vec![node(0, &[], 0)]));
    }
    // An agent's later nodes too.
    let mut s = Scheduler::new(config(TrafficRule::Scheduled { replays: true }));
    on(&mut s, 0, agent(0, vec![node(0, &[], 0)]));
    on(&mut s, 5, answered(0, 0, 5));
    let step = SchedulerInput::Step {
        session: SessionId(0),
        nodes: vec![not_before(50, node(1, &[0], 0))],
        cancel: Vec::new(),
        done: true,
    };
    assert!(on(&mut s, 6, step).is_empty());
    assert_eq!(s.next_wake(), Some(50));
}

#[test]
fn a_replayed_run_ends_by_its_timeout_like_any_other() {
    let mut s = Scheduler::new(SchedulerConfig {
        benchmark_timeout: Some(200),
        grace: GracePeriod::Bounded(100),
        ..config(TrafficRule::Scheduled { replays: true })
    });
    let later = |at| vec![node(0, &[], 0), not_before(at, node(1, &[0], 0))];
    on(&mut s, 0, recorded(0, 250, later(0)));
    on(&mut s, 0, recorded(1, 10, later(260)));
    on(&mut s, 0, recorded(2, 20, later(400)));
    on(&mut s, 0, recorded(3, 350, later(0)));
    on(&mut s, 10, SchedulerInput::Tick);
    on(&mut s, 20, SchedulerInput::Tick);
    on(&mut s, 30, answered(1, 0, 30));
    assert_eq!(on(&mut s, 200, SchedulerInput::Tick), ["timeout at 200"]);
    // The load is held while request 2/0 is waited for.
    assert_eq!(
        on(&mut s, 250, SchedulerInput::Tick),
        ["start 0 at 250 of 2", "send 0/0 at 250 of 2 after [] unmeasured"]
    );
    assert_eq!(
        on(&mut s, 260, SchedulerInput::Tick),
        ["send 1/1 at 260 of 2 after [0] unmeasured"]
    );
    assert_eq!(s.next_wake(), Some(300));
    assert_eq!(
        on(&mut s, 300, SchedulerInput::Tick),
        [
            "cancel",
            "never 0/1 run_ended at 300",
            "never 2/1 run_ended at 300"
        ]
    );
}

/// Node `n` was recorded to be answered with "R".
fn answered_then(node: NodePlan<u32>) -> NodePlan<u32> {
    let text = "R".to_owned();
    NodePlan {
        recorded_answer: Some(Arc::new(Response {
            text,
            ..Response::default()
        })),
        ..node
    }
}

fn hearing(history_mode: HistoryMode, node: NodePlan<u32>) -> NodePlan<u32> {
    NodePlan { history_mode, ..node }
}

/// The last of a chain decides how all answers before it are given; a fresh one in between begins
/// the conversation.
#[test]
fn a_nodes_mode_holds_for_the_whole_chain_behind_it() {
    use HistoryMode::{Fresh, Live, Recorded};
    let mut s = Scheduler::new(SchedulerConfig {
        cancel_session_on_failure: false,
        ..config(EVERY_SECOND)
    });
    let nodes = vec![
        answered_then(node(0, &[], 0)),
        hearing(Recorded, node(1, &[0], 0)),
        hearing(Live, answered_then(node(2, &[1], 0))),
        hearing(Recorded, node(3, &[2], 0)),
        hearing(Fresh, answered_then(node(4, &[3], 0))),
        hearing(Recorded, node(5, &[4], 0)),
        hearing(Live, node(6, &[4], 0)),
    ];
    on(&mut s, 0, session(0, nodes));
    assert_eq!(
        on(&mut s, 1, answered(0, 0, 1)),
        ["send 0/1 at 1 of 7 after [0R]"]
    );
    assert_eq!(
        on(&mut s, 2, answered(0, 1, 2)),
        ["send 0/2 at 2 of 7 after [0 1]"]
    );
    // A failed turn: recorded histories have its recorded answer. Node 1 was never recorded: its
    // real answer.
    assert_eq!(
        on(&mut s, 3, failed(0, 2, 3)),
        ["send 0/3 at 3 of 7 after [0R 1 2R]"]
    );
    assert_eq!(on(&mut s, 4, answered(0, 3, 4)), ["send 0/4 at 4 of 7 after []"]);
    assert_eq!(
        on(&mut s, 5, failed(0, 4, 5)),
        ["send 0/5 at 5 of 7 after [4R]", "send 0/6 at 5 of 7 after [4!]"]
    );
}
