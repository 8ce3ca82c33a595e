//! The engine against times calculated by hand. See `common::plain` for the costs.

mod common;

use common::{drain, ms, plain, request, run, started, tokens};
use veeksha_simulator::{Engine, EngineEvent, EngineRequest, Fault, Faults, FinishReason, Profile};

#[test]
fn single_request_takes_prefill_and_decodes() {
    let (engine, events) = run(plain(), 1, &[(ms(3), request(7, 20, 4))]);
    // Prefill: 10 + 20. Then three decodes of 4 + 1.
    let first = ms(3 + 30);
    assert_eq!(
        tokens(&events, 7),
        [first, first + ms(5), first + ms(10), first + ms(15)]
    );
    assert_eq!(started(&events, 7), (ms(3), 0));
    assert_eq!(
        events.last(),
        Some(&EngineEvent::Finished {
            id: 7,
            at: first + ms(15),
            reason: FinishReason::Length,
            prompt_tokens: 20,
            cached_tokens: 0,
            completion_tokens: 4
        })
    );
    let stats = engine.stats();
    assert_eq!((stats.running, stats.waiting, stats.kv_used_tokens), (0, 0, 0));
    assert_eq!(
        (
            stats.prompt_tokens_total,
            stats.generation_tokens_total,
            stats.steps_total
        ),
        (20, 4, 4)
    );
    assert_eq!((stats.requests_total, stats.finished_length_total), (1, 1));
}

#[test]
fn keeps_fractions_of_a_millisecond() {
    let profile = Profile {
        prefill_base_ms: 0.25,
        prefill_ms_per_token: 0.0005,
        ..plain()
    };
    let (_, events) = run(profile, 1, &[(0, request(1, 7, 1))]);
    assert_eq!(tokens(&events, 1), [253_500]);
}

#[test]
fn concurrent_requests_share_every_step() {
    let (_, events) = run(plain(), 1, &[(0, request(1, 20, 3)), (0, request(2, 30, 3))]);
    // One prefill of 50 tokens; then decodes of two sequences: 4 + 2.
    for id in [1, 2] {
        assert_eq!(tokens(&events, id), [ms(60), ms(66), ms(72)]);
    }
}

#[test]
fn new_request_waits_for_the_step_and_slows_the_next() {
    // Alone: prefill until 30, decodes end at 35, 40. The second arrives at 36 and begins at 40;
    // that step holds its prefill (10 + 10) and the first one's decode (4 + 1), so it ends at 65.
    // Then both decode: 71.
    let (_, events) = run(plain(), 1, &[(0, request(1, 20, 5)), (ms(36), request(2, 10, 2))]);
    assert_eq!(tokens(&events, 1), [ms(30), ms(35), ms(40), ms(65), ms(71)]);
    assert_eq!(started(&events, 2), (ms(40), 0));
    assert_eq!(tokens(&events, 2), [ms(65), ms(71)]);
}

#[test]
fn the_batch_limit_queues_first_come_first_served() {
    let profile = Profile {
        max_batch: 1,
        ..plain()
    };
    let (_, events) = run(
        profile,
        1,
        &[
            (0, request(1, 20, 2)),
            (0, request(2, 20, 2)),
            (0, request(3, 20, 2)),
        ],
    );
    assert_eq!(tokens(&events, 1), [ms(30), ms(35)]);
    assert_eq!(started(&events, 2), (ms(35), 0));
    assert_eq!(tokens(&events, 2), [ms(65), ms(70)]);
    assert_eq!(tokens(&events, 3), [ms(100), ms(105)]);
}

