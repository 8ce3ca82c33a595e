//! Objectives: what is refused before the run, and what the others come to.

use crate::sequences::*;
use veeksha_evaluate::{Catalogue, Metric, ObjectiveError, ObjectiveProblem, Objectives, Setup, Slo, Stated};
use veeksha_events::Event;
use veeksha_model::ChunkKind::Content;
use veeksha_model::ErrorClass;
use veeksha_slo::{Objective, Quantity};

fn check_in(
    catalogue: &Catalogue,
    slos: &[&str],
    goodput: &[&str],
    judges: &[&str],
) -> Result<Objectives, Vec<ObjectiveError>> {
    let slos = slos
        .iter()
        .map(|text| Stated::from(Objective::parse(text).unwrap()));
    let conditions = goodput
        .iter()
        .map(|text| Objective::parse_condition(text).unwrap());
    let judges = judges.iter().map(|judge| (*judge).to_owned());
    Objectives::check(slos.collect(), conditions.collect(), judges.collect(), catalogue)
}

fn problems(slos: &[&str], goodput: &[&str]) -> Vec<String> {
    let errors = check_in(&Catalogue::built_in(), slos, goodput, &[]).unwrap_err();
    errors.iter().map(ObjectiveError::to_string).collect()
}

#[test]
fn what_cannot_be_answered_is_refused_with_its_place_and_the_remedy() {
    let errors = problems(
        &[
            "p99(ttcf) < 500ms",
            "p99(ttfc) < 5%",
            "error_rate < 3s",
            "p99(num_output_tokens) < 500ms",
            "p99(error_rate) < 0.1",
            "ttfc < 500ms",
            "errorrate < 0.1",
            "count(ttfc) > 5s",
            "qwertz > 1",
        ],
        &[],
    );
    let expected = [
        "the objective `p99(ttcf) < 500ms`: there is no metric `ttcf`; did you mean `ttfc`?",
        "the objective `p99(ttfc) < 5%`: `5%` is a share, and the unit of what it bounds is `s`; give a number in that unit",
        "the objective `error_rate < 3s`: `3s` is a time, and the unit of what it bounds is a plain ratio; leave `s` out or bound another metric",
        "the objective `p99(num_output_tokens) < 500ms`: `500ms` is a time, and the unit of what it bounds is `tokens`; leave `ms` out or bound another metric",
        "the objective `p99(error_rate) < 0.1`: `error_rate` is one figure of the whole run: it has no aggregate, labels or window; write it alone",
        "the objective `ttfc < 500ms`: `ttfc` is a metric with many samples; say which figure of them, such as p99(ttfc)",
        "the objective `errorrate < 0.1`: there is no figure `errorrate`; did you mean `error_rate`?",
        "the objective `count(ttfc) > 5s`: a number of samples has no unit; write the bound as a number",
        "the objective `qwertz > 1`: there is no figure `qwertz`; `veeksha-host metrics` lists them",
    ];
    assert_eq!(errors, expected);
    let errors = problems(&["p99(ttfc) < 1", "p99(ttcf) < 1"], &[]);
    assert_eq!(errors.len(), 1);
}

#[test]
fn conditions_are_about_requests() {
    let errors = problems(&[], &["session_duration <= 3s", "ttcf <= 1s"]);
    assert_eq!(
        errors,
        [
            "the condition `session_duration <= 3s`: `session_duration` is not a metric of requests, so no request can keep it by itself",
            "the condition `ttcf <= 1s`: there is no metric `ttcf`; did you mean `ttfc`?",
        ]
    );
    // Not from text, but from whoever builds them.
    let mut windowed = Objective::parse_condition("ttfc <= 1s").unwrap();
    if let Quantity::Samples { window, .. } = &mut windowed.quantity {
        *window = Some(std::time::Duration::from_secs(1));
    }
    let catalogue = Catalogue::built_in();
    let figure = Objective::parse("error_rate < 0.1").unwrap();
    let errors = Objectives::check(Vec::new(), vec![windowed, figure], Vec::new(), &catalogue).unwrap_err();
    assert_eq!(errors[0].problem, ObjectiveProblem::ConditionWithWindow);
    assert!(matches!(
        errors[1].problem,
        ObjectiveProblem::NotOfRequests { .. }
    ));
    assert!(errors.iter().all(|error| error.is_condition));
}

