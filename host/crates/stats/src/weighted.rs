//! Weighted samples.

use crate::percentile;
use crate::summary::Summary;

/// A value and its weight; both finite, the weight positive.
pub type WeightedSample = (f64, f64);

/// The `p`-quantile (`0.0..=1.0`) of weighted values in ascending order, by linear interpolation.
///
/// The `k`-th of `n` values (from 1) is at `(k − 1) wₖ + (n − 1) (w₁ + … + wₖ₋₁)` on a line that
/// ends at `(n − 1) (w₁ + … + wₙ)`, and the quantile is interpolated at `p` times that length. With
/// equal weights this is exactly [`percentile`]: weights are relative and do not change the number
/// of values.
pub fn weighted_percentile(sorted: &[WeightedSample], p: f64) -> Option<f64> {
    let (first, last) = (sorted.first()?, sorted.last()?);
    if !(0.0..=1.0).contains(&p) {
        return None;
    }
    if sorted.iter().all(|(_, weight)| *weight == first.1) {
        let values: Vec<f64> = sorted.iter().map(|(value, _)| *value).collect();
        return percentile(&values, p);
    }
    let others = (sorted.len() - 1) as f64;
    let total: f64 = sorted.iter().map(|(_, weight)| weight).sum();
    let wanted = p * others * total;
    let (mut before, mut passed) = ((first.0, 0.0), 0.0);
    for (k, (value, weight)) in sorted.iter().enumerate() {
        let is_last = k + 1 == sorted.len();
        // The end of the line, without the rounding of many steps.
        let place = if is_last {
            others * total
        } else {
            k as f64 * weight + others * passed
        };
        if place >= wanted {
            let (low, from) = before;
            // Equality also covers two values at one place, and avoids rounding.
            if wanted == place {
                return Some(*value);
            }
            let share = (wanted - from) / (place - from);
            return Some((low + share * (value - low)).min(*value));
        }
        before = (*value, place);
        passed += weight;
    }
    Some(last.0)
}

/// As [`Summary::of`], of weighted values: `count` counts the values, mean and standard deviation
/// are weighted, percentiles are by [`weighted_percentile`]. Values that are not finite, and
/// weights that are not finite and positive, are removed. With equal weights it is exactly
/// [`Summary::of`].
pub fn weighted_summary(values: &mut Vec<WeightedSample>) -> Option<Summary> {
    values.retain(|(value, weight)| value.is_finite() && weight.is_finite() && *weight > 0.0);
    values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let first = *values.first()?;
    if values.iter().all(|(_, weight)| *weight == first.1) {
        return Summary::of(&mut values.iter().map(|(value, _)| *value).collect());
    }
    let total: f64 = values.iter().map(|(_, weight)| weight).sum();
    let mean = values.iter().map(|(value, weight)| value * weight).sum::<f64>() / total;
    let squares = values
        .iter()
        .map(|(value, weight)| weight * (value - mean).powi(2));
    let variance = squares.sum::<f64>() / total;
    let (min, max) = (first.0, values.last()?.0);
    Some(Summary {
        count: values.len(),
        mean: mean.clamp(min, max),
        std: variance.sqrt(),
        min,
        max,
        p50: weighted_percentile(values, 0.5)?,
        p90: weighted_percentile(values, 0.9)?,
        p95: weighted_percentile(values, 0.95)?,
        p99: weighted_percentile(values, 0.99)?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn matches_values_computed_by_hand() {
        // 1 of weight 1, 2 of weight 3: places 0 and 1 * 3 + 1 * 1 = 4 = (n - 1) * W. Half way lies
        // at 2: 1.5.
        let two = [(1.0, 1.0), (2.0, 3.0)];
        assert_eq!(weighted_percentile(&two, 0.5), Some(1.5));
        // Three values of weights 1, 2, 1: places 0, 1 * 2 + 2 * 1 = 4, 2 * 1 + 2 * 3 = 8.
        let three = [(10.0, 1.0), (20.0, 2.0), (40.0, 1.0)];
        assert_eq!(weighted_percentile(&three, 0.25), Some(15.0));
        assert_eq!(weighted_percentile(&three, 0.75), Some(30.0));
        assert_eq!(weighted_percentile(&three, 1.0), Some(40.0));
        let summary = weighted_summary(&mut vec![(40.0, 1.0), (10.0, 1.0), (20.0, 2.0)]).unwrap();
        // (10 + 2 * 20 + 40) / 4; squares 156.25 + 2 * 6.25 + 306.25 over 4.
        assert_eq!((summary.count, summary.mean), (3, 22.5));
        assert_eq!(summary.std, (475.0f64 / 4.0).sqrt());
        assert_eq!((summary.min, summary.max, summary.p50), (10.0, 40.0, 20.0));
        // Places 7.2, 7.6 and 7.92 of 8, between 20 at 4 and 40 at 8.
        let expected = [36.0, 38.0, 39.6];
        for (percentile, expected) in [summary.p90, summary.p95, summary.p99].iter().zip(expected) {
            assert!(
                (percentile - expected).abs() < 1e-9,
                "{percentile} is not {expected}"
            );
        }
    }

    #[test]
    fn invalid_samples_are_removed() {
        let mut values = vec![
            (1.0, 0.0),
            (f64::NAN, 1.0),
            (2.0, 1.0),
            (3.0, -1.0),
            (4.0, f64::INFINITY),
        ];
        let summary = weighted_summary(&mut values).unwrap();
        assert_eq!((summary.count, summary.mean), (1, 2.0));
        assert_eq!(weighted_summary(&mut Vec::new()), None);
        assert_eq!(weighted_percentile(&[], 0.5), None);
        assert_eq!(weighted_percentile(&[(1.0, 1.0)], 1.5), None);
    }

    proptest! {
        #[test]
        fn equal_weights_equal_unweighted_summary(
            values in prop::collection::vec(-1e6..1e6f64, 1..40),
            weight in 0.001..1000.0f64,
            p in 0.0..=1.0f64,
        ) {
            let mut weighted: Vec<WeightedSample> = values.iter().map(|value| (*value, weight)).collect();
            let mut plain = values.clone();
            prop_assert_eq!(weighted_summary(&mut weighted), Summary::of(&mut plain));
            prop_assert_eq!(weighted_percentile(&weighted, p), percentile(&plain, p));
        }

        #[test]
        fn percentiles_rise_with_p_between_the_ends(
            mut values in prop::collection::vec((-1e6..1e6f64, 0.001..1000.0f64), 1..40),
        ) {
            values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            let quantiles: Vec<f64> =
                (0..=20).map(|i| weighted_percentile(&values, f64::from(i) / 20.0).unwrap()).collect();
            prop_assert!(quantiles.is_sorted(), "{:?}", quantiles);
            prop_assert_eq!(quantiles[0], values[0].0);
            prop_assert_eq!(quantiles[20], values[values.len() - 1].0);
        }
    }
}
