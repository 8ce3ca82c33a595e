//! Curves and slices of a run, with expected values computed by hand.

use crate::sequences::*;
use proptest::prelude::*;
use veeksha_events::{Event, SessionEnd};
use veeksha_metrics::{CurvePoint, LoadCurve, Metric, Setup};
use veeksha_model::ChunkKind::Content;
use veeksha_model::ErrorClass;

fn points(curve: &LoadCurve) -> Vec<(u64, f64)> {
    assert_ne!(curve.exact, curve.name == "output_tokens_per_second");
    let point = |point: &CurvePoint| (point.at / 1_000_000, point.value);
    curve.points.iter().map(point).collect()
}

/// Two requests: dispatched at 1 and 101, sent three milliseconds later; chunks at 51, 251 and at
/// 151, 201; completed at 301 and 203.
fn two() -> Vec<Event> {
    let first = with_chunks(answered(0, 0, 0, 301), 2, &[(51, Content), (251, Content)]);
    let second = with_chunks(answered(1, 0, 100, 203), 2, &[(151, Content), (201, Content)]);
    let sessions = [
        session_started(0, 0),
        session_started(1, 100),
        session_finished(0, 301, SessionEnd::Completed, 1),
        session_finished(1, 203, SessionEnd::Completed, 1),
    ];
    let requests = [first, second].into_iter().flat_map(both);
    sessions.into_iter().chain(requests).collect()
}

#[test]
fn requests_in_flight_in_prefill_and_in_decode() {
    let seen = evaluate(Vec::new(), two()).curves;
    assert_eq!(seen.window, Some((0, ms(301))));
    assert_eq!(
        points(&seen.in_flight),
        [(1, 1.0), (101, 2.0), (203, 1.0), (301, 0.0)]
    );
    assert_eq!(
        points(&seen.in_prefill),
        [(4, 1.0), (51, 0.0), (104, 1.0), (151, 0.0)]
    );
    assert_eq!(
        points(&seen.in_decode),
        [(51, 1.0), (151, 2.0), (201, 1.0), (251, 0.0)]
    );
    assert_eq!(
        points(&seen.sessions),
        [(0, 1.0), (100, 2.0), (203, 1.0), (301, 0.0)]
    );
    // 300 ms of one and 102 ms of another, of 301.
    let in_flight = seen.in_flight.over_window.unwrap();
    close(Some(in_flight.mean), 402.0 / 301.0);
    assert_eq!((in_flight.min, in_flight.p50, in_flight.max), (0.0, 1.0, 2.0));
    // Prefill: 47 + 47 of 301, and 1 while there is any.
    close(seen.in_prefill.over_window.map(|of| of.mean), 94.0 / 301.0);
    let active = seen.in_prefill.while_active.unwrap();
    assert_eq!((active.mean, active.nanos), (1.0, ms(94)));
    close(seen.in_decode.while_active.map(|of| of.mean), 250.0 / 200.0);
}

#[test]
fn the_curves_give_run_metrics_to_objectives() {
    let seen = run_in(
        asking(&["mean_requests_in_flight <= 1.34", "max_requests_in_flight < 2"]),
        two(),
    );
    assert_eq!(
        seen.slos
            .results
            .iter()
            .map(|result| result.met)
            .collect::<Vec<_>>(),
        [true, false]
    );
    close(seen.slos.results[0].observed, 402.0 / 301.0);
}

/// Tokens at 0.5 s, 1.2 s, 1.4 s and 2.5 s; the record ends at 2.5 s.
#[test]
fn output_tokens_by_the_second_in_which_they_came() {
    let record = with_chunks(
        answered(0, 0, 0, 2500),
        6,
        &[(500, Content), (1200, Content), (1400, Content), (2500, Content)],
    );
    let record = with_chunk_tokens(record, &[1, 1, 3, 1]);
    let seen = evaluate(Vec::new(), [finished(record.clone())])
        .curves
        .output_tokens;
    // The last interval is half a second long.
    assert_eq!(points(&seen), [(0, 1.0), (1000, 4.0), (2000, 2.0), (2500, 0.0)]);
    close(seen.over_window.map(|of| of.mean), 6.0 / 2.5);
    // The server counts twelve tokens, two for each that the host counts: the area equals the
    // server's count.
    let twice = veeksha_events::RequestRecord {
        output_tokens: 12,
        ..record.clone()
    };
    let seen = evaluate(Vec::new(), [finished(twice)]);
    let curve = &seen.curves.output_tokens;
    assert_eq!(points(curve), [(0, 2.0), (1000, 8.0), (2000, 4.0), (2500, 0.0)]);
    close(curve.over_window.map(|of| of.mean), 12.0 / 2.5);
    assert_eq!(
        curve.over_window.map(|of| of.mean),
        seen.throughput.output_tokens_per_second
    );
    // If the tokens of the chunks are unknown, each chunk has an equal share.
    let unknown = veeksha_events::RequestRecord {
        chunk_tokens: Vec::new(),
        ..record
    };
    let seen = evaluate(Vec::new(), [finished(unknown)]).curves.output_tokens;
    assert_eq!(points(&seen), [(0, 1.5), (1000, 3.0), (2500, 0.0)]);
}