#[test]
fn goodput_needs_something_that_a_good_request_keeps() {
    let built_in = Catalogue::built_in();
    let check =
        |slos: &[&str], goodput: &[&str], judges: &[&str]| check_in(&built_in, slos, goodput, judges).is_ok();
    assert!(!check(&["goodput > 0.9"], &[], &[]));
    assert!(!check(
        &["good_requests_per_second > 1", "error_rate < 0.1"],
        &[],
        &[]
    ));
    assert!(!check(&["goodput > 0.9", "p99(session_duration) < 3"], &[], &[]));
    // A sum over all requests asks nothing of one.
    assert!(!check(&["goodput > 0.9", "sum(num_output_tokens) > 3"], &[], &[]));
    assert!(check(&["goodput > 0.9", "p99(ttfc) < 3"], &[], &[]));
    assert!(check(&["goodput > 0.9"], &["ttfc <= 1s"], &[]));
    assert!(check(&["goodput > 0.9"], &[], &["judge"]));
}

#[test]
fn what_cannot_exist_in_this_run_is_refused() {
    let mut catalogue = Catalogue::built_in();
    catalogue.exclude("tbc", "answers are not streamed (`client.stream: false`)");
    let errors = check_in(&catalogue, &["p99(tbc) < 1", "p99(ttfc) < 1"], &["tbc < 1"], &[]).unwrap_err();
    assert_eq!(
        errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "the objective `p99(tbc) < 1`: `tbc` cannot exist in this run: answers are not streamed (`client.stream: false`)",
            "the condition `tbc < 1`: `tbc` cannot exist in this run: answers are not streamed (`client.stream: false`)",
        ]
    );
    let constant = Slo {
        name: None,
        metric: Metric::Tbc,
        percentile: 0.99,
        value: 1.0,
    };
    assert!(Objectives::check(vec![constant.into()], Vec::new(), Vec::new(), &catalogue).is_err());
}

#[test]
fn constants_are_checked_too() {
    let slo = |percentile, value| {
        let slo = Slo {
            name: None,
            metric: Metric::Ttfc,
            percentile,
            value,
        };
        Objectives::check(vec![slo.into()], Vec::new(), Vec::new(), &Catalogue::built_in())
    };
    assert!(slo(0.99, 1.0).is_ok());
    assert_eq!(
        slo(99.0, 1.0).unwrap_err()[0].problem,
        ObjectiveProblem::Percentile
    );
    assert_eq!(
        slo(0.99, f64::NAN).unwrap_err()[0].problem,
        ObjectiveProblem::Bound
    );
}

/// Answers with first chunks after 100, 200, 300, 400 ms, intended at 0, 4, 12 and 16 seconds, of gold, free, gold, free.
fn four() -> Vec<Event> {
    [
        (0, 0, 100, "gold"),
        (1, 4, 200, "free"),
        (2, 12, 300, "gold"),
        (3, 16, 400, "free"),
    ]
    .into_iter()
    .flat_map(|(session, second, ttfc, tier)| {
        let first = second * 1000 + 1 + ttfc;
        let chunks = [(first, Content), (first + 10, Content), (first + 40, Content)];
        let record = with_chunks(answered(session, 0, second * 1000, first + 50), 3, &chunks);
        both(labelled(record, &[("tier", tier)]))
    })
    .collect()
}

#[track_caller]
fn comes_to(objective: &str, met: bool, observed: Option<f64>, count: Option<u64>) {
    let seen = run_in(asking(&[objective]), four());
    let result = &seen.slos.results[0];
    assert_eq!((result.met, result.sample_count), (met, count), "{objective}");
    match observed {
        Some(expected) => close(result.observed, expected),
        None => assert_eq!(result.observed, None),
    }
    assert_eq!(result.objective, objective);
}

