//! Tool runs: waiting for servers, together with requests, in sessions of any shape.
#![expect(
    clippy::panic,
    clippy::expect_used,
    reason = "a failed check in the world of a test is a failed test"
)]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use proptest::prelude::*;
use veeksha_model::{
    Edge, HistoryMode, Nanos, NodeId, RequestId, Response, SessionId, TIMER, ToolRunRecord, Trigger,
};
use veeksha_scheduler::{
    Action, GracePeriod, Interval, NodePlan, NodeWork, Scheduler, SchedulerConfig, SchedulerInput,
    SessionKind, SessionPlan, ToolClass, ToolRunPlan, TrafficRule,
};
use veeksha_stats::{Draws, RandomStream};

mod hand;
use hand::{EVERY_SECOND, agent, answered, config, failed, node, on, session};

fn tool(node: u32, parents: &[u32], service_time: Nanos) -> NodePlan<u32> {
    let run = ToolRunPlan {
        class: 0,
        service_time,
        fails: false,
        result_tokens: 5,
        name: "sandbox".into(),
        labels: Arc::new([]),
    };
    NodePlan {
        history_parent: None,
        work: NodeWork::ToolRun(run),
        ..hand::node(node, parents, 0)
    }
}

fn one_server() -> SchedulerConfig {
    SchedulerConfig {
        tools: vec![ToolClass {
            servers: Some(1),
            ..ToolClass::default()
        }],
        ..config(EVERY_SECOND)
    }
}

/// Two calls in parallel share a server; the request after them waits for both. Instants are
/// exact although the scheduler is called late.
#[test]
fn request_waits_for_tool_runs() {
    let mut s = Scheduler::new(one_server());
    let graph = vec![
        node(0, &[], 0),
        tool(1, &[0], 30),
        tool(2, &[0], 20),
        node(3, &[1, 2], 5),
    ];
    on(&mut s, 0, session(0, graph));
    assert_eq!(on(&mut s, 100, answered(0, 0, 100)), [""; 0]);
    assert_eq!(s.next_wake(), Some(130));
    assert_eq!(
        on(&mut s, 133, SchedulerInput::Tick),
        ["tool sandbox 0/1 at 100 from 100 to 130"]
    );
    assert_eq!(s.next_wake(), Some(150));
    assert_eq!(
        on(&mut s, 160, SchedulerInput::Tick),
        [
            "tool sandbox 0/2 at 100 from 130 to 150",
            "send 0/3 at 155 of 2 after []"
        ]
    );
    assert_eq!(
        on(&mut s, 170, answered(0, 3, 170)),
        ["finish 0 completed at 170 of 2"]
    );
}

/// A session may end with a tool run, and consist of nothing else; agents learn of each end.
#[test]
fn sessions_end_with_their_tool_runs() {
    let mut s = Scheduler::new(one_server());
    on(&mut s, 0, session(0, vec![tool(7, &[], 10)]));
    assert_eq!(
        on(&mut s, 10, SchedulerInput::Tick),
        [
            "tool sandbox 0/7 at 0 from 0 to 10",
            "finish 0 completed at 10 of 0"
        ]
    );
    on(&mut s, 20, agent(1, vec![tool(0, &[], 10)]));
    let second = 1_000_000_000;
    assert_eq!(
        on(&mut s, second, SchedulerInput::Tick),
        ["start 1 at 1000000000 of 0"]
    );
    assert_eq!(
        on(&mut s, second + 10, SchedulerInput::Tick),
        [
            "tool sandbox 1/0 at 1000000000 from 1000000000 to 1000000010",
            "ask 1/0 true at 1000000010"
        ]
    );
}

