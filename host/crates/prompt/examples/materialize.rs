//! Prints the speed of synthetic text, alone and inside a chat template, and the time to load a
//! tokenizer.
//!
//! `cargo run --release -p veeksha-prompt --example materialize [TOKENIZER | large] [TEMPLATE]`
//!
//! `large` trains a byte-level BPE of some 90,000 tokens on text of made-up words. Without a
//! template, ChatML is used.

use std::path::Path;

use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, DecoderWrapper, NormalizerWrapper, PostProcessorWrapper, TokenizerBuilder};
use veeksha_clock::RunClock;
use veeksha_model::{MediaKind, Message, NodeId, Request, Role, Seed, Segment};
use veeksha_prompt::{ChatTemplate, Materializer, PromptTarget, Tokenizer};
use veeksha_stats::RandomStream;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let clock = RunClock::starting_now();
    let asked = std::env::args().nth(1);
    let tokenizer = match asked.as_deref() {
        Some("large") => Tokenizer::from_bytes(&large()?, "large")?,
        Some(path) => Tokenizer::load(Path::new(path))?,
        None => Tokenizer::embedded()?,
    };
    let template = match std::env::args().nth(2) {
        Some(path) => ChatTemplate::load(Path::new(&path))?,
        None => ChatTemplate::from_text(
            "ChatML",
            "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{% endfor %}\
             {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
            Default::default(),
        )?,
    };
    let start = clock.now();
    let plain = Materializer::new(tokenizer.clone())?;
    println!(
        "{}: {} tokens; {} words found in {:.1} ms, lengths {}",
        tokenizer.name(),
        tokenizer.vocabulary(),
        plain.words(),
        (clock.now() - start) as f64 / 1e6,
        if plain.is_proven() { "proven" } else { "checked" },
    );

    let of = |target| {
        Ok::<_, Failure>(Materializer::new(tokenizer.clone())?.with_template(template.clone(), target))
    };
    let (counted, wrapped) = (of(PromptTarget::Content)?, of(PromptTarget::Wrapped)?);
    for (name, materializer) in [
        ("no template", &plain),
        ("template counted", &counted),
        ("template inside the length", &wrapped),
    ] {
        for tokens in [128, 1024, 16_384] {
            let rounds = 10_000_000 / tokens;
            let rate = speed(&clock, rounds, tokens, |seed| unique(seed, tokens), materializer)?;
            println!("unique prompts of {tokens:>5} tokens, {name:<26}: {rate:7.1} M tokens/s on one core");
        }
        let rate = speed(&clock, 10_000, 1200, shared_prefix, materializer)?;
        println!("prompts of 1000 shared and 200 unique, {name:<21}: {rate:7.1} M tokens/s on one core");
        check(&tokenizer, &template, materializer, name)?;
        let notes = materializer.template_notes();
        if notes.too_short + notes.refused > 0 {
            return Err(format!("not all prompts were wrapped: {notes:?}").into());
        }
    }

    let text = plain.text(Seed::from(1), 200);
    let turns: Vec<(Role, &str)> = (0..20)
        .map(|turn| {
            (
                if turn % 2 == 0 {
                    Role::User
                } else {
                    Role::Assistant
                },
                &*text,
            )
        })
        .chain([(Role::User, &*text)])
        .collect();
    let start = clock.now();
    for _ in 0..2000 {
        counted.render_conversation(&turns)?;
    }
    println!(
        "rendering a conversation of {} messages of 200 tokens for the completions API: {:.1} us",
        turns.len(),
        (clock.now() - start) as f64 / 2000.0 / 1e3
    );
    let start = clock.now();
    for seed in 0..20 {
        let source = format!("generated:image?width=512&height=512&seed={seed}");
        let image = Segment::Media {
            kind: MediaKind::Image,
            source,
        };
        plain.prepare(request(vec![image]))?;
    }
    println!(
        "generating a picture of 512 x 512: {:.1} ms",
        (clock.now() - start) as f64 / 20.0 / 1e6
    );
    Ok(())
}