#[test]
fn aggregates_labels_and_figures() {
    comes_to("p50(ttfc) <= 250ms", true, Some(0.25), Some(4));
    comes_to("p50(ttfc) < 250ms", false, Some(0.25), Some(4));
    comes_to("mean(ttfc) >= 250ms", true, Some(0.25), Some(4));
    comes_to("min(ttfc) > 100ms", false, Some(0.1), Some(4));
    comes_to("max(ttfc) <= 399ms", false, Some(0.4), Some(4));
    comes_to("sum(num_output_tokens) >= 12", true, Some(12.0), Some(4));
    comes_to("count(tbc) >= 8", true, Some(8.0), Some(8));
    // Gaps of 10 and 30.
    comes_to("std(tbc) <= 10ms", true, Some(0.010), Some(8));
    comes_to("sum(tbc) < 1", true, Some(0.160), Some(8));
    comes_to("max(ttfc{tier=\"gold\"}) <= 300ms", true, Some(0.3), Some(2));
    comes_to("p50(tbc{tier=\"free\"}) <= 20ms", true, Some(0.020), Some(4));
    comes_to("p99(ttfc{tier=\"silver\"}) <= 1s", false, None, Some(0));
    comes_to("count(ttfc{tier=\"silver\"}) <= 0", true, Some(0.0), Some(0));
    comes_to("error_rate <= 0", true, Some(0.0), None);
    comes_to("requests_per_second > 0.2", true, Some(4.0 / 16.451), None);
    comes_to(
        "p99(normalized_end_to_end_latency) < 150ms",
        true,
        Some((0.4 + 0.04 - 0.03 * 0.1) / 3.0),
        Some(4),
    );
}

#[test]
fn bounds_are_brought_to_the_unit_of_what_they_bound() {
    let threshold = |text: &str| {
        let result = run_in(asking(&[text]), []).slos.results.remove(0);
        (result.threshold, result.unit)
    };
    let of = |value: f64, unit: &str| (value, unit.to_owned());
    assert_eq!(threshold("error_rate < 1%"), of(0.01, "1"));
    assert_eq!(threshold("p10(fluidity) > 90%").0, 0.9);
    assert_eq!(threshold("p99(ttfc) < 500ms"), of(0.5, "s"));
    assert_eq!(threshold("p99(ttfc) < 0.5"), of(0.5, "s"));
    assert_eq!(
        threshold("p99(normalized_end_to_end_latency) < 150ms"),
        of(0.15, "s/token")
    );
    assert_eq!(threshold("window_seconds >= 1m"), of(60.0, "s"));
    assert_eq!(threshold("count(ttfc) > 5"), of(5.0, "samples"));
}

/// Ten-second windows from the first intended instant on: 100 and 200 in the first, 300 and 400 in the second.
#[test]
fn windows_count_by_their_worst() {
    comes_to("mean(ttfc, window = 10s) <= 350ms", true, Some(0.35), Some(2));
    comes_to("mean(ttfc, window = 10s) < 300ms", false, Some(0.35), Some(2));
    // More is asked for: the worst is the lowest.
    comes_to("mean(ttfc, window = 10s) >= 200ms", false, Some(0.15), Some(2));
    // Windows of two seconds: in five of nine nothing was intended, so that they say nothing.
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
    // All windows are as bad: the first one is named.
    let first = seen.slos.results[0].worst_window.unwrap();
    assert_eq!((first.from, first.windows), (0, 3));
}

/// A request each second from 0 to 9, gold and free in turn, of two tokens and a TTFC of 9 ms; those of the seconds 4, 5 and 6 fail.
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
    // Two seconds have one or two of four tokens: the second 4 and 5 none.
    assert_eq!(
        of("sum(num_output_tokens, window = 2s) > 1"),
        (false, Some(0.0), Some((ms(4_000), 0, 5)), None)
    );
    assert_eq!(
        of("count(ttfc, window = 4s) >= 1"),
        (true, Some(1.0), Some((ms(4_000), 1, 2)), None)
    );
    // Gold is asked for in the even seconds, and the odd ones say nothing of it.
    assert_eq!(
        of("count(ttfc{tier=\"gold\"}, window = 1s) >= 1"),
        (false, Some(0.0), Some((ms(4_000), 0, 5)), None)
    );
    assert_eq!(
        of("count(ttfc{tier=\"free\"}, window = 1s) >= 1"),
        (false, Some(0.0), Some((ms(5_000), 0, 5)), None)
    );
    // An upper bound is kept best where nothing is.
    assert_eq!(
        of("count(ttfc, window = 1s) <= 1"),
        (true, Some(1.0), Some((0, 1, 10)), None)
    );
}

#[test]
fn windows_that_cannot_be_judged_are_told() {
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
    // Seconds 4 and 5 make one window.
    assert_eq!(
        of("mean(ttfc, window = 2s) < 1s"),
        told(
            true,
            4,
            "in 1 of 5 windows no request was answered: they are not judged"
        )
    );
    assert_eq!(of("mean(ttfc, window = 5s) < 1s"), (true, 2, None));
    // Nobody has a sample of it: one sentence says why.
    assert_eq!(
        of("p99(num_reasoning_tokens, window = 1s) < 9"),
        told(false, 0, "no answer has a sample of num_reasoning_tokens")
    );
}

