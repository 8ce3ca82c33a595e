//! Parts of messages other than text: calls, reasoning, token ids.

use veeksha_model::{
    Message, NodeId, ReasoningContent, RecordedAnswer, Request, Role, Seed, Segment, ToolCall,
};
use veeksha_prompt::{Materializer, Tokenizer};

fn materializer() -> Materializer {
    Materializer::new(Tokenizer::embedded().unwrap()).unwrap()
}

fn request(messages: Vec<Message>) -> Request {
    Request {
        node: NodeId(3),
        messages,
        ..Request::default()
    }
}

fn reasoning(tokens: u32) -> ReasoningContent {
    ReasoningContent {
        content: vec![Segment::Synthetic {
            seed: Seed::from(5),
            tokens,
        }],
        signature: Some("proof".into()),
    }
}

fn call() -> ToolCall {
    ToolCall {
        id: "call_1".into(),
        name: "look".into(),
        arguments: r#"{"q":1}"#.into(),
    }
}

#[test]
fn calls_and_reasoning_are_part_of_the_message() {
    let mut message = Message::new(Role::Assistant, vec![Segment::Text("yes".into())]);
    message.tool_calls = vec![call()];
    message.reasoning = Some(reasoning(40));
    let prepared = materializer().prepare(request(vec![message])).unwrap();
    let tokenizer = Tokenizer::embedded().unwrap();
    let texts = ["yes", "look", r#"{"q":1}"#].map(|text| tokenizer.count(text));
    let expected = 40 + texts.iter().sum::<u32>();
    assert_eq!(
        (prepared.prompt_tokens, prepared.target_tokens),
        (expected, expected)
    );
    let message = &prepared.messages[0];
    assert_eq!(message.tool_calls, [call()]);
    let sent = message.reasoning.as_ref().unwrap();
    assert_eq!(sent.signature.as_deref(), Some("proof"));
    assert_eq!(tokenizer.count(&sent.text), 40);
}

#[test]
fn reasoning_of_recorded_answer_counts_as_output() {
    let plain = RecordedAnswer {
        content: vec![Segment::Text("yes".into())],
        ..RecordedAnswer::default()
    };
    let reasoned = RecordedAnswer {
        reasoning: Some(reasoning(40)),
        ..plain.clone()
    };
    let [plain, reasoned] = [plain, reasoned].map(|answer| materializer().answer(&answer).unwrap());
    assert_eq!(reasoned.output_tokens, plain.output_tokens + 40);
    assert_eq!(reasoned.reasoning_signature.as_deref(), Some("proof"));
    assert!(plain.reasoning.is_empty() && !reasoned.reasoning.is_empty());
}

#[test]
fn token_ids_are_counted_one_by_one() {
    let ids = |ids: &[u32]| Message::new(Role::User, vec![Segment::TokenIds(ids.to_vec())]);
    let prepared = materializer()
        .prepare(request(vec![ids(&[3, 4]), ids(&[5])]))
        .unwrap();
    assert_eq!(prepared.token_ids, [3, 4, 5]);
    assert_eq!((prepared.prompt_tokens, prepared.target_tokens), (3, 3));
}
