//! Sessions as the format defines them.

use std::time::Duration;

use veeksha_plugin::text;

use super::*;
use crate::testing::{draws, group};

fn open(config: &str) -> Mooncake {
    Mooncake::open(veeksha_plugin::config::from_json(config).unwrap()).unwrap()
}

fn replay(config: &str, epoch: u64, rows: &[(Option<u64>, &str)]) -> Result<Replay, Error> {
    open(config).session(&Trace::new(9, 9, "{}"), epoch, &group(rows))
}

fn content(replay: &Replay, node: usize) -> &[Segment] {
    &replay.session.requests[node].messages[0].content
}

fn block(epoch: u64, id: u64, tokens: u32) -> Segment {
    synthetic(seed_of("mooncake block", &[epoch, id]), tokens)
}

/// The example of Mooncake's documentation: 6,955 tokens are 13 blocks of 512 and 299 tokens of one
/// more.
#[test]
fn a_row_of_mooncake_is_a_prompt_of_blocks() {
    let ids: Vec<u64> = (46..59).chain([2354]).collect();
    let row =
        format!(r#"{{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": {ids:?}}}"#);
    let replay = replay("{}", 0, &[(Some(27_482), &row)]).unwrap();
    let mut expected: Vec<Segment> = (46..59).map(|id| block(0, id, 512)).collect();
    expected.push(block(0, 2354, 299));
    let request = Request::new(0)
        .message(Message::new(Role::User, expected))
        .output_exactly(52);
    assert_eq!(replay.session.requests, [request]);
    assert_eq!(replay.session.arrives_at, Some(27_482_000_000));
    let turn = Turn {
        history: HistoryMode::Fresh,
        at: Some(27_482_000_000),
        prompt_tokens: Some(6955),
        output_tokens: Some(52),
        ..Turn::new(0)
    };
    assert_eq!(replay.turns, [turn]);
}

const TURNS: [(Option<u64>, &str); 3] = [
    (
        Some(100),
        r#"{"input_length": 6, "output_length": 3, "hash_ids": [1, 2]}"#,
    ),
    (
        None,
        r#"{"input_length": 13, "output_length": 2, "hash_ids": [1, 3, 4, 5], "delay": 250}"#,
    ),
    (
        None,
        r#"{"input_length": 16, "output_length": 0, "hash_ids": [1, 3, 4, 6], "tool_wait_ms": 30}"#,
    ),
];

#[test]
fn fresh_turns_send_their_whole_prompt() {
    let replay = replay(r#"{"block_size": 4}"#, 0, &TURNS).unwrap();
    let request = |node, blocks: &[(u64, u32)], output| {
        let blocks = blocks.iter().map(|(id, tokens)| block(0, *id, *tokens));
        Request::new(node)
            .message(Message::new(Role::User, blocks.collect()))
            .output_exactly(output)
    };
    let expected = [
        request(0, &[(1, 4), (2, 2)], 3),
        request(1, &[(1, 4), (3, 4), (4, 4), (5, 1)], 2)
            .after(0)
            .wait(Duration::from_millis(250)),
        request(2, &[(1, 4), (3, 4), (4, 4), (6, 4)], 1)
            .after(1)
            .wait(Duration::from_millis(30)),
    ];
    assert_eq!(replay.session.requests, expected);
    assert_eq!(replay.session.labels, [("session_id".to_owned(), "s".to_owned())]);
    assert!(replay.turns.iter().all(|turn| turn.history == HistoryMode::Fresh));
}

/// 13 tokens continue 6 + 3: 4 are new. 16 continue 13 + 2: 1 is.
#[test]
fn live_turns_send_what_is_new() {
    let replay = replay(r#"{"block_size": 4, "history": "live"}"#, 5, &TURNS).unwrap();
    let own = |row| seed_of("mooncake row", &[5, row]);
    assert_eq!(content(&replay, 0), [block(5, 1, 4), block(5, 2, 2)]);
    assert_eq!(content(&replay, 1), [synthetic(own(2), 4)]);
    assert_eq!(content(&replay, 2), [synthetic(own(3), 1)]);
    let parents: Vec<_> = replay
        .session
        .requests
        .iter()
        .map(|request| request.history_parent)
        .collect();
    assert_eq!(parents, [None, Some(0), Some(1)]);
    let modes: Vec<_> = replay.turns.iter().map(|turn| turn.history).collect();
    assert_eq!(modes, [HistoryMode::Fresh, HistoryMode::Live, HistoryMode::Live]);
    assert_eq!(replay.turns[1].prompt_tokens, Some(13));
}

#[test]
fn refuses_a_live_turn_without_new_tokens() {
    let live = r#"{"history": "live"}"#;
    let refused = |first: &str, second: &str| replay(live, 0, &[(None, first), (None, second)]).unwrap_err();
    let first = r#"{"input_length": 10, "output_length": 5}"#;
    let error = refused(first, r#"{"input_length": 15, "output_length": 5}"#);
    assert_eq!(
        error.message,
        "row 2: `input_length` is 15, no more than the 15 tokens of the conversation that it continues (row 1)"
    );
    assert!(error.hint.unwrap().contains("`fresh`"));
    let error = refused(
        r#"{"text_input": "hi", "output_length": 5}"#,
        r#"{"input_length": 15}"#,
    );
    assert_eq!(
        error.message,
        "row 2: it continues row 1, which does not have both `input_length` and `output_length`"
    );
    // After a reset there is nothing to continue.
    let reset = r#"{"input_length": 3, "output_length": 5, "prefix_reset": true}"#;
    let replay = replay(live, 0, &[(None, first), (None, reset)]).unwrap();
    assert_eq!(replay.session.requests[1].history_parent, None);
    assert_eq!(replay.session.requests[1].parents, [0]);
}

/// After the reset, equal ids are other text, for the row and those after it; they still agree with
/// one another.
#[test]
fn a_reset_of_the_prefix_shares_nothing_with_earlier_turns() {
    let row = r#"{"input_length": 8, "output_length": 1, "hash_ids": [1, 2]}"#;
    let reset = r#"{"input_length": 8, "output_length": 1, "hash_ids": [1, 2], "prefix_reset": true}"#;
    let rows = [
        (None, row),
        (None, row),
        (None, reset),
        (None, row),
        (None, reset),
    ];
    let replay = replay(r#"{"block_size": 4}"#, 0, &rows).unwrap();
    assert_eq!(content(&replay, 0), [block(0, 1, 4), block(0, 2, 4)]);
    assert_eq!(content(&replay, 1), content(&replay, 0));
    assert_eq!(content(&replay, 3), content(&replay, 2));
    for (one, two) in [(0, 2), (0, 4), (2, 4)] {
        assert!(
            content(&replay, one)
                .iter()
                .zip(content(&replay, two))
                .all(|(a, b)| a != b)
        );
    }
}

/// A session of other rows, with the same ids: the same text before a reset, never after one.
#[test]
fn ids_are_those_of_the_file_until_a_reset() {
    let flavor = open(r#"{"block_size": 4}"#);
    let row = r#"{"input_length": 4, "hash_ids": [1]}"#;
    let reset = r#"{"input_length": 4, "hash_ids": [1], "prefix_reset": true}"#;
    let session = |index| {
        let mut group = group(&[(None, row), (None, reset)]);
        group.index = index;
        flavor.session(&Trace::new(9, 9, "{}"), 0, &group).unwrap()
    };
    let (one, two) = (session(0), session(1));
    assert_eq!(content(&one, 0), content(&two, 0));
    assert_ne!(content(&one, 1), content(&two, 1));
}

/// A parent may stand after its child; the scope of the prefix follows it all the same.
#[test]
fn a_graph_follows_its_names() {
    let rows = [
        (
            None,
            r#"{"request_id": "b", "wait_for": ["a"], "input_length": 4, "hash_ids": [1]}"#,
        ),
        (
            None,
            r#"{"request_id": "a", "wait_for": [], "input_length": 4, "hash_ids": [1], "prefix_reset": true}"#,
        ),
        (
            None,
            r#"{"request_id": "c", "wait_for": ["b", "a"], "input_length": 4, "hash_ids": [1]}"#,
        ),
        (
            None,
            r#"{"request_id": "d", "wait_for": ["d"], "input_length": 4, "hash_ids": [1]}"#,
        ),
    ];
    let replay = replay(r#"{"block_size": 4}"#, 0, &rows).unwrap();
    let parents: Vec<_> = replay
        .session
        .requests
        .iter()
        .map(|request| request.parents.clone())
        .collect();
    assert_eq!(parents, [vec![1], vec![], vec![0, 1], vec![3]]);
    assert_eq!(content(&replay, 0), content(&replay, 1));
    assert_eq!(content(&replay, 0), content(&replay, 2));
    assert_ne!(content(&replay, 0), content(&replay, 3));
}

#[test]
fn a_new_pass_has_new_text_of_the_same_shape() {
    for config in [r#"{"block_size": 4}"#, r#"{"block_size": 4, "history": "live"}"#] {
        let one = replay(config, 0, &TURNS).unwrap();
        let two = replay(config, 1, &TURNS).unwrap();
        assert_eq!(one, replay(config, 0, &TURNS).unwrap());
        assert_eq!(one.turns, two.turns);
        for node in 0..3 {
            let (ours, theirs) = (content(&one, node), content(&two, node));
            assert_eq!(ours.len(), theirs.len());
            assert!(ours.iter().zip(theirs).all(|(a, b)| a != b));
        }
    }
}

#[test]
fn rows_without_ids_are_of_unique_text() {
    let row = r#"{"input_length": 30}"#;
    let replay = replay("{}", 0, &[(None, row), (None, row)]).unwrap();
    for node in 0..2 {
        let own = seed_of("mooncake row", &[0, node as u64 + 1]);
        assert_eq!(content(&replay, node), [synthetic(own, 30)]);
        assert_eq!(replay.session.requests[node].output.target_tokens, None);
    }
}

#[test]
fn texts_messages_and_payloads_are_sent_as_they_are() {
    let rows = [
        (None, r#"{"text_input": "Hello.", "output_length": 4}"#),
        (
            None,
            r#"{"text_input": "More.", "output_length": 4, "extra": {"temperature": 0.5}}"#,
        ),
        (
            None,
            r#"{"messages": [{"role": "system", "content": "Be."}, {"role": "user", "content": "Hi"}], "tools": [{"type": "function"}]}"#,
        ),
        (
            None,
            r#"{"payload": {"messages": [{"role": "user", "content": "x"}], "max_tokens": 3}}"#,
        ),
    ];
    let replay = replay(r#"{"history": "live"}"#, 0, &rows).unwrap();
    let expected = [
        Request::new(0).user("Hello.").output_exactly(4),
        Request::new(1)
            .user("More.")
            .output_exactly(4)
            .history(0)
            .body(r#"{"temperature":0.5}"#),
        Request::new(2)
            .system("Be.")
            .user("Hi")
            .after(1)
            .body(r#"{"tools":[{"type":"function"}]}"#),
        Request::new(3)
            .user("x")
            .after(2)
            .body(r#"{"max_tokens":3,"messages":[{"content":"x","role":"user"}]}"#),
    ];
    assert_eq!(replay.session.requests, expected);
    assert_eq!(content(&replay, 0), [text("Hello.")]);
}

#[test]
fn dynamo_facts_are_labels_of_the_request() {
    let row = r#"{"input_length": 1, "request_id": "r", "request_kind": "tool", "model": "m", "priority": -2,
                  "strict_priority": 3, "policy_class": "p"}"#;
    let replay = replay("{}", 0, &[(None, row)]).unwrap();
    let labels = [
        ("request_id", "r"),
        ("request_kind", "tool"),
        ("model", "m"),
        ("priority", "-2"),
        ("strict_priority", "3"),
        ("policy_class", "p"),
    ];
    assert_eq!(
        replay.session.requests[0].labels,
        labels.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
}

#[test]
fn refuses_rows_that_make_no_session_by_name() {
    let refused = |row: &str| replay("{}", 0, &[(None, row)]).unwrap_err().message;
    assert_eq!(
        refused(r#"{"input_length": 512, "hash_ids": [1, 2]}"#),
        "row 1: `hash_ids` do not fit `input_length`: 2 hash ids for 512 tokens, which have 1 blocks of 512; is the block size right?"
    );
    assert_eq!(
        refused(r#"{"input_length": 0}"#),
        "row 1: `input_length` is 0: there is nothing to send"
    );
    assert_eq!(
        refused(r#"{"input_length": 1, "output_length": 4294967296}"#),
        "row 1: `output_length` is 4294967296, more tokens than 4294967295"
    );
    let nothing = veeksha_plugin::config::from_json(r#"{"block_size": 0}"#).unwrap();
    assert_eq!(
        Mooncake::open(nothing).err().unwrap().path.as_deref(),
        Some("/block_size")
    );
}

/// The example of the scenario, session by session: what each row waits for.
#[test]
fn the_example_has_the_sessions_of_its_scenario() {
    let example = include_str!("../../../../scenarios/traces/mooncake.jsonl");
    let mut sessions: Vec<(String, Vec<String>)> = Vec::new();
    for (number, line) in example.lines().enumerate() {
        let row: Value = serde_json::from_str(line).unwrap();
        let key = row["session_id"]
            .as_str()
            .map_or_else(|| number.to_string(), str::to_owned);
        match sessions.iter_mut().find(|(name, _)| *name == key) {
            Some((_, rows)) => rows.push(line.to_owned()),
            None => sessions.push((key, vec![line.to_owned()])),
        }
    }
    let graphs = sessions.iter().map(|(_, rows)| {
        let rows: Vec<_> = rows.iter().map(|row| (None, row.as_str())).collect();
        let replay = replay(r#"{"block_size": 64}"#, 0, &rows).unwrap();
        let requests = replay.session.requests.into_iter();
        requests
            .map(|request| (request.parent_nodes(), request.wait_after_ready / 1_000_000))
            .collect::<Vec<_>>()
    });
    let alone = vec![(vec![], 0)];
    let chat = vec![(vec![], 0), (vec![0], 50), (vec![1], 50)];
    let agent = vec![(vec![], 0), (vec![0], 30), (vec![0], 60), (vec![1, 2], 10)];
    let expected = [alone.clone(), alone.clone(), chat, agent, alone.clone(), alone];
    assert_eq!(graphs.collect::<Vec<_>>(), expected);
}

/// Whatever the rows contain, there is a session that names its own nodes only and lasts as long
/// as recorded, or an error that names a row. Never a panic.
#[test]
fn any_rows_make_a_session_or_an_error() {
    let draw = draws();
    let members: [(&str, &[&str]); 11] = [
        ("input_length", &["1", "8", "40", "0", "4294967295", "4294967296"]),
        ("output_length", &["0", "1", "9", "18446744073709551615"]),
        (
            "hash_ids",
            &["[]", "[1]", "[1, 2]", "[0, 0, 0]", "[18446744073709551615]"],
        ),
        ("request_id", &[r#""a""#, r#""b""#, r#""c""#, r#""1""#]),
        (
            "wait_for",
            &["[]", r#"["a"]"#, r#"["a", "b"]"#, "[1]", r#"["zz"]"#],
        ),
        ("delay", &["0", "1.5", "-1", "1e300"]),
        (
            "tool_events",
            &[
                "[]",
                r#"[{"duration_ms": 3}]"#,
                r#"[{"started_at_unix_ms": 5, "ended_at_unix_ms": 1}]"#,
            ],
        ),
        ("prefix_reset", &["true", "false"]),
        ("text_input", &[r#""hi""#]),
        (
            "messages",
            &["[]", "[{}]", r#"[{"role": "user", "content": "x"}]"#],
        ),
        (
            "payload",
            &["{}", r#"{"messages": [1, {"content": []}]}"#, r#"{"prompt": 5}"#],
        ),
    ];
    let (mut made, mut refused) = (0, 0);
    for _ in 0..4000 {
        let rows: Vec<String> = (0..=draw(3))
            .map(|_| {
                let present: Vec<String> = members
                    .iter()
                    .enumerate()
                    // Lengths are nearly always there, the rest less often, prompts in full seldom.
                    .filter(|(at, _)| draw(12) < [11, 9, 6, 8, 3, 2, 2, 2, 1, 1, 1][*at])
                    .map(|(_, (name, values))| format!(r#""{name}": {}"#, values[draw(values.len())]))
                    .collect();
                format!("{{{}}}", present.join(","))
            })
            .collect();
        let rows: Vec<_> = rows
            .iter()
            .map(|row| (Some(draw(50) as u64), row.as_str()))
            .collect();
        let config = ["{}", r#"{"history": "live"}"#, r#"{"block_size": 4}"#][draw(3)];
        match replay(config, 0, &rows) {
            Err(error) => {
                refused += 1;
                assert!(
                    error.code == "row" && error.message.starts_with("row "),
                    "{error:?}"
                );
            }
            Ok(replay) => {
                made += 1;
                assert_eq!(
                    (replay.session.requests.len(), replay.turns.len()),
                    (rows.len(), rows.len())
                );
                for (request, turn) in replay.session.requests.iter().zip(&replay.turns) {
                    assert_eq!(request.node, turn.node);
                    assert!(!request.messages.is_empty());
                    assert!(
                        request
                            .parents
                            .iter()
                            .all(|edge| (edge.parent as usize) < rows.len())
                    );
                    assert!(
                        request
                            .history_parent
                            .is_none_or(|parent| request.parent_nodes().contains(&parent))
                    );
                }
            }
        }
    }
    assert!(made > 200 && refused > 200, "{made} sessions, {refused} errors");
}
