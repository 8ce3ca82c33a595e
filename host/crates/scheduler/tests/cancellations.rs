//! Requests that events or agents cancel, with the instants of everything that follows.

use std::sync::Arc;

use veeksha_model::{Edge, Nanos, NodeId, Response, SessionId, Trigger};
use veeksha_scheduler::{NodePlan, Scheduler, SchedulerInput};

mod hand;
use hand::{EVERY_SECOND, agent, answered, config, failed, id, node, on, session};

fn edge(parent: u32, trigger: Trigger, delay: Nanos) -> Edge {
    Edge {
        parent: NodeId(parent),
        trigger,
        delay,
    }
}

fn cancelled_by<const N: usize>(when: [Edge; N], node: NodePlan<u32>) -> NodePlan<u32> {
    NodePlan {
        cancel_when: when.to_vec(),
        ..node
    }
}

/// The part of an answer that had arrived.
fn part(session: u64, node: u32, at: Nanos, text: &str) -> SchedulerInput<u32> {
    SchedulerInput::Answered {
        request: id(session, node),
        response: Arc::new(Response {
            text: text.to_owned(),
            output_tokens: text.len() as u32,
            cancelled: true,
            ..Response::default()
        }),
        at,
    }
}

fn first_chunk(session: u64, node: u32, at: Nanos) -> SchedulerInput<u32> {
    let request = id(session, node);
    SchedulerInput::FirstChunk { request, at }
}

fn step(nodes: Vec<NodePlan<u32>>, cancel: &[u32], done: bool) -> SchedulerInput<u32> {
    SchedulerInput::Step {
        session: SessionId(0),
        nodes,
        cancel: cancel.iter().map(|node| NodeId(*node)).collect(),
        done,
    }
}

/// The end as "cancelled by client" is not a failure: the children are released, and the one that
/// continues the conversation sends the part.
#[test]
fn a_request_is_cancelled_after_its_dispatch_and_its_part_is_continued() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    let first = cancelled_by([edge(0, Trigger::Dispatched, 50)], node(0, &[], 0));
    let sent = on(
        &mut s,
        0,
        session(0, vec![first, node(1, &[0], 5), node(2, &[1], 0)]),
    );
    assert_eq!(sent, ["start 0 at 0 of 3", "send 0/0 at 0 of 3 after []"]);
    on(&mut s, 0, SchedulerInput::SourceEnded);
    assert_eq!(s.next_wake(), Some(50));
    assert_eq!(on(&mut s, 50, SchedulerInput::Tick), ["cancel 0/0"]);
    assert!(on(&mut s, 51, SchedulerInput::Tick).is_empty(), "once");
    assert_eq!(s.next_wake(), None);
    assert!(on(&mut s, 52, part(0, 0, 52, "half")).is_empty());
    assert_eq!(
        on(&mut s, 57, SchedulerInput::Tick),
        ["send 0/1 at 57 of 3 after [0half]"]
    );
    on(&mut s, 60, answered(0, 1, 60));
    assert_eq!(
        on(&mut s, 70, answered(0, 2, 70)),
        ["finish 0 completed at 70 of 3", "done"]
    );
}

#[test]
fn a_request_that_ends_before_is_not_cancelled() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    let first = cancelled_by([edge(0, Trigger::FirstChunk, 30)], node(0, &[], 0));
    on(&mut s, 0, session(0, vec![first, node(1, &[0], 100)]));
    on(&mut s, 10, first_chunk(0, 0, 10));
    assert_eq!(s.next_wake(), Some(40));
    on(&mut s, 39, answered(0, 0, 39));
    assert_eq!(s.next_wake(), Some(139), "the cancellation is gone");
    assert!(on(&mut s, 40, SchedulerInput::Tick).is_empty());
    // What comes back after the cancellation was decided, and had ended before it, is as it is.
    let mut s = Scheduler::new(config(EVERY_SECOND));
    let first = cancelled_by([edge(0, Trigger::Dispatched, 5)], node(0, &[], 0));
    on(&mut s, 0, session(0, vec![first, node(1, &[0], 0)]));
    assert_eq!(on(&mut s, 5, SchedulerInput::Tick), ["cancel 0/0"]);
    assert_eq!(
        on(&mut s, 6, failed(0, 0, 4)),
        ["never 0/1 session_cancelled at 6", "finish 0 cancelled at 4 of 2"]
    );
}