/// Measured tokens arrived within the window, wherever it cuts the seconds; those of a request that
/// is not measured may be on both sides.
#[test]
fn the_window_has_all_tokens_that_its_run_metric_has() {
    // From 0.25 s: 0.75 s with one token, then 1.093 s with two, because 93 ms are too short for an
    // interval.
    let record = |from: u64, to: u64, chunks: &[u64]| {
        let chunks: Vec<_> = chunks.iter().map(|at| (*at, Content)).collect();
        with_chunks(answered(0, 0, from, to), chunks.len() as u32, &chunks)
    };
    let seen = evaluate(Vec::new(), [finished(record(250, 2093, &[300, 1500, 2093]))]);
    assert_eq!(seen.curves.window, Some((ms(250), ms(2093))));
    let points = points(&seen.curves.output_tokens);
    assert_eq!(
        points.iter().map(|(at, _)| *at).collect::<Vec<_>>(),
        [250, 1000, 2093]
    );
    close(Some(points[0].1), 1.0 / 0.75);
    close(Some(points[1].1), 2.0 / 1.093);

    let agree = |events: Vec<Event>| {
        let seen = evaluate(Vec::new(), events);
        let output_rate = seen.throughput.output_tokens_per_second;
        close(
            seen.curves.output_tokens.over_window.map(|of| of.mean),
            output_rate.unwrap(),
        );
    };
    for from in [0, 1, 499, 500, 501, 900, 999, 1000] {
        for length in [2, 98, 499, 502, 1000, 1501, 2600] {
            let to = from + length;
            agree(vec![finished(record(
                from,
                to,
                &[from + 2, from + length / 2 + 1, to],
            ))]);
        }
    }
    // Tokens that are not measured are drawn at their arrival: after the window, which ends at 1.2
    // s.
    let drained = veeksha_events::RequestRecord {
        measured: false,
        ..record(800, 3000, &[2500, 2900])
    };
    let seen = evaluate(
        Vec::new(),
        [finished(record(0, 1200, &[100, 1200])), finished(drained)],
    );
    close(seen.curves.output_tokens.over_window.map(|of| of.mean), 2.0 / 1.2);
}

#[test]
fn what_failed_and_what_never_ended_was_load_too() {
    let failing = failed(answered(0, 0, 0, 40), ErrorClass::Timeout, None);
    let open = answered(1, 0, 9, 0);
    let events = [
        finished(failing),
        dispatched(&open),
        Event::RunEnded { at: ms(100) },
    ];
    let seen = evaluate(Vec::new(), events).curves;
    assert_eq!(
        points(&seen.in_flight),
        [(1, 1.0), (10, 2.0), (40, 1.0), (100, 0.0)]
    );
    // Without a first chunk the request was in prefill until its end.
    assert_eq!(points(&seen.in_prefill), [(4, 1.0), (40, 0.0)]);
    assert!(seen.in_decode.points.is_empty());
}

#[test]
fn long_run_is_divided_into_intervals() {
    let records = (0..3000).map(|i| {
        finished(with_chunks(
            answered(i, 0, 10 * i, 10 * i + 6),
            1,
            &[(10 * i + 5, Content)],
        ))
    });
    let seen = evaluate(Vec::new(), records).curves.in_flight;
    assert!(
        !seen.exact && seen.points.len() <= 2001 + 1,
        "{}",
        seen.points.len()
    );
    // Five of every ten milliseconds: one request.
    let within = &seen.points[5..seen.points.len() - 5];
    assert!(
        within
            .iter()
            .all(|point| (0.3..0.7).contains(&point.value) && point.max == 1.0)
    );
    close(seen.while_active.map(|of| of.mean), 1.0);
}

fn sliced(slice: u64, events: Vec<Event>) -> veeksha_metrics::TimeSlices {
    let setup = Setup {
        slice: Some(ms(slice)),
        ..asking(&["p99(ttfc) <= 50ms"])
    };
    run_in(setup, events).slices
}

