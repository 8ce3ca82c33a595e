//! Percentiles and summaries against a second, slower definition, and what must hold of any of
//! them.
#![forbid(unsafe_code)]

use proptest::prelude::*;
use veeksha_stats::{LiveHistogram, Summary, percentile};

fn values() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-1e6..1e6f64, 1..200)
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// Type 7 as the inverse of a function: the point of the polyline through (i / (n - 1), x[i]) at
/// `p`, found by walking it.
fn on_the_polyline(sorted: &[f64], p: f64) -> f64 {
    let steps = (sorted.len() - 1).max(1) as f64;
    for (i, pair) in sorted.windows(2).enumerate() {
        let (begin, end) = (i as f64 / steps, (i + 1) as f64 / steps);
        if p <= end {
            let part = (p - begin) / (end - begin);
            return pair[0] * (1.0 - part) + pair[1] * part;
        }
    }
    sorted[sorted.len() - 1]
}

proptest! {
    #[test]
    fn percentiles_agree_with_the_polyline(values in values(), p in 0.0..=1.0f64) {
        let values = sorted(values);
        let seen = percentile(&values, p).unwrap();
        prop_assert!((seen - on_the_polyline(&values, p)).abs() < 1e-6);
    }

    #[test]
    fn percentiles_rise_with_p_and_stay_between_the_ends(values in values(), p in 0.0..=1.0f64, q in 0.0..=1.0f64) {
        let values = sorted(values);
        let (low, high) = (p.min(q), p.max(q));
        let (below, above) = (percentile(&values, low).unwrap(), percentile(&values, high).unwrap());
        prop_assert!(below <= above);
        prop_assert!(values[0] <= below && above <= values[values.len() - 1]);
    }

    #[test]
    fn percentiles_follow_a_change_of_unit(values in values(), p in 0.0..=1.0f64) {
        let values = sorted(values);
        let doubled: Vec<f64> = values.iter().map(|value| 2.0 * value).collect();
        // Doubling is exact in binary.
        prop_assert_eq!(percentile(&doubled, p).unwrap(), 2.0 * percentile(&values, p).unwrap());
    }

    #[test]
    fn a_summary_does_not_depend_on_the_order(values in values()) {
        let mut reversed: Vec<f64> = values.iter().rev().copied().collect();
        prop_assert_eq!(Summary::of(&mut values.clone()), Summary::of(&mut reversed));
    }

    #[test]
    fn a_summary_agrees_with_the_shifted_sums(values in values()) {
        let summary = Summary::of(&mut values.clone()).unwrap();
        let n = values.len() as f64;
        // E[x^2] - E[x]^2, shifted by the first value against cancellation.
        let shift = values[0];
        let first: f64 = values.iter().map(|value| value - shift).sum::<f64>() / n;
        let second: f64 = values.iter().map(|value| (value - shift).powi(2)).sum::<f64>() / n;
        prop_assert!((summary.mean - (shift + first)).abs() < 1e-6);
        prop_assert!((summary.std.powi(2) - (second - first * first)).abs() <= 1e-9 * second.max(1.0));
    }

    /// The live histogram gives the value at a rank, within three digits; the exact percentile lies
    /// between two ranks.
    #[test]
    fn live_quantiles_are_near_the_exact_ones(nanos in prop::collection::vec(1u64..1 << 50, 1..200), p in 0.0..=1.0f64) {
        let mut histogram = LiveHistogram::new();
        nanos.iter().for_each(|value| histogram.record(*value));
        let values = sorted(nanos.iter().map(|value| *value as f64).collect());
        let seen = histogram.quantile(p).unwrap() as f64;
        let rank = (values.len() as f64 * p) as usize;
        let (below, above) = (values[rank.saturating_sub(1)], values[(rank + 1).min(values.len() - 1)]);
        prop_assert!(seen >= below * 0.999 && seen <= above * 1.001, "{} not in {}..{}", seen, below, above);
    }
}

/// Values that others have published for linear interpolation between the nearest ranks (numpy's
/// default, R's type 7).
#[test]
fn published_values() {
    // numpy.percentile([[10, 7, 4], [3, 2, 1]], 50), of the reference's examples.
    assert_eq!(percentile(&[1.0, 2.0, 3.0, 4.0, 7.0, 10.0], 0.5), Some(3.5));
    // Wikipedia, "Percentile", the linear interpolation method, second variant (C = 1).
    let five = [15.0, 20.0, 35.0, 40.0, 50.0];
    assert!((percentile(&five, 0.4).unwrap() - 29.0).abs() < 1e-12);
    assert_eq!(percentile(&[1.0, 2.0, 3.0, 4.0], 0.75), Some(3.25));
}
