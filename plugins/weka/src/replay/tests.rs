//! Sessions as the format defines them.

use std::time::Duration;

use veeksha_plugin::flavor;

use super::*;
use crate::testing::draws;

fn replay_of(config: &str, epoch: u64, index: u64, conversation: &str) -> Result<Replay, Error> {
    let weka = Weka::open(veeksha_plugin::config::from_json(config).unwrap()).unwrap();
    let rows = [(index + 1, None, conversation.to_owned())];
    weka.session(&Trace::new(9, 9, "{}"), epoch, &flavor::group(index, "", rows)?)
}

fn content(replay: &Replay, node: usize) -> &[Segment] {
    &replay.session.requests[node].messages[0].content
}

fn tokens(segment: &Segment) -> u32 {
    match segment {
        Segment::Synthetic(text) => text.tokens,
        _ => panic!("only synthetic text is expected"),
    }
}

/// The text at each token: the seed of the segment, and how far into it.
fn texts(replay: &Replay, node: usize) -> Vec<(u32, u32, u32)> {
    let mut texts = Vec::new();
    for segment in content(replay, node) {
        let Segment::Synthetic(text) = segment else {
            panic!("only synthetic text is expected");
        };
        texts.extend((0..text.tokens).map(|at| (text.seed.high, text.seed.low, at)));
    }
    texts
}

fn common(one: &[(u32, u32, u32)], two: &[(u32, u32, u32)]) -> usize {
    one.iter().zip(two).take_while(|(one, two)| one == two).count()
}

/// A request, a subagent of two, and the request that its result goes into; blocks of 64.
const CONVERSATION: &str = r#"{
    "id": "8712b46f-04e", "models": ["m"], "block_size": 64, "tool_tokens": 64, "system_tokens": 32,
    "requests": [
        {"t": 0.0, "type": "s", "model": "m", "in": 200, "out": 20, "hash_ids": [1, 2, 3], "input_types": ["text"],
         "output_types": ["thinking", "tool_use"], "stop": "tool_use", "api_time": 2.5, "ttft": 0.4, "think_time": 0.0},
        {"t": 3.0, "type": "subagent", "agent_id": "96624242", "subagent_type": "Explore", "duration_ms": 5000,
         "status": "completed", "requests": [
            {"t": 0.0, "type": "n", "model": "h", "in": 130, "out": 9, "hash_ids": [1, 2], "stop": "tool_use",
             "api_time": 1.0, "think_time": 0.0},
            {"t": 2.0, "type": "n", "model": "h", "in": 256, "out": 0, "hash_ids": [1, 2, 3, 4], "stop": "",
             "api_time": 1.0, "think_time": 1.0}]},
        {"t": 9.0, "type": "s", "model": "m", "in": 330, "out": 40, "hash_ids": [1, 2, 3, 5, 6],
         "input_types": ["tool_result"], "stop": "end_turn", "think_time": 6.5}
    ]}"#;

