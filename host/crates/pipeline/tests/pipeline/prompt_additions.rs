//! Additions to the prompt: a request for a minimum length, and a chat template.

use std::collections::BTreeMap;
use std::sync::Arc;

use crossbeam_channel::unbounded;
use veeksha_events::Event;
use veeksha_model::{History, Role};
use veeksha_pipeline::{ClientSpecs, Control, EntryContent, MinTokensPrompt, run};
use veeksha_prompt::{ChatTemplate, Materializer, PromptTarget, SpecialTokens};

use crate::fakes::{Kind, Server, echo, factory, plan};
use crate::real_time::ENDLESS;
use crate::virtual_time::words;

fn first_prompt(template: &str) -> (String, u32) {
    let (tokenizer, materializer) = words();
    let mut plan = plan();
    plan.scheduler.max_sessions = Some(1);
    plan.include_content = true;
    let sentence = MinTokensPrompt {
        template: template.into(),
    };
    plan.clients = ClientSpecs::new(Some(sentence), Vec::new());
    let (sender, receiver) = unbounded();
    let workload = factory(Kind::HastyAgents);
    run(
        &plan,
        &workload,
        tokenizer,
        materializer.clone(),
        echo(Server::Up, &Arc::default()),
        &sender,
        &Control::default(),
    )
    .unwrap();
    drop(sender);
    let entries: Vec<_> = receiver.iter().collect();
    let sent = entries.iter().find_map(|entry| match &entry.content {
        Some(content @ EntryContent::Sent { .. }) => Some(content.text()),
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

/// Every message is surrounded by line breaks, with which no word of this tokenizer merges.
const CHATML: &str = "{% for message in messages %}<{{ message.role }}>\n{{ message.content }}\n</s>\n{% endfor %}\
                      {% if add_generation_prompt %}<assistant>\n{% endif %}";

/// The recorded prompt length is the server's count: the whole conversation with the template.
#[test]
fn template_tokens_are_part_of_the_prompt_that_was_sent() {
    let (tokenizer, _) = words();
    let template = ChatTemplate::from_text("chatml", CHATML, SpecialTokens::new()).unwrap();
    let materializer = Materializer::new(tokenizer.clone()).unwrap();
    let materializer = Arc::new(materializer.with_template(template.clone(), PromptTarget::Content));
    let mut plan = plan();
    plan.include_content = true;
    let (sender, receiver) = unbounded();
    let chains = factory(ENDLESS);
    let jobs = Arc::default();
    run(
        &plan,
        &chains,
        tokenizer,
        materializer,
        echo(Server::Up, &jobs),
        &sender,
        &Control::default(),
    )
    .unwrap();
    drop(sender);
    let (mut sent, mut checked) = (BTreeMap::new(), [0, 0]);
    // An answer's event may precede that of its dispatch.
    let mut entries: Vec<_> = receiver.iter().collect();
    entries.sort_by_key(|entry| matches!(entry.event, Event::Finished(_)));
    for entry in entries {
        match (entry.event, entry.content) {
            (
                Event::Dispatched { request, .. },
                Some(EntryContent::Sent {
                    request: asked,
                    history,
                }),
            ) => {
                let mut messages = Vec::new();
                for turn in History::turns(&history) {
                    messages.extend(
                        turn.request
                            .messages
                            .iter()
                            .map(|message| (message.role, message.text.to_string())),
                    );
                    messages.extend(
                        turn.response
                            .iter()
                            .map(|answer| (Role::Assistant, answer.text.clone())),
                    );
                }
                messages.extend(
                    asked
                        .messages
                        .iter()
                        .map(|message| (message.role, message.text.to_string())),
                );
                sent.insert(request, messages);
            }
            (Event::Finished(record), _) => {
                let messages: Vec<(Role, &str)> = sent[&record.id]
                    .iter()
                    .map(|(role, text)| (*role, text.as_str()))
                    .collect();
                let whole = tokenizer.count(&template.render(&messages, true).unwrap());
                assert_eq!(record.total_prompt_tokens, whole, "{messages:?}");
                let bare: u32 = messages.iter().map(|(_, text)| tokenizer.count(text)).sum();
                assert_eq!(record.template_tokens, whole - bare);
                assert_eq!(record.prompt_tokens, 10);
                checked[record.id.node.0 as usize] += 1;
            }
            _ => {}
        }
    }
    assert_eq!(checked, [20, 20]);
}
