//! Objectives of windows.

use super::*;

/// Ten-second windows from the first intended instant on: 100 and 200 in the first, 300 and 400 in
/// the second.
#[test]
fn windows_count_by_their_worst() {
    comes_to("mean(ttfc, window = 10s) <= 350ms", true, Some(0.35), Some(2));
    comes_to("mean(ttfc, window = 10s) < 300ms", false, Some(0.35), Some(2));
    // With a lower bound the worst window is the lowest.
    comes_to("mean(ttfc, window = 10s) >= 200ms", false, Some(0.15), Some(2));
    // Windows of two seconds: five of nine have no intended requests, and are not evaluated.
    comes_to("min(ttfc, window = 2s) >= 100ms", true, Some(0.1), Some(1));
    comes_to("count(ttfc, window = 2s) >= 1", true, Some(1.0), Some(1));
    comes_to(
        "max(ttfc{tier=\"free\"}, window = 10s) <= 200ms",
        false,
        Some(0.4),
        Some(1),
    );
    comes_to(
        "p99(ttfc{tier=\"silver\"}, window = 10s) <= 1s",
        false,
        None,
        Some(0),
    );
    let seen = run_in(
        asking(&["max(tbc, window = 5s) <= 1s", "mean(ttfc, window = 10s) < 300ms"]),
        four(),
    );
    let worst = seen.slos.results[1].worst_window.unwrap();
    assert_eq!((worst.from, worst.to), (ms(10_000), ms(20_000)));
    assert_eq!((worst.sample_count, worst.windows), (2, 2));
    assert_eq!(seen.slos.results[1].sample_count, Some(2));
    let row = &seen.slo_results()["results"][1];
    assert_eq!(row["sample_count"], serde_json::json!(2));
    assert_eq!(
        row["worst_window"],
        serde_json::json!({"from": 10.0, "to": 20.0, "sample_count": 2, "windows": 2})
    );
    // All windows are equally bad: the first one is reported.
    let first = seen.slos.results[0].worst_window.unwrap();
    assert_eq!((first.from, first.windows), (0, 3));
}

/// A request each second from 0 to 9, gold and free in turn, of two tokens and a TTFC of 9 ms;
/// those of the seconds 4, 5 and 6 fail.
fn outage() -> Vec<Event> {
    let record = |i: u64| {
        let tier = ["gold", "free"][i as usize % 2];
        let record = match i {
            4..=6 => failed(answered(i, 0, 1000 * i, 1000 * i + 50), ErrorClass::Timeout, None),
            _ => with_chunks(
                answered(i, 0, 1000 * i, 1000 * i + 50),
                2,
                &[(1000 * i + 9, Content)],
            ),
        };
        finished(labelled(record, &[("tier", tier)]))
    };
    (0..10).map(record).collect()
}

#[test]
fn an_outage_counts_as_nothing_in_its_windows() {
    let of = |objective: &str| {
        let seen = run_in(asking(&[objective]), outage());
        let result = seen.slos.results[0].clone();
        let worst = result
            .worst_window
            .map(|worst| (worst.from, worst.sample_count, worst.windows));
        (result.met, result.observed, worst, result.detail)
    };
    let first_second_of_it = Some((ms(4_000), 0, 10));
    for floor in [
        "count(ttfc, window = 1s) >= 1",
        "sum(num_output_tokens, window = 1s) >= 1",
    ] {
        assert_eq!(of(floor), (false, Some(0.0), first_second_of_it, None), "{floor}");
    }
    // Two windows have one or two of four tokens; the windows of seconds 4 and 5 have none.
    assert_eq!(
        of("sum(num_output_tokens, window = 2s) > 1"),
        (false, Some(0.0), Some((ms(4_000), 0, 5)), None)
    );
    assert_eq!(
        of("count(ttfc, window = 4s) >= 1"),
        (true, Some(1.0), Some((ms(4_000), 1, 2)), None)
    );
    // Gold is intended in the even seconds; the odd ones are not evaluated.
    assert_eq!(
        of("count(ttfc{tier=\"gold\"}, window = 1s) >= 1"),
        (false, Some(0.0), Some((ms(4_000), 0, 5)), None)
    );
    assert_eq!(
        of("count(ttfc{tier=\"free\"}, window = 1s) >= 1"),
        (false, Some(0.0), Some((ms(5_000), 0, 5)), None)
    );
    // An upper bound is always met by an empty window.
    assert_eq!(
        of("count(ttfc, window = 1s) <= 1"),
        (true, Some(1.0), Some((0, 1, 10)), None)
    );
}

