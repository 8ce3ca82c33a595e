//! Sides with different requested loads: their rates and counts reflect the request.

use veeksha_compare::{
    CompareOptions, CompareSide, ComparedSide, Comparison, DifferenceVerdict, FailIf, FailOutcome,
    RequestedLoad, RunValueData, TimedSamples, ValueParts, compare,
};
use veeksha_model::Better;

use crate::synthetic::{even, side};

/// Creates a run that answers this number of requests per second, evenly, with a metric and the
/// dispatch rate, which has no better side.
fn asked_for(label: &str, load: Option<RequestedLoad>, per_second: u64) -> CompareSide {
    let mut side = side(label, even(1.0));
    let mut samples = TimedSamples::new();
    let window = (0, 100_000_000_000);
    let wobble = |place: u64| place * 7919 % 1_000_000;
    (0..100 * per_second)
        .for_each(|place| samples.push(place * 1_000_000_000 / per_second + wobble(place), 1.0));
    let rate = |name: &str, better| RunValueData {
        parts: Some(ValueParts::Amounts {
            samples: samples.clone(),
            window,
        }),
        grows_with_load: true,
        ..RunValueData::new(name, "requests/s", better, per_second as f64)
    };
    side.runs[0].load = load;
    side.runs[0].run_metrics = vec![
        rate("requests_per_second", Better::Higher),
        rate("request_dispatch_rate", Better::Neither),
    ];
    side
}

fn compared(baseline: CompareSide, candidate: CompareSide) -> Comparison {
    let options = CompareOptions {
        resamples: 200,
        ..CompareOptions::default()
    };
    compare(&[baseline, candidate], &[], &options).unwrap()
}

fn verdict(candidate: &ComparedSide, name: &str) -> DifferenceVerdict {
    let row = candidate.rows.iter().find(|row| row.name == name);
    row.unwrap().verdict
}

fn about_load(candidate: &ComparedSide) -> Vec<String> {
    let remarks = candidate.remark_texts().into_iter();
    remarks
        .filter(|remark| remark.contains("requested load"))
        .collect()
}

const fn arrivals(per_second: f64) -> Option<RequestedLoad> {
    Some(RequestedLoad::Arrivals { per_second })
}

#[test]
fn rates_of_open_loops_with_different_loads_are_not_judged() {
    let comparison = compared(
        asked_for("A", arrivals(25.0), 25),
        asked_for("B", arrivals(40.0), 40),
    );
    let candidate = &comparison.candidates[0];
    let row = candidate
        .rows
        .iter()
        .find(|row| row.name == "requests_per_second")
        .unwrap();
    assert_eq!(row.verdict, DifferenceVerdict::NotComparable);
    assert!((row.relative.unwrap() - 0.6).abs() < 1e-9, "shown all the same");
    insta::assert_snapshot!(row.remark.as_deref().unwrap(), @"the requested loads differ: 25 sessions/s and 40 sessions/s");
    insta::assert_snapshot!(candidate.remark_texts()[0], @"the requested load of A is 25 sessions/s, that of B 40 sessions/s: rates and counts follow the requested load and are not judged; latencies are those under these loads");
    // A value without a better side shows the actual loads, and latencies depend on the server.
    assert_eq!(
        verdict(candidate, "request_dispatch_rate"),
        DifferenceVerdict::Differs
    );
    assert_eq!(verdict(candidate, "ttfc"), DifferenceVerdict::NoDifference);
    for gate in [
        "worse(requests_per_second)",
        "requests_per_second > +5%",
        "better(requests_per_second)",
    ] {
        let decision = FailIf::parse(gate).unwrap().decide(&comparison);
        assert_eq!(decision.candidates[0].outcome, FailOutcome::Undecided, "{gate}");
    }
}

/// Equal loads, unknown ones, and a server that did not keep up are all judged.
#[test]
fn rates_of_one_load_are_judged() {
    for (a, b) in [
        (arrivals(40.0), arrivals(40.0)),
        (None, None),
        (arrivals(40.0), None),
    ] {
        let comparison = compared(asked_for("A", a, 40), asked_for("B", b, 25));
        let candidate = &comparison.candidates[0];
        assert_eq!(
            verdict(candidate, "requests_per_second"),
            DifferenceVerdict::Worse
        );
        assert_eq!(about_load(candidate), Vec::<String>::new());
    }
}

/// In a closed loop the server determines the rate: its throughput with more sessions is judged,
/// with a remark.
#[test]
fn rates_of_closed_loops_are_judged_with_a_remark_on_the_loads() {
    let sessions = |at_a_time| Some(RequestedLoad::Sessions { at_a_time });
    let comparison = compared(asked_for("A", sessions(4), 25), asked_for("B", sessions(8), 40));
    let candidate = &comparison.candidates[0];
    assert_eq!(
        verdict(candidate, "requests_per_second"),
        DifferenceVerdict::Better
    );
    assert_eq!(
        about_load(candidate),
        [
            "the requested load of A is 4 sessions at a time, that of B 8 sessions at a time: rates and latencies are those under these loads"
        ]
    );
    // One of them is open: its rate is the requested one.
    let recorded = Some(RequestedLoad::Recorded { speedup: 2.0 });
    let comparison = compared(asked_for("A", sessions(4), 25), asked_for("B", recorded, 40));
    let candidate = &comparison.candidates[0];
    assert_eq!(
        verdict(candidate, "requests_per_second"),
        DifferenceVerdict::NotComparable
    );
}
