//! Shares of requests, which are judged by the number of requests, and rates of a single run.

use veeksha_compare::{
    CompareOptions, CompareSide, Comparison, ComparisonRow, DifferenceVerdict, FailIf, FailOutcome, RunData,
    RunValueData, TimedSamples, ValueParts, compare,
};
use veeksha_model::Better;

use crate::synthetic::{draws, metric};

fn options() -> CompareOptions {
    CompareOptions {
        resamples: 200,
        ..CompareOptions::default()
    }
}

/// Creates a run in which the requests at these places count: one ends about every 10 ms, at
/// different instants in each run.
fn run(number: u64, requests: u64, fails: impl Fn(u64) -> bool) -> RunData {
    let mut samples = TimedSamples::new();
    let mut failed = 0;
    for place in 0..requests {
        let counts = fails(place);
        failed += u64::from(counts);
        samples.push(place * 10_000_000 + number * 977, f64::from(u8::from(counts)));
    }
    RunData {
        label: format!("run {number}"),
        run_metrics: vec![RunValueData {
            parts: Some(ValueParts::Outcomes(samples)),
            ..RunValueData::new("error_rate", "1", Better::Less, failed as f64 / requests as f64)
        }],
        ..RunData::default()
    }
}

/// Creates a side whose runs have equal numbers of failed requests, spread over the run.
fn side(label: &str, numbers: std::ops::Range<u64>, failed: u64, requests: u64) -> CompareSide {
    let fails = |place: u64| (place * 49) % requests < failed;
    CompareSide {
        label: label.into(),
        runs: numbers.map(|number| run(number, requests, fails)).collect(),
    }
}

fn row(comparison: &Comparison) -> &ComparisonRow {
    let rows = &comparison.candidates[0].rows;
    rows.iter().find(|row| row.name == "error_rate").unwrap()
}

fn outcome(expression: &str, comparison: &Comparison) -> FailOutcome {
    let decision = FailIf::parse(expression).unwrap().decide(comparison);
    decision.candidates[0].outcome
}

/// 0 of 120 against 40 of 120 is detected for any number of runs per side. One run each: variances
/// of at least 0.0000666 and 0.00183 (Agresti and Caffo), so that 1/3 is at most 7.7 errors.
#[test]
fn a_third_of_the_requests_failing_is_worse_with_any_number_of_runs() {
    for (a, b) in [(1, 1), (2, 2), (4, 4), (1, 4), (4, 1)] {
        let sides = [side("A", 0..a, 0, 120), side("B", 10..10 + b, 40, 120)];
        let comparison = compare(&sides, &[], &options()).unwrap();
        let row = row(&comparison);
        assert_eq!(row.verdict, DifferenceVerdict::Worse, "{a} and {b}: {row:?}");
        let (low, high) = row.interval.unwrap();
        assert!(low > 0.2 && low < 1.0 / 3.0 && high > 1.0 / 3.0, "{low} … {high}");
        assert_eq!(outcome("worse(any)", &comparison), FailOutcome::Fails);
        let counted = row.candidate.unwrap().counted.unwrap();
        assert_eq!((counted.part, counted.whole), (40 * b, 120 * b));
        assert_eq!(row.candidate.unwrap().samples, 120 * b);

        let back = compare(&[sides[1].clone(), sides[0].clone()], &[], &options()).unwrap();
        assert_eq!(self::row(&back).verdict, DifferenceVerdict::Better);
        assert_eq!(outcome("worse(any)", &back), FailOutcome::Passes);
    }
}

/// One failure of 120 is consistent with chance: Fisher's exact test gives 1.
#[test]
fn a_single_failure_is_no_difference() {
    for runs in [1, 3] {
        let sides = [side("A", 0..runs, 0, 120), side("B", 10..10 + runs, 1, 120)];
        let comparison = compare(&sides, &[], &options()).unwrap();
        assert_eq!(row(&comparison).verdict, DifferenceVerdict::NoDifference);
        assert_eq!(outcome("worse(any)", &comparison), FailOutcome::Passes);
    }
}