#[test]
fn a_conversation_is_a_graph_of_whole_prompts() {
    let replay = replay_of("{}", 0, 7, CONVERSATION).unwrap();
    let block = |id, space, tokens| synthetic(seed_of("weka block", &[0, id, 7, space]), tokens);
    let own = |node, part, tokens| synthetic(seed_of("weka request", &[0, 7, node, part]), tokens);
    let request = |node, content, output, labels: &[(&str, &str)]| {
        let request = Request::new(node)
            .message(Message::new(Role::User, content))
            .output_exactly(output);
        labels
            .iter()
            .fold(request, |request, (name, value)| request.label(*name, *value))
    };
    let agent = [
        ("model", "h"),
        ("type", "n"),
        ("stop", "tool_use"),
        ("agent_id", "96624242"),
        ("subagent_type", "Explore"),
    ];
    let silent = [agent[0], agent[1], agent[3], agent[4]];
    let first = [
        ("model", "m"),
        ("type", "s"),
        ("input_types", "text"),
        ("output_types", "thinking,tool_use"),
        ("stop", "tool_use"),
        ("recorded_ttft", "0.4"),
    ];
    let last = [
        ("model", "m"),
        ("type", "s"),
        ("input_types", "tool_result"),
        ("stop", "end_turn"),
    ];
    let expected = [
        // Three full blocks that never part are one text; the 8 tokens after them have no id.
        request(0, vec![block(1, 0, 192), own(0, 3, 8)], 20, &first),
        // The subagent has separate ids. It began 0.5 s after the answer.
        request(1, vec![block(1, 1, 128), own(1, 2, 2)], 9, &agent)
            .after(0)
            .wait(Duration::from_millis(500)),
        request(2, vec![block(1, 1, 128), block(3, 1, 128)], 1, &silent)
            .after(1)
            .wait(Duration::from_secs(1)),
        // 3 s after the subagent was done at 6.
        request(
            3,
            vec![block(1, 0, 192), block(5, 0, 128), own(3, 5, 10)],
            40,
            &last,
        )
        .after(0)
        .after(2)
        .wait(Duration::from_secs(3)),
    ];
    assert_eq!(replay.session.requests, expected);
    assert_eq!(replay.session.arrives_at, Some(0));
    assert_eq!(
        replay.session.labels,
        [("conversation".to_owned(), "8712b46f-04e".to_owned())]
    );
    let turn = |node, at: f64, latency: Option<u64>, prompt, output| Turn {
        history: HistoryMode::Fresh,
        at: Some((at * 1e9) as u64),
        latency,
        prompt_tokens: Some(prompt),
        output_tokens: Some(output),
        ..Turn::new(node)
    };
    let expected = [
        turn(0, 0.0, Some(2_500_000_000), 200, 20),
        turn(1, 3.0, Some(1_000_000_000), 130, 9),
        turn(2, 5.0, Some(1_000_000_000), 256, 0),
        turn(3, 9.0, None, 330, 40),
    ];
    assert_eq!(replay.turns, expected);
}

