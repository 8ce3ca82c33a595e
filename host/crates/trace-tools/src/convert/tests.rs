//! Rows by the definitions of the formats.

use proptest::prelude::*;
use serde_json::{Value, json};
use veeksha_model::{MediaKind, Message, NodeId, Role, ToolCall};

use super::*;
use crate::fixture::{blocks, recorded_answer, request, session, synthetic, text, user};

fn text_formats(text: &str) -> u32 {
    text.split_whitespace().count() as u32
}

fn rows(converter: &mut Converter, sessions: &[Session]) -> Vec<Value> {
    let mut rows = Vec::new();
    for (session, index) in sessions.iter().zip(0..) {
        for row in converter.rows(session, index, &text_formats).unwrap() {
            rows.push(serde_json::from_str(&row).unwrap());
        }
    }
    rows
}

fn convert(to: TargetFormat, sessions: &[Session]) -> (Vec<Value>, Vec<(&'static str, u64)>) {
    let mut converter = Converter::new(to);
    let rows = rows(&mut converter, sessions);
    let losses = converter
        .losses()
        .iter()
        .map(|loss| (loss.what, loss.count))
        .collect();
    (rows, losses)
}

fn refused(to: TargetFormat, session: &Session) -> String {
    Converter::new(to)
        .rows(session, 4, &text_formats)
        .unwrap_err()
        .to_string()
}

/// A conversation of two turns and a branch: 0 (100, answer 10) <- 1 (20, answer 5) after two
/// seconds; 2 (7, answer 3) waits for both and sends no history.
fn tree() -> Session {
    let mut nodes = vec![
        request(0, None, 100),
        request(1, Some(0), 20),
        request(2, Some(0), 7),
    ];
    for (node, tokens) in nodes.iter_mut().zip([10, 5, 3]) {
        node.output.target_tokens = Some(tokens);
    }
    nodes[1].wait_after_ready = 2_000_000_000;
    nodes[2].parents.push(NodeId(1).into());
    nodes[2].replay.get_or_insert_default().history = HistoryMode::Fresh;
    Session {
        arrives_at: Some(1_500_000_000),
        ..session(nodes)
    }
}

/// A conversation of two turns without branches.
fn line() -> Session {
    let mut line = tree();
    line.requests.pop();
    line
}

/// The same conversation as text.
fn chat() -> Session {
    let mut nodes = vec![
        recorded_answer(request(0, None, 1), "Saturn.", 1),
        recorded_answer(request(1, Some(0), 1), "Nearly all.", 2),
    ];
    let mut system = user(vec![text("Be short.")]);
    system.role = Role::System;
    nodes[0].messages = vec![system, user(vec![text("Which planet "), text("has rings?")])];
    nodes[1].messages = vec![user(vec![text("And moons?")])];
    nodes[1].wait_after_ready = 250_000_000;
    nodes[1].replay.get_or_insert_default().history = HistoryMode::Recorded;
    Session {
        arrives_at: Some(2_500_000),
        ..session(nodes)
    }
}

#[test]
fn mooncake_rows_keep_times_lengths_and_equal_ids() {
    let trace = [
        blocks(&[46, 47, 48], 512, 1200, 0, 52),
        blocks(&[46, 47, 99, 7], 512, 1700, 27_482_000_000, 1),
        // A partial block that is complete elsewhere.
        blocks(&[46, 47, 48], 512, 1536, 27_482_500_000, 9),
    ];
    let (rows, losses) = convert(TargetFormat::Mooncake, &trace);
    let expected = [
        json!({"timestamp": 0, "input_length": 1200, "output_length": 52, "hash_ids": [0, 1, 2]}),
        json!({"timestamp": 27482, "input_length": 1700, "output_length": 1, "hash_ids": [0, 1, 3, 4]}),
        json!({"timestamp": 27482.5, "input_length": 1536, "output_length": 9, "hash_ids": [0, 1, 2]}),
    ];
    assert_eq!(rows, expected);
    assert_eq!(losses, []);
}

proptest! {
    /// From Mooncake to Mooncake: lengths and instants are kept, ids are equal if and only if they
    /// were.
    #[test]
    fn mooncake_round_trips(trace in prop::collection::vec((prop::collection::vec(0u64..6, 1..6), 1u32..=512, 0u64..10_000), 1..12)) {
        let sessions: Vec<Session> = trace.iter().map(|(ids, last, at)| {
            blocks(ids, 512, (ids.len() as u32 - 1) * 512 + last, at * 1_000_000, 3)
        }).collect();
        let (rows, _) = convert(TargetFormat::Mooncake, &sessions);
        prop_assert_eq!(rows.len(), trace.len());
        let mut pairs = Vec::new();
        for ((ids, last, at), row) in trace.iter().zip(&rows) {
            prop_assert_eq!(&row["timestamp"], &Value::from(*at));
            prop_assert_eq!(&row["input_length"], &Value::from((ids.len() as u32 - 1) * 512 + last));
            let new: Vec<u64> = serde_json::from_value(row["hash_ids"].clone()).unwrap();
            prop_assert_eq!(new.len(), ids.len());
            pairs.extend(ids.iter().copied().zip(new));
        }
        for (old, new) in &pairs {
            for (other_old, other_new) in &pairs {
                prop_assert_eq!(old == other_old, new == other_new);
            }
        }
    }
}

#[test]
fn mooncake_sessions_are_turns_or_graphs() {
    let (rows, losses) = convert(TargetFormat::Mooncake, &[line()]);
    // The second prompt is the first, its answer, and the new part; the partial block of the first
    // is not its prefix by id.
    let expected = [
        json!({"timestamp": 1500, "session_id": "0", "input_length": 100, "output_length": 10, "hash_ids": [0]}),
        json!({"session_id": "0", "delay": 2000, "input_length": 130, "output_length": 5, "hash_ids": [1]}),
    ];
    assert_eq!(rows, expected);
    assert_eq!(losses, [(losses::FINE_SHARING, 1)]);
    let (rows, _) = convert(TargetFormat::Mooncake, &[tree()]);
    let expected = [
        json!({"timestamp": 1500, "session_id": "0", "request_id": "0", "wait_for": [], "input_length": 100,
            "output_length": 10, "hash_ids": [0]}),
        json!({"session_id": "0", "request_id": "1", "wait_for": ["0"], "delay": 2000, "input_length": 130,
            "output_length": 5, "hash_ids": [1]}),
        json!({"session_id": "0", "request_id": "2", "wait_for": ["0", "1"], "delay": 0, "input_length": 7,
            "output_length": 3, "hash_ids": [2]}),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn mooncake_names_the_history_parent_first() {
    let mut graph = tree();
    graph.requests[2].history_parent = Some(NodeId(1));
    let (rows, _) = convert(TargetFormat::Mooncake, &[graph]);
    assert_eq!(rows[2]["wait_for"], json!(["1", "0"]));
}

#[test]
fn blocks_of_another_size_share_at_that_size() {
    // 32 common tokens of 48: two blocks of 16, none of 512.
    let of = |own| {
        let mut only = request(0, None, 1);
        only.messages = vec![user(vec![synthetic(1, 32), synthetic(own, 16)])];
        session(vec![only])
    };
    let mut small = Converter::new(TargetFormat::Mooncake).block_size(16);
    let ids: Vec<Value> = rows(&mut small, &[of(2), of(3)])
        .iter()
        .map(|row| row["hash_ids"].clone())
        .collect();
    assert_eq!(ids, [json!([0, 1, 2]), json!([0, 1, 3])]);
    assert!(small.losses().is_empty());
    let (rows, losses) = convert(TargetFormat::Mooncake, &[of(2), of(3)]);
    assert_eq!(
        (&rows[0]["hash_ids"], &rows[1]["hash_ids"]),
        (&json!([0]), &json!([1]))
    );
    assert_eq!(losses, [(losses::FINE_SHARING, 1)]);
}

#[test]
fn timed_rows_contain_the_graph() {
    let (rows, losses) = convert(TargetFormat::TimedSyntheticSession, &[tree()]);
    let expected = [
        json!({"session_id": "0", "timestamp": 1.5, "input_length": 100, "new_input_length": 100, "output_length": 10,
            "session_context": {"node_id": 0, "parent_nodes": [], "history_parent": null, "wait_after_ready": 0.0}}),
        json!({"session_id": "0", "input_length": 130, "new_input_length": 20, "output_length": 5,
            "session_context": {"node_id": 1, "parent_nodes": [0], "history_parent": 0, "wait_after_ready": 2.0}}),
        json!({"session_id": "0", "input_length": 7, "new_input_length": 7, "output_length": 3,
            "session_context": {"node_id": 2, "parent_nodes": [0, 1], "history_parent": null, "wait_after_ready": 0.0}}),
    ];
    assert_eq!(rows, expected);
    assert_eq!(losses, []);
    // The common prefix of two sessions is lost; that of a conversation with itself is not.
    let (_, losses) = convert(TargetFormat::TimedSyntheticSession, &[line(), line()]);
    assert_eq!(losses, [(losses::SHARING, 1)]);
}

#[test]
fn recorded_length_is_kept_if_possible() {
    let mut of = blocks(&[1], 512, 100, 0, 5);
    let length = |of: &Session| {
        convert(TargetFormat::TimedSyntheticSession, std::slice::from_ref(of)).0[0]["input_length"].clone()
    };
    let record = |of: &mut Session, tokens| {
        of.requests[0].replay.as_mut().unwrap().recorded.prompt_tokens = Some(tokens);
    };
    record(&mut of, 107);
    assert_eq!(length(&of), 107);
    record(&mut of, 99);
    assert_eq!(length(&of), 100);
}

#[test]
fn request_log_has_independent_requests() {
    let (rows, losses) = convert(TargetFormat::RequestLog, &[tree()]);
    let expected = [
        json!({"arrived_at": 1.5, "input_length": 100, "output_length": 10}),
        json!({"input_length": 130, "output_length": 5}),
        json!({"input_length": 7, "output_length": 3}),
    ];
    assert_eq!(rows, expected);
    // The second prompt begins with the first; the third is fresh.
    assert_eq!(
        losses,
        [(losses::SHARING, 1), (losses::EDGES, 2), (losses::THINK_TIMES, 1)]
    );
    let mut table = Converter::new(TargetFormat::RequestLogCsv);
    let rows = table.rows(&tree(), 0, &text_formats).unwrap();
    assert_eq!(rows, ["1.5,100,10", ",130,5", ",7,3"]);
    assert_eq!(
        TargetFormat::RequestLogCsv.header(),
        Some("arrived_at,input_length,output_length")
    );
}

#[test]
fn shared_prefix_has_blocks_then_lengths() {
    let mut first = line();
    first.requests[0].messages = vec![user(vec![synthetic(77, 512), synthetic(78, 100)])];
    let mut second = first.clone();
    second.requests[0].messages = vec![user(vec![synthetic(77, 512), synthetic(79, 30)])];
    let (rows, losses) = convert(TargetFormat::SharedPrefix, &[first, second]);
    let expected = [
        json!({"session_id": "0", "timestamp": 1.5, "input_length": 612, "new_input_length": 612, "output_length": 10,
            "hash_ids": [0, 1]}),
        json!({"session_id": "0", "wait_after_previous_response_s": 2.0, "input_length": 642, "new_input_length": 20,
            "output_length": 5}),
    ];
    assert_eq!(rows[..2], expected);
    assert_eq!(rows[2]["hash_ids"], json!([0, 2]));
    assert_eq!(losses, []);
    let message = refused(TargetFormat::SharedPrefix, &tree());
    assert!(
        message.starts_with("session 4, node 2: `shared_prefix` has only sessions in which"),
        "{message}"
    );
}

#[test]
fn counts_losses_of_length_formats() {
    let mut rich = chat();
    rich.labels = vec![("model".into(), "m".into())];
    let first = &mut rich.requests[0];
    first.body = Some("{\"temperature\": 0}".into());
    first.replay.as_mut().unwrap().recorded.latency = Some(1);
    first.messages[1].content.push(Segment::Media {
        kind: MediaKind::Image,
        source: "a.png".into(),
    });
    let (_, losses) = convert(TargetFormat::TimedSyntheticSession, &[rich]);
    let expected = [
        (losses::BODY, 1),
        (losses::MEDIA, 1),
        (losses::LABELS, 1),
        (losses::ANSWERS, 1),
        (losses::LATENCY, 1),
        (losses::MESSAGES, 1),
        (losses::ANSWER_WORDS, 2),
        (losses::WORDS, 2),
    ];
    let mut losses = losses;
    let mut expected = expected.to_vec();
    losses.sort_unstable();
    expected.sort_unstable();
    assert_eq!(losses, expected);
}

#[test]
fn length_formats_need_tokens_and_output_length() {
    let silent = session(vec![request(3, None, 5)]);
    assert_eq!(
        refused(TargetFormat::RequestLog, &silent),
        "session 4, node 3: the length of its answer is unknown, but `request_log` needs it"
    );
    let mut empty = session(vec![request(3, None, 0)]);
    empty.requests[0].output.target_tokens = Some(0);
    assert_eq!(
        refused(TargetFormat::Mooncake, &empty),
        "session 4, node 3: its messages have no tokens, but `mooncake` needs at least one"
    );
    empty.requests[0].messages = vec![user(vec![synthetic(1, 5)])];
    let (rows, losses) = convert(TargetFormat::RequestLog, &[empty]);
    assert_eq!(
        (&rows[0]["output_length"], losses),
        (&json!(1), vec![(losses::EMPTY_ANSWERS, 1)])
    );
    // Mooncake's answers may have an unknown length.
    assert_eq!(
        convert(TargetFormat::Mooncake, &[silent]).0[0].get("output_length"),
        None
    );
}

#[test]
fn text_formats_keep_text() {
    let (rows, losses) = convert(TargetFormat::MultiTurn, &[chat()]);
    let expected = json!({"session_id": "0", "timestamp": 2.5, "turns": [
        {"messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Which planet has rings?"},
            {"role": "assistant", "content": "Saturn."}], "output_length": 1},
        {"messages": [{"role": "user", "content": "And moons?"}, {"role": "assistant", "content": "Nearly all."}],
            "delay": 250, "output_length": 2},
    ]});
    assert_eq!(rows, [expected]);
    assert_eq!(losses, [(losses::RECORDED, 1)]);
    // Without system message and answer, a turn is its text.
    let mut plain = chat();
    plain.requests[0].messages.remove(0);
    plain.requests[0].replay = None;
    plain.requests[0].body = Some("{\"seed\": 1}".into());
    plain.requests[0].messages[0].content.push(Segment::Media {
        kind: MediaKind::Audio,
        source: "a.wav".into(),
    });
    let (rows, _) = convert(TargetFormat::MultiTurn, &[plain]);
    let expected = json!({"text": "Which planet has rings?", "audios": ["a.wav"], "extra": {"seed": 1}});
    assert_eq!(rows[0]["turns"][0], expected);
}

#[test]
fn tool_calls_and_their_results_are_kept() {
    let mut chat = chat();
    let answer = chat.requests[0].replay.as_mut().unwrap().answer.as_mut().unwrap();
    answer.content.clear();
    answer.tool_calls = vec![ToolCall {
        id: "c1".into(),
        name: "look".into(),
        arguments: "{}".into(),
    }];
    chat.requests[1].messages = vec![Message {
        reasoning: None,
        tool_calls: Vec::new(),
        role: Role::Tool,
        content: vec![text("rings")],
        tool_call_id: Some("c1".into()),
    }];
    let call = json!([{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]);
    let (rows, _) = convert(TargetFormat::MultiTurn, &[chat.clone()]);
    let message = &rows[0]["turns"];
    assert_eq!(
        message[0]["messages"][2],
        json!({"role": "assistant", "content": "", "tool_calls": call})
    );
    assert_eq!(
        message[1]["messages"][0],
        json!({"role": "tool", "content": "rings", "tool_call_id": "c1"})
    );
    let (rows, _) = convert(TargetFormat::UntimedContentMultiTurn, &[chat]);
    let message = &rows[0]["conversations"];
    assert_eq!(
        message[2],
        json!({"from": "gpt", "value": "", "tool_calls": call})
    );
    assert_eq!(
        message[3],
        json!({"from": "tool", "value": "rings", "tool_call_id": "c1"})
    );
}

#[test]
fn untimed_conversations_keep_only_text() {
    let (rows, losses) = convert(TargetFormat::UntimedContentMultiTurn, &[chat()]);
    let expected = json!({"conversations": [
        {"from": "system", "value": "Be short."}, {"from": "human", "value": "Which planet has rings?"},
        {"from": "gpt", "value": "Saturn."}, {"from": "human", "value": "And moons?"},
        {"from": "gpt", "value": "Nearly all."},
    ]});
    assert_eq!(rows, [expected]);
    assert_eq!(losses, [(losses::INSTANTS, 1), (losses::THINK_TIMES, 1)]);
    let mut open = chat();
    open.requests[0].replay.as_mut().unwrap().answer = None;
    assert!(refused(TargetFormat::UntimedContentMultiTurn, &open).contains("its answer was not recorded"));
    let mut message = chat();
    message.requests[0].messages[0].role = Role::Assistant;
    assert!(refused(TargetFormat::UntimedContentMultiTurn, &message).contains("an assistant's message"));
}

#[test]
fn single_turn_needs_text() {
    let mut chat = chat();
    assert_eq!(
        refused(TargetFormat::SingleTurn, &chat),
        "session 4, node 1: it is part of a conversation, which `single_turn` cannot represent; convert to `multi_turn`"
    );
    chat.requests[1].replay.as_mut().unwrap().history = HistoryMode::Fresh;
    let (rows, losses) = convert(TargetFormat::SingleTurn, &[chat]);
    let expected = [
        json!({"session_id": "0", "timestamp": 2.5, "system": "Be short.", "text": "Which planet has rings?", "output_length": 1}),
        json!({"session_id": "0", "delay": 250, "text": "And moons?", "output_length": 2}),
    ];
    assert_eq!(rows, expected);
    assert_eq!(losses, [(losses::ANSWER_WORDS, 2)]);
    let message = refused(TargetFormat::SingleTurn, &tree());
    assert!(
        message.starts_with("session 4, node 2: `single_turn` has only sessions in which each request waits"),
        "{message}"
    );
    for to in [
        TargetFormat::SingleTurn,
        TargetFormat::MultiTurn,
        TargetFormat::UntimedContentMultiTurn,
    ] {
        let message = refused(to, &session(vec![recorded_answer(request(0, None, 5), "so", 1)]));
        assert!(
            message.contains("its text is not in the trace, only its length"),
            "{message}"
        );
    }
}

proptest! {
    /// Any session becomes rows or an error that names it; rows are JSON with consistent lengths.
    #[test]
    fn any_session_becomes_rows_or_is_refused(
        nodes in prop::collection::vec((0usize..9, 0u8..6, 0u32..900, any::<bool>(), 0u64..5_000_000_000), 1..6),
        at in prop::option::of(0u64..1 << 53),
    ) {
        let requests = nodes.iter().enumerate().map(|(place, (parent, kind, tokens, answered, wait))| {
            let parent = (place > 0 && *kind < 5).then(|| (parent % place.max(1)) as u32);
            let mut one = request(place as u32, parent, *tokens);
            one.wait_after_ready = *wait;
            if *kind % 2 == 0 {
                one.messages = vec![user(vec![text("a few words")])];
            }
            one.output.target_tokens = (*kind != 3).then_some(*tokens % 50);
            if *answered {
                one = recorded_answer(one, "so it is", 3);
            }
            if *kind == 4 {
                one.replay.get_or_insert_default().history = HistoryMode::Fresh;
            }
            one
        });
        let session = Session { arrives_at: at, ..session(requests.collect()) };
        for format in TargetFormat::ALL {
            let mut converter = Converter::new(format);
            let rows = match converter.rows(&session, 7, &text_formats) {
                Ok(rows) => rows,
                Err(refusal) => {
                    prop_assert!(refusal.to_string().starts_with("session 7, node "), "{}", refusal);
                    prop_assert!(converter.losses().is_empty(), "what was refused has lost nothing");
                    continue;
                }
            };
            if format == TargetFormat::RequestLogCsv {
                prop_assert!(rows.iter().all(|row| row.split(',').count() == 3));
                continue;
            }
            for row in rows {
                let row: Value = serde_json::from_str(&row).unwrap();
                if let Some(input) = row.get("input_length") {
                    prop_assert!(input.as_u64().unwrap() > 0);
                    let new = row.get("new_input_length").and_then(Value::as_u64).unwrap_or(1);
                    prop_assert!(new > 0 && new <= input.as_u64().unwrap());
                    if let Some(ids) = row.get("hash_ids") {
                        prop_assert_eq!(ids.as_array().unwrap().len() as u64, input.as_u64().unwrap().div_ceil(512));
                    }
                }
            }
        }
    }
}

#[test]
fn every_format_name_parses_back() {
    for format in TargetFormat::ALL {
        assert_eq!(format.name().parse(), Ok(format));
    }
    let error = "moonlake".parse::<TargetFormat>().unwrap_err().to_string();
    assert!(
        error.contains("`moonlake`") && error.contains("mooncake, shared_prefix"),
        "{error}"
    );
}