#[test]
fn a_request_belongs_to_the_slice_in_which_it_was_intended() {
    let answer = |session, intended: u64, ttfc: u64| {
        let first = intended + 1 + ttfc;
        let chunks = [(first, Content), (first + 20, Content)];
        finished(with_chunks(
            answered(session, 0, intended, first + 500),
            2,
            &chunks,
        ))
    };
    let open = answered(9, 0, 260, 0);
    let seen = sliced(
        100,
        vec![
            answer(0, 50, 10),
            answer(1, 149, 60),
            finished(failed(answered(2, 0, 60, 90), ErrorClass::Timeout, None)),
            answer(3, 150, 30),
            dispatched(&open),
            finished(answered(4, 0, 420, 430)),
            finished(drained(answered(5, 0, 421, 430))),
        ],
    );
    // From the first intended instant on: 50, 150, 250, 350 and 420.
    let bounds: Vec<(u64, u64)> = seen
        .slices
        .iter()
        .map(|slice| (slice.from / 1_000_000, slice.to / 1_000_000))
        .collect();
    assert_eq!(bounds, [(50, 150), (150, 250), (250, 350), (350, 450)]);
    let first = &seen.slices[0];
    assert_eq!(
        (
            first.totals.requests,
            first.totals.completed,
            first.totals.errored
        ),
        (3, 2, 1)
    );
    assert_eq!(
        (
            first.totals.good,
            first.totals.output_tokens,
            first.totals.input_tokens
        ),
        (Some(1), 4, 60)
    );
    close(first.requests_per_second(), 20.0);
    close(first.output_tokens_per_second(), 40.0);
    close(first.totals.error_rate(), 1.0 / 3.0);
    let ttfc = first.metric(Metric::Ttfc).unwrap();
    assert_eq!(ttfc.count, 2);
    close(Some(ttfc.p50), 0.035);
    assert_eq!(first.metric(Metric::Tbc).unwrap().count, 2);
    // The third slice has a request that never ended, the fourth the end of the schedule.
    let complete: Vec<bool> = seen.slices.iter().map(|slice| slice.complete).collect();
    assert_eq!(complete, [true, true, false, false]);
    assert_eq!(
        (seen.slices[2].totals.requests, seen.slices[2].unfinished),
        (0, 1)
    );
    assert!(seen.slices[2].metrics.is_empty());
    assert_eq!(
        (seen.slices[3].totals.completed, seen.slices[3].totals.requests),
        (1, 1)
    );
    let (columns, rows) = seen.table();
    assert!(rows.iter().all(|row| row.len() == columns.len()));
    let place = columns.iter().position(|column| column == "ttfc_p50").unwrap();
    close(rows[0][place], 0.035);
    assert_eq!(rows[2][place], None);
    let file = seen.json();
    close(file["slices"][0]["metrics"]["ttfc"]["p50"].as_f64(), 0.035);
    assert_eq!(file["slice_seconds"], serde_json::json!(0.1));
}

/// One request every 100 ms, with two tokens.
fn every_100_ms(count: u64) -> Vec<Event> {
    (0..count)
        .map(|i| {
            let at = 100 * i;
            finished(with_chunks(
                answered(i, 0, at, at + 9),
                2,
                &[(at + 5, Content), (at + 8, Content)],
            ))
        })
        .collect()
}

#[test]
fn the_last_slice_is_as_long_as_the_schedule_filled_it() {
    // 24 requests, 10/s throughout: the schedule that ended normally covers 2.4 s.
    let seen = sliced(1000, every_100_ms(24));
    let last = seen.slices.last().unwrap();
    assert_eq!((last.from, last.to, last.complete), (ms(2000), ms(2400), false));
    for slice in &seen.slices {
        close(slice.requests_per_second(), 10.0);
        close(slice.output_tokens_per_second(), 20.0);
        close(slice.input_tokens_per_second(), 300.0);
    }
    let (columns, rows) = seen.table();
    let place = columns.iter().position(|column| column == "requests_per_second");
    close(rows[2][place.unwrap()], 10.0);
    close(seen.json()["slices"][2]["to"].as_f64(), 2.4);
}

#[test]
fn what_stops_a_schedule_cuts_its_last_slice() {
    for stop in [
        Event::TimeoutReached { at: ms(2450) },
        Event::Interrupted { at: ms(2450) },
    ] {
        let seen = sliced(1000, every_100_ms(24).into_iter().chain([stop]).collect());
        let last = seen.slices.last().unwrap();
        assert_eq!((last.to, last.complete), (ms(2450), false));
        close(last.requests_per_second(), 4.0 / 0.45);
        assert!(seen.slices[1].complete);
    }
}