/// Requests that fail independently with the same probability are called different in at most about
/// 5 % of the cases: for 600 cases, two binomial standard errors are 1.8 %.
#[test]
fn equal_shares_rarely_get_a_false_difference() {
    for (runs, share) in [(1, 0.02), (1, 0.3), (3, 0.05)] {
        let mut draws = draws("shares", runs);
        let mut side = |label: &str, first: u64| CompareSide {
            label: label.into(),
            runs: (first..first + runs)
                .map(|number| {
                    let fails: Vec<bool> = (0..200).map(|_| draws.unit() < share).collect();
                    run(number, 200, |place| fails[place as usize])
                })
                .collect(),
        };
        let quick = CompareOptions {
            resamples: 100,
            ..CompareOptions::default()
        };
        let differs = (0..600).filter(|_| {
            let sides = [side("A", 0), side("B", 10)];
            let comparison = compare(&sides, &[], &quick).unwrap();
            row(&comparison).p.is_some_and(|p| p <= 0.05)
        });
        let seen = differs.count() as f64 / 600.0;
        assert!(seen <= 0.068, "{runs} runs, {share}: {seen}");
    }
}

/// Failures in one burst of 10 s are one event and not 40: their errors are larger than those of
/// the same number spread over the run.
#[test]
fn failures_in_a_burst_are_weaker_evidence() {
    let width = |fails: fn(u64) -> bool| {
        let b = CompareSide {
            label: "B".into(),
            runs: vec![run(9, 1000, fails)],
        };
        let comparison = compare(&[side("A", 0..1, 0, 1000), b], &[], &options()).unwrap();
        let (low, high) = row(&comparison).interval.unwrap();
        high - low
    };
    let spread = width(|place| place * 7919 % 1000 < 40);
    let burst = width(|place| (500..540).contains(&place));
    assert!(burst > 1.5 * spread, "{burst} {spread}");
}

/// 40 consecutive failures of 120 may be one event, which reveals little about the rate of such
/// events: significant by their number, and not by their times. That is not "no difference", and no
/// gate passes it.
#[test]
fn burst_of_failures_needs_more_runs() {
    let b = CompareSide {
        label: "B".into(),
        runs: vec![run(9, 120, |place| (40..80).contains(&place))],
    };
    let comparison = compare(&[side("A", 0..1, 0, 120), b], &[], &options()).unwrap();
    let row = row(&comparison);
    assert_eq!(row.verdict, DifferenceVerdict::TooFewRuns, "{row:?}");
    assert!(
        row.remark
            .as_deref()
            .is_some_and(|remark| remark.contains("concentrated in time"))
    );
    assert_eq!(outcome("worse(any)", &comparison), FailOutcome::Undecided);
    // It may or may not be better, but it is not worse.
    assert_eq!(outcome("better(any)", &comparison), FailOutcome::Passes);
}

/// 0 of 10 against 5 of 10: too few requests for a verdict, which is not "not worse".
#[test]
fn failures_without_a_verdict_do_not_pass() {
    let sides = |a, b| {
        let with_metric = |mut side: CompareSide, seed| {
            let mut draws = draws("all else is well", seed);
            let values = (0..100).map(|_| 1.0 + 0.1 * draws.unit());
            side.runs[0].metrics = vec![metric("ttfc", Better::Less, values)];
            side
        };
        [
            with_metric(side("A", 0..1, a, 10), 1),
            with_metric(side("B", 1..2, b, 10), 1),
        ]
    };
    let comparison = compare(&sides(0, 5), &[], &options()).unwrap();
    assert_eq!(row(&comparison).verdict, DifferenceVerdict::NotEnoughData);
    assert_eq!(
        row(&comparison).remark.as_deref(),
        Some("error_rate needs 20 requests per run; the baseline has 10")
    );
    assert_eq!(outcome("worse(any)", &comparison), FailOutcome::Undecided);
    assert_eq!(outcome("better(any)", &comparison), FailOutcome::Passes);
    assert_eq!(outcome("worse(ttfc)", &comparison), FailOutcome::Passes);
    // A share that is equal or better does not fail.
    for (a, b) in [(2, 2), (5, 0)] {
        let comparison = compare(&sides(a, b), &[], &options()).unwrap();
        assert_eq!(outcome("worse(any)", &comparison), FailOutcome::Passes);
    }
}

