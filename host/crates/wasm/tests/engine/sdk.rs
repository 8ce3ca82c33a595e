//! Components built with the Rust SDK in the usual way.

use std::sync::Arc;

use veeksha_model::{
    Edge, ErrorClass, FailureReason, NodeId, RequestId, Response, Segment, SessionId, Trigger,
};
use veeksha_ports::{AgentStep, PluginFailureKind};
use veeksha_stats::RandomStream;
use veeksha_wasm::{EngineLimits, Grants, Kinds, LogLevel};

use crate::support::{Kept, grants, label, load, open, reactive};

const CONFIG: &str = r#"{"steps": 2}"#;

fn said(words: &str) -> Response {
    Response {
        text: words.into(),
        finish_reason: "stop".into(),
        ..Response::default()
    }
}

fn failed(class: ErrorClass) -> FailureReason {
    FailureReason {
        retry_after: None,
        request: RequestId {
            session: SessionId(9),
            node: NodeId(0),
        },
        class,
        status: None,
        message: "gone".into(),
        at: 5,
    }
}

#[test]
fn an_agent_plays_its_session() {
    let plugin = load(EngineLimits::default(), "sdk-agent");
    let kinds = Kinds {
        agent_generator: true,
        ..Kinds::default()
    };
    assert_eq!(plugin.kinds(), kinds);
    assert_eq!(
        plugin.imports(),
        ["log", "random"],
        "the SDK imports what the code calls"
    );
    assert_eq!(plugin.describe().unwrap().summary, "does a plan step by step");
    let log = Arc::new(Kept::default());
    let mut source = reactive(
        &plugin,
        CONFIG,
        Grants {
            log: log.clone(),
            ..grants()
        },
    );
    let session = SessionId(9);
    let first = source.start(session).unwrap();
    assert_eq!(
        log.lines(),
        [("sdk-agent".into(), LogLevel::Info, "session 9 begins".into())]
    );
    // The SDK's draws equal the host's: seed 42, session 9, the stream's name.
    let tokens = 10 + RandomStream::new(42, 9, "plan").draws().below(11);
    assert_eq!(
        first.added.requests[0].messages[0].content,
        [Segment::Synthetic {
            seed: 9.into(),
            tokens
        }]
    );
    assert_eq!(
        (
            first.added.requests[0].output.target_tokens,
            first.added.requests[0].output.exact
        ),
        (Some(8), true)
    );
    for node in 1..=2 {
        let before = NodeId(node - 1);
        let step = source
            .answered(session, before, &said("one two three"), 1)
            .unwrap();
        let [request] = &step.added.requests[..] else {
            panic!("{step:?}")
        };
        assert_eq!(
            (request.node, request.history_parent),
            (NodeId(node), Some(before))
        );
        assert_eq!(
            request.messages[0].content,
            [Segment::Text(format!("step {node} of 3 words"))]
        );
        let thought = 1 + RandomStream::new(42, 9, "thought").draws().below(9);
        assert_eq!(label(request, "thought"), thought.to_string());
        assert!(!step.done);
    }
    let last = source.answered(session, NodeId(2), &said("done"), 1).unwrap();
    let done = AgentStep {
        done: true,
        ..AgentStep::default()
    };
    assert_eq!(last, done);
}

#[test]
fn an_agent_hears_of_failures() {
    let plugin = load(EngineLimits::default(), "sdk-agent");
    let mut source = reactive(&plugin, CONFIG, grants());
    source.start(SessionId(9)).unwrap();
    let again = source.failed(SessionId(9), &failed(ErrorClass::Timeout)).unwrap();
    assert_eq!(
        (
            again.added.requests[0].parents.as_slice(),
            again.added.requests[0].history_parent
        ),
        (&[NodeId(0).into()][..], None)
    );
    source.start(SessionId(10)).unwrap();
    let reason = FailureReason {
        retry_after: None,
        request: RequestId {
            session: SessionId(10),
            node: NodeId(0),
        },
        ..failed(ErrorClass::Status)
    };
    assert!(source.failed(SessionId(10), &reason).unwrap().done);
}

#[test]
fn its_configuration_is_refused_with_the_place() {
    let plugin = load(EngineLimits::default(), "sdk-agent");
    let refused = |config: &str| {
        let mut source = reactive(&plugin, config, grants());
        source.start(SessionId(0)).unwrap_err()
    };
    let failure = refused(r#"{"steps": 0}"#);
    assert_eq!(failure.message, "a plan has at least one step");
    let PluginFailureKind::Refused { path, hint, .. } = failure.kind else {
        panic!("not refused")
    };
    assert_eq!(
        (path.as_deref(), hint.as_deref()),
        (Some("/steps"), Some("set `steps` to 1 or more"))
    );
    let failure = open(&plugin, r#"{"stps": 1}"#, grants()).err().unwrap();
    assert_eq!(
        (failure.function.as_str(), failure.message.as_str()),
        (
            "generator.open",
            "unknown key `stps`; known here: `steps`, `team`, `tools`, `impatient`, `sessions`"
        )
    );
}

/// The host refuses events of nodes that do not exist, such as the number of an unnumbered request.
#[test]
fn requests_of_an_asynchronous_agent_cancel_themselves() {
    let plugin = load(EngineLimits::default(), "sdk-agent");
    let mut source = reactive(&plugin, r#"{"steps": 1, "impatient": true}"#, grants());
    let session = SessionId(0);
    let event = |node, trigger, millis: u64| Edge {
        parent: NodeId(node),
        trigger,
        delay: millis * 1_000_000,
    };
    let when = |step: &AgentStep| step.added.requests[0].cancellation.clone().unwrap().when;
    let first = source.start(session).unwrap();
    assert_eq!(when(&first), [event(1, Trigger::Dispatched, 150)]);
    let second = source.answered(session, NodeId(1), &said("part"), 1).unwrap();
    assert_eq!(when(&second), [event(2, Trigger::FirstChunk, 50)]);
}

/// A panic's text comes from the SDK's hook, its location from the component's line tables.
#[test]
fn a_panic_names_the_authors_line() {
    let plugin = load(EngineLimits::default(), "sdk-agent");
    let mut source = reactive(&plugin, CONFIG, grants());
    source.start(SessionId(0)).unwrap();
    let failure = source
        .answered(SessionId(0), NodeId(0), &said(&"word ".repeat(1000)), 1)
        .unwrap_err();
    assert_eq!(failure.kind, PluginFailureKind::Trap);
    assert!(failure.message.ends_with("no plan has 1000 words"), "{failure}");
    let source = include_str!("../../../../../tests/guests/sdk-agent/src/lib.rs");
    let line = source
        .lines()
        .position(|line| line.contains("assert!(words < 1000"))
        .unwrap() as u32
        + 1;
    let frame = &failure.frames[0];
    assert!(
        frame.file.as_deref().unwrap().ends_with("sdk-agent/src/lib.rs"),
        "{failure}"
    );
    assert_eq!(frame.line, Some(line), "{failure}");
}

#[test]
fn an_agent_generator_states_the_number_of_its_sessions() {
    let plugin = load(EngineLimits::default(), "sdk-agent");
    let length = |config: &str| reactive(&plugin, config, grants()).length().unwrap();
    assert_eq!(length(CONFIG), None);
    assert_eq!(length(r#"{"steps": 2, "sessions": 3}"#), Some(3));
}