/// The end of the run drops calls that wait or run, with their reasons, and the session is
/// incomplete.
#[test]
fn stop_drops_tool_runs() {
    let mut s = Scheduler::new(one_server());
    on(
        &mut s,
        0,
        session(0, vec![tool(0, &[], 10), tool(1, &[], 10), node(2, &[1], 0)]),
    );
    assert_eq!(
        on(&mut s, 5, SchedulerInput::Stop),
        [
            "dropped sandbox 0/1 held at 5 due 0",
            "never 0/2 run_ended at 5",
            "dropped sandbox 0/0 in_service at 5 due 0",
            "finish 0 incomplete at 5 of 1",
            "done"
        ]
    );
    assert_eq!(s.next_wake(), None);
}

/// Runs that ended before the stop have ended, however late the scheduler is called.
#[test]
fn stop_keeps_tool_runs_that_have_ended() {
    let mut s = Scheduler::new(one_server());
    on(
        &mut s,
        0,
        session(0, vec![tool(0, &[], 3), tool(1, &[0], 9), tool(2, &[], 9)]),
    );
    assert_eq!(
        on(&mut s, 5, SchedulerInput::Stop),
        [
            "tool sandbox 0/0 at 0 from 0 to 3",
            "dropped sandbox 0/1 held at 5 due 3",
            "dropped sandbox 0/2 in_service at 5 due 0",
            "finish 0 incomplete at 5 of 0",
            "done"
        ]
    );
}

fn with_timeout(grace: GracePeriod) -> SchedulerConfig {
    SchedulerConfig {
        benchmark_timeout: Some(100),
        grace,
        ..one_server()
    }
}

/// The run goes on until the measured calls have ended, those that wait for a server too; one that
/// is made after the timeout is not measured and does not prolong it.
#[test]
fn measured_tool_runs_are_drained() {
    let graph = || vec![tool(0, &[], 150), tool(1, &[], 30), tool(2, &[0], 500)];
    let mut s = Scheduler::new(with_timeout(GracePeriod::Unbounded));
    on(&mut s, 0, session(0, graph()));
    assert_eq!(on(&mut s, 100, SchedulerInput::Tick), ["timeout at 100"]);
    assert_eq!(
        on(&mut s, 150, SchedulerInput::Tick),
        ["tool sandbox 0/0 at 0 from 0 to 150"]
    );
    assert_eq!(s.next_wake(), Some(180));
    let end = [
        "tool sandbox 0/1 at 0 from 150 to 180",
        "dropped sandbox 0/2 run_ended at 180 due 150",
        "finish 0 incomplete at 180 of 0",
        "done",
    ];
    assert_eq!(on(&mut s, 180, SchedulerInput::Tick), end);

    // The same if the first call comes late.
    let mut s = Scheduler::new(with_timeout(GracePeriod::Unbounded));
    on(&mut s, 0, session(0, graph()));
    let late = on(&mut s, 180, SchedulerInput::Tick);
    assert_eq!(
        late[..2],
        ["timeout at 100", "tool sandbox 0/0 at 0 from 0 to 150"]
    );
    assert_eq!(late[2..], end);
}

/// A call that was due before the timeout is measured, although the scheduler comes to it later.
#[test]
fn due_tool_run_is_measured_if_the_call_is_late() {
    let mut s = Scheduler::new(with_timeout(GracePeriod::Unbounded));
    let due_at_90 = NodePlan {
        wait_after_ready: 90,
        ..tool(0, &[], 40)
    };
    let due_at_100 = NodePlan {
        wait_after_ready: 100,
        ..tool(1, &[], 40)
    };
    on(&mut s, 0, session(0, vec![due_at_90, due_at_100]));
    let mut actions = Vec::new();
    s.on(150, SchedulerInput::Tick, &mut actions);
    let ran = actions.iter().find_map(|action| match action {
        Action::ToolRan(run) => Some((run.id.node.0, run.completed_at, run.measured)),
        _ => None,
    });
    assert_eq!(ran, Some((0, 130, true)));
    assert!(s.is_done(), "the other one is not measured: {actions:?}");
}

