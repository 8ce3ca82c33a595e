//! The selection of the sample, its size, and its independence of the order of events.

#[expect(dead_code, reason = "this test needs a part of it")]
mod sample;

use std::collections::BTreeSet;

use sample::run::{Draw, events, nanos, record};
use veeksha_events::{Event, SessionEnd, Status};
use veeksha_model::{ErrorClass, MetricSample, NodeId, RequestId, SessionId};
use veeksha_page::{Outcome, RequestList, RequestSample};

const SECOND: u64 = 1_000_000_000;

fn finished(session: u64, latency: u64) -> Event {
    let at = session * 1_000_000;
    Event::Finished(Box::new(record(
        session,
        0,
        at,
        &[at + latency / 2, at + latency],
    )))
}

fn of(events: &[Event], limit: usize) -> RequestList {
    let mut sample = RequestSample::new(limit);
    events.iter().for_each(|event| sample.on(event));
    sample.finish()
}

fn ids(requests: &RequestList) -> BTreeSet<(u64, u32)> {
    requests
        .rows
        .iter()
        .map(|row| (row.id.session.0, row.id.node.0))
        .collect()
}

/// A different order, the same in each run.
fn shuffled(events: &[Event]) -> Vec<Event> {
    let mut draw = Draw::new(3);
    let mut keyed: Vec<(f64, &Event)> = events.iter().map(|event| (draw.share(), event)).collect();
    keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
    keyed.into_iter().map(|(_, event)| event.clone()).collect()
}

#[test]
fn a_small_run_is_kept_whole() {
    let events: Vec<Event> = (0..100).map(|session| finished(session, SECOND)).collect();
    let requests = of(&events, 100);
    assert_eq!((requests.rows.len(), requests.total), (100, 100));
    // In the order of the run, regardless of the hash.
    assert!(requests.rows.is_sorted_by_key(|row| row.intended));
}

#[test]
fn of_a_large_run_the_limit_holds_and_the_extremes_are_there() {
    let mut events: Vec<Event> = (0..50_000)
        .map(|session| finished(session, SECOND + session % 7))
        .collect();
    // The slowest overall, the slowest to its first chunk, and a failure, each in the middle of the
    // run.
    events[20_001] = finished(20_001, 90 * SECOND);
    let at = 30_002 * 1_000_000;
    events[30_002] = Event::Finished(Box::new(record(
        30_002,
        0,
        at,
        &[at + 80 * SECOND, at + 80 * SECOND + 1],
    )));
    let mut failed = record(40_003, 0, 40_003 * 1_000_000, &[]);
    failed.status = Status::Failed {
        class: ErrorClass::Connect,
        message: "x".repeat(10_000),
    };
    events[40_003] = Event::Finished(Box::new(failed));
    let requests = of(&events, 1000);
    assert_eq!((requests.rows.len(), requests.total), (1000, 50_000));
    let ids = ids(&requests);
    for session in [20_001, 30_002, 40_003] {
        assert!(ids.contains(&(session, 0)), "{session}");
    }
    let failed = requests
        .rows
        .iter()
        .find(|row| row.id.session.0 == 40_003)
        .unwrap();
    let Outcome::Failed { message, .. } = &failed.outcome else {
        panic!("it failed");
    };
    assert_eq!(message.len(), 300, "a message is cut");
    // The others are spread over the run: each tenth of it has about a tenth of them.
    for tenth in 0..10u64 {
        let within = ids.range((tenth * 5000, 0)..((tenth + 1) * 5000, 0)).count();
        assert!((55..=180).contains(&within), "tenth {tenth}: {within}");
    }
}

#[test]
fn the_order_of_events_changes_nothing() {
    let events = events(3000, 60.0, 11);
    for limit in [100, 1000, 10_000] {
        let straight = of(&events, limit);
        let other = of(&shuffled(&events), limit);
        assert_eq!(ids(&straight), ids(&other), "limit {limit}");
        let whole = limit > straight.total as usize;
        for (left, right) in straight.rows.iter().zip(&other.rows) {
            // For a request that is kept because it was slow, plugins may have reported results
            // before this was known.
            let (left, mut right) = (left.clone(), right.clone());
            if !whole {
                (right.good, right.custom) = (left.good, left.custom.clone());
            }
            assert!(left == right, "{} differs, limit {limit}", left.id);
        }
        assert_eq!(straight.sessions, other.sessions, "limit {limit}");
        assert_eq!(straight.never_sent, other.never_sent, "limit {limit}");
    }
}

