//! Lengths are exact on every kind of tokenizer, for every mix of segments, as counted by the
//! tokenizers library itself.

use std::collections::HashSet;

use veeksha_model::{MediaKind, Message, NodeId, Request, Role, Seed, Segment};
use veeksha_prompt::{MAX_TOKENS, Materializer, PromptError, Tokenizer};
use veeksha_stats::RandomStream;

use crate::kinds::{Kind, kinds};

fn materializer(kind: &Kind) -> Materializer {
    let materializer = Materializer::new(kind.tokenizer.clone()).unwrap();
    assert_eq!(materializer.is_proven(), kind.proven, "{}", kind.name);
    materializer
}

/// Returns the library's result, without this crate's code.
fn ids(kind: &Kind, text: &str) -> Vec<u32> {
    kind.raw.encode(text, false).unwrap().get_ids().to_vec()
}

fn request(messages: Vec<Vec<Segment>>) -> Request {
    let message = |content| Message {
        reasoning: None,
        tool_calls: Vec::new(),
        role: Role::User,
        content,
        tool_call_id: None,
    };
    Request {
        node: NodeId(3),
        messages: messages.into_iter().map(message).collect(),
        ..Request::default()
    }
}

fn synthetic(seed: u64, tokens: u32) -> Segment {
    Segment::Synthetic {
        seed: Seed::from(seed),
        tokens,
    }
}

#[test]
fn synthetic_text_has_its_length() {
    for kind in kinds() {
        let materializer = materializer(kind);
        let mut draws = RandomStream::new(1, 0, "lengths").draws();
        for seed in 0..400u64 {
            let tokens = if seed < 64 { seed as u32 } else { draws.below(900) };
            let text = materializer.text(Seed::from(draws.next_u64()), tokens);
            assert_eq!(ids(kind, &text).len(), tokens as usize, "{}: {text:?}", kind.name);
        }
        let text = materializer.text(Seed::from(7), 50_000);
        assert_eq!(ids(kind, &text).len(), 50_000, "{}", kind.name);
    }
}

/// Texts that meet synthetic ones in every way that changes tokens: letters, spaces, line ends,
/// punctuation, digits, other scripts, names of control tokens.
const TEXTS: [&str; 16] = [
    "",
    " ",
    "\n\n",
    "ing",
    "The end",
    "Question: ",
    "What is it?\n",
    "\n\nGenerate at least 128 tokens.",
    "  indented",
    "'s",
    "42",
    "tail   ",
    "日本語",
    "é",
    "<b>",
    ".",
];

#[test]
fn mixed_messages_have_their_target_length() {
    for kind in kinds() {
        let materializer = materializer(kind);
        let mut draws = RandomStream::new(2, 0, "mixes").draws();
        for _ in 0..1200 {
            let pieces = 1 + draws.below(5);
            let mut content: Vec<Segment> = Vec::new();
            let mut after_text = false;
            for _ in 0..pieces {
                if !after_text && draws.below(2) == 0 {
                    content.push(Segment::Text(TEXTS[draws.below(16) as usize].to_string()));
                    after_text = true;
                } else {
                    content.push(synthetic(draws.next_u64(), draws.below(40)));
                    after_text = false;
                }
            }
            // One segment that is long enough to be repaired.
            content.push(synthetic(draws.next_u64(), 20 + draws.below(40)));
            if draws.below(2) == 0 {
                content.push(Segment::Text(TEXTS[draws.below(16) as usize].to_string()));
            }
            let prepared = materializer.prepare(request(vec![content.clone()])).unwrap();
            let text = &prepared.messages[0].text;
            let counted = ids(kind, text).len() as u32;
            assert_eq!(
                prepared.prompt_tokens, counted,
                "{}: wrong count of {text:?}",
                kind.name
            );
            assert_eq!(
                prepared.target_tokens, counted,
                "{}: missed the target with {content:?}: {text:?}",
                kind.name
            );
        }
    }
}

#[test]
fn target_is_the_requested_length() {
    for kind in kinds() {
        let materializer = materializer(kind);
        let system = "You are a careful assistant.";
        let messages = vec![
            vec![Segment::Text(system.into())],
            vec![synthetic(1, 100), synthetic(2, 50)],
            vec![Segment::Text("Summarise:\n".into()), synthetic(3, 1000)],
        ];
        let prepared = materializer.prepare(request(messages)).unwrap();
        let texts = ids(kind, system).len() + ids(kind, "Summarise:\n").len();
        assert_eq!(prepared.target_tokens as usize, texts + 1150, "{}", kind.name);
        let counted: usize = prepared
            .messages
            .iter()
            .map(|message| ids(kind, &message.text).len())
            .sum();
        assert_eq!(prepared.prompt_tokens as usize, counted, "{}", kind.name);
        assert_eq!(&*prepared.messages[0].text, system);
        assert!(prepared.messages[2].text.starts_with("Summarise:\n"));
    }
}

#[test]
fn shorter_texts_are_prefixes_of_longer_ones() {
    for kind in kinds().iter().filter(|kind| kind.proven) {
        let materializer = materializer(kind);
        let long = materializer.text(Seed::from(5), 2000);
        for tokens in [0, 1, 2, 255, 256, 257, 1024, 1999] {
            let short = materializer.text(Seed::from(5), tokens);
            assert!(long.starts_with(&*short), "{}: {tokens}", kind.name);
            assert_eq!(
                ids(kind, &long)[..tokens as usize],
                ids(kind, &short),
                "{}: {tokens}",
                kind.name
            );
        }
    }
}

