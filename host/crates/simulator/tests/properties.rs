//! Properties for every profile, every load and every order of calls.

mod common;

use std::collections::HashMap;

use common::drain;
use proptest::prelude::*;
use veeksha_simulator::{Engine, EngineEvent, EngineRequest, Fault, Faults, Profile};

/// A driver's call.
#[derive(Clone, Debug)]
enum Call {
    Submit {
        prompt: u32,
        prefix: u8,
        max: Option<u32>,
        exact: bool,
    },
    Cancel(usize),
    Advance,
}

fn calls() -> impl Strategy<Value = Vec<(u64, Call)>> {
    let submit = (
        0u32..70,
        0u8..4,
        prop::option::weighted(0.8, 0u32..40),
        any::<bool>(),
    )
        .prop_map(|(prompt, prefix, max, exact)| Call::Submit {
            prompt,
            prefix,
            max,
            exact,
        });
    let call = prop_oneof![8 => submit, 1 => any::<usize>().prop_map(Call::Cancel), 2 => Just(Call::Advance)];
    // Gaps in nanoseconds; often zero, so that calls coincide.
    prop::collection::vec((prop_oneof![2 => Just(0u64), 3 => 0u64..30_000_000], call), 1..80)
}

fn profiles() -> impl Strategy<Value = Profile> {
    let shape = (
        1u32..6,
        1u32..40,
        1u32..9,
        64u64..160,
        any::<bool>(),
        prop_oneof![Just(0.0), Just(0.3)],
    );
    let faults = (
        prop_oneof![Just(0.0), Just(0.1)],
        prop_oneof![Just(0.0), Just(7.0)],
        prop::option::of(0u32..5),
    );
    let costs = (0.0..3.0f64, 0.0..0.5f64, 0.0..3.0f64, 0.0..0.5f64);
    (shape, faults, costs).prop_map(|(shape, (probability, delay, after_tokens), costs)| Profile {
        prefill_base_ms: costs.0,
        prefill_ms_per_token: costs.1,
        decode_base_ms: costs.2,
        decode_ms_per_sequence: costs.3,
        max_batch: shape.0,
        max_prefill_tokens_per_step: shape.1,
        block_size: shape.2,
        kv_capacity_tokens: shape.3,
        prefix_cache: shape.4,
        noise_cv: shape.5,
        max_context: 50,
        mean_output_tokens: 12.0,
        faults: Faults {
            refuse_probability: probability,
            status_429_probability: probability,
            status_503_probability: probability,
            drop_connection_probability: probability,
            midstream_error_probability: probability,
            truncate_probability: probability,
            stall_probability: 2.0 * probability,
            stall_ms: 20.0,
            start_delay_ms: delay,
            after_tokens,
            ..Faults::default()
        },
        ..Profile::default()
    })
}

fn blocks(prompt: u32, prefix: u8, block_size: u32) -> Vec<u64> {
    // Prompts of one prefix group share all blocks that both have.
    (0..u64::from(prompt / block_size))
        .map(|block| (u64::from(prefix) << 32) | (block + 1))
        .collect()
}

struct Run {
    engine: Engine,
    events: Vec<EngineEvent>,
    /// Position in `events` at which each request was cancelled.
    cancelled: HashMap<u64, usize>,
    submitted: Vec<(u64, EngineRequest)>,
}