#[test]
fn grace_period_bounds_the_draining_of_tool_runs() {
    let mut s = Scheduler::new(with_timeout(GracePeriod::Bounded(20)));
    let graph = vec![tool(0, &[], 120), tool(1, &[], 5), tool(2, &[], 5)];
    on(&mut s, 0, session(0, graph));
    assert_eq!(on(&mut s, 100, SchedulerInput::Tick), ["timeout at 100"]);
    assert_eq!(s.next_wake(), Some(120));
    assert_eq!(
        on(&mut s, 135, SchedulerInput::Tick),
        [
            "tool sandbox 0/0 at 0 from 0 to 120",
            "dropped sandbox 0/2 held at 135 due 0",
            "dropped sandbox 0/1 in_service at 135 due 0",
            "finish 0 incomplete at 135 of 0",
            "done"
        ]
    );
}

/// A timer is think time: the end of the run does not wait for it.
#[test]
fn timers_are_not_drained() {
    let mut s = Scheduler::new(with_timeout(GracePeriod::Unbounded));
    let mut timer = tool(0, &[], 5_000);
    if let NodeWork::ToolRun(run) = &mut timer.work {
        run.name = TIMER.into();
    }
    on(&mut s, 0, session(0, vec![timer]));
    assert_eq!(
        on(&mut s, 100, SchedulerInput::Tick),
        [
            "timeout at 100",
            "dropped timer 0/0 run_ended at 100 due 0",
            "finish 0 incomplete at 100 of 0",
            "done"
        ]
    );
}

/// A measured call that is cancelled is not waited for, nor is one of a session that failed.
#[test]
fn dropped_tool_runs_are_not_waited_for() {
    let cancelled = NodePlan {
        cancel_when: vec![NodeId(0).into()],
        ..tool(2, &[], 1_000)
    };
    for (input, reason, end) in [
        (answered(0, 0, 150), "cancelled_by_client", "completed"),
        (failed(0, 0, 150), "session_cancelled", "cancelled"),
    ] {
        let mut s = Scheduler::new(with_timeout(GracePeriod::Unbounded));
        on(
            &mut s,
            0,
            session(0, vec![node(0, &[], 0), tool(1, &[], 160), cancelled.clone()]),
        );
        assert_eq!(on(&mut s, 100, SchedulerInput::Tick), ["timeout at 100"]);
        assert_eq!(
            on(&mut s, 150, input),
            [format!("dropped sandbox 0/2 {reason} at 150 due 0")]
        );
        assert_eq!(
            on(&mut s, 160, SchedulerInput::Tick),
            [
                "tool sandbox 0/1 at 0 from 0 to 160".to_owned(),
                format!("finish 0 {end} at 160 of 1"),
                "done".to_owned()
            ]
        );
    }
}

/// A failure withdraws the call that waits; the one that is served takes its time.
#[test]
fn failure_withdraws_waiting_tool_runs() {
    let mut s = Scheduler::new(one_server());
    let graph = vec![
        node(0, &[], 0),
        tool(1, &[], 10),
        tool(2, &[], 10),
        node(3, &[2], 0),
    ];
    on(&mut s, 0, session(0, graph));
    assert_eq!(
        on(&mut s, 5, failed(0, 0, 5)),
        [
            "dropped sandbox 0/2 session_cancelled at 5 due 0",
            "never 0/3 session_cancelled at 5"
        ]
    );
    assert_eq!(
        on(&mut s, 10, SchedulerInput::Tick),
        [
            "tool sandbox 0/1 at 0 from 0 to 10",
            "finish 0 cancelled at 10 of 2"
        ]
    );
}

/// A session that a failure cancelled stays cancelled, although the run ends before its tool does.
#[test]
fn stop_keeps_the_cancellation_by_a_failure() {
    let mut s = Scheduler::new(one_server());
    let graph = vec![node(0, &[], 0), tool(1, &[], 10), node(2, &[1], 0)];
    on(&mut s, 0, session(0, graph));
    assert_eq!(
        on(&mut s, 5, failed(0, 0, 5)),
        ["never 0/2 session_cancelled at 5"]
    );
    assert_eq!(
        on(&mut s, 6, SchedulerInput::Stop),
        [
            "dropped sandbox 0/1 in_service at 6 due 0",
            "finish 0 cancelled at 6 of 2",
            "done"
        ]
    );
}