/// Two requests a second apart, of which one has a TPOT.
#[test]
fn an_answer_without_a_sample_is_told_apart_from_no_answer() {
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

/// If nothing at all was answered, windows change nothing: a count of nothing is 0, a sum of nothing does not exist.
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
    assert_eq!(of("sum(ttfc, window = 1s) <= 1"), (false, None, why.clone()));
    assert_eq!(of("p99(ttfc, window = 1s) <= 1"), (false, None, why));
}

/// A request each second, from 0 to 10, and the last one is slow: the schedule stands for 11 s, so the third window of four seconds ends
/// there and not at 12 s.
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

/// A request each second, from 0 to 10: windows of four seconds have four, four and, as the schedule ended at 11, three.
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
    // An upper bound holds in the last one too; so does one on what does not grow with time.
    assert_eq!(
        observed("count(num_output_tokens, window = 4s) < 5"),
        (true, Some(4.0), 3)
    );
    assert_eq!(
        observed("min(num_output_tokens, window = 4s) >= 2"),
        (true, Some(2.0), 3)
    );
    // The only window there is counts as it is.
    assert_eq!(
        observed("count(num_output_tokens, window = 1m) >= 60"),
        (false, Some(11.0), 1)
    );
}

#[test]
fn labels_that_no_request_has_are_told_apart_from_no_samples() {
    let why = |objective: &str, events: Vec<Event>| {
        let seen = run_in(asking(&[objective]), events);
        let file = seen.slo_results();
        let result = seen.slos.results[0].clone();
        assert_eq!(file["results"][0]["detail"].as_str(), result.detail.as_deref());
        result.detail
    };
    let of = |objective: &str| why(objective, four()).unwrap();
    assert_eq!(
        of("p99(ttfc{tier=\"golf\"}) <= 1s"),
        "no request has the label tier=\"golf\"; did you mean tier=\"gold\"?; labels seen: tier=\"free\", tier=\"gold\""
    );
    assert_eq!(
        of("p99(ttfc{teir=\"gold\"}, window = 10s) <= 1s"),
        "no request has the label teir=\"gold\"; did you mean tier=\"gold\"?; labels seen: tier=\"free\", tier=\"gold\""
    );
    // Nothing is alike: nothing is guessed. That a count of nothing keeps its bound does not hide the slip.
    assert_eq!(
        of("count(ttfc{zone=\"eu\"}) <= 9"),
        "no request has the label zone=\"eu\"; labels seen: tier=\"free\", tier=\"gold\""
    );
    // Each is there, on requests of its own.
    let kinds = [("kind", "chat"), ("tier", "gold")].into_iter().zip(0..);
    let apart = kinds.map(|(label, session)| finished(labelled(answered(session, 0, 0, 9), &[label])));
    assert_eq!(
        why("p99(e2e{kind=\"chat\", tier=\"gold\"}) <= 1s", apart.collect()).unwrap(),
        "no request has kind=\"chat\" and tier=\"gold\" together"
    );
    assert_eq!(
        of("p99(num_reasoning_tokens{tier=\"gold\"}) <= 9"),
        "no answer has a sample of num_reasoning_tokens"
    );
    assert_eq!(
        of("p99(session_tool_time) <= 1s"),
        "no answer has a sample of session_tool_time"
    );
    let unlabelled = finished(answered(0, 0, 0, 9));
    assert_eq!(
        why("p99(e2e{tier=\"gold\"}) <= 1s", vec![unlabelled]).unwrap(),
        "no request has the label tier=\"gold\"; the requests have no labels"
    );
    assert_eq!(
        why("p99(ttfc) <= 1s", Vec::new()).unwrap(),
        "no request was answered"
    );
    assert_eq!(why("p99(ttfc) <= 1s", four()), None);
}

#[test]
fn a_condition_on_nobody_is_told() {
    let remarks = |condition: &str| {
        let catalogue = Catalogue::built_in();
        let setup = Setup {
            objectives: check_in(&catalogue, &[], &[condition], &[]).unwrap(),
            ..Setup::default()
        };
        let seen = run_in(setup, four());
        assert_eq!(
            seen.slo_results()["remarks"],
            serde_json::json!(seen.slos.remarks)
        );
        seen.slos.remarks
    };
    assert_eq!(
        remarks("ttfc{tier=\"golf\"} <= 1s"),
        [
            "goodput does not depend on `ttfc{tier=\"golf\"} <= 1s`: no request has the label tier=\"golf\"; did you mean tier=\"gold\"?; labels seen: tier=\"free\", tier=\"gold\""
        ]
    );
    assert!(remarks("ttfc{tier=\"gold\"} <= 1s").is_empty());
}

