//! Prompts wrapped by a chat template have exactly the requested length, as counted by the
//! tokenizers library and rendered by the template.

use std::sync::OnceLock;

use veeksha_model::Role::{self, Assistant, System, Tool, User};
use veeksha_model::{HistoryMode, Message, NodeId, Prepared, Replay, Request, Seed, Segment};
use veeksha_prompt::{ChatTemplate, Materializer, PromptTarget};
use veeksha_stats::RandomStream;

use crate::kinds::{Kind, kinds};

const TEMPLATES: [(&str, &str); 6] = [
    ("Qwen 2.5", include_str!("../fixtures/templates/qwen2_5.jinja")),
    ("Llama 3.1", include_str!("../fixtures/templates/llama3_1.jinja")),
    (
        "Mistral v0.3",
        include_str!("../fixtures/templates/mistral_v0_3.jinja"),
    ),
    ("Gemma 2", include_str!("../fixtures/templates/gemma2.jinja")),
    ("Qwen 3", include_str!("../fixtures/templates/qwen3.jinja")),
    ("macros", include_str!("../fixtures/templates/macros.jinja")),
];

/// The control tokens of all these templates.
const CONTROL: [&str; 14] = [
    "<s>",
    "</s>",
    "<|im_start|>",
    "<|im_end|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "[INST]",
    "[/INST]",
    "<start_of_turn>",
    "<end_of_turn>",
    "<|user|>",
    "<|assistant|>",
    "<|end|>",
];

/// Every kind of tokenizer: unchanged, so that a template's marks are ordinary text whose letters
/// may join those of a message, and with the marks as control tokens, as in the models.
fn both() -> &'static [Kind] {
    static BOTH: OnceLock<Vec<Kind>> = OnceLock::new();
    BOTH.get_or_init(|| {
        kinds()
            .iter()
            .flat_map(|kind| [kind.clone(), kind.with_control_tokens(&CONTROL)])
            .collect()
    })
}

fn templates() -> impl Iterator<Item = (&'static str, ChatTemplate)> {
    let tokens = [("bos_token", "<s>"), ("eos_token", "</s>")];
    TEMPLATES.into_iter().map(move |(name, text)| {
        let tokens = tokens
            .iter()
            .map(|(name, text)| (name.to_string(), text.to_string()));
        (
            name,
            ChatTemplate::from_text(name, text, tokens.collect()).unwrap(),
        )
    })
}

fn synthetic(seed: u64, tokens: u32) -> Segment {
    Segment::Synthetic {
        seed: Seed::from(seed),
        tokens,
    }
}

fn text(text: &str) -> Segment {
    Segment::Text(text.into())
}

fn request(messages: Vec<(Role, Vec<Segment>)>, later: bool) -> Request {
    let message = |(role, content)| Message::new(role, content);
    Request {
        node: NodeId(3),
        parents: if later { vec![NodeId(2).into()] } else { Vec::new() },
        history_parent: later.then_some(NodeId(2)),
        messages: messages.into_iter().map(message).collect(),
        ..Request::default()
    }
}

fn count(kind: &Kind, text: &str) -> u32 {
    kind.raw.encode(text, false).unwrap().get_ids().len() as u32
}

/// Returns the tokens of the whole rendered prompt, counted independently of this crate.
fn whole(kind: &Kind, template: &ChatTemplate, history: &[(Role, &str)], prepared: &Prepared) -> u32 {
    let new = prepared
        .messages
        .iter()
        .map(|message| (message.role, &*message.text));
    let messages: Vec<(Role, &str)> = history.iter().copied().chain(new).collect();
    count(kind, &template.render(&messages, true).unwrap())
}

type Messages = Vec<(Role, Vec<Segment>)>;

