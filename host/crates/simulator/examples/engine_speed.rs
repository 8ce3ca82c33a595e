//! Prints how many events per second the engine produces in virtual time, for an hour of traffic on
//! the default profile.
//!
//! `cargo run --release -p veeksha-simulator --example engine_speed -- [REQUESTS_PER_SECOND]`

use veeksha_clock::RunClock;
use veeksha_simulator::{Engine, EngineRequest, Profile, text};

const HOUR: u64 = 3_600_000_000_000;

fn main() {
    let rate: f64 = std::env::args()
        .nth(1)
        .and_then(|rate| rate.parse().ok())
        .unwrap_or(10.0);
    let gap = (1e9 / rate) as u64;
    let profile = Profile::default();
    let block_size = profile.block_size;
    let clock = RunClock::starting_now();
    let mut engine = Engine::new(profile, 1);
    let mut events = Vec::new();
    // A digest of the order and times of all events: equal for equal runs.
    let (mut count, mut digest) = (0u64, 0u64);
    let mut handle = |events: &mut Vec<_>| {
        for event in events.drain(..) {
            count += 1;
            if let veeksha_simulator::EngineEvent::Token { id, at, .. } = event {
                digest = digest.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ id ^ at;
            }
        }
    };
    for id in 0..HOUR / gap {
        let now = id * gap;
        engine.advance(now, &mut events);
        // A system prompt of 512 tokens, shared with 100 other requests for one request in four,
        // then 512 unshared tokens.
        let pieces = [(id % 4 * 100 + id % 100, 512), (1000 + id, 512)];
        let blocks = text::blocks_of_pieces(pieces.into_iter(), block_size);
        engine.submit(
            now,
            EngineRequest {
                id,
                prompt_tokens: 1024,
                blocks,
                max_tokens: Some(256),
                exact: false,
            },
            &mut events,
        );
        handle(&mut events);
    }
    while let Some(wake) = engine.next_wake() {
        engine.advance(wake, &mut events);
        handle(&mut events);
    }
    let seconds = clock.now() as f64 / 1e9;
    let stats = engine.stats();
    println!(
        "{} requests, {} tokens, {} steps, {} preemptions, {:.1} % of the prompts cached",
        stats.requests_total,
        stats.generation_tokens_total,
        stats.steps_total,
        stats.preemptions_total,
        100.0 * stats.prefix_hits_tokens as f64 / stats.prefix_queries_tokens.max(1) as f64
    );
    println!(
        "{count} events in {seconds:.3} s: {:.2} million events/s; digest {digest:016x}",
        count as f64 / seconds / 1e6
    );
}
