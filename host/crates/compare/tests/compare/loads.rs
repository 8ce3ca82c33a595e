//! Sides with different requested loads: their rates and counts reflect the request.

use veeksha_compare::{
    Candidate, Comparison, FailIf, FigureData, Load, Options, Outcome, Parts, Side, TimedSamples, Verdict,
    compare,
};
use veeksha_model::Better;

use crate::synthetic::{even, side};

/// Creates a run that answers this number of requests per second, evenly, with a metric and the
/// dispatch rate, which has no better side.
fn asked_for(label: &str, load: Option<Load>, per_second: u64) -> Side {
    let mut side = side(label, even(1.0));
    let mut samples = TimedSamples::new();
    let window = (0, 100_000_000_000);
    let wobble = |place: u64| place * 7919 % 1_000_000;
    (0..100 * per_second)
        .for_each(|place| samples.push(place * 1_000_000_000 / per_second + wobble(place), 1.0));
    let rate = |name: &str, better| FigureData {
        parts: Some(Parts::Amounts {
            samples: samples.clone(),
            window,
        }),
        grows_with_load: true,
        ..FigureData::new(name, "requests/s", better, per_second as f64)
    };
    side.runs[0].load = load;
    side.runs[0].figures = vec![
        rate("requests_per_second", Better::Higher),
        rate("request_dispatch_rate", Better::Neither),
    ];
    side
}

fn compared(baseline: Side, candidate: Side) -> Comparison {
    let options = Options {
        resamples: 200,
        ..Options::default()
    };
    compare(&[baseline, candidate], &[], &options).unwrap()
}

fn verdict(candidate: &Candidate, name: &str) -> Verdict {
    let row = candidate.rows.iter().find(|row| row.name == name);
    row.unwrap().verdict
}

fn about_load(candidate: &Candidate) -> Vec<&String> {
    let remarks = candidate.remarks.iter();
    remarks.filter(|remark| remark.contains("asked for")).collect()
}

const fn arrivals(per_second: f64) -> Option<Load> {
    Some(Load::Arrivals { per_second })
}

#[test]
fn rates_of_open_loops_that_were_asked_for_different_ones_are_not_judged() {
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
    assert_eq!(row.verdict, Verdict::NotComparable);
    assert!((row.relative.unwrap() - 0.6).abs() < 1e-9, "shown all the same");
    insta::assert_snapshot!(row.remark.as_deref().unwrap(), @"the sides were asked for different loads: 25 sessions/s and 40 sessions/s");
    insta::assert_snapshot!(candidate.remarks[0], @"A was asked for 25 sessions/s and B for 40 sessions/s: how much there is of something in a second is what was asked for, so rates and counts are shown and not judged; latencies are those under these loads");
    // A value without a better side shows the actual loads, and latencies depend on the server.
    assert_eq!(verdict(candidate, "request_dispatch_rate"), Verdict::Differs);
    assert_eq!(verdict(candidate, "ttfc"), Verdict::NoDifference);
    for gate in [
        "worse(requests_per_second)",
        "requests_per_second > +5%",
        "better(requests_per_second)",
    ] {
        let decision = FailIf::parse(gate).unwrap().decide(&comparison);
        assert_eq!(decision.candidates[0].outcome, Outcome::Undecided, "{gate}");
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
        assert_eq!(verdict(candidate, "requests_per_second"), Verdict::Worse);
        assert_eq!(about_load(candidate), Vec::<&String>::new());
    }
}

/// In a closed loop the server determines the rate: its throughput with more sessions is judged,
/// with a remark.
#[test]
fn rates_of_closed_loops_are_judged_and_the_loads_told() {
    let sessions = |at_a_time| Some(Load::Sessions { at_a_time });
    let comparison = compared(asked_for("A", sessions(4), 25), asked_for("B", sessions(8), 40));
    let candidate = &comparison.candidates[0];
    assert_eq!(verdict(candidate, "requests_per_second"), Verdict::Better);
    assert_eq!(
        about_load(candidate),
        [
            "A was asked for 4 sessions at a time and B for 8 sessions at a time: rates and latencies are those under these loads"
        ]
    );
    // One of them is open: its rate is the requested one.
    let recorded = Some(Load::Recorded { speedup: 2.0 });
    let comparison = compared(asked_for("A", sessions(4), 25), asked_for("B", recorded, 40));
    let candidate = &comparison.candidates[0];
    assert_eq!(verdict(candidate, "requests_per_second"), Verdict::NotComparable);
}