#[test]
fn prefills_long_prompts_in_chunks() {
    let profile = Profile {
        max_prefill_tokens_per_step: 16,
        ..plain()
    };
    // Chunks of 16, 16, 8: 26 + 26 + 18.
    let (_, events) = run(profile.clone(), 1, &[(0, request(1, 40, 2))]);
    assert_eq!(tokens(&events, 1), [ms(70), ms(75)]);
    // A first request of 8 decodes meanwhile. Step 1: its 8 and 8 of the second, 26. Steps 2, 3: 16
    // each and a decode, 31. The second is then complete.
    let (_, events) = run(profile, 1, &[(0, request(1, 8, 3)), (0, request(2, 40, 1))]);
    assert_eq!(tokens(&events, 1), [ms(26), ms(57), ms(88)]);
    assert_eq!(tokens(&events, 2), [ms(88)]);
}

#[test]
fn full_memory_delays_admission() {
    // 10 blocks of 4. The first takes 8 for its prompt of 32, a ninth for its second token. The
    // second needs 3.
    let profile = Profile {
        kv_capacity_tokens: 40,
        max_context: 40,
        ..plain()
    };
    let (engine, events) = run(profile, 1, &[(0, request(1, 32, 3)), (0, request(2, 12, 1))]);
    assert_eq!(tokens(&events, 1), [ms(42), ms(47), ms(52)]);
    assert_eq!(started(&events, 2), (ms(52), 0));
    assert_eq!(tokens(&events, 2), [ms(52 + 22)]);
    assert_eq!(engine.stats().preemptions_total, 0);
}

#[test]
fn preempts_and_recomputes_the_youngest() {
    // 6 blocks of 4: each prompt of 8 takes two, two are left. Both decode after 10 + 16 = 26 and
    // take their third block for their 9th entry; tokens 2 to 5 come at 32, 38, 44, 50. The 13th
    // entry needs a fourth block: the second one is preempted. The first decodes alone: 55, 60, 65
    // (8 tokens, done). The second then computes 8 + 5 tokens, 10 + 13, and its sixth token comes
    // at 88; the rest at 93, 98.
    let profile = Profile {
        kv_capacity_tokens: 24,
        max_context: 24,
        ..plain()
    };
    let (engine, events) = run(profile, 1, &[(0, request(1, 8, 8)), (0, request(2, 8, 8))]);
    let shared = [26, 32, 38, 44, 50];
    let first: Vec<u64> = shared.iter().chain(&[55, 60, 65]).map(|at| ms(*at)).collect();
    let second: Vec<u64> = shared.iter().chain(&[88, 93, 98]).map(|at| ms(*at)).collect();
    assert_eq!(tokens(&events, 1), first);
    assert_eq!(tokens(&events, 2), second);
    assert_eq!(engine.stats().preemptions_total, 1);
    assert_eq!(
        engine.stats().prompt_tokens_total,
        16,
        "recomputed tokens are not counted twice"
    );
}

#[test]
fn preempted_requests_precede_waiting_ones() {
    // As above, with a third request that waits for the batch from the beginning. Its three blocks
    // do not fit next to the second's four.
    let profile = Profile {
        kv_capacity_tokens: 24,
        max_context: 24,
        max_batch: 2,
        ..plain()
    };
    let requests = [
        (0, request(1, 8, 8)),
        (0, request(2, 8, 8)),
        (0, request(3, 12, 1)),
    ];
    let (_, events) = run(profile, 1, &requests);
    assert_eq!(tokens(&events, 2)[5..], [ms(88), ms(93), ms(98)]);
    assert_eq!(started(&events, 3), (ms(98), 0));
    assert_eq!(tokens(&events, 3), [ms(120)]);
}

