//! Agent generators: life of a conversation, and isolation of one agent's bug from the others.

use std::sync::Arc;

use veeksha_model::{
    ErrorClass, FailureReason, NodeId, RequestId, Response, Role, Segment, SessionId, ToolCall,
};
use veeksha_ports::{AgentSource, AgentStep, PluginFailure, PluginFailureKind, ToolRunEnd};
use veeksha_wasm::{EngineLimits, Grants, Kinds};

use crate::support::{Kept, grants, label, load, open, reactive, tight};

fn text(text: &str) -> Response {
    Response {
        text: text.into(),
        finish_reason: "stop".into(),
        ..Response::default()
    }
}

fn failed(session: u64, node: u32) -> FailureReason {
    FailureReason {
        retry_after: None,
        request: RequestId {
            session: SessionId(session),
            node: NodeId(node),
        },
        class: ErrorClass::Timeout,
        status: None,
        message: "too late".into(),
        at: 7,
    }
}

fn hostile(limits: EngineLimits, config: &str) -> Box<dyn AgentSource> {
    reactive(&load(limits, "hostile-agent"), config, grants())
}

/// Answers the newest node of a session, and returns the step.
fn say(
    source: &mut dyn AgentSource,
    session: u64,
    node: u32,
    words: &str,
) -> Result<AgentStep, PluginFailure> {
    source.answered(SessionId(session), NodeId(node), &text(words), 1)
}

fn begun(step: &AgentStep) -> u32 {
    label(&step.added.requests[0], "begun").parse().unwrap()
}

fn sum(step: &AgentStep) -> u64 {
    label(&step.added.requests[0], "sum").parse().unwrap()
}

/// Computes the fixture's rule.
fn expected_sum(session: u64, answers: &[&str]) -> u64 {
    answers
        .concat()
        .bytes()
        .fold(session, |sum, byte| (sum * 31 + u64::from(byte)) % 1_000_003)
}

