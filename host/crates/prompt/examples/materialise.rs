//! Prints how fast synthetic text is made, and how long a tokenizer takes to be made ready.
//!
//! `cargo run --release -p veeksha-prompt --example materialise [TOKENIZER]`

use std::path::Path;

use veeksha_clock::RunClock;
use veeksha_model::{Message, NodeId, OutputSpec, Request, Role, Seed, Segment};
use veeksha_prompt::{Materialiser, Tokenizer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clock = RunClock::starting_now();
    let tokenizer = match std::env::args().nth(1) {
        Some(path) => Tokenizer::load(Path::new(&path))?,
        None => Tokenizer::embedded()?,
    };
    let loaded = clock.now();
    let materialiser = Materialiser::new(tokenizer.clone())?;
    let ready = clock.now();
    println!(
        "{}: {} tokens, loaded in {:.1} ms; {} words found in {:.1} ms, lengths {}",
        tokenizer.name(),
        tokenizer.vocabulary(),
        loaded as f64 / 1e6,
        materialiser.words(),
        (ready - loaded) as f64 / 1e6,
        if materialiser.is_proven() {
            "proven"
        } else {
            "checked"
        },
    );

    for tokens in [128, 1024, 16_384] {
        let rounds = 20_000_000 / tokens;
        let mut exact = true;
        let start = clock.now();
        for seed in 0..rounds {
            let prepared = materialiser.prepare(unique(seed, tokens))?;
            exact &= prepared.prompt_tokens == tokens;
        }
        let seconds = (clock.now() - start) as f64 / 1e9;
        let rate = f64::from(rounds) * f64::from(tokens) / seconds / 1e6;
        println!(
            "unique prompts of {tokens:>5} tokens: {rate:7.1} M tokens/s on one core, all exact: {exact}"
        );
    }

    let rounds = 20_000;
    let start = clock.now();
    for seed in 0..rounds {
        materialiser.prepare(shared_prefix(seed))?;
    }
    let seconds = (clock.now() - start) as f64 / 1e9;
    let rate = f64::from(rounds) * 1200.0 / seconds / 1e6;
    println!("prompts of 1000 shared and 200 unique tokens: {rate:7.1} M tokens/s on one core");
    Ok(())
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
        parents: Vec::new(),
        history_parent: None,
        wait_after_ready: 0,
        messages: vec![Message {
            role: Role::User,
            content,
            tool_call_id: None,
        }],
        output: OutputSpec::default(),
        body: None,
        labels: Vec::new(),
        replay: None,
    }
}