#[test]
fn sessions_are_kept_whole() {
    let events = events(3000, 60.0, 5);
    let all = of(&events, 100_000);
    let part = of(&events, 600);
    let size = |requests: &RequestList, session: u64| {
        requests
            .rows
            .iter()
            .filter(|row| row.id.session.0 == session)
            .count()
    };
    let sessions: BTreeSet<u64> = part.rows.iter().map(|row| row.id.session.0).collect();
    let whole = sessions
        .iter()
        .filter(|&&session| size(&part, session) == size(&all, session))
        .count();
    // Apart from the slow and the failed ones, which may be anywhere (at most a twentieth, a
    // twentieth and a fifth of the limit), one session is cut.
    assert!(
        whole * 2 > sessions.len(),
        "{whole} of {} sessions are whole",
        sessions.len()
    );
    assert!(
        part.sessions
            .iter()
            .all(|session| session.end.is_some() && session.started.is_some())
    );
}

/// A request that was sent after the end of the measurement is not a sample of a plugin metric
/// either.
#[test]
fn a_drained_request_has_no_samples_of_plugins() {
    let id = |session| RequestId {
        session: SessionId(session),
        node: NodeId(0),
    };
    let events = [1, 2].into_iter().flat_map(|session| {
        let mut record = record(session, 0, session * SECOND, &[session * SECOND + 5]);
        record.measured = session == 1;
        let sampled = Event::Sampled(MetricSample {
            metric: "score".into(),
            value: 0.5,
            weight: 1.0,
            request: Some(id(session)),
        });
        [sampled, Event::Finished(Box::new(record))]
    });
    let requests = of(&events.collect::<Vec<_>>(), 10);
    let samples: Vec<_> = requests.rows.iter().map(|row| row.custom.clone()).collect();
    assert_eq!(samples, [vec![(0, 0.5)], Vec::new()]);
}

#[test]
fn plugin_results_reach_their_request_before_and_after_sampling() {
    let id = |session| RequestId {
        session: SessionId(session),
        node: NodeId(0),
    };
    let sampled = |session, value, weight| {
        Event::Sampled(MetricSample {
            metric: "score".into(),
            value,
            weight,
            request: Some(id(session)),
        })
    };
    let judged = |session, good| Event::Judged {
        plugin: "p".into(),
        request: id(session),
        good,
    };
    let events = [
        sampled(1, 2.0, 1.0),
        judged(1, true),
        finished(1, SECOND),
        finished(2, SECOND),
        judged(2, false),
        judged(2, true),
        sampled(2, 1.0, 1.0),
        sampled(2, 4.0, 2.0),
        finished(3, SECOND),
    ];
    let requests = of(&events, 10);
    assert_eq!(requests.custom_metrics, ["score"]);
    let said: Vec<_> = requests
        .rows
        .iter()
        .map(|row| (row.good, row.custom.clone()))
        .collect();
    // 2: one plugin judged it not good; (1 x 1 + 2 x 4) / 3 = 3.
    assert_eq!(
        said,
        [
            (Some(true), vec![(0, 2.0)]),
            (Some(false), vec![(0, 3.0)]),
            (None, vec![])
        ]
    );
}

#[test]
fn memory_for_what_has_no_request_is_bounded() {
    let mut sample = RequestSample::new(10);
    for session in 0..10_000 {
        sample.on(&Event::Judged {
            plugin: "p".into(),
            request: RequestId {
                session: SessionId(session),
                node: NodeId(0),
            },
            good: true,
        });
        sample.on(&Event::SessionStarted {
            session: SessionId(session),
            at: session,
            requests: 1,
        });
        sample.on(&Event::SessionFinished {
            session: SessionId(session),
            at: session + 1,
            end: SessionEnd::Completed,
            requests: 1,
        });
    }
    // Of those judged early the ten with the smallest hashes are still known: they are the
    // candidates for the sample.
    for session in 0..10_000 {
        sample.on(&finished(session, SECOND));
    }
    let requests = sample.finish();
    let by_hash = requests.rows.iter().filter(|row| row.good == Some(true)).count();
    assert!(by_hash >= 8, "{by_hash} of 10 kept their judgement");
    assert!(requests.sessions.len() <= 10);
}

