//! Sessions written by hand from the format's definition. A word is a token here.

use veeksha_plugin::flavor::{Answer, TimeUnit, group};
use veeksha_plugin::{config, text};

use super::*;

const SECOND: u64 = 1_000_000_000;

fn flavor(json: &str) -> WildChat {
    WildChat {
        count: |text| text.split_whitespace().count() as u32,
        ..WildChat::open(config::from_json(json).unwrap()).unwrap()
    }
}

/// The session of row 3, whose timestamp is 100 s after the earliest of the trace.
fn replay(config: &str, row: &str) -> Result<Replay, Error> {
    let group = group(2, "", [(3, Some(100 * SECOND), row.to_owned())])?;
    flavor(config).session(&Trace::new(9, 9, "{}"), 0, &group)
}

/// Asked at 0:00, answered at 0:10, asked at 0:25, answered at 0:40, which is the row's timestamp.
const ROW: &str = r#"{"conversation_hash": "c0ffee", "model": "gpt-4-0314", "timestamp": "2023-04-09T00:00:40",
    "language": "English", "toxic": false, "redacted": false, "conversation": [
    {"role": "user", "content": "Name a tree.", "timestamp": "2023-04-09T00:00:00", "language": "English"},
    {"role": "assistant", "content": "An oak.", "timestamp": "2023-04-09T00:00:10"},
    {"role": "user", "content": "And a fish?", "timestamp": "2023-04-09T00:00:25"},
    {"role": "assistant", "content": "A pike, for example.", "timestamp": "2023-04-09T00:00:40"}]}"#;

