//! Replays with expected values computed by hand.
use crate::sequences::*;
use proptest::prelude::*;
use serde_json::Value;
use veeksha_events::{Event, NeverSentReason, RequestRecord, SessionEnd};
use veeksha_metrics::{Fidelity, FidelityReport, FidelitySchedule};
use veeksha_model::{ErrorClass, NodeId, Recorded, Usage};

/// A request recorded at `at` milliseconds of the trace, dispatched at `dispatched`, complete at
/// `completed`.
fn replayed(session: u64, node: u32, at: u64, dispatched: u64, completed: u64) -> RequestRecord {
    let mut record = answered(session, node, dispatched, completed);
    record.dispatched_at = ms(dispatched);
    record.recorded = Some(Recorded {
        at: Some(ms(at)),
        ..Recorded::default()
    });
    record
}

fn after(mut record: RequestRecord, parents: &[u32], wait: u64) -> RequestRecord {
    record.parents = parents
        .iter()
        .copied()
        .map(|parent| NodeId(parent).into())
        .collect();
    record.wait_after_ready = ms(wait);
    record
}

fn report(
    schedule: Option<FidelitySchedule>,
    events: impl IntoIterator<Item = Event>,
) -> Option<FidelityReport> {
    let mut fidelity = Fidelity::new(schedule);
    events.into_iter().for_each(|event| fidelity.on(&event));
    fidelity.finish()
}

fn schedule(offset: u64, speedup: f64) -> Option<FidelitySchedule> {
    Some(FidelitySchedule {
        offset: ms(offset),
        speedup,
        first: None,
    })
}

#[test]
fn arrivals_are_compared_with_the_mapped_recording() {
    // Recorded at 500, 1500 and 1500 ms; at double speed from 100 ms on they are due at 100, 600
    // and 600. They end in a different order than they arrived.
    let events = [
        finished(replayed(1, 0, 1500, 602, 700)),
        finished(replayed(2, 0, 1500, 606, 900)),
        finished(replayed(0, 0, 500, 101, 2000)),
    ];
    let arrivals = report(schedule(100, 2.0), events.clone())
        .unwrap()
        .arrivals
        .unwrap();
    // Late by 1, 2 and 6 ms.
    close(Some(arrivals.lateness.mean), 0.003);
    close(Some(arrivals.lateness.p50), 0.002);
    close(Some(arrivals.lateness.max), 0.006);
    // Gaps due: 0 and 500; achieved: 4 and 501. (4 + 1) / 2.
    close(arrivals.gap_distance, 0.0025);
    // Other traffic ignores recorded arrivals, and reports it.
    let ignored = report(None, events.clone()).unwrap();
    assert_eq!(ignored.arrivals, None);
    assert_eq!(ignored.replay_fidelity()["arrivals_replayed"], false);
    // The schedule may begin before the first record: the first due request was never sent.
    let known = FidelitySchedule {
        offset: 0,
        speedup: 1.0,
        first: Some(ms(400)),
    };
    let late = report(Some(known), events).unwrap().arrivals.unwrap().lateness;
    // Due at 1100, 1100 and 100; dispatched at 602, 606 and 101.
    close(Some(late.min), -0.498);
    close(Some(late.max), 0.001);
}

#[test]
fn lengths_are_compared_with_the_recording_and_with_the_server() {
    let with = |session, own, recorded, output, recorded_output, usage: Option<u32>| {
        let mut record = replayed(session, 0, 0, 0, 10);
        record.total_prompt_tokens = own;
        record.output_tokens = output;
        record.usage = usage.map(|prompt| Usage {
            prompt,
            completion: output,
            cached: None,
            reasoning: None,
        });
        record.recorded = Some(Recorded {
            prompt_tokens: Some(recorded),
            output_tokens: Some(recorded_output),
            ..Recorded::default()
        });
        record
    };
    let refused = failed(with(3, 100, 100, 0, 50, None), ErrorClass::Status, Some(500));
    let events = [
        with(0, 100, 100, 20, 20, Some(107)),
        with(1, 90, 100, 20, 20, Some(97)),
        with(2, 103, 100, 18, 20, None),
        refused,
    ];
    let report = report(None, events.map(finished)).unwrap();
    let prompts = report.prompt_tokens.unwrap();
    // Differences 0, -10, +3, 0.
    close(Some(prompts.exact_share), 0.5);
    close(Some(prompts.difference.mean), -1.75);
    assert_eq!((prompts.expected, prompts.achieved), (400, 393));
    let by_server = report.prompt_tokens_by_server.unwrap();
    assert_eq!((by_server.difference.min, by_server.difference.max), (-3.0, 7.0));
    let tokenizer = report.tokenizer_against_server.unwrap();
    assert_eq!(
        (
            tokenizer.difference.min,
            tokenizer.difference.max,
            tokenizer.exact_share
        ),
        (7.0, 7.0, 0.0)
    );
    // A failed request has no answer to compare: 0, 0 and -2 tokens.
    let outputs = report.output_tokens.unwrap();
    assert_eq!((outputs.difference.count, outputs.difference.min), (3, -2.0));
    close(Some(outputs.exact_share), 2.0 / 3.0);
}