#[test]
fn a_page_made_on_the_way_can_hold_fewer() {
    let events = events(600, 30.0, 5);
    let mut sample = RequestSample::new(10_000);
    events.iter().for_each(|event| sample.on(event));
    let (all, part) = (sample.snapshot(), sample.snapshot_of(100));
    assert_eq!((part.rows.len(), part.total), (100, all.total));
    assert!(ids(&part).is_subset(&ids(&all)));
    // A larger snapshot restores the omitted rows: no row was dropped.
    assert!(sample.snapshot().rows == all.rows);
}

#[test]
fn chunk_times_are_exact_to_the_microsecond_and_bounded() {
    let chunks = [1_000_000_000, 1_020_000_999, 1_020_000_999, 3_140_007_500];
    let mut answered = record(1, 0, 900_000_000, &chunks);
    answered.intended = 899_999_500;
    answered.chunk_tokens = vec![3, 0, 1, 2];
    let requests = of(&[Event::Finished(Box::new(answered))], 10);
    let kept = requests.rows[0].chunks.as_ref().unwrap();
    // Whole microseconds of the run: 899,999 (intended), 1,000,000, 1,020,000, 1,020,000,
    // 3,140,007.
    assert_eq!(kept.micros(), [100_001, 20_000, 0, 2_120_007]);
    assert_eq!(kept.tokens(), [3, 0, 1, 2]);

    // 10,000 chunks are thinned to every third one; the sum of tokens is unchanged.
    let long: Vec<u64> = (1..=10_000).map(|index| index * 1_000_000).collect();
    let requests = of(&[Event::Finished(Box::new(record(1, 0, 0, &long)))], 10);
    let kept = requests.rows[0].chunks.as_ref().unwrap();
    assert_eq!(kept.micros().len(), 3334);
    assert_eq!(kept.tokens().iter().sum::<u64>(), 10_000);

    // 1,000 requests of 200 chunks, 2 bytes per gap, with room for 20,000 bytes.
    let mut sample = RequestSample::new(1000).with_chunk_bytes(20_000);
    for session in 0..1000u64 {
        let at: Vec<u64> = (1..=200)
            .map(|chunk| session * 1_000_000 + chunk * 10_000_000)
            .collect();
        sample.on(&Event::Finished(Box::new(record(
            session,
            0,
            session * 1_000_000,
            &at,
        ))));
    }
    let requests = sample.finish();
    let bytes: usize = requests
        .rows
        .iter()
        .filter_map(|row| row.chunks.as_ref())
        .map(|chunks| chunks.bytes())
        .sum();
    assert!((10_000..=40_000).contains(&bytes), "{bytes} bytes");
    assert_eq!(requests.rows.len(), 1000, "no request goes for its chunks");
}

#[test]
fn columns_equal_the_rows() {
    let mut first = record(7, 0, nanos(1.5), &[nanos(1.75), nanos(2.0)]);
    first.intended = nanos(1.499);
    let mut second = record(7, 1, nanos(3.0), &[]);
    (
        second.intended,
        second.completed_at,
        second.sent_at,
        second.first_byte_at,
    ) = (nanos(2.9), nanos(4.25), None, None);
    second.parents = vec![NodeId(0).into()];
    second.wait_after_ready = nanos(0.5);
    second.labels = vec![("tier".into(), "gold".into())];
    second.output_tokens = 0;
    second.status = Status::Failed {
        class: ErrorClass::InStream,
        message: "out of memory".into(),
    };
    let requests = of(
        &[
            Event::Finished(Box::new(second)),
            Event::Finished(Box::new(first)),
        ],
        10,
    );
    let json = serde_json::to_value(&requests).unwrap();
    let expected = serde_json::json!({
        "total": 2, "shown": 2, "session": [7, 7], "node": [0, 1],
        // Microseconds, relative to the previous row, then to the row's own instant.
        "intended": [1_499_000, 1_401_000], "dispatched": [1000, 100_000], "completed": [500_200, 1_250_000],
        "first_chunk": [251_000, null], "last_chunk": [501_000, null],
        "wait": [0, 500_000], "parents": [[], [0]], "output_tokens": [2, 0],
        "texts": ["length", "out of memory", "in_stream", "tier", "gold"],
        "message": [0, 1], "failed": [null, 2], "labels": [[], [3, 4]],
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(json.get(key), Some(value), "{key}");
    }
    for absent in ["server", "drained", "good", "history_parent"] {
        assert_eq!(json.get(absent), None, "{absent} is not in the data");
    }
}
