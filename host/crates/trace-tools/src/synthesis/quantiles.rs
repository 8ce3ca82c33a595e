//! A sample reduced to at most a thousand equally likely values.

use serde::{Deserialize, Serialize};

use crate::tally::Tally;

/// Maximum number of values.
const SLICES: u64 = 1000;

/// A sample as equally likely values, ascending. Up to a thousand values are kept as they are;
/// beyond that, each is the mean of a thousandth of the sample by rank, so that the mean of the
/// sample is preserved and only its outermost thousandths are drawn in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Quantiles(Vec<f64>);

impl Quantiles {
    pub(crate) fn of(tally: &Tally) -> Quantiles {
        let cumulative = tally.cumulative();
        let count = cumulative.last().map_or(0, |last| last.1);
        let slices = count.min(SLICES);
        let sums = PrefixSums::of(&cumulative);
        let width = count as f64 / slices.max(1) as f64;
        let slice = |number: u64| {
            let (from, to) = (number as f64 * width, (number + 1) as f64 * width);
            (sums.up_to(to) - sums.up_to(from)) / width
        };
        Quantiles((0..slices).map(slice).collect())
    }

    /// Returns true without values.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if all values are finite and not negative.
    pub(crate) fn are_sound(&self) -> bool {
        self.0.iter().all(|value| value.is_finite() && *value >= 0.0)
    }

    /// Returns the value at `position` (`0.0..1.0`) of the sample in ascending order; 0 without
    /// values.
    pub(crate) fn at(&self, position: f64) -> f64 {
        let place = (position * self.0.len() as f64) as usize;
        self.0.get(place).or(self.0.last()).copied().unwrap_or_default()
    }
}

/// Prefix sums of a sample in ascending order.
struct PrefixSums<'a> {
    cumulative: &'a [(u64, u64)],
    /// Sum of all values before each entry.
    before: Vec<f64>,
}

impl<'a> PrefixSums<'a> {
    fn of(cumulative: &'a [(u64, u64)]) -> Self {
        let mut sum = 0.0;
        let mut below = 0;
        let mut before = Vec::with_capacity(cumulative.len());
        for (value, up_to) in cumulative {
            before.push(sum);
            sum += *value as f64 * (up_to - below) as f64;
            below = *up_to;
        }
        PrefixSums { cumulative, before }
    }

    /// Returns the sum of the `count` smallest values, including a fraction of the last one.
    fn up_to(&self, count: f64) -> f64 {
        let place = self
            .cumulative
            .partition_point(|(_, up_to)| *up_to as f64 <= count);
        match place.checked_sub(1) {
            None => self
                .cumulative
                .first()
                .map_or(0.0, |(value, _)| *value as f64 * count),
            Some(last) => {
                let whole = self.cumulative[last].1 as f64;
                let (value, sum) = match self.cumulative.get(place) {
                    Some((value, _)) => (*value as f64, self.before[place]),
                    None => {
                        let below = last.checked_sub(1).map_or(0, |place| self.cumulative[place].1);
                        let (value, up_to) = self.cumulative[last];
                        (0.0, self.before[last] + value as f64 * (up_to - below) as f64)
                    }
                };
                sum + value * (count - whole)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(quantiles: &Quantiles) -> f64 {
        quantiles.0.iter().sum::<f64>() / quantiles.0.len() as f64
    }

    fn quantiles(sample: impl IntoIterator<Item = u64>) -> Quantiles {
        let mut tally = Tally::default();
        sample.into_iter().for_each(|value| tally.add(value));
        Quantiles::of(&tally)
    }

    #[test]
    fn small_sample_is_kept() {
        assert_eq!(quantiles([5, 1, 5, 9]).0, [1.0, 5.0, 5.0, 9.0]);
        assert!(quantiles([]).is_empty());
        assert_eq!(quantiles([]).at(0.5), 0.0);
    }

    #[test]
    fn large_sample_keeps_its_mean() {
        // 2,500 values whose mean is that of 0..2500 squared: (n - 1)(2n - 1) / 6.
        let large = quantiles((0..2500).map(|value| value * value));
        assert_eq!(large.0.len(), 1000);
        let expected = 2499.0 * 4999.0 / 6.0;
        assert!((mean(&large) / expected - 1.0).abs() < 1e-9);
        assert!(large.0.is_sorted());
        // Each is the mean of two and a half values: of 0, 1 and half of 4 for the first.
        assert!((large.0[0] - (0.0 + 1.0 + 0.5 * 4.0) / 2.5).abs() < 1e-9);
    }

    #[test]
    fn positions_cover_values_evenly() {
        let four = quantiles([1, 2, 3, 4]);
        let drawn: Vec<f64> = (0..8).map(|i| four.at((f64::from(i) + 0.5) / 8.0)).collect();
        assert_eq!(drawn, [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0]);
        assert_eq!(four.at(1.0), 4.0);
    }
}