#[test]
fn cached_prefix_saves_exactly_its_blocks() {
    let profile = Profile {
        prefix_cache: true,
        ..plain()
    };
    let mut second = request(2, 22, 1);
    second.blocks[..3].copy_from_slice(&request(1, 20, 1).blocks[..3]);
    let again = EngineRequest {
        id: 3,
        ..request(1, 20, 1)
    };
    let (engine, events) = run(
        profile.clone(),
        1,
        &[
            (0, request(1, 20, 1)),
            (ms(100), second),
            (ms(200), again.clone()),
        ],
    );
    assert_eq!(tokens(&events, 1), [ms(30)]);
    // 12 of 22 tokens are known.
    assert_eq!(started(&events, 2), (ms(100), 12));
    assert_eq!(tokens(&events, 2), [ms(100 + 10 + 10)]);
    // All five blocks are known, but the last token is computed in any case, and with it its block.
    assert_eq!(started(&events, 3), (ms(200), 16));
    assert_eq!(tokens(&events, 3), [ms(200 + 10 + 4)]);
    let stats = engine.stats();
    assert_eq!((stats.prefix_queries_tokens, stats.prefix_hits_tokens), (62, 28));
    // Without the cache nothing is saved.
    let (engine, events) = run(
        Profile {
            prefix_cache: false,
            ..profile
        },
        1,
        &[(0, request(1, 20, 1)), (ms(100), again)],
    );
    assert_eq!(started(&events, 3), (ms(100), 0));
    assert_eq!(
        (
            engine.stats().prefix_queries_tokens,
            engine.stats().prefix_hits_tokens
        ),
        (0, 0)
    );
}

#[test]
fn prefix_is_cached_only_after_it_is_computed() {
    let profile = Profile {
        prefix_cache: true,
        ..plain()
    };
    let equal = EngineRequest {
        id: 2,
        ..request(1, 20, 1)
    };
    let (_, events) = run(profile, 1, &[(0, request(1, 20, 1)), (0, equal)]);
    assert_eq!(started(&events, 2), (0, 0), "both begin in the same step");
    assert_eq!(tokens(&events, 2), [ms(50)]);
}

#[test]
fn evicts_old_prefixes_for_new_prompts() {
    let profile = Profile {
        prefix_cache: true,
        kv_capacity_tokens: 40,
        max_context: 40,
        ..plain()
    };
    let again = EngineRequest {
        id: 3,
        ..request(1, 20, 1)
    };
    // The second takes 9 of the 10 blocks: one of the first one's five is left, its beginning.
    let (_, events) = run(
        profile,
        1,
        &[
            (0, request(1, 20, 1)),
            (ms(100), request(2, 36, 1)),
            (ms(200), again),
        ],
    );
    assert_eq!(started(&events, 3), (ms(200), 4));
}

#[test]
fn cancelling_frees_the_slot_and_the_memory() {
    let profile = Profile {
        max_batch: 1,
        ..plain()
    };
    let mut engine = Engine::new(profile, 1);
    let mut events = Vec::new();
    for id in 1..=3 {
        engine.submit(0, request(id, 20, 100), &mut events);
    }
    engine.advance(ms(40), &mut events);
    assert_eq!(engine.stats().kv_used_tokens, 24);
    engine.cancel(ms(41), 2);
    engine.cancel(ms(42), 1);
    engine.cancel(ms(42), 99);
    let stats = engine.stats();
    assert_eq!(
        (
            stats.running,
            stats.waiting,
            stats.kv_used_tokens,
            stats.cancelled_total
        ),
        (0, 1, 0, 2)
    );
    let before = events.len();
    drain(&mut engine, &mut events);
    assert!(events[before..].iter().all(|event| event.id() == 3));
    // The running step ends at 45; then the third begins.
    assert_eq!(started(&events, 3), (ms(45), 0));
    assert_eq!(tokens(&events, 3).len(), 100);
}

#[test]
fn rejects_impossible_requests() {
    let cases = [
        (request(1, 0, 1), "the prompt is empty"),
        (request(1, 10, 0), "max_tokens must be at least 1"),
        (
            request(1, 1000, 1),
            "maximum context length is 1000 tokens, but the prompt has 1000",
        ),
        (request(1, 2000, 1), "the prompt has 2000"),
        (request(1, 990, 11), "990 and 11 are to be generated"),
        (
            EngineRequest {
                prompt_tokens: u32::MAX,
                ..request(1, 8, 1)
            },
            "4294967295",
        ),
    ];
    for (request, expected) in cases {
        let (engine, events) = run(plain(), 1, &[(0, request)]);
        let [
            EngineEvent::Rejected {
                id: 1,
                status: 400,
                message,
            },
        ] = events.as_slice()
        else {
            panic!("{events:?}")
        };
        assert!(message.contains(expected), "{message} does not say {expected}");
        assert_eq!(engine.stats().rejected_total, 1);
    }
    let (_, events) = run(plain(), 1, &[(0, request(1, 990, 10))]);
    assert_eq!(tokens(&events, 1).len(), 10);
}