#[test]
fn the_earliest_event_counts() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    let when = [
        edge(0, Trigger::Dispatched, 90),
        edge(1, Trigger::Dispatched, 30),
        edge(1, Trigger::Completed, 0),
    ];
    let nodes = vec![cancelled_by(when, node(0, &[], 0)), node(1, &[], 10)];
    on(&mut s, 0, session(0, nodes));
    on(&mut s, 10, SchedulerInput::Tick);
    assert_eq!(s.next_wake(), Some(40));
    assert_eq!(on(&mut s, 20, answered(0, 1, 20)), ["cancel 0/0"]);
    assert!(on(&mut s, 40, SchedulerInput::Tick).is_empty());
}

/// A node that will not be sent counts as complete: its children are released from the instant of
/// its cancellation, also if the call comes late, and its turn has no answer.
#[test]
fn an_unsent_node_is_never_sent_and_releases_its_children() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    let nodes = vec![
        node(0, &[], 0),
        cancelled_by([edge(0, Trigger::Completed, 20)], node(1, &[0], 1000)),
        node(2, &[1], 7),
    ];
    on(&mut s, 0, session(0, nodes));
    on(&mut s, 100, answered(0, 0, 100));
    assert_eq!(s.next_wake(), Some(120));
    assert_eq!(
        on(&mut s, 130, SchedulerInput::Tick),
        [
            "never 0/1 cancelled_by_client at 120",
            "send 0/2 at 127 of 3 after [0 1!]"
        ]
    );
    assert_eq!(
        on(&mut s, 200, answered(0, 2, 200)),
        ["finish 0 completed at 200 of 3"]
    );
}

#[test]
fn a_session_can_end_with_a_node_that_is_never_sent() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    let nodes = vec![
        node(0, &[], 0),
        cancelled_by([edge(0, Trigger::Completed, 20)], node(1, &[], 1000)),
    ];
    on(&mut s, 0, session(0, nodes));
    on(&mut s, 0, SchedulerInput::SourceEnded);
    on(&mut s, 100, answered(0, 0, 100));
    assert_eq!(
        on(&mut s, 120, SchedulerInput::Tick),
        [
            "never 0/1 cancelled_by_client at 120",
            "finish 0 completed at 120 of 2",
            "done"
        ]
    );
}

#[test]
fn a_dispatch_may_cancel_at_once() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    let nodes = vec![
        cancelled_by([edge(1, Trigger::Dispatched, 0)], node(0, &[], 0)),
        cancelled_by([edge(1, Trigger::Dispatched, 0)], node(1, &[], 0)),
        cancelled_by([edge(1, Trigger::Dispatched, 0)], node(2, &[], 0)),
    ];
    assert_eq!(
        on(&mut s, 0, session(0, nodes)),
        [
            "start 0 at 0 of 3",
            "send 0/0 at 0 of 3 after []",
            "send 0/1 at 0 of 3 after []",
            "cancel 0/0",
            "cancel 0/1",
            "never 0/2 cancelled_by_client at 0",
        ]
    );
}

/// The first answer wins. The losers come back with their parts; the agent is asked about each.
#[test]
fn an_agent_cancels_the_losers() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    let nodes = vec![node(0, &[], 0), node(1, &[], 0), node(2, &[], 500)];
    on(&mut s, 0, agent(0, nodes));
    on(&mut s, 0, SchedulerInput::SourceEnded);
    assert_eq!(on(&mut s, 40, answered(0, 0, 40)), ["ask 0/0 true at 40"]);
    assert_eq!(
        on(&mut s, 45, step(vec![node(3, &[0], 0)], &[1, 2, 0, 2, 77], false)),
        [
            "cancel 0/1",
            "never 0/2 cancelled_by_client at 45",
            "ask 0/2 true at 45",
            "send 0/3 at 40 of 4 after [0]",
        ]
    );
    assert!(on(&mut s, 46, step(vec![], &[1], false)).is_empty(), "twice");
    assert_eq!(on(&mut s, 47, part(0, 1, 46, "")), ["ask 0/1 true at 46"]);
    assert!(on(&mut s, 48, step(vec![], &[], false)).is_empty());
    on(&mut s, 60, answered(0, 3, 60));
    assert_eq!(
        on(&mut s, 61, step(vec![], &[], true)),
        ["finish 0 completed at 61 of 4", "forget 0", "done"]
    );
}

/// An agent that is done is not asked again, and its session ends when the last node has come back.
#[test]
fn an_agent_that_is_done_may_cancel_what_is_left() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    on(
        &mut s,
        0,
        agent(0, vec![node(0, &[], 0), node(1, &[], 0), node(2, &[], 500)]),
    );
    on(&mut s, 0, SchedulerInput::SourceEnded);
    on(&mut s, 40, answered(0, 0, 40));
    assert_eq!(
        on(&mut s, 45, step(vec![], &[1, 2], true)),
        ["cancel 0/1", "never 0/2 cancelled_by_client at 45"]
    );
    assert_eq!(
        on(&mut s, 50, part(0, 1, 49, "some")),
        ["finish 0 completed at 49 of 3", "forget 0", "done"]
    );
}

