//! Sessions written by hand from the format's definition. A word is a token here.

use veeksha_plugin::flavor::{Answer, group};
use veeksha_plugin::{Segment, config, text};

use super::*;

fn flavor(json: &str) -> ShareGpt {
    ShareGpt {
        count: |text| text.split_whitespace().count() as u32,
        ..ShareGpt::open(config::from_json(json).unwrap()).unwrap()
    }
}

/// The session of row 7, in an epoch.
fn replay(config: &str, row: &str, epoch: u64) -> Result<Replay, Error> {
    let group = group(6, "", [(7, None, row.to_owned())])?;
    flavor(config).session(&Trace::new(9, 9, "{}"), epoch, &group)
}

const ROW: &str = r#"{"id": "QWJhYvA_0", "conversations": [
    {"from": "system", "value": "Be brief."},
    {"from": "human", "value": "Which planet has rings?"},
    {"from": "gpt", "value": "Saturn has."},
    {"from": "user", "value": "Only that one?"},
    {"from": "chatgpt", "value": "No, all four giants have."},
    {"from": "human", "value": "Thanks"}]}"#;

fn answered(content: &str) -> Option<Answer> {
    Some(Answer {
        reasoning: None,
        content: vec![text(content)],
        tool_calls: Vec::new(),
    })
}

#[test]
fn a_conversation_is_a_chain_of_its_questions() {
    let made = replay("{}", ROW, 0).unwrap();
    assert_eq!(
        made.session.requests,
        [
            Request::new(0)
                .system("Be brief.")
                .user("Which planet has rings?")
                .output_exactly(2),
            Request::new(1)
                .history(0)
                .user("Only that one?")
                .output_exactly(5),
        ]
    );
    assert_eq!(
        made.session.labels,
        [("conversation".to_owned(), "QWJhYvA_0".to_owned())]
    );
    let turn = |node, history, answer: &str, prompt, tokens| Turn {
        history,
        answer: answered(answer),
        prompt_tokens: Some(prompt),
        output_tokens: Some(tokens),
        ..Turn::new(node)
    };
    assert_eq!(
        made.turns,
        [
            turn(0, HistoryMode::Live, "Saturn has.", 6, 2),
            turn(1, HistoryMode::Live, "No, all four giants have.", 11, 5)
        ]
    );
}

#[test]
fn every_key_has_its_effect() {
    let first = |config| replay(config, ROW, 0).unwrap().session.requests[0].clone();
    assert_eq!(
        replay(r#"{"max_turns": 1}"#, ROW, 0)
            .unwrap()
            .session
            .requests
            .len(),
        1
    );
    assert_eq!(
        first(r#"{"output_tokens": 64}"#).output,
        Request::new(0).output_exactly(64).output
    );
    assert_eq!(
        first(r#"{"output_control": "at_most"}"#).output,
        Request::new(0).output_at_most(2).output
    );
    assert_eq!(
        first(r#"{"output_control": "free"}"#).output,
        Request::new(0).output
    );
    let second = |config| {
        let mut made = replay(config, ROW, 0).unwrap();
        (made.session.requests.remove(1), made.turns.remove(1).history)
    };
    let (request, history) = second(r#"{"history": "recorded"}"#);
    assert_eq!(
        (request.history_parent, history),
        (Some(0), HistoryMode::Recorded)
    );
    let (request, history) = second(r#"{"history": "fresh"}"#);
    assert_eq!(request.parents, [0]);
    assert_eq!(request.history_parent, None);
    let alone = replay(r#"{"history": "fresh"}"#, ROW, 0).unwrap().turns[1].prompt_tokens;
    assert_eq!(alone, Some(3));
    assert_eq!(history, HistoryMode::Fresh);
}

/// vLLM's benchmark: the first pair, 4 to 1024 tokens of prompt, 4 of answer, 2048 together.
#[test]
fn conversations_outside_the_limits_are_filtered() {
    let refused = |config| {
        let error = replay(config, ROW, 0).unwrap_err();
        assert_eq!(error.code, "filtered");
        assert!(error.hint.unwrap().contains("on_bad_row"));
        error.message
    };
    assert_eq!(
        refused(r#"{"max_turns": 1, "min_prompt_tokens": 4, "min_output_tokens": 4}"#),
        "row 7: the answer of request 1 has 2 tokens, less than `min_output_tokens`"
    );
    assert!(refused(r#"{"max_prompt_tokens": 5}"#).contains("request 1 has 6 tokens"));
    assert!(refused(r#"{"max_total_tokens": 15}"#).contains("16 tokens"));
    assert!(
        replay(
            r#"{"max_total_tokens": 16, "max_prompt_tokens": 6, "max_output_tokens": 5}"#,
            ROW,
            0
        )
        .is_ok()
    );
}

#[test]
fn rows_without_a_pair_are_refused_by_number() {
    for conversation in [
        "[]",
        r#"[{"from": "gpt", "value": "Hello."}]"#,
        r#"[{"from": "human", "value": "Hello?"}]"#,
        r#"[{"from": "human", "value": "  "}, {"from": "gpt", "value": "Hm?"}]"#,
    ] {
        let error = replay("{}", &format!(r#"{{"conversations": {conversation}}}"#), 0).unwrap_err();
        assert_eq!(
            (error.code.as_str(), error.message.as_str()),
            ("row", "row 7: `conversations` has no question with an answer")
        );
    }
    let strange = r#"{"conversations": [{"from": "human", "value": "a"}, {"from": "cat", "value": "b"}]}"#;
    assert_eq!(
        replay("{}", strange, 0).unwrap_err().message,
        "row 7: `conversations`, message 2: unknown role `cat`"
    );
}

/// Verbatim text is the same in every epoch; the text that defeats a cache precedes it.
#[test]
fn another_pass_has_the_same_text_after_its_cache_bust() {
    assert_eq!(replay("{}", ROW, 0), replay("{}", ROW, 3));
    let busted = |epoch| {
        replay(r#"{"cache_bust_tokens": 16}"#, ROW, epoch)
            .unwrap()
            .session
            .requests
    };
    let (one, two) = (busted(0), busted(1));
    assert!(matches!(&one[0].messages[0].content[0], Segment::Synthetic(made) if made.tokens == 16));
    assert_ne!(one[0].messages[0].content[0], two[0].messages[0].content[0]);
    assert_eq!(one[0].messages[0].content[1..], [text("\n\n"), text("Be brief.")]);
    assert_eq!(
        one[1], two[1],
        "a later request has the beginning from its history"
    );
}

#[test]
fn refuses_zero_as_length_and_number_of_turns() {
    for (json, path) in [
        (r#"{"max_turns": 0}"#, "/max_turns"),
        (r#"{"output_tokens": 0}"#, "/output_tokens"),
    ] {
        let error = ShareGpt::open(config::from_json(json).unwrap()).err().unwrap();
        assert_eq!(error.path.as_deref(), Some(path));
    }
}

#[test]
fn accepts_common_aliases_of_columns() {
    let layout = flavor("{}").layout();
    let conversation = &layout.columns[1];
    assert!(conversation.required);
    assert_eq!(conversation.aliases, ["conversation", "messages"]);
}