#[test]
fn exact_length_without_limit_fills_the_context() {
    let (_, events) = run(
        plain(),
        1,
        &[(
            0,
            EngineRequest {
                max_tokens: None,
                ..request(1, 900, 0)
            },
        )],
    );
    assert_eq!(tokens(&events, 1).len(), 100);
}

/// Lengths are ceil(mean * Gamma(2)/2): mean `mean + 1/2` (the rounding), variance `mean^2 / 2`.
#[test]
fn drawn_lengths_follow_their_distribution() {
    let profile = Profile {
        mean_output_tokens: 100.0,
        max_batch: 20_000,
        kv_capacity_tokens: 1 << 40,
        max_context: 100_000,
        max_prefill_tokens_per_step: 1_000_000,
        ..plain()
    };
    let n = 10_000u64;
    let free = |id| {
        (
            0,
            EngineRequest {
                max_tokens: None,
                exact: false,
                ..request(id, 8, 0)
            },
        )
    };
    let (_, events) = run(profile.clone(), 5, &(0..n).map(free).collect::<Vec<_>>());
    let lengths: Vec<f64> = finished(&events)
        .iter()
        .map(|(length, reason)| {
            assert_eq!(*reason, FinishReason::Stop);
            f64::from(*length)
        })
        .collect();
    assert_eq!(lengths.len(), n as usize);
    let mean = lengths.iter().sum::<f64>() / n as f64;
    let deviation = (lengths.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
    // Five standard errors: 5 * 70.7 / 100 = 3.5.
    assert!((mean - 100.5).abs() < 3.6, "{mean}");
    assert!((deviation - 70.7).abs() < 4.0, "{deviation}");

    let capped = |id| {
        (
            0,
            EngineRequest {
                max_tokens: Some(100),
                exact: false,
                ..request(id, 8, 0)
            },
        )
    };
    let (_, events) = run(profile, 5, &(0..n).map(capped).collect::<Vec<_>>());
    let ends = finished(&events);
    assert!(
        ends.iter()
            .all(|(length, reason)| (*reason == FinishReason::Length) == (*length == 100))
    );
    // P(Gamma(2) > 2 * 99 / 100) = e^-1.98 * 2.98 = 0.4114; five standard errors are 0.025.
    let cut = ends
        .iter()
        .filter(|(_, reason)| *reason == FinishReason::Length)
        .count() as f64
        / n as f64;
    assert!((cut - 0.4114).abs() < 0.025, "{cut}");
}

fn finished(events: &[EngineEvent]) -> Vec<(u32, FinishReason)> {
    let ends = events.iter().filter_map(|event| match event {
        EngineEvent::Finished {
            completion_tokens,
            reason,
            ..
        } => Some((*completion_tokens, *reason)),
        _ => None,
    });
    ends.collect()
}

/// Step times are multiplied by Gamma(1/cv^2) * cv^2: mean 1, deviation cv.
#[test]
fn noise_has_mean_one_and_the_configured_variation() {
    let profile = Profile {
        noise_cv: 0.2,
        max_context: 4000,
        ..plain()
    };
    let (_, events) = run(profile, 9, &[(0, request(1, 10, 3900))]);
    let times = tokens(&events, 1);
    let gaps: Vec<f64> = times
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as f64 / 5e6)
        .collect();
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    let deviation = (gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / n).sqrt();
    // Five standard errors at n = 3899: 5 * 0.2 / 62.4 = 0.016; of the deviation about 0.012.
    assert!((mean - 1.0).abs() < 0.016, "{mean}");
    assert!((deviation - 0.2).abs() < 0.013, "{deviation}");
}

