//! Recorded answers and salted text.

use veeksha_model::{
    MediaKind, Message, NodeId, RecordedAnswer, Replay, Request, Role, Seed, Segment, ToolCall,
};
use veeksha_prompt::{MAX_TOKENS, Materializer, PromptError};

use crate::kinds::{Kind, kinds};

fn synthetic(seed: u64, tokens: u32) -> Segment {
    Segment::Synthetic {
        seed: Seed::from(seed),
        tokens,
    }
}

fn materializer(kind: &Kind) -> Materializer {
    Materializer::new(kind.tokenizer.clone()).unwrap()
}

fn ids(kind: &Kind, text: &str) -> Vec<u32> {
    kind.raw.encode(text, false).unwrap().get_ids().to_vec()
}

fn answer(content: Vec<Segment>) -> RecordedAnswer {
    RecordedAnswer {
        reasoning: None,
        content,
        tool_calls: vec![ToolCall {
            id: "call_1".into(),
            name: "look".into(),
            arguments: "{\"q\":1}".into(),
        }],
    }
}

#[test]
fn converts_recorded_answer_to_response() {
    for kind in kinds() {
        let recorded = answer(vec![
            Segment::Text("It is:\n".into()),
            synthetic(4, 40),
            Segment::Text(".".into()),
        ]);
        let response = materializer(kind).answer(&recorded).unwrap();
        assert!(response.text.starts_with("It is:\n") && response.text.ends_with('.'));
        // Its call is sent again as well.
        let calls = ids(kind, "look").len() + ids(kind, "{\"q\":1}").len();
        let tokens = response.output_tokens as usize - calls;
        assert_eq!(tokens, ids(kind, &response.text).len(), "{}", kind.name);
        // Both texts separately, and the synthetic tokens.
        let asked = ids(kind, "It is:\n").len() + 40 + ids(kind, ".").len();
        assert_eq!(tokens, asked, "{}", kind.name);
        assert_eq!(response.tool_calls, recorded.tool_calls);
        assert_eq!((response.finish_reason.as_str(), response.usage), ("stop", None));
        assert!(response.reasoning.is_empty());
    }
}

#[test]
fn request_contains_its_recorded_answer_as_text() {
    let materializer = materializer(&kinds()[0]);
    let request = |replay| Request {
        node: NodeId(0),
        messages: vec![Message::new(Role::User, vec![synthetic(1, 5)])],
        replay,
        ..Request::default()
    };
    let recorded = answer(vec![synthetic(2, 9)]);
    let replay = Replay {
        answer: Some(recorded.clone()),
        ..Replay::default()
    };
    let prepared = materializer.prepare(request(Some(Box::new(replay)))).unwrap();
    assert_eq!(
        prepared.recorded_answer.as_deref(),
        Some(&materializer.answer(&recorded).unwrap())
    );
    assert_eq!(
        prepared.recorded_answer.unwrap().text,
        *materializer.text(Seed::from(2), 9)
    );
    for replay in [None, Some(Box::default())] {
        assert_eq!(
            materializer.prepare(request(replay)).unwrap().recorded_answer,
            None
        );
    }
}

#[test]
fn refuses_impossible_answers() {
    let materializer = materializer(&kinds()[0]);
    let long = answer(vec![synthetic(1, MAX_TOKENS), synthetic(2, 1)]);
    assert!(matches!(
        materializer.answer(&long),
        Err(PromptError::AnswerTooLong {
            tokens: 16_777_217,
            ..
        })
    ));
    let picture = answer(vec![Segment::Media {
        kind: MediaKind::Image,
        source: "https://h/a.png".into(),
    }]);
    let error = materializer.answer(&picture).unwrap_err();
    assert!(error.to_string().contains("kind image"), "{error}");
}

#[test]
fn salt_changes_texts_but_keeps_their_relations() {
    for kind in kinds() {
        let plain = materializer(kind);
        let unsalted = materializer(kind).salted(None);
        let (one, again) = (
            materializer(kind).salted(Some(1)),
            materializer(kind).salted(Some(1)),
        );
        let other = materializer(kind).salted(Some(2));
        for seed in (0..200).map(Seed::from) {
            let text = one.text(seed, 60);
            assert_eq!(plain.text(seed, 60), unsalted.text(seed, 60));
            assert_eq!(text, again.text(seed, 60));
            assert_eq!(ids(kind, &text).len(), 60, "{}", kind.name);
            // No cached block of the first page occurs again.
            let page = |of: &Materializer| ids(kind, &of.text(seed, 16));
            assert_ne!(page(&one), page(&plain), "{}", kind.name);
            assert_ne!(page(&one), page(&other), "{}", kind.name);
            if kind.proven {
                assert!(text.starts_with(&*one.text(seed, 17)), "{}", kind.name);
            }
        }
    }
}

#[test]
fn salt_applies_to_every_source_of_text() {
    let plain = materializer(&kinds()[0]);
    let salted = materializer(&kinds()[0]).salted(Some(77));
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