/// The mean wait for one of `k` servers, of calls that arrive at random and take an exponential
/// time: Erlang's formula C divided by `k mu - lambda`.
fn erlang_c_wait(k: u32, lambda: f64, mu: f64) -> f64 {
    let offered = lambda / mu;
    let mut inverse = 1.0; // of Erlang's formula B
    for servers in 1..=k {
        inverse = 1.0 + inverse * f64::from(servers) / offered;
    }
    let blocked = 1.0 / inverse;
    let utilization = offered / f64::from(k);
    let waits = blocked / (1.0 - utilization * (1.0 - blocked));
    waits / (f64::from(k) * mu - lambda)
}

#[test]
fn erlang_formula_has_known_values() {
    // M/M/1: rho / (mu - lambda).
    assert!((erlang_c_wait(1, 0.5, 1.0) - 1.0).abs() < 1e-12);
    // Erlang C with 2 servers and 1 Erlang is 1/3.
    assert!((erlang_c_wait(2, 1.0, 1.0) - 1.0 / 3.0).abs() < 1e-12);
}

/// Mean waiting time in seconds of sessions that make one call each.
fn mean_wait(servers: u32, rate: f64, sessions: u64, service: impl Fn(&mut Draws) -> f64) -> f64 {
    let mut scheduler = Scheduler::<u32>::new(SchedulerConfig {
        tools: vec![ToolClass {
            servers: Some(servers),
            ..ToolClass::default()
        }],
        ..config(TrafficRule::Rate(Interval::Poisson { rate }))
    });
    let (mut actions, mut next, mut waited, mut ended) = (Vec::new(), 0, 0.0, 0u64);
    let mut now = 0;
    loop {
        while next < sessions && scheduler.wanted() > 0 {
            let mut draws = RandomStream::new(7, next, "service").draws();
            let nodes = vec![tool(0, &[], (service(&mut draws) * 1e9) as Nanos)];
            let plan = SessionPlan {
                id: SessionId(next),
                nodes,
                kind: SessionKind::Planned,
                arrives_at: None,
                cancel: Vec::new(),
            };
            scheduler.on(now, SchedulerInput::Session(plan), &mut actions);
            next += 1;
        }
        for action in actions.drain(..) {
            if let Action::ToolRan(run) = action {
                waited += run.waiting_time() as f64 / 1e9;
                ended += 1;
            }
        }
        if ended == sessions {
            return waited / sessions as f64;
        }
        now = scheduler.next_wake().expect("a call runs");
        scheduler.on(now, SchedulerInput::Tick, &mut actions);
    }
}

const CALLS: u64 = 500_000;

#[test]
fn exponential_service_waits_as_in_theory() {
    for (servers, rate) in [(1, 0.4), (3, 1.6)] {
        let expected = erlang_c_wait(servers, rate, 1.0);
        let seen = mean_wait(servers, rate, CALLS, Draws::exponential);
        let off = (seen / expected - 1.0).abs();
        assert!(off < 0.01, "M/M/{servers}: {seen} s instead of {expected} s");
    }
}

