//! Asking for a minimum length in words: inside the asked prompt length.

use std::sync::Arc;

use crossbeam_channel::unbounded;
use veeksha_events::Event;
use veeksha_pipeline::{Content, Control, MinTokensPrompt, run};
use veeksha_ports::Transport;
use veeksha_prompt::{Materialiser, Tokenizer};

use crate::fakes::{Echo, Kind, Server, factory, plan};

fn first_prompt(template: &str) -> (String, u32) {
    let tokenizer = Tokenizer::embedded().unwrap();
    let materialiser = Arc::new(Materialiser::new(tokenizer.clone()).unwrap());
    let mut plan = plan();
    plan.scheduler.max_sessions = Some(1);
    plan.include_content = true;
    plan.min_tokens_prompt = Some(MinTokensPrompt {
        template: template.into(),
    });
    let (sender, receiver) = unbounded();
    let echo = |clock, sink| {
        Ok(Arc::new(Echo {
            server: Server::Up,
            clock,
            sink,
            answered: Default::default(),
        }) as Arc<dyn Transport>)
    };
    let workload = factory(Kind::HastyAgents);
    run(
        &plan,
        &workload,
        &tokenizer,
        materialiser,
        echo,
        &sender,
        &Control::default(),
    )
    .unwrap();
    drop(sender);
    let entries: Vec<_> = receiver.iter().collect();
    let sent = entries.iter().find_map(|entry| match &entry.content {
        Some(content @ Content::Sent { .. }) => Some(content.text()),
        _ => None,
    });
    let tokens = entries.iter().find_map(|entry| match &entry.event {
        Event::Finished(record) => Some(record.prompt_tokens),
        _ => None,
    });
    (sent.unwrap(), tokens.unwrap())
}

#[test]
fn the_sentence_is_counted_inside_the_length() {
    let (text, tokens) = first_prompt(" write {tokens} words");
    assert!(text.ends_with(" write 4 words"), "{text}");
    assert_eq!(tokens, 10);
}

#[test]
fn a_prompt_too_short_for_the_sentence_goes_without_it() {
    let (text, tokens) = first_prompt(&"many words ".repeat(20));
    assert!(!text.contains("many words many words"), "{text}");
    assert_eq!(tokens, 10);
}
