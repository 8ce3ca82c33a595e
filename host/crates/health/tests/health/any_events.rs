//! Any events in any order and with any times give a report that is strict JSON.

use proptest::{collection::vec, option, prelude::*};
use veeksha_events::{Event, NeverSentReason, RequestRecord, SessionEnd, Status, ThreadSample};
use veeksha_health::{ColdCache, Expected, ExpectedTraffic, GapVariation, Health, OutputLength, Tolerance};
use veeksha_model::{ErrorClass, Held, NodeId, RequestId, SessionId, Usage};

fn time() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(u64::MAX), any::<u64>(), 0..10_000_000_000_u64]
}

fn count() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(u32::MAX), 0..10_u32]
}

fn id() -> impl Strategy<Value = RequestId> {
    (prop_oneof![0..4_u64, Just(u64::MAX)], 0..4_u32).prop_map(|(session, node)| RequestId {
        session: SessionId(session),
        node: NodeId(node),
    })
}

fn record() -> impl Strategy<Value = RequestRecord> {
    let times = (
        prop::array::uniform5(time()),
        prop::array::uniform3(option::of(time())),
        prop::array::uniform3(time()),
    );
    let tokens = (
        prop::array::uniform4(count()),
        option::of(count()),
        option::of((count(), option::of(count()))),
    );
    (
        id(),
        vec(0..4_u32, 0..3),
        times,
        tokens,
        any::<(bool, bool)>(),
        any::<bool>(),
    )
        .prop_map(
            |(id, parents, (times, maybe, held), (tokens, target, usage), (ok, exact), measured)| {
                RequestRecord {
                    id,
                    session_requests: 1,
                    history_parent: parents.first().map(|parent| NodeId(*parent)),
                    parents: parents.into_iter().map(|parent| NodeId(parent).into()).collect(),
                    cancellation: None,
                    wait_after_ready: times[0],
                    intended: times[1],
                    held: Held {
                        sessions: held[0],
                        in_flight: held[1],
                        in_prefill: held[2],
                    },
                    dispatched_at: times[2],
                    picked_up_at: maybe[0],
                    sent_at: maybe[1],
                    first_byte_at: maybe[2],
                    completed_at: times[3],
                    processed_at: times[4],
                    stamps: Default::default(),
                    chunks: Vec::new(),
                    chunk_tokens: Vec::new(),
                    status: if ok {
                        Status::Ok {
                            finish_reason: "stop".into(),
                        }
                    } else {
                        Status::Failed {
                            class: ErrorClass::Connect,
                            message: String::new(),
                        }
                    },
                    http_status: None,
                    target_prompt_tokens: tokens[0],
                    prompt_tokens: tokens[1],
                    total_prompt_tokens: tokens[2],
                    target_output_tokens: target,
                    output_tokens: tokens[3],
                    output_tokens_from_usage: true,
                    output_exact: exact,
                    usage: usage.map(|(prompt, cached)| Usage {
                        prompt,
                        completion: 0,
                        cached,
                        reasoning: None,
                    }),
                    connection_reused: false,
                    server: 0,
                    resolve: None,
                    connect: None,
                    tls: None,
                    retried: false,
                    measured,
                    template_tokens: 0,
                    history_mode: Default::default(),
                    recorded: None,
                    ideal_cached_tokens: None,
                    cache: None,
                    body_digest: None,
                    response_id: None,
                    trace_id: None,
                    labels: Vec::new(),
                }
            },
        )
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => record().prop_map(|record| Event::Finished(Box::new(record))),
        3 => (id(), time(), time()).prop_map(|(request, intended, at)| Event::Dispatched { request, intended, at }),
        2 => (id(), time(), count()).prop_map(|(id, at, requests)| Event::SessionStarted {
            session: id.session,
            at,
            requests
        }),
        2 => (id(), time(), count()).prop_map(|(id, at, requests)| Event::SessionFinished {
            session: id.session,
            at,
            end: SessionEnd::Errored,
            requests
        }),
        1 => (id(), time()).prop_map(|(request, at)| Event::NeverSent {
            request,
            reason: NeverSentReason::Missed,
            at
        }),
        1 => prop::array::uniform4(time()).prop_map(|[at, span, busy, waiting]| Event::ThreadSampled(ThreadSample {
            thread: "client-0".into(),
            at,
            span,
            busy,
            waiting
        })),
        1 => (time(), time()).prop_map(|(due, at)| Event::Starved { due, at }),
        1 => (time(), time()).prop_map(|(sessions, at)| Event::ArrivalsMissed { sessions, at }),
        1 => time().prop_map(|at| Event::TimeoutReached { at }),
        1 => time().prop_map(|at| Event::RunEnded { at }),
    ]
}

fn expected() -> impl Strategy<Value = Expected> {
    let traffic = prop_oneof![
        (0.001..1000.0_f64, 0.0..10.0_f64).prop_map(|(sessions_per_second, variation)| {
            ExpectedTraffic::Rate {
                sessions_per_second,
                gaps: GapVariation::Drawn { variation },
            }
        }),
        (0..50_u32, time()).prop_map(|(target, ramp)| ExpectedTraffic::Concurrent { target, ramp }),
        Just(ExpectedTraffic::FixedSchedule),
        Just(ExpectedTraffic::ArrivalProcess),
    ];
    (traffic, option::of(time()), any::<bool>()).prop_map(|(traffic, measured_until, exact)| Expected {
        measured_until,
        output: if exact {
            OutputLength::Exact(Tolerance::default())
        } else {
            OutputLength::AtMost(Tolerance::default())
        },
        cold_cache: exact.then(ColdCache::default),
        ..Expected::of(traffic)
    })
}

proptest! {
    #[test]
    fn any_events_give_a_strict_json_report(expected in expected(), events in vec(event(), 0..40)) {
        let mut health = Health::new(expected);
        events.iter().for_each(|event| health.on(event));
        let report = health.finish();
        prop_assert_eq!(report.checks.len(), 12);
        prop_assert!(report.text().starts_with("Health checks: "));
        let json = report.json().to_string();
        prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&json)?["passed"].as_bool(), Some(report.passed()));
        // Strict JSON would have null for a value that is not finite.
        prop_assert!(!json.contains("\"value\":null") && !json.contains("\"mean\":null"), "{}", json);
    }
}