/// One whose last node will not be sent is asked about it, and is not stuck.
#[test]
fn an_agent_is_asked_about_a_node_that_is_never_sent() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    on(&mut s, 0, agent(0, vec![node(0, &[], 0)]));
    on(&mut s, 40, answered(0, 0, 40));
    let late = cancelled_by([edge(0, Trigger::Completed, 3)], node(1, &[0], 100));
    assert_eq!(
        on(&mut s, 45, step(vec![late], &[], false)),
        ["never 0/1 cancelled_by_client at 45", "ask 0/1 true at 45"],
        "not before the scheduler knew of it"
    );
    assert_eq!(
        on(&mut s, 46, step(vec![], &[], true)),
        ["finish 0 completed at 46 of 2", "forget 0"]
    );
}

/// Its place under the limit is free for the request that waits.
#[test]
fn a_cancelled_request_that_was_held_takes_no_place() {
    let mut limited = config(EVERY_SECOND);
    limited.limits.in_flight = Some(1);
    let mut s = Scheduler::new(limited);
    let nodes = vec![
        node(0, &[], 0),
        cancelled_by([edge(0, Trigger::Dispatched, 10)], node(1, &[], 0)),
        node(2, &[], 1),
    ];
    on(&mut s, 0, session(0, nodes));
    assert_eq!(
        on(&mut s, 10, SchedulerInput::Tick),
        ["never 0/1 cancelled_by_client at 10"]
    );
    assert_eq!(
        on(&mut s, 20, answered(0, 0, 20)),
        ["send 0/2 at 1 of 3 after [] held 0+19+0"]
    );
}

#[test]
fn nothing_is_cancelled_after_the_end() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    let first = cancelled_by([edge(0, Trigger::Dispatched, 50)], node(0, &[], 0));
    on(&mut s, 0, session(0, vec![first.clone()]));
    assert_eq!(on(&mut s, 40, SchedulerInput::Stop), ["cancel"]);
    assert!(on(&mut s, 60, SchedulerInput::Tick).is_empty());
    assert_eq!(
        on(&mut s, 61, failed(0, 0, 61)),
        ["finish 0 incomplete at 61 of 1", "done"]
    );
    // One that was due before the end comes first, however late the call is.
    let mut s = Scheduler::new(config(EVERY_SECOND));
    on(&mut s, 0, session(0, vec![first]));
    assert_eq!(on(&mut s, 60, SchedulerInput::Stop), ["cancel 0/0", "cancel"]);
}

/// A node that is cancelled while it waits is complete when the events of its edges have happened:
/// its child keeps the order and the conversation before it.
#[test]
fn child_of_a_cancelled_node_keeps_its_place_in_the_conversation() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    let nodes = vec![
        node(0, &[], 0),
        cancelled_by([edge(0, Trigger::Dispatched, 10)], node(1, &[0], 1000)),
        cancelled_by([edge(0, Trigger::Dispatched, 20)], node(2, &[1], 0)),
        node(3, &[2], 7),
    ];
    on(&mut s, 0, session(0, nodes));
    on(&mut s, 0, SchedulerInput::SourceEnded);
    assert!(on(&mut s, 30, SchedulerInput::Tick).is_empty());
    assert_eq!(
        on(&mut s, 100, answered(0, 0, 90)),
        [
            "never 0/1 cancelled_by_client at 90",
            "never 0/2 cancelled_by_client at 90",
            "send 0/3 at 97 of 4 after [0 1! 2!]",
        ]
    );
    assert_eq!(
        on(&mut s, 110, answered(0, 3, 110)),
        ["finish 0 completed at 110 of 4", "done"]
    );
}

/// If the session ends first, it was cancelled nevertheless, and nothing was lost.
#[test]
fn cancelled_node_that_still_waits_is_never_sent() {
    for (input, end) in [
        (failed(0, 0, 60), "errored at 60"),
        (SchedulerInput::Stop, "incomplete at 61"),
    ] {
        let mut s = Scheduler::new(config(EVERY_SECOND));
        let cancelled = cancelled_by([edge(0, Trigger::Dispatched, 10)], node(1, &[0], 0));
        on(&mut s, 0, session(0, vec![node(0, &[], 0), cancelled]));
        on(&mut s, 10, SchedulerInput::Tick);
        let mut lines = on(&mut s, 60, input);
        lines.extend(on(&mut s, 61, failed(0, 0, 61)));
        lines.retain(|line| line.starts_with("never") || line.starts_with("finish"));
        assert_eq!(
            lines,
            [
                "never 0/1 cancelled_by_client at 60".to_owned(),
                format!("finish 0 {end} of 2")
            ]
        );
    }
}