fn drive(profile: &Profile, seed: u64, calls: &[(u64, Call)], mut look: impl FnMut(&Engine)) -> Run {
    let mut engine = Engine::new(profile.clone(), seed);
    let (mut events, mut cancelled, mut submitted) = (Vec::new(), HashMap::new(), Vec::new());
    let mut now = 0;
    for (gap, call) in calls {
        now += gap;
        match call {
            Call::Submit {
                prompt,
                prefix,
                max,
                exact,
            } => {
                let request = EngineRequest {
                    id: submitted.len() as u64,
                    prompt_tokens: *prompt,
                    blocks: blocks(*prompt, *prefix, profile.block_size),
                    max_tokens: *max,
                    exact: *exact,
                };
                engine.submit(now, request.clone(), &mut events);
                submitted.push((now, request));
            }
            Call::Cancel(index) if !submitted.is_empty() => {
                let id = (index % submitted.len()) as u64;
                let before = engine.stats().cancelled_total;
                engine.cancel(now, id);
                if engine.stats().cancelled_total > before {
                    cancelled.insert(id, events.len());
                }
            }
            Call::Cancel(_) => {}
            Call::Advance => engine.advance(now, &mut events),
        }
        look(&engine);
    }
    while let Some(wake) = engine.next_wake() {
        engine.advance(wake, &mut events);
        look(&engine);
    }
    Run {
        engine,
        events,
        cancelled,
        submitted,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn every_request_gets_consistent_events_and_one_end(profile in profiles(), calls in calls(), seed in 0u64..100) {
        prop_assert_eq!(profile.check(), Ok(()));
        let capacity = profile.kv_capacity_tokens / u64::from(profile.block_size) * u64::from(profile.block_size);
        let mut broken = None;
        let run = drive(&profile, seed, &calls, |engine| {
            let stats = engine.stats();
            if stats.running > u64::from(profile.max_batch) || stats.kv_used_tokens > capacity {
                broken = Some(stats);
            }
        });
        prop_assert_eq!(broken, None);

        let mut ended: HashMap<u64, usize> = HashMap::new();
        let mut tokens: HashMap<u64, u32> = HashMap::new();
        let mut started: HashMap<u64, u64> = HashMap::new();
        let mut latest = 0;
        for (position, event) in run.events.iter().enumerate() {
            let id = event.id();
            let (arrived, request) = &run.submitted[id as usize];
            prop_assert!(!ended.contains_key(&id), "nothing comes after the end: {:?}", event);
            prop_assert!(run.cancelled.get(&id).is_none_or(|at| position < *at), "nothing after a cancel");
            let at = match event {
                EngineEvent::Rejected { .. } => latest.max(*arrived),
                EngineEvent::Started { at, cached_tokens, .. } => {
                    prop_assert!(started.insert(id, *at).is_none());
                    prop_assert!(*cached_tokens < request.prompt_tokens);
                    prop_assert_eq!(*cached_tokens % profile.block_size, 0);
                    *at
                }
                EngineEvent::Token { at, index, .. } => {
                    let count = tokens.entry(id).or_insert(0);
                    prop_assert_eq!(*index, *count);
                    *count += 1;
                    prop_assert!(started[&id] < *at);
                    *at
                }
                EngineEvent::Finished { at, prompt_tokens, completion_tokens, reason, .. } => {
                    prop_assert_eq!(*prompt_tokens, request.prompt_tokens);
                    prop_assert_eq!(Some(completion_tokens), tokens.get(&id));
                    let limit = request.max_tokens.unwrap_or(profile.max_context - request.prompt_tokens);
                    prop_assert!(*completion_tokens <= limit);
                    prop_assert_eq!(*completion_tokens == limit, *reason == veeksha_simulator::FinishReason::Length);
                    prop_assert!(!request.exact || *completion_tokens == limit);
                    *at
                }
                EngineEvent::Fault { at, .. } => *at,
            };
            prop_assert!(latest <= at, "events come in the order of time");
            prop_assert!(*arrived <= at);
            latest = at;
            if event.is_terminal() {
                ended.insert(id, position);
            }
        }
        for id in 0..run.submitted.len() as u64 {
            prop_assert!(ended.contains_key(&id) != run.cancelled.contains_key(&id), "request {} has no end", id);
        }
        let stats = run.engine.stats();
        prop_assert_eq!((stats.running, stats.waiting, stats.kv_used_tokens), (0, 0, 0));
        prop_assert_eq!(stats.requests_total, run.submitted.len() as u64);
        prop_assert_eq!(
            stats.requests_total,
            stats.rejected_total + stats.finished_stop_total + stats.finished_length_total + stats.faulted_total
                + stats.cancelled_total
        );
        prop_assert_eq!(stats.generation_tokens_total, tokens.values().map(|count| u64::from(*count)).sum::<u64>());
    }

    #[test]
    fn equal_calls_give_equal_events(profile in profiles(), calls in calls(), seed in 0u64..100) {
        let first = drive(&profile, seed, &calls, |_| ());
        let second = drive(&profile, seed, &calls, |_| ());
        prop_assert_eq!(first.events, second.events);
        prop_assert_eq!(first.engine.stats(), second.engine.stats());
    }

    /// Intermediate calls of `advance` at any times change nothing; only submissions do.
    #[test]
    fn intermediate_advances_do_not_matter(profile in profiles(), calls in calls(), seed in 0u64..100) {
        let submits: Vec<(u64, Call)> =
            calls.into_iter().map(|(gap, call)| (gap + 1, call)).filter(|(_, call)| !matches!(call, Call::Cancel(_))).collect();
        let looking = drive(&profile, seed, &submits, |_| ());
        let mut engine = Engine::new(profile, seed);
        let mut events = Vec::new();
        let (mut now, mut id) = (0, 0);
        for (gap, call) in &submits {
            now += gap;
            if let Call::Submit { .. } = call {
                engine.submit(now, looking.submitted[id].1.clone(), &mut events);
                id += 1;
            }
        }
        drain(&mut engine, &mut events);
        prop_assert_eq!(events, looking.events);
    }

    /// Without noise, faults and other requests, a request takes exactly its prefill and decode
    /// steps.
    #[test]
    fn single_request_takes_the_documented_time(profile in profiles(), prompt in 1u32..49, output in 1u32..20) {
        let output = output.min(50 - prompt);
        let profile = Profile { noise_cv: 0.0, faults: Faults::default(), ..profile };
        let request = EngineRequest { id: 0, prompt_tokens: prompt, blocks: vec![], max_tokens: Some(output), exact: true };
        let (_, events) = common::run(profile.clone(), 0, &[(0, request)]);
        let steps = prompt.div_ceil(profile.max_prefill_tokens_per_step);
        let expected = f64::from(steps) * profile.prefill_base_ms
            + f64::from(prompt) * profile.prefill_ms_per_token
            + f64::from(output - 1) * (profile.decode_base_ms + profile.decode_ms_per_sequence);
        let Some(EngineEvent::Finished { at, .. }) = events.last() else { panic!() };
        // Each step is rounded to a nanosecond, and takes at least one.
        let steps = f64::from(steps + output);
        prop_assert!((*at as f64 - expected * 1e6).abs() <= steps, "{} is not {}", at, expected * 1e6);
    }
}

#[test]
fn seeds_change_noise_lengths_and_faults() {
    let profile = Profile {
        faults: Faults {
            midstream_error_probability: 0.5,
            ..Faults::default()
        },
        ..Profile::default()
    };
    let requests: Vec<_> = (0..50)
        .map(|id| {
            (
                id * 1_000_000,
                EngineRequest {
                    id,
                    prompt_tokens: 100,
                    ..EngineRequest::default()
                },
            )
        })
        .collect();
    let (_, first) = common::run(profile.clone(), 1, &requests);
    let (_, second) = common::run(profile, 2, &requests);
    let faults = |events: &[EngineEvent]| -> Vec<u64> {
        let broken = events.iter().filter(|event| {
            matches!(
                event,
                EngineEvent::Fault {
                    fault: Fault::MidStreamError,
                    ..
                }
            )
        });
        let mut broken: Vec<u64> = broken.map(EngineEvent::id).collect();
        broken.sort_unstable();
        broken
    };
    assert_ne!(faults(&first), faults(&second));
    assert_ne!(common::tokens(&first, 0), common::tokens(&second, 0));
}
