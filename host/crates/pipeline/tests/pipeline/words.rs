//! Asking for a minimum length in words: inside the asked prompt length.

use std::sync::Arc;

use crossbeam_channel::unbounded;
use veeksha_events::Event;
use veeksha_pipeline::{Content, Control, MinTokensPrompt, run};

use crate::fakes::{Kind, Server, echo, factory, plan};
use crate::virtual_time::words;

fn first_prompt(template: &str) -> (String, u32) {
    let (tokenizer, materialiser) = words();
    let mut plan = plan();
    plan.scheduler.max_sessions = Some(1);
    plan.include_content = true;
    plan.min_tokens_prompt = Some(MinTokensPrompt {
        template: template.into(),
    });
    let (sender, receiver) = unbounded();
    let workload = factory(Kind::HastyAgents);
    run(
        &plan,
        &workload,
        tokenizer,
        materialiser.clone(),
        echo(Server::Up, &Arc::default()),
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