#[test]
fn seeds_differ_in_their_first_sixteen_tokens() {
    for kind in kinds() {
        let materializer = materializer(kind);
        let seeds = (0..2000u64)
            .chain((0..2000).map(|seed| seed << 32))
            .filter(|seed| *seed != 0);
        let mut beginnings = HashSet::new();
        let mut seen = 0;
        for seed in seeds {
            seen += 1;
            beginnings.insert(ids(kind, &materializer.text(Seed::from(seed), 16)));
        }
        assert_eq!(beginnings.len(), seen, "{}", kind.name);
    }
}

#[test]
fn text_has_many_words_and_no_control_tokens() {
    for kind in kinds() {
        let materializer = materializer(kind);
        let text = materializer.text(Seed::from(11), 20_000);
        assert!(
            text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b' '),
            "{}",
            kind.name
        );
        assert!(
            !text.starts_with(' ') && !text.ends_with(' ') && !text.contains("  "),
            "{}",
            kind.name
        );
        let special: HashSet<u32> = kind.raw.get_added_tokens_decoder().into_keys().collect();
        assert!(!special.is_empty());
        let ids = ids(kind, &text);
        assert!(ids.iter().all(|id| !special.contains(id)), "{}", kind.name);
        let distinct: HashSet<u32> = ids.into_iter().collect();
        assert!(distinct.len() > 1000, "{}: {}", kind.name, distinct.len());
        assert!(
            materializer.words() >= distinct.len() - usize::from(!kind.proven) * distinct.len(),
            "{}",
            kind.name
        );
    }
}

#[test]
fn instances_threads_and_caches_agree() {
    for kind in kinds() {
        let (one, two) = (materializer(kind), materializer(kind));
        let content = vec![
            Segment::Text("Read:\n".into()),
            synthetic(9, 300),
            Segment::Text("ing".into()),
            synthetic(4, 33),
        ];
        let first = one
            .prepare(request(vec![content.clone(), vec![synthetic(9, 300)]]))
            .unwrap();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                // The third call is answered from the cache.
                let same = scope.spawn(|| {
                    two.prepare(request(vec![content.clone(), vec![synthetic(9, 300)]]))
                        .unwrap()
                });
                assert_eq!(same.join().unwrap(), first, "{}", kind.name);
            }
        });
    }
}

#[test]
fn shared_text_is_made_once() {
    let materializer = Materializer::new(Tokenizer::embedded().unwrap()).unwrap();
    let text = |_| {
        materializer
            .prepare(request(vec![vec![synthetic(1, 500)]]))
            .unwrap()
            .messages[0]
            .text
            .clone()
    };
    let texts: Vec<_> = (0..4).map(text).collect();
    assert!(std::sync::Arc::ptr_eq(&texts[2], &texts[3]));
    assert_eq!(texts[0], texts[3]);
}

#[test]
fn media_are_not_counted() {
    let materializer = Materializer::new(Tokenizer::embedded().unwrap()).unwrap();
    let image = Segment::Media {
        kind: MediaKind::Image,
        source: "https://h/cat.png".into(),
    };
    let prepared = materializer
        .prepare(request(vec![vec![synthetic(1, 10), image, synthetic(2, 10)]]))
        .unwrap();
    assert_eq!(
        prepared.messages[0].media,
        [(MediaKind::Image, "https://h/cat.png".into())]
    );
    assert_eq!((prepared.target_tokens, prepared.prompt_tokens), (20, 20));
}

#[test]
fn refuses_prompts_above_the_limit() {
    let materializer = Materializer::new(Tokenizer::embedded().unwrap()).unwrap();
    let error = materializer
        .prepare(request(vec![vec![synthetic(1, u32::MAX)], vec![synthetic(2, 1)]]))
        .unwrap_err();
    assert!(matches!(
        error,
        PromptError::TooLong {
            node: NodeId(3),
            tokens: 4_294_967_296,
            limit: MAX_TOKENS
        }
    ));
}

/// The fixture has words that become one token when they meet, and they are not used together.
#[test]
fn joining_words_are_not_adjacent() {
    let kind = kinds()
        .iter()
        .find(|kind| kind.name.contains("SuperBPE"))
        .unwrap();
    let two_words = |token: &String| token.matches('▁').count() == 2 && token.len() > 8;
    let vocabulary = kind.raw.get_vocab(false);
    let joined: Vec<String> = vocabulary
        .keys()
        .filter(|token| two_words(token))
        .cloned()
        .collect();
    assert_eq!(joined.len(), 900);
    let texts: Vec<String> = joined
        .iter()
        .map(|token| token.replace('▁', " ").trim_start().to_string())
        .collect();
    assert!(texts.iter().all(|text| ids(kind, text).len() == 1));
    let synthetic = format!(" {} ", materializer(kind).text(Seed::from(1), 100_000));
    assert!(!texts.iter().any(|text| synthetic.contains(&format!(" {text} "))));
}
