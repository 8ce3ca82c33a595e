//! Recorded answers and salted text.

use veeksha_model::{
    Answer, MediaKind, Message, NodeId, OutputSpec, Replay, Request, Role, Seed, Segment, ToolCall,
};
use veeksha_prompt::{MAX_TOKENS, Materialiser, PromptError};

use crate::kinds::{Kind, kinds};

fn synthetic(seed: u64, tokens: u32) -> Segment {
    Segment::Synthetic {
        seed: Seed::from(seed),
        tokens,
    }
}

fn materialiser(kind: &Kind) -> Materialiser {
    Materialiser::new(kind.tokenizer.clone()).unwrap()
}

fn ids(kind: &Kind, text: &str) -> Vec<u32> {
    kind.raw.encode(text, false).unwrap().get_ids().to_vec()
}

fn answer(content: Vec<Segment>) -> Answer {
    Answer {
        content,
        tool_calls: vec![ToolCall {
            id: "call_1".into(),
            name: "look".into(),
            arguments: "{\"q\":1}".into(),
        }],
    }
}

#[test]
fn a_recorded_answer_becomes_a_response() {
    for kind in kinds() {
        let recorded = answer(vec![
            Segment::Text("It is:\n".into()),
            synthetic(4, 40),
            Segment::Text(".".into()),
        ]);
        let response = materialiser(kind).answer(&recorded).unwrap();
        assert!(response.text.starts_with("It is:\n") && response.text.ends_with('.'));
        assert_eq!(
            response.output_tokens as usize,
            ids(kind, &response.text).len(),
            "{}",
            kind.name
        );
        // Both texts separately, and the synthetic tokens.
        let asked = ids(kind, "It is:\n").len() + 40 + ids(kind, ".").len();
        assert_eq!(response.output_tokens as usize, asked, "{}", kind.name);
        assert_eq!(response.tool_calls, recorded.tool_calls);
        assert_eq!((response.finish_reason.as_str(), response.usage), ("stop", None));
        assert!(response.reasoning.is_empty());
    }
}

#[test]
fn a_request_carries_its_recorded_answer_as_text() {
    let materialiser = materialiser(&kinds()[0]);
    let request = |replay| Request {
        node: NodeId(0),
        parents: Vec::new(),
        history_parent: None,
        wait_after_ready: 0,
        messages: vec![Message {
            role: Role::User,
            content: vec![synthetic(1, 5)],
            tool_call_id: None,
        }],
        output: OutputSpec::default(),
        body: None,
        labels: Vec::new(),
        replay,
    };
    let recorded = answer(vec![synthetic(2, 9)]);
    let replay = Replay {
        answer: Some(recorded.clone()),
        ..Replay::default()
    };
    let prepared = materialiser.prepare(request(Some(Box::new(replay)))).unwrap();
    assert_eq!(
        prepared.recorded_answer.as_deref(),
        Some(&materialiser.answer(&recorded).unwrap())
    );
    assert_eq!(
        prepared.recorded_answer.unwrap().text,
        *materialiser.text(Seed::from(2), 9)
    );
    for replay in [None, Some(Box::default())] {
        assert_eq!(
            materialiser.prepare(request(replay)).unwrap().recorded_answer,
            None
        );
    }
}

#[test]
fn answers_that_cannot_be_are_refused_by_name() {
    let materialiser = materialiser(&kinds()[0]);
    let long = answer(vec![synthetic(1, MAX_TOKENS), synthetic(2, 1)]);
    assert!(matches!(
        materialiser.answer(&long),
        Err(PromptError::AnswerTooLong {
            tokens: 16_777_217,
            ..
        })
    ));
    let picture = answer(vec![Segment::Media {
        kind: MediaKind::Image,
        source: "https://h/a.png".into(),
    }]);
    let error = materialiser.answer(&picture).unwrap_err();
    assert!(error.to_string().contains("kind image"), "{error}");
}

#[test]
fn a_salt_changes_every_text_and_no_relation_between_texts() {
    for kind in kinds() {
        let plain = materialiser(kind);
        let unsalted = materialiser(kind).salted(None);
        let (one, again) = (
            materialiser(kind).salted(Some(1)),
            materialiser(kind).salted(Some(1)),
        );
        let other = materialiser(kind).salted(Some(2));
        for seed in (0..200).map(Seed::from) {
            let text = one.text(seed, 60);
            assert_eq!(plain.text(seed, 60), unsalted.text(seed, 60));
            assert_eq!(text, again.text(seed, 60));
            assert_eq!(ids(kind, &text).len(), 60, "{}", kind.name);
            // No cached block of the first page occurs again.
            let page = |of: &Materialiser| ids(kind, &of.text(seed, 16));
            assert_ne!(page(&one), page(&plain), "{}", kind.name);
            assert_ne!(page(&one), page(&other), "{}", kind.name);
            if kind.proven {
                assert!(text.starts_with(&*one.text(seed, 17)), "{}", kind.name);
            }
        }
    }
}

#[test]
fn a_salt_reaches_every_way_in_which_text_is_made() {
    let plain = materialiser(&kinds()[0]);
    let salted = materialiser(&kinds()[0]).salted(Some(77));
    let mixed = answer(vec![Segment::Text("x: ".into()), synthetic(5, 30)]);
    let joined = answer(vec![synthetic(5, 30), synthetic(6, 30)]);
    for recorded in [mixed, joined] {
        let (plain, salted) = (
            plain.answer(&recorded).unwrap(),
            salted.answer(&recorded).unwrap(),
        );
        assert_ne!(plain.text, salted.text);
        assert_eq!(plain.output_tokens, salted.output_tokens);
    }
    let joined = salted
        .answer(&answer(vec![synthetic(5, 30), synthetic(6, 30)]))
        .unwrap()
        .text;
    assert!(joined.starts_with(&*salted.text(Seed::from(5), 30)));
    assert!(joined.ends_with(&*salted.text(Seed::from(6), 30)));
}
