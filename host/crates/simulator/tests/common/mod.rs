//! Shared by the tests of the engine.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![expect(clippy::unwrap_used, reason = "these are tests")]

use veeksha_simulator::{Engine, EngineEvent, EngineRequest, Profile};

/// Costs for easy calculation: 10 ms + 1 ms per prompt token, 4 ms + 1 ms per decoding sequence,
/// blocks of 4.
pub(crate) fn plain() -> Profile {
    Profile {
        prefill_base_ms: 10.0,
        prefill_ms_per_token: 1.0,
        decode_base_ms: 4.0,
        decode_ms_per_sequence: 1.0,
        max_batch: 8,
        max_prefill_tokens_per_step: 1000,
        kv_capacity_tokens: 4000,
        block_size: 4,
        prefix_cache: false,
        noise_cv: 0.0,
        max_context: 1000,
        ..Profile::default()
    }
}

/// Returns a request for exactly `output` tokens, with blocks named after `id` so that nothing is
/// shared.
pub(crate) fn request(id: u64, prompt: u32, output: u32) -> EngineRequest {
    EngineRequest {
        id,
        prompt_tokens: prompt,
        blocks: (0..u64::from(prompt / 4))
            .map(|block| (id << 32) | block)
            .collect(),
        max_tokens: Some(output),
        exact: true,
    }
}

/// Returns milliseconds in nanoseconds.
pub(crate) fn ms(value: u64) -> u64 {
    value * 1_000_000
}

/// Runs the engine until there are no more events.
pub(crate) fn drain(engine: &mut Engine, events: &mut Vec<EngineEvent>) {
    while let Some(wake) = engine.next_wake() {
        engine.advance(wake, events);
    }
}

/// Submits each request at its time and runs to the end.
pub(crate) fn run(
    profile: Profile,
    seed: u64,
    requests: &[(u64, EngineRequest)],
) -> (Engine, Vec<EngineEvent>) {
    profile.check().unwrap();
    let mut engine = Engine::new(profile, seed);
    let mut events = Vec::new();
    for (at, request) in requests {
        engine.submit(*at, request.clone(), &mut events);
    }
    drain(&mut engine, &mut events);
    (engine, events)
}

/// Returns the times of a request's tokens.
pub(crate) fn tokens(events: &[EngineEvent], wanted: u64) -> Vec<u64> {
    let mut next = 0;
    let mut times = Vec::new();
    for event in events {
        if let EngineEvent::Token { id, at, index } = event
            && *id == wanted
        {
            assert_eq!(*index, next, "tokens come in order");
            next += 1;
            times.push(*at);
        }
    }
    times
}

/// Returns the time of a request's admission, and its number of cached tokens.
pub(crate) fn started(events: &[EngineEvent], wanted: u64) -> (u64, u32) {
    let mut all = events.iter().filter_map(|event| match event {
        EngineEvent::Started {
            id,
            at,
            cached_tokens,
        } if *id == wanted => Some((*at, *cached_tokens)),
        _ => None,
    });
    let first = all.next().unwrap();
    assert_eq!(all.next(), None, "started once");
    first
}
