//! Session generators that misbehave: each is stopped within limits, with a useful report for its
//! author.

use std::time::{Duration, Instant};

use veeksha_model::{Edge, NodeId, Trigger};
use veeksha_ports::{PluginFailure, PluginFailureKind};
use veeksha_wasm::{EngineLimits, Grants};

use crate::support::{behaving, grants, load, only_label, open, planned, tight};

fn fails(behaviour: &str) -> PluginFailure {
    let failure = behaving(tight(), behaviour).sessions(0, 64).unwrap_err();
    assert_eq!(failure.plugin, "hostile-sessions");
    assert_eq!(failure.function, "workload.sessions");
    assert_eq!(failure.input.as_deref(), Some("first = 0, count = 64"));
    failure
}

#[test]
fn a_panic_is_reported_with_its_message_and_source_line() {
    let failure = fails("trap");
    assert_eq!(failure.kind, PluginFailureKind::Trap);
    assert!(
        failure.message.ends_with("plan for session 0 has no steps"),
        "{}",
        failure.message
    );
    assert!(failure.message.starts_with("panicked at "), "{}", failure.message);
    let source = include_str!("../../../../../tests/guests/hostile-sessions/src/lib.rs");
    let line_of = |text: &str| source.lines().position(|line| line.contains(text)).unwrap() as u32 + 1;
    let innermost = &failure.frames[0];
    assert!(innermost.function.ends_with("plan"), "{innermost:?}");
    assert!(
        innermost.file.as_deref().unwrap().ends_with("src/lib.rs"),
        "{innermost:?}"
    );
    assert_eq!(
        innermost.line,
        Some(line_of("panic!(\"plan for session")),
        "{innermost:?}"
    );
    let caller = &failure.frames[1];
    assert!(caller.function.contains("sessions"), "{caller:?}");
    assert_eq!(
        caller.line,
        Some(line_of("\"trap\" => plan(first)")),
        "{caller:?}"
    );
    for frame in &failure.frames {
        let file = frame.file.as_deref().unwrap();
        assert!(
            !file.contains("library/") && !file.contains("rustc"),
            "a frame of the runtime: {frame:?}"
        );
        assert!(!frame.function.contains("::h"), "a hash in a name: {frame:?}");
    }
}

#[test]
fn after_a_trap_a_fresh_store_answers() {
    let mut source = behaving(tight(), "trap-at-7");
    assert_eq!(source.sessions(0, 7).unwrap().len(), 7);
    for _ in 0..3 {
        assert_eq!(source.sessions(6, 4).unwrap_err().kind, PluginFailureKind::Trap);
        assert_eq!(source.sessions(8, 8).unwrap().len(), 8);
    }
}

#[test]
fn an_endless_loop_is_stopped_close_to_its_deadline() {
    for behaviour in ["loop", "loop-length"] {
        let limits = EngineLimits {
            call_deadline: Duration::from_millis(200),
            ..tight()
        };
        let mut source = behaving(limits, behaviour);
        let begun = now();
        let failure = source.sessions(0, 1).unwrap_err();
        let took = begun.elapsed();
        assert_eq!(
            failure.kind,
            PluginFailureKind::Deadline { allowed_ms: 200 },
            "{failure}"
        );
        assert_eq!(
            failure.message,
            "it did not return within 200 ms; is there an endless loop?"
        );
        assert!(
            failure.frames.iter().any(|frame| frame.file.is_some()),
            "{failure}"
        );
        assert!(
            took >= Duration::from_millis(200),
            "stopped early, after {took:?}"
        );
        // At most one tick of 10 ms late; the rest is a margin for machines under load.
        assert!(took < Duration::from_millis(2000), "stopped late, after {took:?}");
    }
}

/// A deadline applies per call: many short calls may take longer in total.
#[test]
fn deadline_restarts_with_each_call() {
    let mut source = behaving(
        EngineLimits {
            call_deadline: Duration::from_millis(200),
            ..tight()
        },
        "good",
    );
    let begun = now();
    while begun.elapsed() < Duration::from_millis(600) {
        source.sessions(0, 4).unwrap();
    }
}