/// The agent is asked about a node that it cancels when that is complete, and nothing hangs.
#[test]
fn agent_is_asked_about_a_cancelled_node_once_it_is_complete() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    on(
        &mut s,
        0,
        agent(0, vec![node(0, &[], 0), node(1, &[], 0), node(2, &[1], 0)]),
    );
    on(&mut s, 0, SchedulerInput::SourceEnded);
    on(&mut s, 40, answered(0, 0, 40));
    assert!(on(&mut s, 45, step(vec![], &[2], false)).is_empty());
    assert_eq!(
        on(&mut s, 70, answered(0, 1, 70)),
        [
            "ask 0/1 true at 70",
            "never 0/2 cancelled_by_client at 70",
            "ask 0/2 true at 70"
        ]
    );
    on(&mut s, 71, step(vec![], &[], false));
    assert_eq!(
        on(&mut s, 72, step(vec![], &[], true)),
        ["finish 0 completed at 72 of 3", "forget 0", "done"]
    );
}

/// What an agent cancels before its session has started ends at the start.
#[test]
fn node_that_is_cancelled_before_the_start_ends_at_the_start() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    on(&mut s, 0, agent(1, vec![node(0, &[], 0), node(1, &[0], 3)]));
    assert!(on(&mut s, 1, step_of(1, &[0])).is_empty());
    let second = 1_000_000_000;
    assert_eq!(
        on(&mut s, second + 9, SchedulerInput::Tick),
        [
            "start 1 at 1000000000 of 2",
            "never 1/0 cancelled_by_client at 1000000000",
            "ask 1/0 true at 1000000000",
            "send 1/1 at 1000000003 of 2 after [0!]"
        ]
    );
}

fn step_of(session: u64, cancel: &[u32]) -> SchedulerInput<u32> {
    SchedulerInput::Step {
        session: SessionId(session),
        nodes: Vec::new(),
        cancel: cancel.iter().map(|node| NodeId(*node)).collect(),
        done: false,
    }
}

/// Nodes that the first step of an agent cancels are not sent. They are cancelled when the session
/// starts, not when it is made.
#[test]
fn the_first_step_of_an_agent_cancels_nodes() {
    let mut s = Scheduler::new(config(EVERY_SECOND));
    on(&mut s, 0, session(0, vec![node(0, &[], 0)]));
    let SchedulerInput::Session(mut plan) =
        agent(1, vec![node(0, &[], 0), node(1, &[], 0), node(2, &[1], 5)])
    else {
        unreachable!()
    };
    plan.cancel = vec![NodeId(1)];
    assert!(on(&mut s, 1, SchedulerInput::Session(plan)).is_empty());
    let second = 1_000_000_000;
    assert_eq!(s.next_wake(), Some(second));
    assert_eq!(
        on(&mut s, second, SchedulerInput::Tick),
        [
            "start 1 at 1000000000 of 3",
            "never 1/1 cancelled_by_client at 1000000000",
            "ask 1/1 true at 1000000000",
            "send 1/0 at 1000000000 of 3 after []",
        ]
    );
    assert_eq!(s.next_wake(), Some(second + 5), "its children are released");
}

/// An agent cancels requests long before their own cancellations: in flight, queued, and waiting
/// for their parents. Nothing is left of those, and nothing wakes the scheduler for them.
#[test]
fn a_cancelled_node_has_no_further_cancellation() {
    let hour = 3_600_000_000_000;
    let later = |node| cancelled_by([edge(0, Trigger::Dispatched, hour)], node);
    let mut s = Scheduler::new(config(EVERY_SECOND));
    let nodes = vec![
        later(node(0, &[], 0)),
        node(1, &[], 0),
        later(node(2, &[1], 50)),
        later(node(3, &[0], 0)),
    ];
    on(&mut s, 0, agent(0, nodes));
    on(&mut s, 0, SchedulerInput::SourceEnded);
    on(&mut s, 10, answered(0, 1, 10));
    assert_eq!((s.pending_cancellations(), s.next_wake()), (3, Some(60)));
    let cancelled = on(&mut s, 20, step(Vec::new(), &[0, 2, 3], true));
    assert_eq!(cancelled, ["cancel 0/0", "never 0/2 cancelled_by_client at 20"]);
    assert_eq!((s.pending_cancellations(), s.next_wake()), (0, None));
    assert_eq!(
        on(&mut s, 30, part(0, 0, 30, "x")),
        [
            "never 0/3 cancelled_by_client at 30",
            "finish 0 completed at 30 of 4",
            "forget 0",
            "done"
        ]
    );
}