#[test]
fn reports_windows_that_cannot_be_judged() {
    let of = |objective: &str| {
        let seen = run_in(asking(&[objective]), outage());
        let result = seen.slos.results[0].clone();
        assert_eq!(
            seen.slo_results()["results"][0]["detail"].as_str(),
            result.detail.as_deref()
        );
        (
            result.met,
            result.worst_window.map_or(0, |worst| worst.windows),
            result.detail,
        )
    };
    let told = |met, windows, detail: &str| (met, windows, Some(detail.to_owned()));
    assert_eq!(
        of("p99(ttfc, window = 1s) < 1s"),
        told(
            true,
            7,
            "in 3 of 10 windows no request was answered: they are not judged"
        )
    );
    assert_eq!(
        of("max(ttfc{tier=\"gold\"}, window = 1s) < 1s"),
        told(
            true,
            3,
            "in 2 of 5 windows no request with tier=\"gold\" was answered: they are not judged"
        )
    );
    // Seconds 4 and 5 form one window.
    assert_eq!(
        of("mean(ttfc, window = 2s) < 1s"),
        told(
            true,
            4,
            "in 1 of 5 windows no request was answered: they are not judged"
        )
    );
    assert_eq!(of("mean(ttfc, window = 5s) < 1s"), (true, 2, None));
    // No request has a sample: one sentence explains why.
    assert_eq!(
        of("p99(num_reasoning_tokens, window = 1s) < 9"),
        told(false, 0, "no answer has a sample of num_reasoning_tokens")
    );
}

/// Two requests a second apart, of which one has a TPOT.
#[test]
fn distinguishes_answer_without_sample_from_no_answer() {
    let one = |session, tokens, chunks: &[u64]| {
        let at = session * 1000;
        let chunks: Vec<_> = chunks.iter().map(|came| (at + came, Content)).collect();
        finished(with_chunks(answered(session, 0, at, at + 90), tokens, &chunks))
    };
    let fails = finished(failed(answered(2, 0, 2000, 2050), ErrorClass::Timeout, None));
    let events = [one(0, 2, &[10, 20]), one(1, 1, &[10]), fails];
    let seen = run_in(asking(&["max(tpot, window = 1s) < 1s"]), events);
    assert_eq!(
        seen.slos.results[0].detail.as_deref(),
        Some(
            "in 1 of 3 windows no request was answered, in 1 of 3 windows no answer has a sample of tpot: they are not judged"
        )
    );
}

/// If nothing was answered, windows do not change the result: the count of an empty set is 0, its
/// sum does not exist.
#[test]
fn windows_of_a_run_without_answers() {
    let fails =
        || (0..3).map(|i| finished(failed(answered(i, 0, 1000 * i, 9000), ErrorClass::Timeout, None)));
    let of = |objective: &str| {
        let seen = run_in(asking(&[objective]), fails());
        let result = seen.slos.results[0].clone();
        (result.met, result.observed, result.detail)
    };
    let why = Some("no request was answered".to_owned());
    assert_eq!(
        of("count(ttfc, window = 1s) >= 1"),
        (false, Some(0.0), why.clone())
    );
    assert_eq!(
        of("count(ttfc, window = 1s) <= 1"),
        (true, Some(0.0), why.clone())
    );
    assert_eq!(of("sum(ttfc, window = 1s) <= 1s"), (false, None, why.clone()));
    assert_eq!(of("p99(ttfc, window = 1s) <= 1s"), (false, None, why));
}

