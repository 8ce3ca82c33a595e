//! A sample of any size in bounded memory.

use std::collections::BTreeMap;

use veeksha_stats::interpolate;

/// Number of distinct values up to which all are kept exactly.
const EXACT_VALUES: usize = 1 << 16;

/// Occurrences of each value. Token counts have few distinct values, so millions of them stay
/// exact. Beyond 65,536 distinct ones (think times), values are kept to four significant digits.
/// Count, mean, standard deviation, minimum and maximum are always exact.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    counts: BTreeMap<u64, u64>,
    rounded: bool,
    count: u64,
    sum: f64,
    /// Offset of the sums: the squares of nanoseconds themselves would leave no digits.
    first: u64,
    distances: f64,
    squares: f64,
    range: Option<(u64, u64)>,
}

impl Tally {
    pub(crate) fn add(&mut self, value: u64) {
        if self.count == 0 {
            self.first = value;
        }
        let distance = value as f64 - self.first as f64;
        self.count += 1;
        self.sum += value as f64;
        self.distances += distance;
        self.squares += distance * distance;
        self.range = Some(match self.range {
            None => (value, value),
            Some((min, max)) => (min.min(value), max.max(value)),
        });
        let kept = if self.rounded { four_digits(value) } else { value };
        *self.counts.entry(kept).or_insert(0) += 1;
        if !self.rounded && self.counts.len() > EXACT_VALUES {
            self.rounded = true;
            for (value, count) in std::mem::take(&mut self.counts) {
                *self.counts.entry(four_digits(value)).or_insert(0) += count;
            }
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn sum(&self) -> f64 {
        self.sum
    }

    /// Returns the mean; `None` for an empty sample.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// Returns the population standard deviation.
    pub(crate) fn std(&self) -> Option<f64> {
        let count = (self.count > 0).then_some(self.count as f64)?;
        let mean = self.distances / count;
        Some((self.squares / count - mean * mean).max(0.0).sqrt())
    }

    pub(crate) fn range(&self) -> Option<(u64, u64)> {
        self.range
    }

    pub(crate) fn is_exact(&self) -> bool {
        !self.rounded
    }

    /// Returns the values in ascending order, each with the number of values up to and including
    /// it.
    pub(crate) fn cumulative(&self) -> Vec<(u64, u64)> {
        let mut below = 0;
        let up_to = self.counts.iter().map(|(value, count)| {
            below += count;
            (*value, below)
        });
        up_to.collect()
    }
}

/// Returns the `p`-quantile of [`Tally::cumulative`]'s result, by the same rule as
/// `veeksha_stats::percentile`.
pub(crate) fn quantile(cumulative: &[(u64, u64)], p: f64) -> Option<f64> {
    let count = cumulative.last()?.1;
    interpolate(count as usize, p, |rank| at_rank(cumulative, rank as u64))
}

/// Returns the value of a rank (from 0) in ascending order.
pub(crate) fn at_rank(cumulative: &[(u64, u64)], rank: u64) -> f64 {
    let place = cumulative.partition_point(|(_, up_to)| *up_to <= rank);
    cumulative.get(place).map_or(0.0, |(value, _)| *value as f64)
}

fn four_digits(value: u64) -> u64 {
    let Some(digits) = value.checked_ilog10() else {
        return 0;
    };
    let step = 10u64.pow(digits.saturating_sub(3));
    (value / step).saturating_mul(step).saturating_add(step / 2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use veeksha_stats::Summary;

    use super::*;

    #[test]
    fn rounds_to_four_digits() {
        let cases = [
            (0, 0),
            (7, 7),
            (1234, 1234),
            (12_345, 12_345),
            (12_349, 12_345),
            (9_999_999, 9_999_500),
        ];
        for (value, kept) in cases {
            assert_eq!(four_digits(value), kept);
        }
    }

    #[test]
    fn rounds_only_many_distinct_values() {
        let mut tally = Tally::default();
        (1..=1_000_000u64).for_each(|value| tally.add(value * 1000));
        assert!(!tally.is_exact() && tally.counts.len() <= EXACT_VALUES);
        let median = quantile(&tally.cumulative(), 0.5).unwrap();
        assert!((median / 500_000_500.0 - 1.0).abs() < 1e-3, "{median}");
        // Mean and extremes are those of the values themselves.
        assert_eq!(tally.mean(), Some(500_000_500.0));
        assert_eq!(tally.range(), Some((1000, 1_000_000_000)));
        let mut few = Tally::default();
        (0..1_000_000u64).for_each(|value| few.add(value % 5000));
        assert!(few.is_exact());
    }

    proptest! {
        #[test]
        fn small_sample_has_the_statistics_of_its_values(values in prop::collection::vec(0u64..50, 1..80), p in 0.0..=1.0f64) {
            let mut tally = Tally::default();
            values.iter().for_each(|value| tally.add(*value));
            let mut plain: Vec<f64> = values.iter().map(|value| *value as f64).collect();
            let summary = Summary::of(&mut plain).unwrap();
            prop_assert!((tally.mean().unwrap() - summary.mean).abs() < 1e-9);
            prop_assert!((tally.std().unwrap() - summary.std).abs() < 1e-6);
            prop_assert_eq!(quantile(&tally.cumulative(), p), veeksha_stats::percentile(&plain, p));
        }
    }
}
