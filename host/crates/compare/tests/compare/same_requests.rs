//! Runs of the same workload, compared request by request.

use veeksha_compare::{Comparison, MetricData, Options, Row, Side, TimedSamples, Verdict, compare};
use veeksha_model::Better;

use crate::synthetic::{draws, run};

const REQUESTS: u64 = 600;

/// Creates a side with answer lengths that vary by a factor of about three in each direction, equal
/// in every run; the server's own noise is 2 %.
fn side(label: &str, scale: f64, keys: Keys, number: u64) -> Side {
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
    Side {
        label: label.into(),
        runs: vec![run(label, vec![metric])],
    }
}

#[derive(Clone, Copy)]
enum Keys {
    Given,
    NotGiven,
}

fn compared(a: Side, b: Side) -> Comparison {
    let options = Options {
        resamples: 100,
        ..Options::default()
    };
    compare(&[a, b], &[], &options).unwrap()
}

fn mean(comparison: &Comparison) -> &Row {
    &comparison.candidates[0].rows[0]
}

/// 2 % slower: the lengths give a mean of 600 an error of 0.66 ÷ √600 = 2.7 % per side, too much
/// for independent sides; request by request the error is 0.02 √2 · √(1 + 0.66²) ÷ √600 = 0.14 %.
#[test]
fn what_lengths_hide_is_seen_request_by_request() {
    for number in 0..20 {
        let keyed = compared(
            side("A", 1.0, Keys::Given, number),
            side("B", 1.02, Keys::Given, number),
        );
        let row = mean(&keyed);
        assert!(row.paired);
        assert_eq!(row.verdict, Verdict::Worse, "{number}: {row:?}");
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
        assert_eq!(mean(&plain).verdict, Verdict::NoDifference);
    }
}

/// Of 150 pairs without a difference, about 5 % are called different, each judged by itself: three
/// binomial standard errors are 5.3 %.
#[test]
fn the_same_twice_shows_no_difference() {
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
fn other_work_is_not_compared_request_by_request() {
    for workload in [None, Some(vec![(2, "other".to_owned())])] {
        let mut b = side("B", 1.0, Keys::Given, 1);
        b.runs[0].workload = workload;
        let comparison = compared(side("A", 1.0, Keys::Given, 1), b);
        assert!(!mean(&comparison).paired);
    }
    let said = compared(side("A", 1.0, Keys::Given, 1), side("B", 1.0, Keys::Given, 1));
    assert!(
        said.candidates[0]
            .remarks
            .iter()
            .any(|remark| remark.contains("requests were compared one by one"))
    );
}
