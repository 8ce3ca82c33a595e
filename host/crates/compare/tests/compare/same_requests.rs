//! Runs of the same workload, compared request by request.

use veeksha_compare::{
    CompareOptions, CompareSide, Comparison, ComparisonRow, DifferenceVerdict, MetricData, TimedSamples,
    compare,
};
use veeksha_model::Better;

use crate::synthetic::{draws, run};

const REQUESTS: u64 = 600;

/// Creates a side with answer lengths that vary by a factor of about three in each direction, equal
/// in every run; the server's own noise is 2 %.
fn side(label: &str, scale: f64, keys: Keys, number: u64) -> CompareSide {
    let mut lengths = draws("lengths", number);
    let mut noise = draws(label, number);
    let mut samples = TimedSamples::new();
    for request in 0..REQUESTS {
        let length = (0.6 * lengths.normal()).exp();
        let value = scale * length * (1.0 + 0.02 * noise.normal());
        let at = request * 10_000_000;
        match keys {
            Keys::Given => samples.push_keyed(at, value, 1.0, request),
            Keys::NotGiven => samples.push(at, value),
        }
    }
    let metric = MetricData::new("e2e", "s", Better::Less, samples);
    CompareSide {
        label: label.into(),
        runs: vec![run(label, vec![metric])],
    }
}

#[derive(Clone, Copy)]
enum Keys {
    Given,
    NotGiven,
}

fn compared(a: CompareSide, b: CompareSide) -> Comparison {
    let options = CompareOptions {
        resamples: 100,
        ..CompareOptions::default()
    };
    compare(&[a, b], &[], &options).unwrap()
}

fn mean(comparison: &Comparison) -> &ComparisonRow {
    &comparison.candidates[0].rows[0]
}

/// 2 % slower: the lengths give a mean of 600 an error of 0.66 ÷ √600 = 2.7 % per side, too much
/// for independent sides; request by request the error is 0.02 √2 · √(1 + 0.66²) ÷ √600 = 0.14 %.
#[test]
fn pairing_reveals_differences_hidden_by_lengths() {
    for number in 0..20 {
        let keyed = compared(
            side("A", 1.0, Keys::Given, number),
            side("B", 1.02, Keys::Given, number),
        );
        let row = mean(&keyed);
        assert!(row.paired);
        assert_eq!(row.verdict, DifferenceVerdict::Worse, "{number}: {row:?}");
        let (low, high) = row.relative_interval.unwrap();
        assert!(
            low < 0.026 && high > 0.014 && high - low < 0.012,
            "{low} … {high}"
        );
        let plain = compared(
            side("A", 1.0, Keys::NotGiven, number),
            side("B", 1.02, Keys::NotGiven, number),
        );
        assert!(!mean(&plain).paired);
        assert_eq!(mean(&plain).verdict, DifferenceVerdict::NoDifference);
    }
}

/// Of 150 pairs without a difference, about 5 % are called different, each judged by itself: three
/// binomial standard errors are 5.3 %.
#[test]
fn equal_runs_show_no_difference() {
    let seeds = 150;
    let quiet = (0..seeds)
        .filter(|number| {
            let comparison = compared(
                side("A", 1.0, Keys::Given, *number),
                side("B", 1.0, Keys::Given, *number),
            );
            mean(&comparison).p.is_some_and(|p| p > 0.05)
        })
        .count();
    let share = quiet as f64 / seeds as f64;
    assert!((0.896..1.0).contains(&share), "{share}");
}

#[test]
fn different_work_is_not_paired() {
    for workload in [None, Some(vec![(2, "other".to_owned())])] {
        let mut b = side("B", 1.0, Keys::Given, 1);
        b.runs[0].workload = workload;
        let comparison = compared(side("A", 1.0, Keys::Given, 1), b);
        assert!(!mean(&comparison).paired);
    }
    let text = compared(side("A", 1.0, Keys::Given, 1), side("B", 1.0, Keys::Given, 1));
    assert!(
        text.candidates[0]
            .remark_texts()
            .iter()
            .any(|remark| remark.contains("requests were compared one by one"))
    );
}
