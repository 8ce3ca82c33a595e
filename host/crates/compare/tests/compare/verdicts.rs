//! Effects computed by hand, and their verdicts.

mod remarks;
mod unjudged;

use veeksha_compare::{
    ClientError, CompareError, CompareOptions, CompareSide, Comparison, ComparisonRow, Correction,
    DifferenceVerdict, Invalid, MetricData, RunData, RunValueData, Statistic, TimedSamples, Validity,
    compare,
};
use veeksha_model::Better;
use veeksha_slo::Aggregate;

use crate::synthetic::{even, metric, run, side};

fn options() -> CompareOptions {
    CompareOptions {
        resamples: 200,
        ..CompareOptions::default()
    }
}

fn one(comparison: &Comparison, aggregate: Aggregate) -> &ComparisonRow {
    let wanted = Statistic::OfSamples(aggregate);
    let rows = &comparison.candidates[0].rows;
    let place = rows.iter().position(|row| row.statistic == wanted);
    &rows[place.unwrap_or(rows.len())]
}

fn mean(comparison: &Comparison) -> &ComparisonRow {
    one(comparison, Aggregate::Mean)
}

fn near(seen: f64, expected: f64) {
    assert!((seen - expected).abs() < 1e-9, "{seen} is not {expected}");
}

#[test]
fn effects_by_hand() {
    // 0.95 to 1.05 s in 999 equal steps, and the same times 1.5: the p-quantile is 0.95 + 0.1 p.
    let comparison = compare(&[side("A", even(1.0)), side("B", even(1.5))], &[], &options()).unwrap();
    for (aggregate, a) in [
        (Aggregate::Mean, 1.0),
        (Aggregate::Percentile(50.0), 1.0),
        (Aggregate::Percentile(90.0), 1.04),
        (Aggregate::Percentile(99.0), 1.049),
    ] {
        let row = one(&comparison, aggregate);
        near(row.baseline.unwrap().value, a);
        near(row.candidate.unwrap().value, 1.5 * a);
        near(row.difference.unwrap(), 0.5 * a);
        near(row.relative.unwrap(), 0.5);
        let (low, high) = row.relative_interval.unwrap();
        assert!(low < 0.5 && 0.5 < high && high - low < 0.03, "{low} … {high}");
        assert_eq!(row.verdict, DifferenceVerdict::Worse);
        assert_eq!(row.baseline.unwrap().samples, 1000);
    }
    // The spread of each is 0.1 / √12 of its center. For means of 1000, relative errors are 0.0289
    // / √1000 each, together √2 times that; times 1.96.
    let (low, high) = mean(&comparison).relative_interval.unwrap();
    let width = 2.0 * 1.96 * 1.5 * std::f64::consts::SQRT_2 * 0.1 / 12f64.sqrt() / 1000f64.sqrt();
    assert!(
        ((high - low) / width - 1.0).abs() < 0.25,
        "{} is not {width}",
        high - low
    );
}

#[test]
fn better_direction_decides_the_verdict() {
    for (better, verdict) in [
        (Better::Less, DifferenceVerdict::Worse),
        (Better::Higher, DifferenceVerdict::Better),
        (Better::Neither, DifferenceVerdict::Differs),
    ] {
        let of = |label: &str, centre| CompareSide {
            label: label.into(),
            runs: vec![run(label, vec![metric("m", better, even(centre))])],
        };
        let comparison = compare(&[of("A", 1.0), of("B", 1.5)], &[], &options()).unwrap();
        assert_eq!(mean(&comparison).verdict, verdict);
    }
}

#[test]
fn differences_within_client_error_are_not_judged() {
    let of = |label: &str, centre, error| {
        let mut side = side(label, even(centre));
        side.runs[0].metrics[0].client_error = Some(ClientError {
            mean: error,
            p99: 0.001,
        });
        side
    };
    // 20 ms more; the errors of both clients are 30 ms in the mean and 2 ms in the tail.
    let comparison = compare(&[of("A", 1.0, 0.015), of("B", 1.02, 0.015)], &[], &options()).unwrap();
    assert_eq!(mean(&comparison).verdict, DifferenceVerdict::WithinClientError);
    near(mean(&comparison).client_error.unwrap(), 0.03);
    let p90 = one(&comparison, Aggregate::Percentile(90.0));
    assert_eq!(p90.verdict, DifferenceVerdict::Worse);
    near(p90.client_error.unwrap(), 0.002);
    // An error of 18 ms leaves a difference of 20 ms significant.
    let comparison = compare(&[of("A", 1.0, 0.009), of("B", 1.02, 0.009)], &[], &options()).unwrap();
    assert_eq!(mean(&comparison).verdict, DifferenceVerdict::Worse);
}

#[test]
fn changes_below_the_threshold_are_too_small() {
    let of = |smallest| {
        let options = CompareOptions {
            smallest,
            ..options()
        };
        let comparison = compare(&[side("A", even(1.0)), side("B", even(1.02))], &[], &options).unwrap();
        mean(&comparison).verdict
    };
    assert_eq!(of(None), DifferenceVerdict::Worse);
    assert_eq!(of(Some(0.05)), DifferenceVerdict::TooSmall);
    assert_eq!(of(Some(0.01)), DifferenceVerdict::Worse);
}