#[test]
fn think_times_are_the_recorded_ones() {
    let made = replay("{}", ROW).unwrap();
    assert_eq!(
        made.session.requests,
        [
            Request::new(0).user("Name a tree.").output_exactly(2),
            Request::new(1)
                .history(0)
                .wait(Duration::from_secs(15))
                .user("And a fish?")
                .output_exactly(4),
        ]
    );
    assert_eq!(
        made.session.arrives_at,
        Some(60 * SECOND),
        "40 s before its last turn"
    );
    let labels = [
        ("conversation", "c0ffee"),
        ("language", "English"),
        ("model", "gpt-4-0314"),
    ];
    assert_eq!(
        made.session.labels,
        labels.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
    let turn = |node, at, latency, answer: &str, prompt, tokens| Turn {
        answer: Some(Answer {
            reasoning: None,
            content: vec![text(answer)],
            tool_calls: Vec::new(),
        }),
        at: Some(at * SECOND),
        latency: Some(latency * SECOND),
        prompt_tokens: Some(prompt),
        output_tokens: Some(tokens),
        ..Turn::new(node)
    };
    assert_eq!(
        made.turns,
        [
            turn(0, 60, 10, "An oak.", 3, 2),
            turn(1, 85, 15, "A pike, for example.", 8, 4)
        ]
    );
}

/// As in WildChat-1M, where only answers have times.
#[test]
fn think_times_follow_from_answers_alone() {
    let row = ROW
        .replace(
            r#", "timestamp": "2023-04-09T00:00:00""#,
            r#", "timestamp": null"#,
        )
        .replace(r#", "timestamp": "2023-04-09T00:00:25""#, "");
    let wait = |config| replay(config, &row).unwrap().session.requests[1].wait_after_ready;
    assert_eq!(wait("{}"), 30 * SECOND, "from answer to answer");
    assert_eq!(
        wait(r#"{"recorded_tokens_per_s": 2}"#),
        28 * SECOND,
        "without 4 tokens at 2 a second"
    );
    let arrival = |config| replay(config, &row).unwrap().session.arrives_at;
    assert_eq!(arrival("{}"), Some(70 * SECOND));
    assert_eq!(arrival(r#"{"recorded_tokens_per_s": 2}"#), Some(69 * SECOND));
}

#[test]
fn the_older_corpus_has_no_times_in_its_messages() {
    let row = r#"{"conversation_id": "x", "timestamp": "2023-04-09T00:00:40+00:00", "conversation": [
        {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]}"#;
    let made = replay("{}", row).unwrap();
    assert_eq!(made.session.requests[1].wait_after_ready, 0);
    assert_eq!(made.session.arrives_at, Some(100 * SECOND));
    assert_eq!(made.turns[0].at, None);
}

#[test]
fn every_key_has_its_effect() {
    let made = |config| replay(config, ROW).unwrap();
    assert_eq!(made(r#"{"max_turns": 1}"#).session.requests.len(), 1);
    assert_eq!(
        made(r#"{"max_think_time_s": 2.5}"#).session.requests[1].wait_after_ready,
        2_500_000_000
    );
    let second = |config| made(config).session.requests[1].clone();
    assert_eq!(second(r#"{"output_tokens": 9}"#).output.target_tokens, Some(9));
    assert!(!second(r#"{"output_control": "at_most"}"#).output.exact);
    assert_eq!(second(r#"{"history": "fresh"}"#).history_parent, None);
    assert_eq!(made(r#"{"history": "fresh"}"#).turns[1].prompt_tokens, Some(3));
    assert_eq!(
        made(r#"{"history": "recorded"}"#).turns[1].history,
        HistoryMode::Recorded
    );
    assert_eq!(
        made(r#"{"cache_bust_tokens": 5}"#).session.requests[0].messages[0]
            .content
            .len(),
        3
    );
    let numbers = ROW
        .replace(r#""2023-04-09T00:00:00""#, "1680998400")
        .replace(r#""2023-04-09T00:00:10""#, "1680998410")
        .replace(r#""2023-04-09T00:00:25""#, "1680998425.0")
        .replace(r#""2023-04-09T00:00:40""#, "1680998440");
    assert_eq!(
        replay(r#"{"timestamp_unit": "seconds"}"#, &numbers),
        replay("{}", ROW)
    );
}

#[test]
fn conversations_outside_the_filters_are_filtered() {
    let error = replay(r#"{"languages": ["German"]}"#, ROW).unwrap_err();
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("filtered", "row 3: the language `English` is none of `languages`")
    );
    assert!(
        replay(
            r#"{"languages": ["English"], "models": ["gpt-4-0314"], "skip_toxic": true}"#,
            ROW
        )
        .is_ok()
    );
}

#[test]
fn names_invalid_values_with_their_row() {
    let refused = |row: &str| replay("{}", row).unwrap_err().message;
    assert_eq!(
        refused(r#"{"conversation": []}"#),
        "row 3: `conversation` has no question with an answer"
    );
    assert_eq!(
        refused(&ROW.replace(
            "\"assistant\", \"content\": \"An oak.\"",
            "\"elf\", \"content\": \"\""
        )),
        "row 3: `conversation`, message 2: unknown role `elf`"
    );
    assert!(
        refused(&ROW.replace("2023-04-09T00:00:10", "noon")).starts_with("row 3: `timestamp` is \"noon\"")
    );
    for (json, path) in [
        (r#"{"max_turns": 0}"#, "/max_turns"),
        (r#"{"output_tokens": 0}"#, "/output_tokens"),
        (r#"{"max_think_time_s": -1}"#, "/max_think_time_s"),
        (r#"{"recorded_tokens_per_s": 0}"#, "/recorded_tokens_per_s"),
    ] {
        let error = WildChat::open(config::from_json(json).unwrap()).err().unwrap();
        assert_eq!(error.path.as_deref(), Some(path));
    }
}

#[test]
fn arrivals_have_the_configured_unit() {
    let arrival = |config| flavor(config).layout().arrival.unwrap().unit;
    assert_eq!(arrival("{}"), TimeUnit::DateTime);
    assert_eq!(
        arrival(r#"{"timestamp_unit": "milliseconds"}"#),
        TimeUnit::Milliseconds
    );
}