#[test]
fn a_percentile_of_too_few_samples_says_so() {
    let seen = run_in(
        asking(&[
            "p99(ttfc) < 1s",
            "p50(ttfc) < 1s",
            "max(ttfc) < 1s",
            "p90(tbc, window = 10s) < 1s",
        ]),
        four(),
    );
    let thin: Vec<bool> = seen.slos.results.iter().map(|result| result.thin).collect();
    assert_eq!(thin, [true, false, false, true]);
    assert_eq!(
        seen.slo_results()["results"][0]["too_few_samples"],
        serde_json::json!(true)
    );
}

#[test]
fn results_have_veekshas_keys_whoever_stated_them() {
    let stated = |text: &str| {
        let seen = run_in(asking(&[text]), four());
        let file = seen.slo_results();
        let row = &file["results"][0];
        let of = |key: &str| row[key].clone();
        (
            of("slo_metric_key"),
            of("metric"),
            of("percentile"),
            of("lower_is_better"),
        )
    };
    let value = |text: &str| serde_json::Value::from(text);
    assert_eq!(
        stated("p99.9(e2e) <= 1s"),
        (value("e2e_p99.9"), value("e2e"), 0.999.into(), true.into())
    );
    assert_eq!(
        stated("mean(ttfc{tier=\"gold\"}) > 1s"),
        (
            value("mean(ttfc{tier=\"gold\"})"),
            value("ttfc"),
            serde_json::Value::Null,
            false.into()
        )
    );
    assert_eq!(stated("error_rate < 1%").0, value("error_rate"));
}

#[test]
fn names_are_kept() {
    let mut objective = Objective::parse("p99(ttfc) < 1s").unwrap();
    objective.name = Some("fast".into());
    let catalogue = Catalogue::built_in();
    let setup = Setup {
        objectives: Objectives::check(vec![objective.into()], Vec::new(), Vec::new(), &catalogue).unwrap(),
        ..Setup::default()
    };
    let seen = run_in(setup, four());
    assert_eq!(
        seen.slo_results()["results"][0]["name"],
        serde_json::json!("fast")
    );
}

/// Goodput counts what was intended: four answered, one failed, one never sent.
#[test]
fn goodput_of_explicit_conditions() {
    let goodput = |conditions: &[&str]| {
        let catalogue = Catalogue::built_in();
        let setup = Setup {
            objectives: check_in(&catalogue, &["goodput >= 0.5"], conditions, &[]).unwrap(),
            ..Setup::default()
        };
        let more = [
            finished(failed(answered(7, 0, 0, 90), ErrorClass::Timeout, None)),
            never_sent(8, 0, veeksha_events::NeverSentReason::Held),
        ];
        let seen = run_in(setup, four().into_iter().chain(more));
        assert_eq!(seen.slos.results[0].observed, seen.slos.goodput);
        assert_eq!(seen.slos.results[0].met, seen.slos.goodput >= Some(0.5));
        seen.slos.goodput
    };
    close(goodput(&["ttfc <= 300ms"]), 3.0 / 6.0);
    close(goodput(&["ttfc <= 300ms", "e2e < 300ms"]), 2.0 / 6.0);
    // Tiers: 150 ms for free, 300 for gold.
    close(
        goodput(&["ttfc{tier=\"gold\"} <= 300ms", "ttfc{tier=\"free\"} <= 150ms"]),
        2.0 / 6.0,
    );
    // Every gap, or their mean of 20 ms.
    close(goodput(&["tbc <= 29ms"]), 0.0);
    close(goodput(&["mean(tbc) <= 20ms"]), 4.0 / 6.0);
    close(goodput(&["itl >= 10ms"]), 4.0 / 6.0);
    close(goodput(&["output_throughput >= 10"]), 2.0 / 6.0);
}

/// Two sessions: one came to its end in the first second, the other one lost its later requests to a failure in the next.
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
    // One that the end of the run overtook says nothing.
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

/// Plugins see the windows of an outage at the end too: what was asked for says how many there are, not what was answered.
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