#[test]
fn a_conversation_with_a_tool_call() {
    let plugin = load(EngineLimits::default(), "agent");
    assert_eq!(
        plugin.kinds(),
        Kinds {
            agent_generator: true,
            ..Kinds::default()
        }
    );
    let mut source = reactive(&plugin, "{}", grants());
    assert_eq!(source.length().unwrap(), None);
    let first = source.start(SessionId(5)).unwrap();
    assert!(!first.done);
    assert_eq!(
        first.added.requests[0].messages[0].content,
        [Segment::Text(
            "session 5: what is the weather in Lausanne?".into()
        )]
    );
    let calls = ["call_a", "call_b"].map(|id| ToolCall {
        id: id.into(),
        name: "weather".into(),
        arguments: "{\"city\":1}".into(),
    });
    let asks = Response {
        tool_calls: calls.to_vec(),
        finish_reason: "tool_calls".into(),
        ..Response::default()
    };
    let second = source.answered(SessionId(5), NodeId(0), &asks, 10).unwrap();
    let request = &second.added.requests[0];
    assert_eq!(
        (request.node, &request.parents[..], request.history_parent),
        (NodeId(1), &[NodeId(0).into()][..], Some(NodeId(0)))
    );
    assert_eq!(request.body.as_deref(), Some(r#"{"tool_choice": "auto"}"#));
    let results: Vec<_> = request
        .messages
        .iter()
        .map(|message| (message.role, message.tool_call_id.as_deref()))
        .collect();
    assert_eq!(
        results,
        [(Role::Tool, Some("call_a")), (Role::Tool, Some("call_b"))]
    );
    let last = source
        .answered(SessionId(5), NodeId(1), &text("sunny"), 20)
        .unwrap();
    assert_eq!(
        last,
        AgentStep {
            done: true,
            ..AgentStep::default()
        }
    );
    source.finish(SessionId(5));
    source.finish(SessionId(5));
}

#[test]
fn a_failure_is_answered_too() {
    let mut source = reactive(&load(EngineLimits::default(), "agent"), "{}", grants());
    source.start(SessionId(0)).unwrap();
    let again = source.failed(SessionId(0), &failed(0, 0)).unwrap();
    assert_eq!(again.added.requests[0].node, NodeId(1));
    let failure = source.failed(SessionId(0), &failed(0, 1)).unwrap_err();
    assert_eq!(failure.function, "agent.failed");
    assert_eq!(failure.message, "node 1 failed: timeout");
    assert_eq!(
        failure.input.as_deref(),
        Some("session = 0, node = 1, failure = timeout \"too late\"")
    );
    assert!(matches!(&failure.kind, PluginFailureKind::Refused { code, .. } if code == "gave-up"));
}

#[test]
fn sessions_do_not_mix() {
    let mut source = hostile(tight(), "{}");
    for session in 0..100 {
        assert_eq!(sum(&source.start(SessionId(session)).unwrap()), session);
    }
    for (node, word) in [(0, "one"), (1, "two")] {
        for session in (0..100).rev() {
            let step = say(&mut *source, session, node, word).unwrap();
            let told: &[&str] = if node == 0 { &["one"] } else { &["one", "two"] };
            assert_eq!(sum(&step), expected_sum(session, told));
            assert_eq!(step.added.requests[0].node, NodeId(node + 1));
        }
    }
}

#[test]
fn a_trap_is_reported_with_its_line_and_the_answer() {
    let mut source = hostile(tight(), "{}");
    source.start(SessionId(3)).unwrap();
    let failure = say(&mut *source, 3, 0, "trap").unwrap_err();
    assert_eq!(
        (failure.function.as_str(), &failure.kind),
        ("agent.answered", &PluginFailureKind::Trap)
    );
    assert!(failure.message.ends_with("node 0 made me fall"), "{failure}");
    assert_eq!(
        failure.input.as_deref(),
        Some("session = 3, node = 0, response = \"trap\"")
    );
    assert!(failure.frames[0].function.ends_with("fall"), "{failure}");
    assert!(failure.frames[0].file.as_deref().unwrap().ends_with("src/lib.rs"));
    assert!(failure.frames[0].line.is_some());
}

#[test]
fn a_long_answer_is_cut_in_the_report() {
    let mut source = hostile(tight(), "{}");
    source.start(SessionId(0)).unwrap();
    let long = Response {
        text: "x ".repeat(100_000),
        ..Response::default()
    };
    source.answered(SessionId(0), NodeId(0), &long, 1).unwrap();
    source.finish(SessionId(0));
    let failure = source.answered(SessionId(0), NodeId(1), &long, 1).unwrap_err();
    let input = failure.input.unwrap();
    assert!(input.chars().count() < 300 && input.contains('…'), "{input}");
}

/// After one agent's trap the others continue with unchanged state and node numbers.
#[test]
fn the_others_survive_a_trap() {
    let mut source = hostile(tight(), "{}");
    for session in 0..20 {
        source.start(SessionId(session)).unwrap();
        say(&mut *source, session, 0, "before").unwrap();
    }
    source.failed(SessionId(4), &failed(4, 1)).unwrap();
    assert_eq!(
        say(&mut *source, 7, 1, "trap").unwrap_err().kind,
        PluginFailureKind::Trap
    );
    for session in (0..20).filter(|&session| session != 7 && session != 4) {
        let step = say(&mut *source, session, 1, "after").unwrap();
        assert_eq!(
            sum(&step),
            expected_sum(session, &["before", "after"]),
            "session {session}"
        );
        assert_eq!(step.added.requests[0].node, NodeId(2));
    }
    let step = say(&mut *source, 4, 2, "x").unwrap();
    let with_failure = expected_sum(4, &["before"]) + "timeout".len() as u64;
    assert_eq!(sum(&step), expected_sum(with_failure, &["x"]));
    let over = say(&mut *source, 7, 1, "after").unwrap_err();
    assert!(
        over.message.starts_with("session 7 has ended: panicked at"),
        "{over}"
    );
}

#[test]
fn traps_one_after_the_other_take_no_one_else() {
    let mut source = hostile(tight(), "{}");
    for session in 0..10 {
        source.start(SessionId(session)).unwrap();
    }
    for session in 0..9 {
        let word = if session % 2 == 0 { "trap" } else { "loop" };
        say(&mut *source, session, 0, word).unwrap_err();
        assert_eq!(
            sum(&say(&mut *source, 9, session as u32, "on").unwrap()),
            expected_sum(9, &vec!["on"; session as usize + 1])
        );
    }
}

/// Agents of other stores are not rebuilt: their instance keeps counting.
#[test]
fn a_trap_takes_only_its_own_store() {
    let mut source = hostile(
        EngineLimits {
            agents_per_store: 4,
            ..tight()
        },
        "{}",
    );
    let places: Vec<u32> = (0..8)
        .map(|session| begun(&source.start(SessionId(session)).unwrap()))
        .collect();
    assert_eq!(places, [0, 1, 2, 3, 0, 1, 2, 3], "two stores of four agents");
    say(&mut *source, 1, 0, "trap").unwrap_err();
    assert_eq!(
        begun(&say(&mut *source, 6, 0, "on").unwrap()),
        4,
        "untouched: four were begun in its store"
    );
    assert_eq!(
        begun(&say(&mut *source, 2, 0, "on").unwrap()),
        1,
        "rebuilt: the first in a fresh store"
    );
    assert_eq!(
        begun(&say(&mut *source, 0, 0, "on").unwrap()),
        2,
        "rebuilt: the second"
    );
}

#[test]
fn stores_are_replaced_after_so_many_agents() {
    let mut source = hostile(
        EngineLimits {
            calls_per_store: 3,
            ..tight()
        },
        "{}",
    );
    let places: Vec<u32> = (0..9)
        .map(|session| {
            let place = begun(&source.start(SessionId(session)).unwrap());
            source.finish(SessionId(session));
            place
        })
        .collect();
    assert_eq!(places, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
}

/// The capacity of an ended agent is reused, up to the store's limit.
#[test]
fn finished_agents_make_room() {
    let mut source = hostile(
        EngineLimits {
            agents_per_store: 2,
            ..tight()
        },
        "{}",
    );
    source.start(SessionId(0)).unwrap();
    source.start(SessionId(1)).unwrap();
    source.finish(SessionId(0));
    assert_eq!(
        begun(&source.start(SessionId(2)).unwrap()),
        2,
        "the third of the first store"
    );
    assert_eq!(
        begun(&source.start(SessionId(3)).unwrap()),
        0,
        "the first of the second"
    );
}

#[test]
fn state_above_the_limit_is_lost_with_its_store() {
    let mut source = hostile(
        EngineLimits {
            replay_bytes: 4096,
            ..tight()
        },
        "{}",
    );
    for session in 0..3 {
        source.start(SessionId(session)).unwrap();
    }
    say(&mut *source, 0, 0, &"long ".repeat(2000)).unwrap();
    say(&mut *source, 1, 0, "short").unwrap();
    say(&mut *source, 2, 0, "trap").unwrap_err();
    let failure = say(&mut *source, 0, 1, "on").unwrap_err();
    assert_eq!(
        failure.message,
        "session 0 was lost with its store: its answers exceed the limit for rebuilding (`replay_bytes`)"
    );
    assert_eq!(
        sum(&say(&mut *source, 1, 1, "on").unwrap()),
        expected_sum(1, &["short", "on"])
    );
}

#[test]
fn an_agent_that_is_no_function_of_its_answers_is_found_out() {
    let mut source = hostile(tight(), "forget");
    for session in 0..3 {
        source.start(SessionId(session)).unwrap();
    }
    say(&mut *source, 0, 0, "trap").unwrap_err();
    // Begun third, it named its first node 2; begun first, it names it 0.
    let failure = say(&mut *source, 2, 2, "on").unwrap_err();
    assert!(
        failure
            .message
            .contains("it requested other nodes; agents must be deterministic"),
        "{failure}"
    );
    assert_eq!(failure.kind, PluginFailureKind::Result);
}

#[test]
fn steps_that_cannot_run_are_refused() {
    let mut source = hostile(tight(), "{}");
    for session in 0..2 {
        source.start(SessionId(session)).unwrap();
    }
    let cyclic = say(&mut *source, 0, 0, "cyclic").unwrap_err();
    assert_eq!(
        (cyclic.kind, cyclic.message.as_str()),
        (PluginFailureKind::Result, "the nodes 1, 2 wait for one another")
    );
    let again = say(&mut *source, 1, 0, "again").unwrap_err();
    assert_eq!(
        (again.kind, again.message.as_str()),
        (PluginFailureKind::Result, "node 0 is defined twice")
    );
    assert!(
        say(&mut *source, 1, 0, "on")
            .unwrap_err()
            .message
            .starts_with("session 1 has ended: ")
    );
}

/// Its session only, as a trap does; the others in its store go on.
#[test]
fn an_error_ends_its_session() {
    let mut source = hostile(tight(), "{}");
    source.start(SessionId(0)).unwrap();
    source.start(SessionId(1)).unwrap();
    let failure = say(&mut *source, 0, 0, "error").unwrap_err();
    assert!(
        matches!(&failure.kind, PluginFailureKind::Refused { code, .. } if code == "asked-to"),
        "{failure}"
    );
    let after = say(&mut *source, 0, 0, "on").unwrap_err();
    assert!(after.message.starts_with("session 0 has ended: "), "{after}");
    assert_eq!(
        sum(&say(&mut *source, 1, 0, "on").unwrap()),
        expected_sum(1, &["on"])
    );
}

#[test]
fn agent_that_cannot_begin_reports_an_error() {
    let plugin = load(tight(), "hostile-agent");
    let mut refusing = reactive(&plugin, r#"{"how": "refuse"}"#, grants());
    let failure = refusing.start(SessionId(8)).unwrap_err();
    assert_eq!(
        (failure.function.as_str(), failure.message.as_str()),
        ("generator.start", "session 8 cannot begin")
    );
    let mut trapping = reactive(&plugin, "trap-start", grants());
    for session in 0..3 {
        let failure = trapping.start(SessionId(session)).unwrap_err();
        assert!(
            failure.message.ends_with(&format!("session {session} fell over")),
            "{failure}"
        );
        assert_eq!(failure.input, Some(format!("session = {session}")));
    }
}

#[test]
fn unknown_and_doubled_sessions_are_refused() {
    let mut source = hostile(tight(), "{}");
    assert_eq!(
        say(&mut *source, 1, 0, "x").unwrap_err().message,
        "session 1 was not started, or has ended"
    );
    source.start(SessionId(1)).unwrap();
    assert_eq!(
        source.start(SessionId(1)).unwrap_err().message,
        "session 1 was started before"
    );
    source.finish(SessionId(1));
    source.start(SessionId(1)).unwrap();
}

#[test]
fn trap_in_a_destructor_affects_no_other_instance() {
    let log = Arc::new(Kept::default());
    let plugin = load(tight(), "hostile-agent");
    let mut source = reactive(
        &plugin,
        "trap-drop",
        Grants {
            log: log.clone(),
            ..grants()
        },
    );
    source.start(SessionId(0)).unwrap();
    source.start(SessionId(1)).unwrap();
    say(&mut *source, 1, 0, "before").unwrap();
    source.finish(SessionId(0));
    assert_eq!(
        sum(&say(&mut *source, 1, 1, "after").unwrap()),
        expected_sum(1, &["before", "after"])
    );
    let told = log.lines();
    assert!(
        told.iter()
            .any(|(_, _, line)| line.starts_with("the destructor of an agent failed: ")),
        "{told:?}"
    );
}

#[test]
fn an_agent_generator_is_opened_as_one() {
    assert!(matches!(
        open(&load(tight(), "agent"), "{}", grants()).unwrap(),
        veeksha_ports::Workload::Reactive(_)
    ));
}

#[test]
fn generator_that_does_not_open_reports_an_error() {
    let plugin = load(tight(), "hostile-agent");
    let failure = open(&plugin, "closed", grants()).err().unwrap();
    assert_eq!(
        (failure.function.as_str(), failure.message.as_str()),
        ("generator.open", "the agents are closed")
    );
    assert_eq!(failure.input.as_deref(), Some("config = closed"));
}

#[test]
fn an_agent_cancels_nodes_of_this_step_and_earlier_ones() {
    let mut source = hostile(tight(), "{}");
    source.start(SessionId(1)).unwrap();
    let step = say(&mut *source, 1, 0, "cancel").unwrap();
    assert_eq!(step.added.requests[0].node, NodeId(1));
    assert_eq!(step.cancel, [NodeId(1), NodeId(0)]);
    let part = Response {
        cancelled: true,
        ..text("par")
    };
    let step = source.answered(SessionId(1), NodeId(1), &part, 1).unwrap();
    assert_eq!(sum(&step), 7_000 + 3 + 1);
    let failure = say(&mut *source, 1, 2, "cancel-unknown").unwrap_err();
    assert_eq!(
        failure.message,
        "`cancel` names node 999, which the session does not have"
    );
}

/// A tool run without a tool is a timer; its cancellation is the end of a tool run, not of a
/// request.
#[test]
fn an_agent_learns_of_a_cancelled_timer() {
    let mut source = hostile(tight(), "{}");
    source.start(SessionId(1)).unwrap();
    let step = say(&mut *source, 1, 0, "timer").unwrap();
    let run = &step.added.tool_runs[0];
    assert_eq!((&*run.class, run.service_time), ("timer", Some(5)));
    let end = ToolRunEnd::Cancelled {
        node: run.node,
        waiting_time: 3,
        at: 8,
    };
    let step = source.tool_ended(SessionId(1), end).unwrap();
    assert_eq!(sum(&step), 8_001);
}