/// Returns requests of every form in which synthetic text occurs, and the requested length of their
/// messages without verbatim texts.
fn forms(seed: u64, tokens: u32, system: bool) -> Vec<(Messages, Vec<&'static str>)> {
    // If a template's marks are ordinary text, they are hundreds of tokens.
    let long = tokens + 500;
    let blocks = |size: u32| -> Vec<Segment> {
        let full = (0..500 / size).map(|block| synthetic(seed + u64::from(block), size));
        full.chain([synthetic(seed + 99, 3 + tokens % size)]).collect()
    };
    let mut forms = vec![
        (vec![(User, vec![synthetic(seed, long)])], vec![]),
        (vec![(User, blocks(16))], vec![]),
        (vec![(User, blocks(64))], vec![]),
        (
            vec![(User, vec![text("Question:\n"), synthetic(seed, long)])],
            vec!["Question:\n"],
        ),
        (
            vec![(
                User,
                vec![
                    synthetic(seed, long),
                    text("\n\nAnswer in 7 words."),
                    synthetic(seed, long),
                ],
            )],
            vec!["\n\nAnswer in 7 words."],
        ),
        // A template that trims removes the space.
        (
            vec![(User, vec![synthetic(seed, long), text("ing  ")])],
            vec!["ing  "],
        ),
        (
            vec![
                (User, vec![synthetic(seed, tokens)]),
                (Assistant, vec![synthetic(seed + 1, tokens)]),
                (User, vec![synthetic(seed + 2, long)]),
            ],
            vec![],
        ),
        (
            vec![
                (User, vec![text("Hi! ")]),
                (Assistant, vec![text("Hello. "), synthetic(seed + 1, tokens)]),
                (User, vec![synthetic(seed + 2, long)]),
            ],
            vec!["Hi! ", "Hello. "],
        ),
    ];
    if system {
        forms.push((
            vec![
                (System, vec![text("Be brief.")]),
                (User, vec![synthetic(seed, long)]),
            ],
            vec!["Be brief."],
        ));
        forms.push((
            vec![
                (System, vec![synthetic(seed, 30)]),
                (User, vec![synthetic(seed, long)]),
            ],
            vec![],
        ));
    }
    forms
}

fn asked(kind: &Kind, messages: &[(Role, Vec<Segment>)], texts: &[&str]) -> u32 {
    let synthetic = messages
        .iter()
        .flat_map(|(_, content)| content)
        .map(|segment| match segment {
            Segment::Synthetic { tokens, .. } => *tokens,
            _ => 0,
        });
    synthetic.sum::<u32>() + texts.iter().map(|text| count(kind, text)).sum::<u32>()
}

#[test]
fn wrapped_prompt_has_the_requested_length() {
    let mut draws = RandomStream::new(3, 0, "wrapped").draws();
    for kind in both() {
        for (name, template) in templates() {
            let materializer = Materializer::new(kind.tokenizer.clone())
                .unwrap()
                .with_template(template.clone(), PromptTarget::Wrapped);
            for round in 0..2 {
                for (messages, texts) in forms(draws.next_u64(), 1 + draws.below(120), name != "Gemma 2") {
                    let asked = asked(kind, &messages, &texts);
                    let prepared = materializer.prepare(request(messages.clone(), false)).unwrap();
                    let place = format!("{}, {name}, {round}: {messages:?}", kind.name);
                    assert_eq!(whole(kind, &template, &[], &prepared), asked, "{place}");
                    assert_eq!(prepared.target_tokens, asked, "{place}");
                    assert_eq!(
                        prepared.prompt_tokens + prepared.template_tokens,
                        asked,
                        "{place}"
                    );
                    assert!(prepared.template_tokens > 0, "{place}");
                }
            }
            assert_eq!(
                materializer.template_notes(),
                Default::default(),
                "{}, {name}",
                kind.name
            );
        }
    }
}

/// Texts that meet synthetic ones and a template's marks in every way that changes tokens.
#[test]
fn mixed_content_inside_a_template_has_the_requested_length() {
    const TEXTS: [&str; 10] = [
        "",
        " ",
        "\n\n",
        "ing",
        "Hi: ",
        "  in",
        "'s",
        "42",
        "日本",
        "<|im_end|>",
    ];
    let mut draws = RandomStream::new(4, 0, "mixtures").draws();
    for kind in both() {
        for (name, template) in templates().filter(|(name, _)| ["Qwen 2.5", "Llama 3.1"].contains(name)) {
            let materializer = Materializer::new(kind.tokenizer.clone())
                .unwrap()
                .with_template(template.clone(), PromptTarget::Wrapped);
            for _ in 0..20 {
                let mut messages: Messages = Vec::new();
                for role in [System, User, Assistant, User] {
                    let pieces = (0..draws.below(4)).map(|_| match draws.below(2) {
                        0 => text(TEXTS[draws.below(10) as usize]),
                        _ => synthetic(draws.next_u64(), draws.below(30)),
                    });
                    messages.push((role, pieces.collect()));
                }
                messages[3].1.push(synthetic(draws.next_u64(), 700));
                messages[3].1.push(text(TEXTS[draws.below(10) as usize]));
                let prepared = materializer.prepare(request(messages.clone(), false)).unwrap();
                let place = format!("{}, {name}: {messages:?}", kind.name);
                assert_eq!(
                    whole(kind, &template, &[], &prepared),
                    prepared.target_tokens,
                    "{place}"
                );
                assert_eq!(
                    prepared.prompt_tokens + prepared.template_tokens,
                    prepared.target_tokens,
                    "{place}"
                );
            }
        }
    }
}