/// M/D/1 by Pollaczek and Khinchine: half the wait of M/M/1. M/D/2 from the table of Hillier and
/// Yu ("Queueing Tables and Graphs", 1981) as Cosmetatos' approximation gives it, whose error is
/// below 0.5 % there.
#[test]
fn constant_service_waits_as_in_theory() {
    let one = mean_wait(1, 0.5, CALLS, |_| 1.0);
    assert!((one / 0.5 - 1.0).abs() < 0.01, "M/D/1: {one} s");
    let (k, rho) = (2.0_f64, 0.5);
    let correction = 1.0 + (1.0 - rho) * (k - 1.0) * ((4.0 + 5.0 * k).sqrt() - 2.0) / (16.0 * rho * k);
    let expected = 0.5 * correction * erlang_c_wait(2, k * rho, 1.0);
    let two = mean_wait(2, k * rho, CALLS, |_| 1.0);
    assert!(
        (two / expected - 1.0).abs() < 0.01,
        "M/D/2: {two} s instead of {expected} s"
    );
}

/// A session of requests and tool runs in random order, whose edges may lead back to any earlier
/// node.
fn random_session(seed: u64, id: u64, classes: u32) -> Vec<NodePlan<u32>> {
    let mut draws = RandomStream::new(seed, id, "session").draws();
    let count = 1 + draws.below(6);
    let node = |number: u32| {
        let mut parents = Vec::new();
        for parent in 0..number {
            if draws.below(2) == 0 {
                let triggers = [Trigger::Dispatched, Trigger::FirstChunk, Trigger::Completed];
                parents.push(Edge {
                    parent: NodeId(parent),
                    trigger: triggers[draws.below(3) as usize],
                    delay: u64::from(draws.below(3) * draws.below(20)),
                });
            }
        }
        let work = match draws.below(2) {
            0 => NodeWork::Request(Arc::new(number)),
            _ => NodeWork::ToolRun(ToolRunPlan {
                class: draws.below(classes) as usize,
                service_time: u64::from(draws.below(40)),
                fails: draws.below(4) == 0,
                result_tokens: number,
                name: "any".into(),
                labels: Arc::new([]),
            }),
        };
        NodePlan {
            node: NodeId(number),
            parents,
            history_parent: None,
            wait_after_ready: 0,
            not_before: None,
            history_mode: HistoryMode::Live,
            recorded_answer: None,
            cancel_when: Vec::new(),
            work,
        }
    };
    (0..count).map(node).collect()
}

/// What happened to a node: (dispatched or started, first chunk, completed).
type Ends = BTreeMap<(u64, u32), [Nanos; 3]>;

/// Runs random sessions to their end; `late` is by how much the scheduler is called late at most.
fn run_world(seed: u64, sessions: u64, classes: &[ToolClass], late: u32) -> (Vec<ToolRunRecord>, Ends) {
    let config = SchedulerConfig {
        tools: classes.to_vec(),
        max_sessions: Some(sessions),
        ..config(TrafficRule::Concurrent { target: 4, ramp: 0 })
    };
    let mut scheduler = Scheduler::new(config);
    let mut draws = RandomStream::new(seed, 0, "world").draws();
    let (mut actions, mut now) = (Vec::new(), 0);
    let mut answers = BinaryHeap::new();
    let (mut runs, mut ends) = (Vec::new(), Ends::new());
    let mut finished = 0;
    for id in 0..sessions {
        let plan = SessionPlan {
            id: SessionId(id),
            nodes: random_session(seed, id, classes.len() as u32),
            kind: SessionKind::Planned,
            arrives_at: None,
            cancel: Vec::new(),
        };
        scheduler.on(now, SchedulerInput::Session(plan), &mut actions);
    }
    loop {
        for action in actions.drain(..) {
            match action {
                Action::Dispatch { id, .. } => {
                    let (session, node) = (id.session.0, id.node.0);
                    let at = now + 1 + u64::from(draws.below(30));
                    answers.push(Reverse((at, session, node)));
                    let previous = ends.insert((session, node), [now, at, at]);
                    assert!(previous.is_none(), "{id} was sent twice");
                }
                Action::ToolRan(run) => {
                    let key = (run.id.session.0, run.id.node.0);
                    let previous = ends.insert(key, [run.started_at, run.completed_at, run.completed_at]);
                    assert!(previous.is_none(), "{key:?} ran twice");
                    runs.push(*run);
                }
                Action::SessionFinished { .. } => finished += 1,
                Action::NeverSent { request, .. } => panic!("{request} was given up"),
                _ => {}
            }
        }
        if scheduler.is_done() {
            assert_eq!(finished, sessions);
            return (runs, ends);
        }
        let answer = answers.peek().map(|Reverse((at, ..))| *at);
        let wake = answer.into_iter().chain(scheduler.next_wake()).min();
        let next: Nanos = wake.expect("the run does not end");
        now = now.max(next + u64::from(draws.below(late + 1)));
        let input = match answers.peek() {
            Some(Reverse((at, ..))) if *at <= now => {
                let Reverse((at, session, node)) = answers.pop().expect("there is one");
                SchedulerInput::Answered {
                    request: RequestId {
                        session: SessionId(session),
                        node: NodeId(node),
                    },
                    response: Arc::new(Response::default()),
                    at,
                }
            }
            _ => SchedulerInput::Tick,
        };
        scheduler.on(now, input, &mut actions);
    }
}