#[test]
fn edges_are_measured_from_the_last_parent() {
    // Requests 0 and 1 complete at 100 and 150; 2 waits for both and thinks for 30 ms: due at 180,
    // sent at 184.
    let events = |order: [usize; 3]| {
        let records = [
            replayed(0, 0, 0, 0, 100),
            replayed(0, 1, 0, 0, 150),
            after(replayed(0, 2, 0, 184, 300), &[0, 1], 30),
        ];
        order.map(|number| finished(records[number].clone()))
    };
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let slack = report(None, events(order)).unwrap().edges.slack.unwrap();
        assert_eq!(slack.count, 1);
        close(Some(slack.max), 0.004);
    }
}

#[test]
fn with_replayed_arrivals_a_later_turn_waits_for_its_own_instant_too() {
    // Recorded at 1000 and 1700 ms; at double speed from 0 on due at 0 and 350. The parent
    // completes at 100.
    let turn = after(replayed(0, 1, 1700, 353, 400), &[0], 20);
    let events = [replayed(0, 0, 1000, 0, 100), turn].map(finished);
    let slack = report(schedule(0, 2.0), events.clone())
        .unwrap()
        .edges
        .slack
        .unwrap();
    close(Some(slack.max), 0.003);
    // Without replayed arrivals it was due at 120.
    let slack = report(None, events).unwrap().edges.slack.unwrap();
    close(Some(slack.max), 0.233);
}

#[test]
fn achieved_gaps_are_compared_with_recorded_ones() {
    // Recorded: sent at 0, took 400 ms, the next at 650: a gap of 250. Achieved: complete at 100,
    // next at 360: a gap of 260.
    let mut first = replayed(0, 0, 0, 0, 100);
    first.recorded = Some(Recorded {
        at: Some(0),
        latency: Some(ms(400)),
        ..Recorded::default()
    });
    let next = after(replayed(0, 1, 650, 360, 500), &[0], 250);
    let mut unknown = after(replayed(0, 2, 900, 700, 800), &[1], 0);
    unknown.recorded = Some(Recorded::default());
    let report = report(None, [first, next, unknown].map(finished)).unwrap();
    let gaps = report.edges.gap_difference.unwrap();
    assert_eq!(gaps.count, 1);
    close(Some(gaps.mean), 0.010);
    assert_eq!(report.edges.slack.unwrap().count, 2);
}

#[test]
fn prefix_hits_are_compared_where_the_server_reports_them() {
    let with = |session, total, ideal: Option<u32>, cached: Option<Option<u32>>| {
        let mut record = replayed(session, 0, 0, 0, 10);
        record.total_prompt_tokens = total;
        record.ideal_cached_tokens = ideal;
        record.usage = cached.map(|cached| Usage {
            prompt: total + 10,
            completion: 1,
            cached,
            reasoning: None,
        });
        finished(record)
    };
    let events = [
        with(0, 100, Some(0), Some(Some(0))),
        with(1, 200, Some(120), Some(Some(112))),
        with(2, 100, Some(60), Some(None)),
        with(3, 50, None, None),
    ];
    let report = report(None, events).unwrap();
    let hits = report.prefix_hits;
    assert_eq!((hits.requests, hits.with_ideal, hits.reporting), (4, 3, 2));
    close(hits.ideal_rate(), 180.0 / 400.0);
    close(hits.ideal_rate_of_reporting(), 120.0 / 300.0);
    close(hits.measured_rate(), 112.0 / 320.0);
    close(hits.coverage(), 0.5);
    let json = report.replay_fidelity();
    assert_eq!(json["prefix_hits"]["ideal_tokens"], 180);
    assert_eq!(json["prefix_hits"]["measured_tokens"], 112);
}

