//! Summary statistics of a sample.

use crate::percentile::interpolate;

/// Summary of a sample, in the sample's unit. Percentiles are exact, by [`crate::percentile`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Number of values; never 0.
    pub count: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the values themselves (divided by `count`, as numpy's `std`).
    pub std: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
}

impl Summary {
    /// Sorts the values and summarizes them; `None` if there are none. Values that are not finite
    /// are removed, so that one of them cannot hide the others.
    pub fn of(values: &mut Vec<f64>) -> Option<Summary> {
        values.retain(|value| value.is_finite());
        values.sort_unstable_by(f64::total_cmp);
        Summary::of_ranks(values.len(), |rank| values[rank])
    }

    /// Summarises `count` finite values that `at` gives by rank, ascending.
    pub fn of_ranks(count: usize, at: impl Fn(usize) -> f64) -> Option<Summary> {
        let quantile = |p| interpolate(count, p, &at);
        let (p50, p90, p95, p99) = (quantile(0.5)?, quantile(0.9)?, quantile(0.95)?, quantile(0.99)?);
        let (min, max) = (at(0), at(count - 1));
        let mean = (0..count).map(&at).sum::<f64>() / count as f64;
        let variance = (0..count).map(|rank| (at(rank) - mean).powi(2)).sum::<f64>() / count as f64;
        // Rounding may carry the mean of equal values past them.
        Some(Summary {
            count,
            mean: mean.clamp(min, max),
            std: variance.sqrt(),
            min,
            max,
            p50,
            p90,
            p95,
            p99,
        })
    }

    /// Returns the quantile of a share (`0.0..=1.0`), if the summary contains it.
    pub fn known_quantile(&self, share: f64) -> Option<f64> {
        let known = [
            (0.0, self.min),
            (0.5, self.p50),
            (0.9, self.p90),
            (0.95, self.p95),
            (0.99, self.p99),
            (1.0, self.max),
        ];
        known
            .into_iter()
            .find(|(of, _)| *of == share)
            .map(|(_, value)| value)
    }

    /// Returns true if the 99th percentile rests on fewer than 100 values, so that it is little
    /// more than the maximum.
    pub fn p99_is_thin(&self) -> bool {
        self.count < 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_values_computed_by_hand() {
        // 2, 4, 4, 4, 5, 5, 7, 9: mean 5, standard deviation 2 (the textbook example of the
        // population form).
        let summary = Summary::of(&mut vec![9.0, 2.0, 4.0, 5.0, 4.0, 7.0, 4.0, 5.0]).unwrap();
        assert_eq!((summary.count, summary.mean, summary.std), (8, 5.0, 2.0));
        assert_eq!((summary.min, summary.max, summary.p50), (2.0, 9.0, 4.5));
        // Rank 0.9 * 7 = 6.3: 7 + 0.3 * (9 - 7).
        assert!((summary.p90 - 7.6).abs() < 1e-12);
        // Ranks 0.95 * 7 = 6.65 and 0.99 * 7 = 6.93.
        assert!((summary.p95 - 8.3).abs() < 1e-12);
        assert!((summary.p99 - 8.86).abs() < 1e-12);
    }

    #[test]
    fn non_finite_values_are_removed() {
        let summary = Summary::of(&mut vec![f64::NAN, 1.0, f64::INFINITY, 3.0]).unwrap();
        assert_eq!((summary.count, summary.mean, summary.max), (2, 2.0, 3.0));
        assert_eq!(Summary::of(&mut vec![f64::NAN]), None);
        assert_eq!(Summary::of(&mut Vec::new()), None);
    }

    #[test]
    fn p99_needs_100_values() {
        let of = |count: u32| Summary::of(&mut (0..count).map(f64::from).collect()).unwrap();
        assert!(of(99).p99_is_thin());
        assert!(!of(100).p99_is_thin());
    }
}