#[test]
fn a_memory_bomb_meets_its_limit() {
    let failure = fails("memory");
    let PluginFailureKind::Memory { asked, allowed } = failure.kind else {
        panic!("{failure}")
    };
    assert_eq!(allowed, 64 << 20);
    assert!(
        asked > allowed && asked < allowed + (8 << 20),
        "asked for {asked}"
    );
    let message = &failure.message;
    assert!(
        message.starts_with("plugin `hostile-sessions` asked for "),
        "{message}"
    );
    assert!(
        message.ends_with(" of memory in `workload.sessions`, at most 64 MiB are allowed"),
        "{message}"
    );
    assert!(
        failure
            .frames
            .iter()
            .any(|frame| frame.function.contains("swell")),
        "{failure}"
    );
}

#[test]
fn a_huge_answer_is_not_taken_over() {
    let failure = behaving(
        EngineLimits {
            memory_bytes: 512 << 20,
            ..tight()
        },
        "huge",
    )
    .sessions(0, 1)
    .unwrap_err();
    assert_eq!(failure.kind, PluginFailureKind::Result, "{failure}");
    assert_eq!(
        failure.message,
        "it handed over more data in one call than is taken (8 MiB)"
    );
}

#[test]
fn endless_recursion_is_a_trap() {
    assert_eq!(fails("overflow").kind, PluginFailureKind::Trap);
}

#[test]
fn an_error_is_not_a_bug() {
    let failure = fails("error");
    assert_eq!(
        failure.kind,
        PluginFailureKind::Refused {
            code: "no-more".into(),
            hint: None,
            path: None
        }
    );
    assert_eq!(failure.message, "cannot plan session 0");
    assert!(failure.frames.is_empty());
}

#[test]
fn sessions_that_cannot_run_are_refused_by_name() {
    let cases = [
        ("cyclic", "session 0: the nodes 1, 2 wait for one another"),
        (
            "dangling",
            "session 0: node 1 names the parent 9, which the session does not have",
        ),
        (
            "history",
            "session 0: node 2 continues the history of 0, which is not one of its parents",
        ),
        ("twice", "session 0: node 4 is defined twice"),
        ("empty", "session 0: the session has no requests"),
        (
            "negative-wait",
            "session 0: node 0: `wait-after-ready` is 18,446,744,073,709,551,615 ns, it must be below 2^53 (was it \
             negative?)",
        ),
        (
            "negative-delay",
            "session 0: node 1: `delay` is 18,446,744,073,709,551,615 ns, it must be below 2^53 (was it negative?)",
        ),
        (
            "header",
            "session 0: node 0: the header `Authorization` cannot be set by a workload; keys of servers are set by \
             `client.api_key`",
        ),
        (
            "labels",
            "session 0: node 0: 100,001 bytes of labels, at most 16,384 are allowed",
        ),
        (
            "too-few",
            "asked for 64 sessions, returned 63 (its workload is endless)",
        ),
        (
            "too-many",
            "it handed over more data in one call than is taken (8 MiB)",
        ),
    ];
    for (behaviour, message) in cases {
        let failure = fails(behaviour);
        assert_eq!(
            (failure.kind, failure.message.as_str()),
            (PluginFailureKind::Result, message),
            "{behaviour}"
        );
    }
    let failure = fails("body");
    assert_eq!(failure.kind, PluginFailureKind::Result);
    assert!(
        failure
            .message
            .starts_with("session 0: node 0: `body` must be a JSON object: "),
        "{failure}"
    );
}

