//! Inconsistent records that no run can produce: evaluation must not panic, and files remain strict
//! JSON.

use crate::sequences::*;
use proptest::prelude::*;
use veeksha_events::{Event, NeverSentReason, RequestRecord, SessionEnd};
use veeksha_metrics::Setup;
use veeksha_model::ChunkKind::{Content, Reasoning, Role, Tool};
use veeksha_model::{Chunk, ErrorClass, MetricSample, NodeId, SessionId, Usage};
use veeksha_ports::RunResults;

/// Any instant that the contract allows, in any order.
fn instant() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..5, 0u64..3_000_000_000, 0u64..1 << 53]
}

fn record() -> impl Strategy<Value = RequestRecord> {
    let chunks = prop::collection::vec((instant(), 0usize..4, any::<bool>()), 0..6);
    let times = (instant(), instant(), instant(), prop::option::of(instant()));
    let tokens = (
        prop::collection::vec(any::<u32>(), 0..6),
        any::<u32>(),
        any::<u32>(),
    );
    let place = (0u64..4, 0u32..3, prop::collection::vec(0u32..4, 0..3));
    (chunks, times, tokens, place, 0u8..6, instant()).prop_map(
        |(chunks, times, tokens, place, fate, wait)| {
            let (session, node, parents) = place;
            let mut record = answered(session, node, 0, 0);
            record.parents = parents.into_iter().map(|parent| NodeId(parent).into()).collect();
            record.wait_after_ready = wait;
            (
                record.intended,
                record.dispatched_at,
                record.completed_at,
                record.sent_at,
            ) = times;
            record.chunks = chunks
                .into_iter()
                .map(|(at, kind, merged)| Chunk {
                    at,
                    lag: 0,
                    bytes: 0,
                    kind: [Role, Reasoning, Content, Tool][kind],
                    merged,
                })
                .collect();
            (
                record.chunk_tokens,
                record.output_tokens,
                record.total_prompt_tokens,
            ) = tokens;
            record.usage = Some(Usage {
                prompt: record.total_prompt_tokens,
                completion: record.output_tokens,
                cached: Some(record.output_tokens),
                reasoning: None,
            });
            match fate {
                0 => failed(record, ErrorClass::Protocol, Some(200)),
                1 => drained(record),
                _ => labelled(record, &[("tier", "gold"), ("tier", "free")]),
            }
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let session = || (0u64..4).prop_map(SessionId);
    let end = prop::sample::select(vec![
        SessionEnd::Completed,
        SessionEnd::Errored,
        SessionEnd::Incomplete,
    ]);
    prop_oneof![
        6 => record().prop_map(finished),
        1 => record().prop_map(|record| dispatched(&record)),
        1 => (session(), instant()).prop_map(|(session, at)| Event::SessionStarted { session, at, requests: 7 }),
        2 => (session(), instant(), end)
            .prop_map(|(session, at, end)| Event::SessionFinished { session, at, end, requests: 0 }),
        1 => Just(never_sent(0, 0, NeverSentReason::Held)),
        1 => instant().prop_map(|at| Event::TimeoutReached { at }),
        1 => (any::<f64>(), any::<f64>(), 0u64..4).prop_map(|(value, weight, session)| Event::Sampled(MetricSample {
            metric: "anything".into(),
            value,
            weight,
            request: Some(id(session, 0)),
        })),
        1 => (session(), any::<u64>()).prop_map(|(session, digest)| Event::SessionPlanned { session, digest }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn nothing_panics(events in prop::collection::vec(event(), 0..14)) {
        let setup = Setup {
            slice: Some(1),
            ..asking(&[
                "p99(ttfc) <= 1s",
                "max(itl{tier=\"free\"}) <= 1s",
                "mean(tbc, window = 1s) <= 1s",
                "p50(session_slowdown) <= 2",
                "goodput > 0.1",
            ])
        };
        let mut evaluator = veeksha_metrics::RunEvaluator::new(setup);
        for event in &events {
            evaluator.on(event);
            evaluator.live();
        }
        let seen = evaluator.finish();
        for file in [
            seen.summary_stats(),
            seen.throughput_metrics(),
            seen.slo_results(),
            seen.time_slices(),
            seen.curves(),
            seen.session_metrics(),
        ] {
            // A value that is not finite would be written as null and read back as such.
            let text = file.to_string();
            prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
        }
        for name in seen.samples.names() {
            prop_assert!(seen.samples.summary(&name).is_some_and(|summary| summary.mean.is_finite()), "{}", name);
            prop_assert_eq!(seen.samples.quantiles(&name, 11).len(), 11);
            seen.samples.windows(&name, &[], 1_000_000_000_000);
        }
    }
}