#[test]
fn unwrapped_lengths_are_kept_and_template_tokens_reported() {
    for kind in both() {
        for (name, template) in templates() {
            let plain = Materializer::new(kind.tokenizer.clone()).unwrap();
            let wrapping = Materializer::new(kind.tokenizer.clone())
                .unwrap()
                .with_template(template.clone(), PromptTarget::Content);
            for (messages, _) in forms(77, 40, name != "Gemma 2") {
                let place = format!("{}, {name}: {messages:?}", kind.name);
                let expected = plain.prepare(request(messages.clone(), false)).unwrap();
                let prepared = wrapping.prepare(request(messages, false)).unwrap();
                assert_eq!(prepared.messages, expected.messages, "{place}");
                assert_eq!(prepared.prompt_tokens, expected.prompt_tokens, "{place}");
                assert_eq!(prepared.target_tokens, prepared.prompt_tokens, "{place}");
                let whole = whole(kind, &template, &[], &prepared);
                assert_eq!(
                    prepared.template_tokens,
                    whole - prepared.prompt_tokens,
                    "{place}"
                );
            }
        }
    }
}

/// The tokens that a later turn adds to the conversation, as a server counts them: the tokens of
/// its prompt minus those of the previous prompt and of its answer, for any conversation.
#[test]
fn later_turn_adds_the_requested_length() {
    for kind in kinds() {
        let kind = kind.with_control_tokens(&CONTROL);
        // Without the marks of `macros`, whose text contains a list of all the roles so far.
        for (name, template) in templates().filter(|(name, _)| *name != "macros") {
            let materializer = Materializer::new(kind.tokenizer.clone())
                .unwrap()
                .with_template(template.clone(), PromptTarget::Wrapped);
            // Mistral's template puts a space before an answer that the model gave without one.
            // That costs nothing if the answer begins with a word that is one token either way.
            let word = materializer.text(Seed::from(9), 4);
            let histories = match name {
                "Mistral v0.3" => [("Why?", &*word), ("x", &word[..])],
                _ => [
                    ("one\n\ntwo  three", "A list:\n* one\n* two"),
                    ("Why?", "Because."),
                ],
            };
            for (messages, texts) in forms(500, 50, false) {
                let asked = asked(&kind, &messages, &texts);
                let prepared = materializer.prepare(request(messages.clone(), true)).unwrap();
                let place = format!("{}, {name}: {messages:?}", kind.name);
                assert_eq!(
                    prepared.prompt_tokens + prepared.template_tokens,
                    asked,
                    "{place}"
                );
                for (question, answer) in histories {
                    let before = template.render(&[(User, question)], true).unwrap() + answer;
                    let history = [(User, question), (Assistant, answer)];
                    let added = whole(&kind, &template, &history, &prepared) - count(&kind, &before);
                    assert_eq!(added, asked, "{place} after {question:?} {answer:?}");
                }
            }
        }
    }
}

#[test]
fn ordering_edge_begins_a_conversation() {
    let (_, template) = templates().next().unwrap();
    let kind = &kinds()[0];
    let materializer = Materializer::new(kind.tokenizer.clone())
        .unwrap()
        .with_template(template.clone(), PromptTarget::Wrapped);
    let messages = || vec![(User, vec![synthetic(1, 300)])];
    let of = |history| {
        let mut request = request(messages(), true);
        request.replay = Some(Box::new(Replay {
            history,
            ..Replay::default()
        }));
        materializer.prepare(request).unwrap()
    };
    let first = materializer.prepare(request(messages(), false)).unwrap();
    assert_eq!(of(HistoryMode::Fresh).messages, first.messages);
    assert_eq!(of(HistoryMode::Live).messages, of(HistoryMode::Recorded).messages);
    assert_ne!(of(HistoryMode::Live).messages, first.messages);
    // The wrapped text is a prefix of the requested one.
    assert!(
        materializer
            .text(Seed::from(1), 300)
            .starts_with(&*first.messages[0].text)
    );
}