/// Four copies of a run count as one run.
#[test]
fn copies_of_a_run_count_as_one() {
    let copies = |label: &str, failed| CompareSide {
        label: label.into(),
        runs: (0..4).flat_map(|_| side(label, 5..6, failed, 120).runs).collect(),
    };
    let one = |label: &str, failed| side(label, 5..6, failed, 120);
    let of_copies = compare(&[copies("A", 0), copies("B", 40)], &[], &options()).unwrap();
    let of_one = compare(&[one("A", 0), one("B", 40)], &[], &options()).unwrap();
    assert_eq!(of_copies.candidates[0].rows, of_one.candidates[0].rows);
    assert_eq!(row(&of_copies).verdict, DifferenceVerdict::Worse);
    assert_eq!(of_copies.candidates[0].side.runs.len(), 4);
    let remarks = of_copies.candidates[0].remark_texts();
    for label in ["A", "B"] {
        let text = format!(
            "the 4 runs of {label} are copies of one another, as simulated runs with one seed are: they count as one"
        );
        assert!(remarks.contains(&text), "{remarks:?}");
    }
    assert!(
        remarks
            .iter()
            .any(|remark| remark.starts_with("one run on each side"))
    );
    // Two runs and a copy count as two runs.
    let mut two = side("A", 0..2, 0, 120);
    two.runs.push(two.runs[0].clone());
    let comparison = compare(&[two, copies("B", 40)], &[], &options()).unwrap();
    assert_eq!(row(&comparison).baseline.unwrap().spread.unwrap().runs, 2);
    let remarks = comparison.candidates[0].remark_texts();
    assert!(
        remarks
            .iter()
            .any(|remark| remark.starts_with("1 of the 3 runs of A"))
    );
}

/// Runs whose statistics agree exactly, although their samples do not: only the errors within runs
/// are available.
#[test]
fn runs_of_a_metric_that_agree_exactly_are_judged_by_their_samples() {
    let of = |label: &str, centre: f64| CompareSide {
        label: label.into(),
        runs: (0..3usize)
            .map(|turn| {
                let mut values: Vec<f64> = super::synthetic::even(centre).collect();
                values.rotate_left(100 * turn + 1);
                crate::synthetic::run(label, vec![metric("ttfc", Better::Less, values)])
            })
            .collect(),
    };
    let comparison = compare(&[of("A", 1.0), of("B", 1.1)], &[], &options()).unwrap();
    for row in &comparison.candidates[0].rows[1..] {
        assert_eq!(row.baseline.unwrap().spread.unwrap().std, 0.0);
        assert_eq!(row.verdict, DifferenceVerdict::Worse, "{row:?}");
    }
    let comparison = compare(&[of("A", 1.0), of("B", 1.001)], &[], &options()).unwrap();
    let row = &comparison.candidates[0].rows[1];
    assert_eq!(row.verdict, DifferenceVerdict::NoDifference, "{row:?}");
}

/// Creates a side of one run with this number of answers in a minute, each after a random time.
fn answering(label: &str, answers: u64, seed: u64) -> CompareSide {
    let mut draws = draws("rates", seed);
    let mut samples = TimedSamples::new();
    for _ in 0..answers {
        samples.push((draws.unit() * 6e10) as u64, 1.0);
    }
    let parts = ValueParts::Amounts {
        samples,
        window: (0, 60_000_000_000),
    };
    let rate = answers as f64 / 60.0;
    CompareSide {
        label: label.into(),
        runs: vec![RunData {
            label: label.into(),
            run_metrics: vec![RunValueData {
                parts: Some(parts),
                ..RunValueData::new("requests_per_second", "requests/s", Better::Higher, rate)
            }],
            ..RunData::default()
        }],
    }
}

/// The number of independent answers varies by its root: 3000 against 2700 is -10 % with an error
/// of √(1/3000 + 1/2700) = 2.65 %, 3000 against 2940 is -2 % with 2.6 %.
#[test]
fn rates_of_one_run_are_judged_by_answer_times() {
    let of = |answers| {
        let sides = [answering("A", 3000, 1), answering("B", answers, 2)];
        compare(&sides, &[], &options()).unwrap().candidates[0].rows[0].clone()
    };
    let row = of(2700);
    assert_eq!(row.verdict, DifferenceVerdict::Worse, "{row:?}");
    let (low, high) = row.relative_interval.unwrap();
    let width = (high - low) / (2.0 * 1.96 * 0.0265 * 0.9);
    assert!((width - 1.0).abs() < 0.35, "{low} … {high}");
    assert_eq!(of(2940).verdict, DifferenceVerdict::NoDifference);
    // More than are kept individually.
    let many = [answering("A", 140_000, 1), answering("B", 126_000, 2)];
    let comparison = compare(&many, &[], &options()).unwrap();
    assert_eq!(comparison.candidates[0].rows[0].verdict, DifferenceVerdict::Worse);
}