fn with(faults: Faults) -> Profile {
    Profile { faults, ..plain() }
}

#[test]
fn faults_replace_a_token() {
    let cases = [
        (
            Faults {
                drop_connection_probability: 1.0,
                ..Faults::default()
            },
            Fault::DropConnection,
        ),
        (
            Faults {
                midstream_error_probability: 1.0,
                ..Faults::default()
            },
            Fault::MidStreamError,
        ),
        (
            Faults {
                truncate_probability: 1.0,
                ..Faults::default()
            },
            Fault::Truncate,
        ),
    ];
    for (faults, expected) in cases {
        for (after, times) in [
            (0, vec![]),
            (2, vec![ms(30), ms(35)]),
            (9, vec![ms(30), ms(35), ms(40)]),
        ] {
            let profile = with(Faults {
                after_tokens: Some(after),
                ..faults.clone()
            });
            let (engine, events) = run(profile, 1, &[(0, request(1, 20, 4))]);
            assert_eq!(tokens(&events, 1), times);
            let at = ms(30 + 5 * times.len() as u64);
            assert_eq!(
                events.last(),
                Some(&EngineEvent::Fault {
                    id: 1,
                    at,
                    fault: expected
                })
            );
            assert_eq!(
                (engine.stats().faulted_total, engine.stats().kv_used_tokens),
                (1, 0)
            );
        }
    }
}

#[test]
fn stalled_answer_continues() {
    let faults = Faults {
        stall_probability: 1.0,
        stall_ms: 100.0,
        after_tokens: Some(2),
        ..Faults::default()
    };
    let (_, events) = run(with(faults), 1, &[(0, request(1, 20, 4))]);
    // The third token was due at 40; the sequence decodes again at 140.
    assert_eq!(tokens(&events, 1), [ms(30), ms(35), ms(145), ms(150)]);
    assert!(events.contains(&EngineEvent::Fault {
        id: 1,
        at: ms(40),
        fault: Fault::Stall { until: ms(140) }
    }));
    assert!(matches!(
        events.last(),
        Some(EngineEvent::Finished {
            completion_tokens: 4,
            ..
        })
    ));
}

#[test]
fn wakes_for_the_first_stalled_answer() {
    let faults = Faults {
        stall_probability: 1.0,
        stall_ms: 100.0,
        after_tokens: Some(2),
        ..Faults::default()
    };
    let (_, events) = run(
        with(faults),
        1,
        &[(0, request(1, 20, 4)), (ms(36), request(2, 20, 4))],
    );
    // The second begins at 40, when the first stalls, and stalls at 80.
    assert_eq!(tokens(&events, 1), [ms(30), ms(35), ms(145), ms(150)]);
    assert_eq!(tokens(&events, 2), [ms(70), ms(75), ms(185), ms(190)]);
}

#[test]
fn cancelling_a_stalled_answer_starts_the_next() {
    let faults = Faults {
        stall_probability: 1.0,
        stall_ms: 100.0,
        after_tokens: Some(0),
        ..Faults::default()
    };
    let mut engine = Engine::new(
        Profile {
            max_batch: 1,
            ..with(faults)
        },
        1,
    );
    let mut events = Vec::new();
    engine.submit(0, request(1, 20, 1), &mut events);
    engine.submit(0, request(2, 20, 1), &mut events);
    engine.advance(ms(50), &mut events);
    assert_eq!(engine.next_wake(), Some(ms(130)), "both wait for the stalled one");
    engine.cancel(ms(50), 1);
    assert_eq!(engine.next_wake(), Some(ms(50)));
    drain(&mut engine, &mut events);
    assert_eq!(started(&events, 2), (ms(50), 0));
    // Its own stall begins at 80; the decode after it brings its token.
    assert_eq!(tokens(&events, 2), [ms(185)]);
}