#[test]
fn of_a_moment_there_is_no_rate() {
    // The timeout leaves 50 ms of the last second.
    let cut = Event::TimeoutReached { at: ms(2050) };
    let seen = sliced(1000, every_100_ms(21).into_iter().chain([cut]).collect());
    let last = seen.slices.last().unwrap();
    assert_eq!(
        (last.from, last.to, last.totals.completed),
        (ms(2000), ms(2050), 1)
    );
    assert_eq!(last.requests_per_second(), None);
    assert_eq!(last.totals.error_rate(), Some(0.0));
    // A schedule of one instant: all requests were intended at once.
    let burst = (0..5).map(|i| finished(answered(i, 0, 0, 9))).collect();
    let seen = sliced(1000, burst);
    assert_eq!(seen.slices[0].requests_per_second(), None);
    assert_eq!(
        (seen.slices[0].to, seen.slices[0].totals.completed),
        (ms(1000), 5)
    );
    assert!(seen.json()["slices"][0]["requests_per_second"].is_null());
}

#[test]
fn a_long_run_has_longer_slices() {
    let events = vec![
        finished(answered(0, 0, 0, 5)),
        finished(answered(1, 0, 10_000, 10_005)),
    ];
    let seen = sliced(1, events);
    assert_eq!(seen.length, ms(8));
    assert!(seen.slices.len() <= 2000);
    assert_eq!(
        seen.slices.iter().map(|slice| slice.totals.requests).sum::<u64>(),
        2
    );
}

#[test]
fn automatic_slices_adapt_to_the_length_of_the_run() {
    // Scheduled milliseconds, length and number of slices.
    for (last, length, count) in [
        (0, 125, 1),
        (3_000, 125, 25),
        (7_499, 125, 60),
        (7_500, 250, 31),
        (600_000, 16_000, 38),
        (3_600_000, 64_000, 57),
    ] {
        let events = [0, last].map(|at| finished(answered(at, 0, at, at + 5)));
        let seen = run_in(Setup::default(), events).slices;
        assert_eq!((seen.length, seen.slices.len()), (ms(length), count), "{last}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The rates of the slices, times their lengths, add up to the requests and tokens of the run;
    /// only a rest that is too short for a rate is left out.
    #[test]
    fn rates_of_slices_integrate_to_the_totals(
        gaps in prop::collection::vec(0u64..4_000, 1..80),
        slice in prop::option::of(100u64..5_000),
        stopped in prop::option::of(1u64..3_000),
    ) {
        let mut at = 0;
        let mut events = Vec::new();
        for (session, gap) in (0u64..).zip(&gaps) {
            at += gap;
            let chunks = [(at + 5, Content), (at + 8, Content)];
            events.push(finished(with_chunks(answered(session, 0, at, at + 9), 2, &chunks)));
        }
        events.extend(stopped.map(|after| Event::TimeoutReached { at: ms(at + after) }));
        let setup = Setup { slice: slice.map(ms), ..Setup::default() };
        let seen = run_in(setup, events).slices;
        prop_assert!(slice.is_some() || seen.slices.len() <= 60);
        let (mut requests, mut tokens) = (0.0, 0.0);
        for (place, slice) in seen.slices.iter().enumerate() {
            let seconds = (slice.to - slice.from) as f64 / 1e9;
            match slice.requests_per_second().zip(slice.output_tokens_per_second()) {
                Some((request_rate, token_rate)) => {
                    requests += request_rate * seconds;
                    tokens += token_rate * seconds;
                }
                None => {
                    prop_assert_eq!(place + 1, seen.slices.len());
                    requests += slice.totals.completed as f64;
                    tokens += slice.totals.output_tokens as f64;
                }
            }
        }
        prop_assert!((requests - gaps.len() as f64).abs() < 1e-6, "{}", requests);
        prop_assert!((tokens - 2.0 * gaps.len() as f64).abs() < 1e-6, "{}", tokens);
    }
}

#[test]
fn an_empty_run_has_no_slices_and_no_curves() {
    let seen = evaluate(Vec::new(), []);
    assert!(seen.slices.slices.is_empty());
    assert!(
        seen.curves
            .iter()
            .all(|curve| curve.points.is_empty() && curve.over_window.is_none())
    );
    assert_eq!(seen.curves()["window"], serde_json::Value::Null);
}
