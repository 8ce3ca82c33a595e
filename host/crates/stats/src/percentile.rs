//! Exact percentiles of a sorted sample.

/// The `p`-quantile (`0.0..=1.0`) of values in ascending order, by linear interpolation between the
/// two nearest ranks: type 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages" (1996),
/// which is numpy's default. `None` for an empty sample and for a `p` outside of the range.
pub fn percentile(sorted: &[f64], p: f64) -> Option<f64> {
    interpolate(sorted.len(), p, |rank| sorted[rank])
}

/// As [`percentile`], of `count` values that `at` gives by rank, ascending: for samples that are
/// not stored as `f64`.
pub fn interpolate(count: usize, p: f64, at: impl Fn(usize) -> f64) -> Option<f64> {
    if count == 0 || !(0.0..=1.0).contains(&p) {
        return None;
    }
    let position = (count - 1) as f64 * p;
    let below = position.floor() as usize;
    let above = (below + 1).min(count - 1);
    let (low, high) = (at(below), at(above));
    // Rounding must not carry the value past its neighbours.
    Some((low + (position - below as f64) * (high - low)).min(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_worked_out_by_hand() {
        // Rank of p in n values: (n - 1) p. Four values, P25: rank 0.75, so 10 + 0.75 * (20 - 10).
        let four = [10.0, 20.0, 30.0, 40.0];
        assert_eq!(percentile(&four, 0.25), Some(17.5));
        assert_eq!(percentile(&four, 0.5), Some(25.0));
        assert_eq!(percentile(&four, 0.0), Some(10.0));
        assert_eq!(percentile(&four, 1.0), Some(40.0));
        // 101 values 0..=100: the percentile is its own number.
        let hundred: Vec<f64> = (0..=100).map(f64::from).collect();
        assert_eq!(percentile(&hundred, 0.99), Some(99.0));
        assert_eq!(percentile(&[7.0], 0.99), Some(7.0));
    }

    #[test]
    fn nothing_comes_from_nothing() {
        assert_eq!(percentile(&[], 0.5), None);
        for wrong in [-0.1, 1.1, f64::NAN] {
            assert_eq!(percentile(&[1.0], wrong), None);
        }
    }
}