#[test]
fn a_slow_start_delays_every_request() {
    let faults = Faults {
        start_delay_ms: 50.0,
        ..Faults::default()
    };
    let (_, events) = run(
        with(faults),
        1,
        &[(0, request(1, 20, 1)), (ms(10), request(2, 20, 1))],
    );
    assert_eq!(
        (started(&events, 1), tokens(&events, 1)),
        ((ms(50), 0), vec![ms(80)])
    );
    assert_eq!(
        (started(&events, 2), tokens(&events, 2)),
        ((ms(80), 0), vec![ms(110)])
    );
}

#[test]
fn faults_occur_with_their_probability() {
    let faults = Faults {
        refuse_probability: 0.05,
        status_429_probability: 0.1,
        status_500_probability: 0.02,
        status_503_probability: 0.03,
        drop_connection_probability: 0.1,
        midstream_error_probability: 0.2,
        truncate_probability: 0.05,
        stall_probability: 0.15,
        ..Faults::default()
    };
    let profile = Profile {
        max_batch: 1000,
        kv_capacity_tokens: 1 << 30,
        ..with(faults)
    };
    let n = 20_000;
    let requests: Vec<_> = (0..n).map(|id| (0, request(id, 8, 10))).collect();
    let (_, events) = run(profile, 11, &requests);
    let count = |wanted: &dyn Fn(&EngineEvent) -> bool| events.iter().filter(|event| wanted(event)).count();
    let status =
        |code: u16| count(&|event| matches!(event, EngineEvent::Rejected { status, .. } if *status == code));
    let fault =
        |kind: Fault| count(&|event| matches!(event, EngineEvent::Fault { fault, .. } if *fault == kind));
    let started = count(&|event| matches!(event, EngineEvent::Started { .. }));
    // 0.8 of the requests pass admission; the faults inside the answer apply to those.
    let drops = fault(Fault::DropConnection);
    let stalls = count(&|event| {
        matches!(
            event,
            EngineEvent::Fault {
                fault: Fault::Stall { .. },
                ..
            }
        )
    });
    let seen = [
        (status(429), 0.1),
        (status(500), 0.02),
        (status(503), 0.03),
        (started, 0.8),
        (drops, 0.05 + 0.8 * 0.1),
        (fault(Fault::MidStreamError), 0.8 * 0.2),
        (fault(Fault::Truncate), 0.8 * 0.05),
        (stalls, 0.8 * 0.15),
    ];
    for (index, (count, probability)) in seen.into_iter().enumerate() {
        let expected = n as f64 * probability;
        // Five standard deviations of the binomial distribution.
        let bound = 5.0 * (n as f64 * probability * (1.0 - probability)).sqrt();
        assert!(
            (count as f64 - expected).abs() < bound,
            "case {index}: {count}, not {expected} ± {bound}"
        );
    }
    // Positions are drawn uniformly from 0 to 9 tokens: truncated and broken answers have 4.5 on
    // average.
    let mut cut = vec![0u32; n as usize];
    for event in &events {
        match event {
            EngineEvent::Token { id, .. } => cut[*id as usize] += 1,
            EngineEvent::Finished { id, .. } => cut[*id as usize] = u32::MAX,
            _ => {}
        }
    }
    let broken: Vec<u32> = events
        .iter()
        .filter_map(|event| match event {
            EngineEvent::Fault {
                id,
                fault: Fault::MidStreamError,
                ..
            } => Some(cut[*id as usize]),
            _ => None,
        })
        .collect();
    let mean = broken.iter().map(|tokens| f64::from(*tokens)).sum::<f64>() / broken.len() as f64;
    // Deviation of the uniform distribution on 0..=9: 2.87; five standard errors at about 3200:
    // 0.25.
    assert!((mean - 4.5).abs() < 0.26, "{mean}");
    assert!((0..10).all(|place| broken.contains(&place)));
}