/// One request per second, from 0 to 10, and the last one is slow: the schedule covers 11 s, so the
/// third window of four seconds ends there and not at 12 s.
#[test]
fn the_last_window_ends_where_the_schedule_does() {
    let eleven = (0..11).map(|i| {
        let came = 1000 * i + if i == 10 { 500 } else { 9 };
        finished(with_chunks(answered(i, 0, 1000 * i, came), 1, &[(came, Content)]))
    });
    let seen = run_in(asking(&["max(ttfc, window = 4s) < 100ms"]), eleven);
    let worst = seen.slos.results[0].worst_window.unwrap();
    assert_eq!((worst.from, worst.to), (ms(8_000), ms(11_000)));
    assert_eq!((worst.sample_count, worst.windows), (3, 3));
}

/// One request per second, from 0 to 10: windows of four seconds have four, four and, as the
/// schedule ended at 11, three.
#[test]
fn a_window_that_the_schedule_left_early_is_not_asked_to_be_full() {
    let eleven = || (0..11).map(|i| finished(with_chunks(answered(i, 0, 1000 * i, 1000 * i + 9), 2, &[])));
    let observed = |objective: &str| {
        let seen = run_in(asking(&[objective]), eleven());
        let result = seen.slos.results[0].clone();
        (result.met, result.observed, result.worst_window.unwrap().windows)
    };
    assert_eq!(
        observed("count(num_output_tokens, window = 4s) >= 4"),
        (true, Some(4.0), 2)
    );
    assert_eq!(
        observed("sum(num_output_tokens, window = 4s) > 7"),
        (true, Some(8.0), 2)
    );
    // An upper bound also applies to the last window, as does a bound on a statistic that does not
    // grow with time.
    assert_eq!(
        observed("count(num_output_tokens, window = 4s) < 5"),
        (true, Some(4.0), 3)
    );
    assert_eq!(
        observed("min(num_output_tokens, window = 4s) >= 2"),
        (true, Some(2.0), 3)
    );
    // A single window is evaluated even if it is incomplete.
    assert_eq!(
        observed("count(num_output_tokens, window = 1m) >= 60"),
        (false, Some(11.0), 1)
    );
}

/// Two sessions: one ended normally in the first second, the other one lost its later requests to a
/// failure in the next.
#[test]
fn a_session_that_a_failure_cut_short_counts_in_its_window() {
    use veeksha_events::SessionEnd;
    let events = [
        finished(answered(0, 0, 0, 90)),
        session_finished(0, 90, SessionEnd::Completed, 1),
        finished(failed(answered(1, 0, 1000, 1050), ErrorClass::Timeout, None)),
        session_finished(1, 1050, SessionEnd::Cancelled, 2),
    ];
    let of = |objective: &str, events: &[Event]| {
        let seen = run_in(asking(&[objective]), events.to_vec());
        let result = seen.slos.results[0].clone();
        (
            result.met,
            result.observed,
            result.worst_window.map(|worst| worst.windows),
        )
    };
    assert_eq!(
        of("count(session_duration, window = 1s) >= 1", &events),
        (false, Some(0.0), Some(2))
    );
    // A session that was interrupted by the end of the run is not evaluated.
    let overtaken = [
        &events[..3],
        &[session_finished(1, 1050, SessionEnd::Incomplete, 2)],
    ]
    .concat();
    assert_eq!(
        of("count(session_duration, window = 1s) >= 1", &overtaken),
        (true, Some(1.0), Some(1))
    );
}

/// Plugins also see the windows of an outage at the end: intended requests determine the number of
/// windows, not answered ones.
#[test]
fn windows_reach_to_the_last_request_that_was_asked_for() {
    let events = (0..5).map(|i| {
        let record = answered(i, 0, 1000 * i, 1000 * i + 50);
        finished(match i {
            3.. => failed(record, ErrorClass::Timeout, None),
            _ => with_chunks(record, 2, &[(1000 * i + 9, Content)]),
        })
    });
    let seen = run_in(Setup::default(), events);
    let windows = veeksha_ports::RunResults::windows(seen.samples.as_ref(), "ttfc", &[], ms(1000));
    let counts: Vec<u64> = windows.iter().map(|window| window.stats.count).collect();
    assert_eq!(counts, [1, 1, 1, 0, 0]);
}