/// Whatever is put together, two prompts of a conversation have in common what their ids have in
/// common, and every prompt is as long as recorded.
#[test]
fn prompts_have_in_common_what_their_ids_have() {
    let lists: [&[u64]; 6] = [
        &[1, 2, 3],
        &[1, 2, 3, 4, 5],
        &[1, 2, 3, 4, 5, 6],
        &[1, 2, 9, 10],
        &[11, 2, 3],
        &[1, 2, 3, 4, 12],
    ];
    let requests: Vec<String> = lists
        .iter()
        .map(|ids| {
            format!(
                r#"{{"in": {}, "out": 1, "hash_ids": {ids:?}}}"#,
                ids.len() * 8 + 3
            )
        })
        .collect();
    let conversation = format!(r#"{{"block_size": 8, "requests": [{}]}}"#, requests.join(","));
    for config in [r#"{"scope": "conversation"}"#, r#"{"scope": "file"}"#] {
        let replay = replay_of(config, 0, 0, &conversation).unwrap();
        for (one, ours) in lists.iter().enumerate() {
            assert_eq!(texts(&replay, one).len(), ours.len() * 8 + 3);
            for (two, theirs) in lists.iter().enumerate().filter(|(two, _)| *two != one) {
                let ids = ours.iter().zip(*theirs).take_while(|(a, b)| a == b).count();
                assert_eq!(
                    common(&texts(&replay, one), &texts(&replay, two)),
                    ids * 8,
                    "{one} {two}"
                );
            }
        }
    }
}

#[test]
fn ids_mean_something_in_their_scope_only() {
    let local = r#"{"requests": [{"in": 64, "out": 1, "hash_ids": [1]}]}"#;
    let global = r#"{"hash_id_scope": "global", "requests": [{"in": 64, "out": 1, "hash_ids": [1]}]}"#;
    let agree = |config: &str, conversation: &str| {
        let session = |index| replay_of(config, 0, index, conversation).unwrap();
        content(&session(0), 0) == content(&session(1), 0)
    };
    assert!(!agree("{}", local));
    assert!(agree("{}", global));
    assert!(agree(r#"{"scope": "file"}"#, local));
    assert!(!agree(r#"{"scope": "conversation"}"#, global));
    let odd = r#"{"hash_id_scope": "x", "requests": [{"in": 64, "out": 1}]}"#;
    assert_eq!(
        replay_of("{}", 0, 0, odd).unwrap_err().message,
        "row 1: `hash_id_scope` is `x`; known are `global` and `local`"
    );
    assert!(replay_of(r#"{"scope": "file"}"#, 0, 0, odd).is_ok());
}

#[test]
fn subagents_share_ids_only_if_configured() {
    let isolated = replay_of("{}", 0, 0, CONVERSATION).unwrap();
    assert_eq!(common(&texts(&isolated, 0), &texts(&isolated, 1)), 0);
    // Not even where ids are those of the file.
    let isolated = replay_of(r#"{"scope": "file"}"#, 0, 0, CONVERSATION).unwrap();
    assert_eq!(common(&texts(&isolated, 0), &texts(&isolated, 1)), 0);
    for scope in ["conversation", "file"] {
        let config = format!(r#"{{"subagents": "shared", "scope": "{scope}"}}"#);
        let shared = replay_of(&config, 0, 0, CONVERSATION).unwrap();
        assert_eq!(common(&texts(&shared, 0), &texts(&shared, 1)), 128);
        assert_eq!(common(&texts(&shared, 2), &texts(&shared, 3)), 192);
    }
}

#[test]
fn a_new_pass_has_new_text_of_the_same_shape() {
    for config in ["{}", r#"{"scope": "file"}"#] {
        let one = replay_of(config, 0, 3, CONVERSATION).unwrap();
        let two = replay_of(config, 1, 3, CONVERSATION).unwrap();
        assert_eq!(one, replay_of(config, 0, 3, CONVERSATION).unwrap());
        assert_eq!(one.turns, two.turns);
        for node in 0..4 {
            let shape = |replay| content(replay, node).iter().map(tokens).collect::<Vec<_>>();
            assert_eq!(shape(&one), shape(&two));
            assert!(
                content(&one, node)
                    .iter()
                    .zip(content(&two, node))
                    .all(|(a, b)| a != b)
            );
        }
    }
}

/// Captures break the rule that only full blocks have ids, and use the id 0 for blocks that they do
/// not know.
#[test]
fn ids_that_break_the_rules_are_taken_as_far_as_they_go() {
    let conversation = |ids: &str| {
        format!(
            r#"{{"block_size": 8, "requests": [{{"in": 20, "out": 1, "hash_ids": {ids}}},
                                               {{"in": 24, "out": 1, "hash_ids": {ids}}}]}}"#
        )
    };
    let read = |ids: &str| {
        let replay = replay_of("{}", 0, 0, &conversation(ids)).unwrap();
        let (one, two) = (texts(&replay, 0), texts(&replay, 1));
        assert_eq!((one.len(), two.len()), (20, 24));
        common(&one, &two)
    };
    assert_eq!(read("[1, 2]"), 16, "by the rules");
    assert_eq!(read("[1, 2, 3]"), 20, "the partial block has an id");
    assert_eq!(read("[1, 2, 3, 4, 5]"), 20, "there are more ids than blocks");
    assert_eq!(read("[1]"), 8, "there are fewer");
    assert_eq!(read("[]"), 0, "there are none");
    assert_eq!(read("[1, 0, 3]"), 8, "an unknown block is its request's own");
}

#[test]
fn conversations_that_cannot_be_sent_are_refused_by_name() {
    let refused = |conversation: &str| replay_of("{}", 0, 0, conversation).unwrap_err().message;
    assert_eq!(
        refused(r#"{"requests": [{"in": 0, "out": 3}]}"#),
        "row 1: `in` of a request is 0: there is nothing to send"
    );
    assert_eq!(
        refused(r#"{"block_size": 0, "requests": [{"in": 5}]}"#),
        "row 1: `block_size` is 0: a block has at least one token"
    );
    assert_eq!(
        refused(r#"{"requests": [{"in": 5, "t": -1}]}"#),
        "row 1: `t` is -1, not a time from 0 seconds to 104 days"
    );
    assert_eq!(
        refused(r#"{"requests": [{"in": 5, "out": 1, "api_time": -0.5}]}"#),
        "row 1: `api_time` is -0.5, not a time from 0 seconds to 104 days"
    );
}

/// 1,500 requests that grow to 3,000 blocks: two million ids, and segments by the thousand where
/// blocks would be millions.
#[test]
fn a_huge_conversation_is_few_segments() {
    let mut requests = Vec::new();
    for turn in 0..1500u64 {
        let ids: Vec<u64> = (1..=2 * (turn + 1)).collect();
        requests.push(format!(
            r#"{{"t": {turn}, "in": {}, "out": 10, "hash_ids": {ids:?}}}"#,
            ids.len() * 64
        ));
    }
    let conversation = format!(r#"{{"requests": [{}]}}"#, requests.join(","));
    let replay = replay_of("{}", 0, 0, &conversation).unwrap();
    assert_eq!(replay.session.requests.len(), 1500);
    for (node, turn) in replay.turns.iter().enumerate() {
        assert_eq!(content(&replay, node).len(), node + 1);
        assert_eq!(
            content(&replay, node).iter().map(tokens).sum::<u32>(),
            turn.prompt_tokens.unwrap()
        );
    }
}

/// The example of the scenario. By hand: requests 0 and 1 of the conversation; the first subagent
/// (2, 3) is done at 0.65 and comes back to the request at 0.7; the second (4) at 1.15, to the one
/// at 1.2.
#[test]
fn the_example_has_the_sessions_of_its_scenario() {
    let example = include_str!("../../../../scenarios/traces/weka.json");
    let conversations: Vec<serde_json::Value> = serde_json::from_str(example).unwrap();
    let replays = conversations
        .iter()
        .map(|conversation| replay_of("{}", 0, 0, &conversation.to_string()).unwrap());
    let graphs: Vec<Vec<Vec<u32>>> = replays
        .map(|replay| {
            replay
                .session
                .requests
                .into_iter()
                .map(|request| request.parent_nodes())
                .collect()
        })
        .collect();
    let first = vec![vec![], vec![0], vec![1], vec![2], vec![1], vec![1, 3], vec![5, 4]];
    assert_eq!(graphs, [first, vec![vec![], vec![0]]]);
}

/// The items of a conversation, or of a subagent in it.
fn items(draw: &impl Fn(usize) -> usize, depth: usize) -> String {
    let items: Vec<String> = (0..draw(4))
        .map(|_| {
            let t = ["0", "1", "2.5", "7", "1e300"][draw(if draw(20) == 0 { 5 } else { 4 })];
            if depth < 3 && draw(4) == 0 {
                let inner = items(draw, depth + 1);
                return format!(r#"{{"t": {t}, "type": "subagent", "requests": [{inner}]}}"#);
            }
            let input = ["1", "9", "64", "200", "0", "4294967296"][draw(if draw(20) == 0 { 6 } else { 4 })];
            let ids = ["[]", "[1]", "[1, 2]", "[0, 2, 3]", "[1, 1, 1, 1]"][draw(5)];
            let more = [
                "",
                r#", "api_time": 1"#,
                r#", "think_time": -3"#,
                r#", "think_time": 2"#,
            ][draw(4)];
            format!(
                r#"{{"t": {t}, "in": {input}, "out": {}, "hash_ids": {ids}{more}}}"#,
                draw(3)
            )
        })
        .collect();
    items.join(",")
}

/// Whatever a conversation contains, there is a session whose requests wait for earlier ones only
/// and are as long as recorded, or an error that names the row. Never a panic.
#[test]
fn any_conversation_makes_a_session_or_an_error() {
    let draw = draws();
    let (mut made, mut refused) = (0, 0);
    for _ in 0..3000 {
        let conversation = format!(
            r#"{{"block_size": {}, "requests": [{}]}}"#,
            1 + draw(70),
            items(&draw, 0)
        );
        let config = ["{}", r#"{"scope": "file"}"#, r#"{"subagents": "shared"}"#][draw(3)];
        match replay_of(config, 0, 0, &conversation) {
            Err(error) => {
                refused += 1;
                assert!(error.message.starts_with("row 1: "), "{error:?}");
            }
            Ok(replay) => {
                made += 1;
                for (node, turn) in (0u32..).zip(&replay.turns) {
                    let request = &replay.session.requests[node as usize];
                    assert_eq!((request.node, turn.node), (node, node));
                    assert!(
                        request.parents.iter().all(|edge| edge.parent < node),
                        "{conversation}"
                    );
                    let length: u32 = content(&replay, node as usize).iter().map(tokens).sum();
                    assert_eq!(Some(length), turn.prompt_tokens, "{conversation}");
                    assert!(
                        content(&replay, node as usize)
                            .iter()
                            .all(|segment| tokens(segment) > 0)
                    );
                }
            }
        }
    }
    assert!(made > 500 && refused > 200, "{made} sessions, {refused} errors");
}
