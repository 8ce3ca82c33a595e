//! Comparing A with B mirrors comparing B with A.

use proptest::prelude::*;
use veeksha_compare::{
    ClientError, CompareOptions, CompareSide, MetricData, RequestShare, RunData, TimedSamples, compare,
};
use veeksha_model::Better;

use crate::synthetic::run;

fn side(label: &'static str) -> impl Strategy<Value = CompareSide> {
    let sample = || (0u64..10_000_000_000, -0.2..3.0f64);
    // Often equal counts, so that requests have partners.
    let samples = prop_oneof![
        prop::collection::vec(sample(), 0..200),
        prop::collection::vec(sample(), 120)
    ];
    let keyed = any::<bool>();
    let error = prop::option::of(0.0..0.5f64);
    let answered = prop::option::of((0..=120u64).prop_map(|part| RequestShare { part, whole: 120 }));
    let runs = prop::collection::vec((samples, error, answered), 1..4);
    (runs, keyed).prop_map(move |(runs, keyed)| {
        let of = |(samples, error, answered): (Vec<(u64, f64)>, Option<f64>, Option<RequestShare>)| {
            let mut collected = TimedSamples::new();
            for (place, (at, value)) in samples.into_iter().enumerate() {
                if keyed {
                    // A few requests have several samples.
                    collected.push_keyed(at, value, 1.0, place as u64 / 3 * 2);
                } else {
                    collected.push(at, value);
                }
            }
            let metric = MetricData {
                client_error: error.map(|mean| ClientError {
                    mean,
                    p99: 2.0 * mean,
                }),
                ..MetricData::new("m", "s", Better::Less, collected)
            };
            RunData {
                answered,
                ..run(label, vec![metric])
            }
        };
        CompareSide {
            label: label.into(),
            runs: runs.into_iter().map(of).collect(),
        }
    })
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1.0)
}

/// Returns true if relative changes are those of a ratio and of its reciprocal, up to the precision
/// of numbers near -1: the change to a ratio of 1e-20 is -1, from which the ratio cannot be
/// recovered.
fn reciprocal(one: f64, other: f64) -> bool {
    let (one, other) = (1.0 + one, 1.0 + other);
    (one * other - 1.0).abs() <= 1e-9 + 2.0 * f64::EPSILON * one.max(other)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn swapping_sides_mirrors_the_result(a in side("A"), b in side("B"), smallest in prop::option::of(0.0..0.5f64)) {
        let options = CompareOptions { resamples: 100, smallest, ..CompareOptions::default() };
        let there = compare(&[a.clone(), b.clone()], &[], &options).unwrap();
        let back = compare(&[b, a], &[], &options).unwrap();
        let (there, back) = (&there.candidates[0].rows, &back.candidates[0].rows);
        prop_assert_eq!(there.len(), back.len());
        for (one, other) in there.iter().zip(back) {
            prop_assert_eq!(&one.name, &other.name);
            prop_assert_eq!(one.statistic, other.statistic);
            prop_assert_eq!(one.verdict, other.verdict.mirrored());
            prop_assert_eq!(one.paired, other.paired);
            prop_assert_eq!(one.baseline.map(|side| side.value), other.candidate.map(|side| side.value));
            prop_assert_eq!(one.difference.is_some(), other.difference.is_some());
            if let (Some(one), Some(other)) = (one.difference, other.difference) {
                prop_assert!(near(one, -other));
            }
            prop_assert_eq!(one.interval.is_some(), other.interval.is_some());
            if let (Some(one), Some(other)) = (one.interval, other.interval) {
                prop_assert!(near(one.0, -other.1) && near(one.1, -other.0));
            }
            if let (Some(one), Some(other)) = (one.relative_interval, other.relative_interval) {
                prop_assert!(reciprocal(one.0, other.1) && reciprocal(one.1, other.0));
            }
            if let (Some(one), Some(other)) = (one.p, other.p) {
                prop_assert!(near(one, other));
            }
        }
    }

    /// The order of the samples does not affect the result.
    #[test]
    fn the_order_of_samples_changes_nothing(
        values in prop::collection::vec(-0.2..3.0f64, 50..200),
        rotation in 0usize..200,
    ) {
        let of = |label: &str, samples: &[(u64, f64)]| {
            let mut collected = TimedSamples::new();
            samples.iter().for_each(|(at, value)| collected.push(*at, *value));
            let metric = MetricData::new("m", "s", Better::Less, collected);
            CompareSide { label: label.into(), runs: vec![run(label, vec![metric])] }
        };
        let samples: Vec<(u64, f64)> = (0..).step_by(1000).zip(values).collect();
        let mut turned = samples.clone();
        turned.rotate_left(rotation % samples.len());
        let options = CompareOptions { resamples: 100, ..CompareOptions::default() };
        let other = of("B", &[(0, 1.0); 50]);
        let one = compare(&[of("A", &samples), other.clone()], &[], &options).unwrap();
        let two = compare(&[of("A", &turned), other], &[], &options).unwrap();
        prop_assert_eq!(one, two);
    }
}