#[test]
fn only_measured_requests_that_were_recorded_count() {
    let never_recorded = answered(0, 0, 0, 10);
    assert_eq!(report(schedule(0, 1.0), both(never_recorded.clone())), None);
    let unmeasured = drained(replayed(1, 0, 5, 0, 10));
    assert_eq!(report(None, [finished(unmeasured.clone())]), None);
    // An unmeasured parent still determines when its child was due, and an unmeasured arrival the
    // start of the trace.
    let child = after(replayed(1, 1, 45, 33, 50), &[0], 20);
    let events = [never_recorded, unmeasured, child, replayed(2, 0, 65, 61, 80)];
    let report = report(schedule(0, 1.0), events.map(finished)).unwrap();
    assert_eq!(report.requests, 2);
    // The child: max(10 + 20, 45 - 5) = 40, sent at 33. The arrival: due at 60.
    close(Some(report.edges.slack.unwrap().max), -0.007);
    close(Some(report.arrivals.unwrap().lateness.max), 0.001);
    assert_eq!(report.prefix_hits.requests, 3);
}

#[test]
fn what_could_not_be_compared_is_null() {
    let mut bare = answered(0, 0, 0, 10);
    bare.recorded = Some(Recorded::default());
    let json = report(None, [finished(bare)]).unwrap().replay_fidelity();
    let absent = [
        "arrivals",
        "prompt_tokens",
        "prompt_tokens_by_server",
        "tokenizer_against_server",
        "output_tokens",
        "edge_slack",
        "edge_gap_difference",
    ];
    for key in absent {
        assert_eq!(json.get(key), Some(&Value::Null), "{key}");
    }
    for key in ["coverage", "ideal_tokens", "measured_rate"] {
        let expected = if key == "coverage" {
            Value::from(0.0)
        } else {
            Value::Null
        };
        assert_eq!(json["prefix_hits"].get(key), Some(&expected), "{key}");
    }
}

#[test]
fn sessions_may_end_in_any_way() {
    // The session's end arrives before its last request; another session never sends its child; a
    // third refers to a parent that does not exist.
    let child = after(replayed(0, 1, 0, 12, 20), &[0], 1);
    let lost = after(replayed(2, 1, 0, 12, 20), &[0], 1);
    let events = [
        finished(replayed(0, 0, 0, 0, 10)),
        session_finished(0, 20, SessionEnd::Completed, 2),
        finished(child),
        finished(replayed(1, 0, 0, 0, 10)),
        never_sent(1, 1, NeverSentReason::SessionCancelled),
        session_finished(1, 20, SessionEnd::Cancelled, 2),
        finished(lost),
    ];
    let slack = report(None, events).unwrap().edges.slack.unwrap();
    assert_eq!(slack.count, 1);
    close(Some(slack.max), 0.001);
}

proptest! {
    /// Threads produce events in any order; the result does not depend on it.
    #[test]
    fn the_order_of_events_does_not_matter(
        sessions in prop::collection::vec((0u64..5000, prop::collection::vec((0u64..500, 1u64..500, any::<bool>()), 1..5)), 1..6),
        shuffle in any::<u64>(),
    ) {
        let mut events = Vec::new();
        for (session, (arrival, nodes)) in sessions.iter().enumerate() {
            let (session, mut at) = (session as u64, *arrival);
            for (node, (wait, took, measured)) in nodes.iter().enumerate() {
                let node = node as u32;
                let mut record = replayed(session, node, at, at + wait + 1, at + wait + 1 + took);
                record.measured = *measured;
                record.total_prompt_tokens = *took as u32;
                if node > 0 {
                    record = after(record, &[node - 1], *wait);
                }
                at = at + wait + 1 + took;
                events.push(finished(record));
            }
            events.push(session_finished(session, at, SessionEnd::Completed, nodes.len() as u32));
        }
        let in_order = report(schedule(10, 1.5), events.clone());
        // A permutation by a key derived from the index and the drawn number.
        let mut keyed: Vec<(u64, Event)> = events.into_iter().enumerate().map(|(place, event)| {
            ((place as u64 + 1).wrapping_mul(shuffle | 1).rotate_left(31) ^ shuffle, event)
        }).collect();
        keyed.sort_by_key(|(key, _)| *key);
        let shuffled = report(schedule(10, 1.5), keyed.into_iter().map(|(_, event)| event));
        prop_assert_eq!(shuffled, in_order);
    }
}