/// A component gives each event of an edge, delays and headers as the contract names them.
#[test]
fn edges_and_headers_arrive() {
    let session = behaving(tight(), "events").sessions(0, 1).unwrap().remove(0);
    let edge = |parent, trigger, delay| Edge {
        parent: NodeId(parent),
        trigger,
        delay,
    };
    assert_eq!(
        session.requests[3].parents,
        [
            edge(0, Trigger::Dispatched, 5),
            edge(1, Trigger::FirstChunk, 6),
            edge(2, Trigger::Completed, 7)
        ]
    );
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(session.requests[3].headers, [header("x-turn", "last")]);
    assert_eq!(session.headers, [header("x-session", "s")]);
}

/// The message contains the session's number, not its index in the batch.
#[test]
fn the_refused_session_is_named_by_its_index() {
    let failure = behaving(tight(), "cyclic").sessions(5000, 2).unwrap_err();
    assert!(failure.message.starts_with("session 5,000: "), "{failure}");
}

#[test]
fn a_billion_sessions_cost_nothing_until_they_are_asked_for() {
    let mut source = behaving(tight(), "billion");
    assert_eq!(source.length().unwrap(), Some(1_000_000_000));
    assert_eq!(
        only_label(&source.sessions(999_999_990, 64).unwrap()[9]),
        999_999_999
    );
    assert_eq!(source.sessions(999_999_990, 64).unwrap().len(), 10);
}

#[test]
fn a_configuration_is_refused_with_hint_and_path() {
    let plugin = load(tight(), "hostile-sessions");
    let failure = open(&plugin, r#"{"behaviour": "refuse"}"#, grants())
        .err()
        .unwrap();
    assert_eq!(
        failure.kind,
        PluginFailureKind::Refused {
            code: "bad-behaviour".into(),
            hint: Some("try `good`".into()),
            path: Some("/behaviour".into()),
        }
    );
}

#[test]
fn a_store_is_replaced_after_its_calls() {
    let limits = EngineLimits {
        calls_per_store: 3,
        ..tight()
    };
    let plugin = load(limits, "hostile-sessions");
    let mut source = planned(&plugin, r#"{"behaviour": "calls"}"#, grants());
    // `length` is queried once and is a call of the first store.
    let seen: Vec<u64> = (0..8)
        .map(|i| only_label(&source.sessions(i, 1).unwrap()[0]))
        .collect();
    assert_eq!(seen, [1, 2, 1, 2, 3, 1, 2, 3]);
}

#[test]
fn a_store_that_swells_is_replaced_before_it_meets_its_limit() {
    let limits = EngineLimits {
        recycle_memory_bytes: 20 << 20,
        ..tight()
    };
    let mut source = behaving(limits, "swell");
    // Each call leaks 8 MiB: without replacement, the eighth one would exceed the limit of 64 MiB.
    let seen: Vec<u64> = (0..20)
        .map(|i| only_label(&source.sessions(i, 1).unwrap()[0]))
        .collect();
    assert!(seen.iter().all(|&calls| (1..=3).contains(&calls)), "{seen:?}");
    let mut unreplaced = behaving(
        EngineLimits {
            recycle_memory_bytes: u64::MAX,
            ..tight()
        },
        "swell",
    );
    let failure = (0..20)
        .find_map(|i| unreplaced.sessions(i, 1).err())
        .expect("the limit");
    assert!(
        matches!(failure.kind, PluginFailureKind::Memory { .. }),
        "{failure}"
    );
}

/// A trap of one workload does not affect another.
#[test]
fn a_trap_leaves_other_instances_alone() {
    let plugin = load(tight(), "hostile-sessions");
    let mut bad = planned(&plugin, r#"{"behaviour": "trap"}"#, grants());
    let mut good = planned(
        &plugin,
        r#"{"behaviour": "calls"}"#,
        Grants { seed: 1, ..grants() },
    );
    assert_eq!(only_label(&good.sessions(0, 1).unwrap()[0]), 1);
    bad.sessions(0, 1).unwrap_err();
    assert_eq!(
        only_label(&good.sessions(1, 1).unwrap()[0]),
        2,
        "the same instance as before"
    );
}

#[expect(
    clippy::disallowed_methods,
    reason = "the engine's deadline is measured from outside"
)]
fn now() -> Instant {
    Instant::now()
}