/// Returns millions of tokens per second.
fn speed(
    clock: &RunClock,
    rounds: u32,
    tokens: u32,
    request: impl Fn(u32) -> Request,
    materializer: &Materializer,
) -> Result<f64, Failure> {
    let start = clock.now();
    for seed in 0..rounds {
        let prepared = materializer.prepare(request(seed))?;
        let exact =
            prepared.prompt_tokens == tokens || prepared.prompt_tokens + prepared.template_tokens == tokens;
        if !exact {
            return Err(format!(
                "seed {seed}: {} tokens instead of {tokens}",
                prepared.prompt_tokens
            )
            .into());
        }
    }
    let seconds = (clock.now() - start) as f64 / 1e9;
    Ok(f64::from(rounds) * f64::from(tokens) / seconds / 1e6)
}

/// Encodes a thousand whole prompts again.
fn check(
    tokenizer: &Tokenizer,
    template: &ChatTemplate,
    materializer: &Materializer,
    name: &str,
) -> Result<(), Failure> {
    let mut exact = 0;
    for seed in 0..1000 {
        let prepared = materializer.prepare(unique(seed, 200 + seed % 400))?;
        let text = &*prepared.messages[0].text;
        let whole = match prepared.template_tokens {
            0 => tokenizer.count(text),
            _ => tokenizer.count(&template.render(&[(Role::User, text)], true)?),
        };
        exact += u32::from(whole == prepared.prompt_tokens + prepared.template_tokens);
    }
    println!("encoded again, {name}: {exact} of 1000 prompts have the tokens they are said to have");
    Ok(())
}

/// Trains a byte-level BPE as large as those of recent models.
fn large() -> Result<Vec<u8>, Failure> {
    let mut draws = RandomStream::new(1, 0, "words").draws();
    let mut word = || -> String {
        let syllables = 1 + draws.below(4);
        (0..syllables)
            .flat_map(|_| {
                let consonant = b"bcdfghjklmnprstvwz"[draws.below(18) as usize];
                let vowel = b"aeiou"[draws.below(5) as usize];
                let end = b"     nrst"[draws.below(9) as usize];
                [consonant, vowel, end].map(char::from)
            })
            .filter(|letter| *letter != ' ')
            .collect()
    };
    let words: Vec<String> = (0..150_000).map(|_| word()).collect();
    // Two sentences per word; frequent words occur in many.
    let lines = (0..60_000usize).map(|line| {
        let words = (0..10).map(|place| &*words[(line * 10 + place) % (words.len() >> (place / 2))]);
        format!(
            "{} {}.",
            words.clone().next().unwrap_or("a"),
            words.collect::<Vec<_>>().join(" ")
        )
    });
    let byte_level = || ByteLevel::new(false, true, true);
    let mut tokenizer =
        TokenizerBuilder::<BPE, NormalizerWrapper, _, PostProcessorWrapper, DecoderWrapper>::new()
            .with_model(BPE::default())
            .with_pre_tokenizer(Some(byte_level()))
            .build()?;
    let special = ["<|im_start|>", "<|im_end|>"];
    let mut trainer = BpeTrainer::builder()
        .show_progress(false)
        .vocab_size(100_000)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .special_tokens(special.iter().map(|name| AddedToken::from(*name, true)).collect())
        .build();
    tokenizer.train(&mut trainer, lines)?;
    Ok(tokenizer.to_string(false)?.into_bytes())
}

fn unique(seed: u32, tokens: u32) -> Request {
    request(vec![Segment::Synthetic {
        seed: Seed { high: 1, low: seed },
        tokens,
    }])
}

fn shared_prefix(seed: u32) -> Request {
    let prefix = Segment::Synthetic {
        seed: Seed { high: 2, low: 0 },
        tokens: 1000,
    };
    request(vec![
        prefix,
        Segment::Synthetic {
            seed: Seed { high: 3, low: seed },
            tokens: 200,
        },
    ])
}

fn request(content: Vec<Segment>) -> Request {
    Request {
        node: NodeId(0),
        messages: vec![Message {
            reasoning: None,
            tool_calls: Vec::new(),
            role: Role::User,
            content,
            tool_call_id: None,
        }],
        ..Request::default()
    }
}