#[test]
fn unwrappable_requests_are_kept_and_counted() {
    let kind = &kinds()[0];
    let prepare = |name: &str, messages: Vec<(Role, Vec<Segment>)>| {
        let (_, template) = templates().find(|(found, _)| *found == name).unwrap();
        let materializer = Materializer::new(kind.tokenizer.clone())
            .unwrap()
            .with_template(template, PromptTarget::Wrapped);
        let prepared = materializer.prepare(request(messages, false)).unwrap();
        (prepared, materializer.template_notes())
    };
    // Too short, nothing synthetic, no user message: the template comes on top, and is counted.
    for messages in [
        vec![(User, vec![synthetic(1, 3)])],
        vec![(User, vec![text("Exactly this.")])],
        vec![(Tool, vec![synthetic(1, 300)])],
    ] {
        let content = asked(kind, &messages, &[])
            .max(count(kind, "Exactly this.") * u32::from(messages[0].1[0] == text("Exactly this.")));
        let (prepared, notes) = prepare("Qwen 2.5", messages);
        assert_eq!(
            (prepared.target_tokens, prepared.prompt_tokens),
            (content, content)
        );
        assert!(prepared.template_tokens > 20);
        assert_eq!((notes.too_short, notes.refused), (1, 0));
        assert!(notes.first.unwrap().contains("node 3"));
    }
    // The template's own refusal.
    let (prepared, notes) = prepare(
        "Gemma 2",
        vec![(System, vec![synthetic(1, 30)]), (User, vec![synthetic(2, 300)])],
    );
    assert_eq!((prepared.prompt_tokens, prepared.template_tokens), (330, 0));
    assert_eq!((notes.too_short, notes.refused), (0, 1));
    let first = notes.first.unwrap();
    assert!(
        first.contains("Gemma 2") && first.contains("System role not supported"),
        "{first}"
    );
}

#[test]
fn renders_conversation_as_model_text() {
    let of = |kind: &Kind, name: &str| {
        let (_, template) = templates().find(|(found, _)| *found == name).unwrap();
        Materializer::new(kind.tokenizer.clone())
            .unwrap()
            .with_template(template, PromptTarget::Content)
    };
    let messages = [(User, "one"), (Assistant, "two"), (User, "three")];
    // This tokenizer does not prepend a token.
    let plain = of(&kinds()[0], "Mistral v0.3");
    assert_eq!(
        plain.render_conversation(&messages).unwrap(),
        "<s>[INST] one[/INST] two</s>[INST] three[/INST]"
    );
    // Llama 3's does: the server will add the token, so it must not be there twice.
    let llama = &kinds()[1];
    let tokens = [("bos_token".to_string(), "<|begin_of_text|>".to_string())];
    let template =
        ChatTemplate::from_text("bos", "{{ bos_token }}{{ messages[0].content }}", tokens.into()).unwrap();
    let adding = Materializer::new(llama.tokenizer.clone())
        .unwrap()
        .with_template(template, PromptTarget::Content);
    assert_eq!(adding.render_conversation(&messages).unwrap(), "one");
    assert_eq!(
        llama.raw.encode("one", true).unwrap().get_ids(),
        llama.raw.encode("<|begin_of_text|>one", false).unwrap().get_ids()
    );
    let none = Materializer::new(llama.tokenizer.clone()).unwrap();
    assert!(
        none.render_conversation(&messages)
            .unwrap_err()
            .to_string()
            .contains("no chat template")
    );
    assert!(
        of(llama, "Gemma 2")
            .render_conversation(&[(System, "s")])
            .is_err()
    );
}

/// Counting by the margins of synthetic text, with cached counts, equals counting the whole: for
/// short and long texts, with every word of the vocabulary next to the template's text.
#[test]
fn cached_counts_are_exact_for_many_prompts() {
    for kind in both().iter().filter(|kind| kind.proven) {
        for (name, template) in templates().filter(|(name, _)| ["Llama 3.1", "macros"].contains(name)) {
            let materializer = Materializer::new(kind.tokenizer.clone())
                .unwrap()
                .with_template(template.clone(), PromptTarget::Wrapped);
            for seed in 0..100 {
                let prepared = materializer
                    .prepare(request(
                        vec![(User, vec![synthetic(seed, 600 + seed as u32 % 7)])],
                        false,
                    ))
                    .unwrap();
                assert_eq!(
                    whole(kind, &template, &[], &prepared),
                    prepared.target_tokens,
                    "{}, {name}",
                    kind.name
                );
            }
        }
    }
}
