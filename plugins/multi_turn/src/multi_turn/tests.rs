//! Sessions written by hand from the format's definition. A word is a token here.

use std::time::Duration;

use veeksha_plugin::flavor::{HistoryMode, group};
use veeksha_plugin::{Media, MediaKind, Role, Segment, ToolCall, config, text};

use super::*;

const MILLISECOND: u64 = 1_000_000;

fn flavor(json: &str) -> Result<MultiTurn, Error> {
    Ok(MultiTurn {
        count: |text| text.split_whitespace().count() as u32,
        ..MultiTurn::open(config::from_json(json)?)?
    })
}

/// The session of some rows, numbered from 1; the first is the first of the trace.
fn replay_at(config: &str, key: &str, rows: &[(Option<u64>, &str)]) -> Result<Replay, Error> {
    let first = rows[0].1;
    let numbered = (1..)
        .zip(rows)
        .map(|(number, (at, row))| (number, *at, (*row).to_owned()));
    let group = group(4, key, numbered)?;
    flavor(config)?.session(&Trace::new(9, 9, first), 1, &group)
}

fn replay(config: &str, turns: &str) -> Result<Replay, Error> {
    replay_at(config, "", &[(None, &format!(r#"{{"turns": {turns}}}"#))])
}

fn answer(content: &str) -> Option<Answer> {
    Some(Answer {
        reasoning: None,
        content: vec![text(content)],
        tool_calls: Vec::new(),
    })
}

/// The first and the fourth example of AIPerf's loader.
#[test]
fn each_turn_is_a_request_after_the_one_before() {
    let turns = r#"[{"text": "Hello", "image": "https://x.test/a.png", "delay": 0}, {"text": "Hi there", "delay": 1000}]"#;
    let image = Segment::Media(Media {
        kind: MediaKind::Image,
        source: "https://x.test/a.png".into(),
    });
    let made = replay_at(
        "{}",
        "session_123",
        &[(
            None,
            &format!(r#"{{"session_id": "session_123", "turns": {turns}}}"#),
        )],
    )
    .unwrap();
    assert_eq!(
        made.session.requests,
        [
            Request::new(0).message(Message::new(Role::User, vec![text("Hello"), image])),
            Request::new(1)
                .history(0)
                .wait(Duration::from_secs(1))
                .user("Hi there"),
        ]
    );
    assert_eq!(
        made.session.labels,
        [("conversation".to_owned(), "session_123".to_owned())]
    );
    assert_eq!(made.turns, [Turn::new(0), Turn::new(1)]);
}

/// AIPerf supports a system and a user message in one request only since recently.
#[test]
fn system_and_user_are_one_request() {
    let expected = [
        Request::new(0)
            .system("You are a helpful assistant.")
            .user("What is deep learning?"),
        Request::new(1).history(0).user("Shorter."),
    ];
    let as_turns = r#"[{"role": "system", "text": "You are a helpful assistant."},
        {"text": "What is deep learning?"}, {"text": "Shorter."}]"#;
    let as_messages = r#"[{"messages": [{"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": "What is deep learning?"}]}, {"text": "Shorter."}]"#;
    for turns in [as_turns, as_messages] {
        assert_eq!(replay("{}", turns).unwrap().session.requests, expected);
    }
}

#[test]
fn recorded_answers_are_kept_and_measured() {
    let turns = r#"[{"text": "2 + 2?"}, {"role": "assistant", "text": "It is four."}, {"role": "assistant", "text": "Yes."},
        {"messages": [{"role": "user", "content": "And 1 + 2?"},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "function": {"name": "add", "arguments": "[1, 2]"}}]}]},
        {"messages": [{"role": "tool", "tool_call_id": "c1", "content": "3"}, {"role": "assistant", "content": "Three."}],
            "output_length": 9}]"#;
    let made = replay(r#"{"history": "recorded"}"#, turns).unwrap();
    assert_eq!(
        made.session.requests,
        [
            Request::new(0).user("2 + 2?").output_exactly(4),
            Request::new(1).history(0).user("And 1 + 2?").output_exactly(2),
            Request::new(2).history(1).tool("c1", "3").output_exactly(9),
        ]
    );
    let call = ToolCall {
        id: "c1".into(),
        name: "add".into(),
        arguments: "[1, 2]".into(),
    };
    let recorded = |node, answer, tokens| Turn {
        history: HistoryMode::Recorded,
        answer,
        output_tokens: Some(tokens),
        ..Turn::new(node)
    };
    let called = Answer {
        reasoning: None,
        content: Vec::new(),
        tool_calls: vec![call],
    };
    let four = Answer {
        reasoning: None,
        content: vec![text("It is four."), text("\n\n"), text("Yes.")],
        tool_calls: Vec::new(),
    };
    assert_eq!(
        made.turns,
        [
            Turn {
                history: HistoryMode::Live,
                ..recorded(0, Some(four), 4)
            },
            recorded(1, Some(called), 2),
            recorded(2, answer("Three."), 9)
        ]
    );
}

#[test]
fn every_key_has_its_effect() {
    let turns = r#"[{"text": "a"}, {"role": "assistant", "text": "b c"}, {"text": "d", "extra": {"top_k": 3}, "output_length": 5}]"#;
    let requests = |config| replay(config, turns).unwrap().session.requests;
    let lengths = |config| {
        requests(config)
            .iter()
            .map(|request| request.output.target_tokens)
            .collect::<Vec<_>>()
    };
    assert_eq!(lengths("{}"), [Some(2), Some(5)]);
    assert_eq!(lengths(r#"{"output_tokens": 8}"#), [Some(8), Some(5)]);
    assert_eq!(lengths(r#"{"output_control": "free"}"#), [None, None]);
    assert!(!requests(r#"{"output_control": "at_most"}"#)[0].output.exact);
    assert_eq!(requests("{}")[1].body.as_deref(), Some(r#"{"top_k":3}"#));
    assert_eq!(requests(r#"{"history": "fresh"}"#)[1].history_parent, None);
    assert_eq!(
        requests(r#"{"cache_bust_tokens": 3}"#)[0].messages[0]
            .content
            .len(),
        3
    );
    assert!(flavor(r#"{"output_tokens": 0}"#).is_err());
}

#[test]
fn turns_are_sent_when_they_were() {
    let turns = r#"[{"timestamp": 5000, "text": "a"}, {"timestamp": 6500.5, "text": "b"}]"#;
    let times = |made: Replay| {
        (
            made.session.arrives_at,
            made.turns.iter().map(|turn| turn.at).collect::<Vec<_>>(),
        )
    };
    let after = |milliseconds: f64| Some((milliseconds * MILLISECOND as f64) as u64);
    assert_eq!(
        times(replay("{}", turns).unwrap()),
        (after(0.0), vec![after(0.0), after(1500.5)]),
        "the trace begins with its first turn"
    );
    assert_eq!(
        times(replay(r#"{"timestamp_origin_ms": 4000}"#, turns).unwrap()),
        (after(1000.0), vec![after(1000.0), after(2500.5)])
    );
    let row = format!(r#"{{"timestamp": 4900, "turns": {turns}}}"#);
    let made = replay_at("{}", "", &[(Some(300 * MILLISECOND), &row)]).unwrap();
    assert_eq!(
        times(made),
        (after(300.0), vec![after(400.0), after(1900.5)]),
        "a row's own arrival is what its turns are relative to"
    );
    let error = replay(r#"{"timestamp_origin_ms": 5500}"#, turns).unwrap_err();
    assert!(
        error.message.starts_with("row 1: the `timestamp` 5000"),
        "{}",
        error.message
    );
    assert!(error.hint.unwrap().contains("timestamp_origin_ms"));
}

#[test]
fn rows_of_one_session_are_one_conversation() {
    let row = |text: &str| format!(r#"{{"session_id": "s", "turns": [{{"text": "{text}"}}]}}"#);
    let (one, two) = (row("a"), row("b"));
    let made = replay_at("{}", "s", &[(None, &one), (None, &two)]).unwrap();
    assert_eq!(
        made.session.requests,
        [Request::new(0).user("a"), Request::new(1).history(0).user("b")]
    );
}

#[test]
fn refuses_invalid_turns_by_row_and_number() {
    let refused = |turns: &str| replay("{}", turns).unwrap_err().message;
    assert_eq!(refused("[]"), "row 1: `turns` has no request");
    assert_eq!(
        refused(r#"[{"role": "system", "text": "s"}]"#),
        "row 1: `turns` ends with a system message that no request follows"
    );
    assert_eq!(
        refused(r#"[{"role": "assistant", "text": "s"}]"#),
        "row 1: `turns`, turn 1: an answer before any request"
    );
    assert!(refused(r#"[{"text": "a"}, {}]"#).starts_with("row 1: `turns`, turn 2: the message is empty"));
    assert!(refused(r#"[{"text": "a"}, 5]"#).starts_with("row 1: `turns`, turn 2: invalid type"));
    assert!(refused(r#"[{"text": "a", "delay": -5}]"#).contains("`delay`"));
    assert!(refused(r#"[{"text": "a", "output_length": 0}]"#).contains("`output_length`"));
    assert!(refused(r#"[{"video": "generated:video"}]"#).contains("generated video"));
}