fn class() -> impl Strategy<Value = ToolClass> {
    (
        proptest::option::weighted(0.8, 1u32..4),
        prop_oneof![Just(0u64), 1u64..30],
        proptest::option::of(0u64..50),
        prop_oneof![Just(0u64), 1u64..20],
    )
        .prop_map(|(servers, cold_start, keep_warm, spacing)| ToolClass {
            servers,
            cold_start,
            keep_warm,
            spacing,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(3_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tool_runs_keep_their_rules(
        seed in any::<u64>(),
        sessions in 1u64..12,
        classes in proptest::collection::vec(class(), 1..3),
        late in prop_oneof![Just(0u32), 0u32..10],
    ) {
        let (runs, ends) = run_world(seed, sessions, &classes, late);
        let plans: Vec<Vec<NodePlan<u32>>> =
            (0..sessions).map(|id| random_session(seed, id, classes.len() as u32)).collect();
        // Nothing is lost.
        prop_assert_eq!(ends.len(), plans.iter().map(Vec::len).sum::<usize>());
        let mut of_class: Vec<Vec<&ToolRunRecord>> = vec![Vec::new(); classes.len()];
        for run in &runs {
            let plan = &plans[run.id.session.0 as usize][run.id.node.0 as usize];
            let NodeWork::ToolRun(asked) = &plan.work else {
                return Err(TestCaseError::fail("a request ran as a tool"));
            };
            prop_assert_eq!(&run.parents, &plan.parents);
            prop_assert_eq!((run.failed, run.result_tokens), (asked.fails, asked.result_tokens));
            let cold = if run.is_cold { classes[asked.class].cold_start } else { 0 };
            prop_assert_eq!(run.service_time(), cold + asked.service_time);
            prop_assert!(run.started_at >= run.ready_at);
            // The call is made when its last edge is met; a root's when its session starts.
            let met = plan.parents.iter().map(|edge| {
                let [dispatched, first_chunk, completed] = ends[&(run.id.session.0, edge.parent.0)];
                edge.delay + match edge.trigger {
                    Trigger::Dispatched => dispatched,
                    Trigger::FirstChunk => first_chunk,
                    Trigger::Completed => completed,
                }
            });
            if let Some(met) = met.max() {
                prop_assert_eq!(run.ready_at, met);
            }
            of_class[asked.class].push(run);
        }
        for (class, runs) in classes.iter().zip(&mut of_class) {
            runs.sort_by_key(|run| (run.started_at, run.ready_at));
            for pair in runs.windows(2) {
                prop_assert!(pair[1].started_at >= pair[0].started_at + class.spacing);
                // First come, first served, as far as the scheduler could know.
                prop_assert!(late > 0 || pair[0].ready_at <= pair[1].ready_at);
            }
            let Some(servers) = class.servers else { continue };
            for run in &*runs {
                let served = runs.iter().filter(|other| {
                    other.started_at <= run.started_at && run.started_at < other.completed_at
                });
                prop_assert!(served.count() <= servers as usize);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(500), failure_persistence: None, ..ProptestConfig::default() })]

    /// With as many servers as there can be calls, nothing waits, however late the scheduler is
    /// called: with classes without a limit, too.
    #[test]
    fn no_tool_run_waits_while_servers_are_free(
        seed in any::<u64>(),
        sessions in 1u64..12,
        limited in any::<bool>(),
        late in 0u32..100,
    ) {
        let class = ToolClass { servers: limited.then_some(24), ..ToolClass::default() };
        let (runs, _) = run_world(seed, sessions, &[class], late);
        for run in runs {
            prop_assert_eq!(run.waiting_time(), 0, "{:?}", run);
        }
    }
}

/// The end of a tool run cancels a request. A call that waits for a server can be cancelled, one
/// that is served goes on, and so does its session.
#[test]
fn tool_runs_cancel_and_are_cancelled() {
    let mut s = Scheduler::new(one_server());
    let request = NodePlan {
        cancel_when: vec![Edge {
            parent: NodeId(1),
            trigger: Trigger::Completed,
            delay: 5,
        }],
        ..node(0, &[], 0)
    };
    on(
        &mut s,
        0,
        agent(
            0,
            vec![
                request,
                tool(1, &[], 30),
                tool(2, &[], 30),
                tool(3, &[2], 30),
                node(4, &[3], 0),
            ],
        ),
    );
    on(&mut s, 0, SchedulerInput::SourceEnded);
    assert_eq!(
        on(&mut s, 30, SchedulerInput::Tick),
        ["tool sandbox 0/1 at 0 from 0 to 30", "ask 0/1 true at 30"]
    );
    assert_eq!(s.next_wake(), Some(35));
    assert_eq!(on(&mut s, 35, SchedulerInput::Tick), ["cancel 0/0"]);
    let cancel = SchedulerInput::Step {
        session: SessionId(0),
        nodes: Vec::new(),
        cancel: vec![NodeId(2), NodeId(3)],
        done: true,
    };
    // Node 2 is being served; node 3 will not be called, and releases node 4 after node 2.
    assert_eq!(on(&mut s, 40, cancel), [""; 0]);
    on(&mut s, 50, answered(0, 0, 50));
    assert_eq!(
        on(&mut s, 60, SchedulerInput::Tick),
        [
            "tool sandbox 0/2 at 0 from 30 to 60",
            "dropped sandbox 0/3 cancelled_by_client at 60",
            "send 0/4 at 60 of 2 after []"
        ]
    );
    assert_eq!(
        on(&mut s, 65, answered(0, 4, 65)),
        ["finish 0 completed at 65 of 2", "forget 0", "done"]
    );
}

#[test]
fn a_call_that_waits_for_a_server_is_cancelled() {
    let mut s = Scheduler::new(one_server());
    let nodes = vec![
        node(0, &[], 0),
        tool(1, &[], 50),
        tool(2, &[], 50),
        tool(3, &[], 50),
    ];
    on(&mut s, 0, agent(0, nodes));
    assert_eq!(on(&mut s, 10, answered(0, 0, 10)), ["ask 0/0 true at 10"]);
    let cancel = SchedulerInput::Step {
        session: SessionId(0),
        nodes: Vec::new(),
        cancel: vec![NodeId(1), NodeId(2)],
        done: false,
    };
    assert_eq!(
        on(&mut s, 10, cancel),
        [
            "dropped sandbox 0/2 cancelled_by_client at 10 due 0",
            "ask 0/2 true at 10"
        ]
    );
    assert_eq!(
        on(&mut s, 100, SchedulerInput::Tick),
        [
            "tool sandbox 0/1 at 0 from 0 to 50",
            "ask 0/1 true at 50",
            "tool sandbox 0/3 at 0 from 50 to 100",
            "ask 0/3 true at 100"
        ]
    );
}