#[test]
fn few_samples_are_shown_but_not_judged() {
    let few = || even(1.0).take(120);
    let comparison = compare(&[side("A", few()), side("B", even(1.5))], &[], &options()).unwrap();
    let p99 = one(&comparison, Aggregate::Percentile(99.0));
    assert_eq!(
        (p99.verdict, p99.interval, p99.p),
        (DifferenceVerdict::NotEnoughData, None, None)
    );
    assert!(p99.relative.is_some());
    insta::assert_snapshot!(p99.remark.as_deref().unwrap_or_default(), @"p99 needs 500 samples per run; the baseline has 120");
    assert_eq!(mean(&comparison).verdict, DifferenceVerdict::Worse);

    let empty = side("B", std::iter::empty());
    let comparison = compare(&[side("A", even(1.0)), empty], &[], &options()).unwrap();
    assert_eq!(mean(&comparison).verdict, DifferenceVerdict::NotEnoughData);
    assert_eq!(
        mean(&comparison).remark.as_deref(),
        Some("missing in the candidate")
    );
}

#[test]
fn different_constants_differ() {
    let of = |label: &str, value: f64| side(label, std::iter::repeat_n(value, 200));
    let comparison = compare(&[of("A", 128.0), of("B", 127.0)], &[], &options()).unwrap();
    assert_eq!(mean(&comparison).verdict, DifferenceVerdict::Better);
    let (low, high) = mean(&comparison).relative_interval.unwrap();
    near(low, -1.0 / 128.0);
    near(high, -1.0 / 128.0);
    let comparison = compare(&[of("A", 128.0), of("B", 128.0)], &[], &options()).unwrap();
    assert_eq!(mean(&comparison).verdict, DifferenceVerdict::NoDifference);
}

#[test]
fn many_values_need_clearer_differences() {
    // Twenty equal metrics, and one that differs by about 2.4 standard errors: significant by
    // itself, but not among 21 × 4 rows.
    let shifted = |label: &str, shift: f64| {
        let mut metrics: Vec<MetricData> = (0..20)
            .map(|number| metric(&format!("same_{number}"), Better::Less, even(1.0)))
            .collect();
        let error = 0.1 / 12f64.sqrt() / 1000f64.sqrt() * std::f64::consts::SQRT_2;
        metrics.push(metric(
            "shifted",
            Better::Less,
            even(1.0).map(move |value| value + shift * error),
        ));
        CompareSide {
            label: label.into(),
            runs: vec![run(label, metrics)],
        }
    };
    let verdict = |correction| {
        let options = CompareOptions {
            correction,
            ..options()
        };
        let comparison = compare(&[shifted("A", 0.0), shifted("B", 2.4)], &[], &options).unwrap();
        let rows = &comparison.candidates[0].rows;
        let row = rows.iter().find(|row| row.name == "shifted").unwrap();
        (row.verdict, row.remark.clone())
    };
    assert_eq!(verdict(Correction::Each), (DifferenceVerdict::Worse, None));
    let (holm, remark) = verdict(Correction::Holm);
    assert_eq!(holm, DifferenceVerdict::NoDifference);
    let remark = remark.unwrap();
    assert!(
        remark.contains("significant by itself") && remark.contains("one of 84 values (Holm"),
        "{remark}"
    );
}

#[test]
fn requested_statistics_are_added() {
    let asked = [
        (
            "ttfc".to_owned(),
            Statistic::OfSamples(Aggregate::Percentile(95.0)),
        ),
        ("ttfc".to_owned(), Statistic::OfSamples(Aggregate::Max)),
        ("ttfc".to_owned(), Statistic::OfSamples(Aggregate::Mean)),
    ];
    let comparison = compare(&[side("A", even(1.0)), side("B", even(1.5))], &asked, &options()).unwrap();
    assert_eq!(comparison.candidates[0].rows.len(), 6);
    let p95 = one(&comparison, Aggregate::Percentile(95.0));
    near(p95.baseline.unwrap().value, 1.045);
    assert_eq!(p95.verdict, DifferenceVerdict::Worse);
    let max = one(&comparison, Aggregate::Max);
    near(max.candidate.unwrap().value, 1.575);
    assert_eq!(
        (max.verdict, max.interval),
        (DifferenceVerdict::NotEnoughData, None)
    );
}

#[test]
fn compares_more_samples_than_are_kept_individually() {
    let of = |label: &str, factor: f64| {
        let mut samples = TimedSamples::new();
        let count = 150_001u64;
        for i in 0..count {
            samples.push(
                i * 1_000_000,
                factor * (1.0 + (i * 7919 % count) as f64 / count as f64),
            );
        }
        CompareSide {
            label: label.into(),
            runs: vec![run(
                label,
                vec![MetricData::new("tbc", "s", Better::Less, samples)],
            )],
        }
    };
    let comparison = compare(&[of("A", 0.01), of("B", 0.0101)], &[], &options()).unwrap();
    let row = one(&comparison, Aggregate::Percentile(90.0));
    assert!(row.baseline.unwrap().approximate);
    let relative = row.relative.unwrap();
    assert!((relative - 0.01).abs() < 0.002, "{relative}");
    assert_eq!(mean(&comparison).verdict, DifferenceVerdict::Worse);
}
