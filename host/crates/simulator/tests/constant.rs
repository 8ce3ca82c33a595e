//! Constant times: an answer's deadlines do not depend on the others.
#![expect(
    clippy::unwrap_used,
    reason = "the functions that the tests share are tests too"
)]

mod common;

use common::{drain, ms, started, tokens};
use veeksha_simulator::{Engine, EngineEvent, EngineRequest, Fault, Faults, FinishReason, Profile};

fn ask(id: u64, prompt: u32, output: u32) -> EngineRequest {
    EngineRequest {
        id,
        prompt_tokens: prompt,
        max_tokens: Some(output),
        ..EngineRequest::default()
    }
}

fn run(profile: Profile, requests: &[(u64, EngineRequest)]) -> (Engine, Vec<EngineEvent>) {
    profile.check().unwrap();
    let mut engine = Engine::new(profile, 1);
    let mut events = Vec::new();
    for (at, request) in requests {
        engine.submit(*at, request.clone(), &mut events);
    }
    drain(&mut engine, &mut events);
    (engine, events)
}

#[test]
fn times_do_not_depend_on_load_and_length() {
    let requests: Vec<_> = (0..50)
        .map(|id| (ms(id * 3), ask(id, 1 + 1000 * id as u32, 20)))
        .collect();
    let (engine, events) = run(Profile::reference(ms(40), ms(7), 50), &requests);
    for (at, request) in &requests {
        let expected: Vec<u64> = (0..20).map(|k| at + ms(40) + k * ms(7)).collect();
        assert_eq!(tokens(&events, request.id), expected, "request {}", request.id);
        assert_eq!(started(&events, request.id), (*at, 0));
    }
    let finished = events.iter().filter(|event| {
        matches!(
            event,
            EngineEvent::Finished {
                reason: FinishReason::Length,
                completion_tokens: 20,
                ..
            }
        )
    });
    assert_eq!(finished.count(), 50, "as long as asked, without ignore_eos");
    let stats = engine.stats();
    assert_eq!(
        (stats.running, stats.waiting, stats.generation_tokens_total),
        (0, 0, 1000)
    );
}

#[test]
fn excess_request_begins_when_another_ends() {
    let (_, events) = run(
        Profile::reference(ms(10), ms(5), 2),
        &[(0, ask(0, 1, 3)), (ms(1), ask(1, 1, 3)), (ms(2), ask(2, 1, 1))],
    );
    // Request 0 ends at 10 + 5 + 5; the third begins there.
    assert_eq!(started(&events, 2).0, ms(20));
    assert_eq!(tokens(&events, 2), [ms(30)]);
    assert_eq!(tokens(&events, 1), [ms(11), ms(16), ms(21)]);
}

#[test]
fn cancelled_request_frees_its_slot() {
    let mut engine = Engine::new(Profile::reference(ms(10), ms(5), 1), 1);
    let mut events = Vec::new();
    for id in 0..3 {
        engine.submit(0, ask(id, 1, 2), &mut events);
    }
    assert_eq!((engine.stats().running, engine.stats().waiting), (1, 2));
    engine.cancel(ms(4), 0);
    engine.cancel(ms(4), 2);
    engine.cancel(ms(4), 7);
    assert_eq!(
        engine.next_wake(),
        Some(ms(14)),
        "the deadline of the withdrawn one is gone"
    );
    drain(&mut engine, &mut events);
    assert_eq!((tokens(&events, 0), tokens(&events, 2)), (vec![], vec![]));
    assert_eq!(started(&events, 1).0, ms(4));
    assert_eq!(tokens(&events, 1), [ms(14), ms(19)]);
    assert_eq!(engine.stats().cancelled_total, 2);
}

#[test]
fn a_late_submission_keeps_its_deadline() {
    let mut engine = Engine::new(Profile::reference(ms(10), ms(5), 8), 1);
    let mut events = Vec::new();
    engine.advance(ms(100), &mut events);
    engine.submit(ms(98), ask(0, 1, 1), &mut events);
    drain(&mut engine, &mut events);
    assert_eq!(tokens(&events, 0), [ms(108)]);
}

#[test]
fn faults_apply_to_constant_times() {
    let profile = Profile {
        faults: Faults {
            stall_probability: 1.0,
            stall_ms: 100.0,
            start_delay_ms: 3.0,
            after_tokens: Some(1),
            ..Faults::default()
        },
        ..Profile::reference(ms(10), ms(5), 8)
    };
    let (_, events) = run(profile, &[(0, ask(0, 1, 3))]);
    // The second token was due at 18; it comes a gap after the end of the stall.
    assert!(events.contains(&EngineEvent::Fault {
        id: 0,
        at: ms(18),
        fault: Fault::Stall { until: ms(118) }
    }));
    assert_eq!(tokens(&events, 0), [ms(13), ms(123), ms(128)]);
}

#[test]
fn zero_gap_emits_all_tokens_at_once() {
    let (_, events) = run(Profile::reference(ms(10), 0, 8), &[(0, ask(0, 1, 1000))]);
    assert_eq!(tokens(&events, 0), vec![ms(10); 1000]);
}
