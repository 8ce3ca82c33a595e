//! The samples of a metric, prepared for statistics and resampling.

use std::collections::HashMap;

use veeksha_stats::weighted_percentile;

use crate::sample::TimedSample;

/// Maximum number of cells for samples that are kept individually.
pub(crate) const CELLS: usize = 256;

/// A value of some samples in one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SeriesEntry {
    pub(crate) value: f64,
    pub(crate) weight: f64,
    pub(crate) cell: u32,
}

/// The samples of a metric by value, each with its cell of time.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// Ascending by value.
    entries: Vec<SeriesEntry>,
    /// Weight and weighted sum of values of each cell, in order of time.
    weights: Vec<f64>,
    sums: Vec<f64>,
    /// Number of samples, whatever their weight.
    count: u64,
    approximate: bool,
    /// Factor from current to original weights.
    scale: f64,
}

impl Series {
    /// Creates a series of individual samples. Cells are intervals of time with equal numbers of
    /// requests. All samples of a request are in one cell, because they are drawn together. A
    /// sample without a key is a separate request.
    pub(crate) fn of_samples(mut samples: Vec<TimedSample>) -> Series {
        in_order(&mut samples);
        let mut known: HashMap<u64, usize> = HashMap::new();
        let mut count = 0;
        let mut next = || {
            count += 1;
            count - 1
        };
        let origin_of = |sample: &TimedSample| match sample.key {
            Some(key) => *known.entry(key).or_insert_with(&mut next),
            None => next(),
        };
        let origins: Vec<usize> = samples.iter().map(origin_of).collect();
        let cells = count.min(CELLS);
        Series::placed(samples, cells, |place, _| origins[place] * cells / count)
    }

    /// Creates a series of samples in order of time, with their cells given by `cell_of` from
    /// position and sample.
    pub(crate) fn placed(
        mut samples: Vec<TimedSample>,
        cells: usize,
        mut cell_of: impl FnMut(usize, &TimedSample) -> usize,
    ) -> Series {
        let scale = level(&mut samples);
        let count = samples.len() as u64;
        let mut sums = vec![0.0; cells];
        let entry = |(place, sample): (usize, TimedSample)| {
            let cell = cell_of(place, &sample);
            sums[cell] += sample.value * sample.weight;
            SeriesEntry {
                value: sample.value,
                weight: sample.weight,
                cell: cell as u32,
            }
        };
        let entries = samples.into_iter().enumerate().map(entry).collect();
        let mut series = Series::of_cells(entries, sums, count);
        series.approximate = false;
        series.scale = scale;
        series
    }

    /// Creates a series of samples with known cells and the exact sum of values of each cell.
    pub(crate) fn of_cells(mut entries: Vec<SeriesEntry>, sums: Vec<f64>, count: u64) -> Series {
        entries.sort_by(|a, b| a.value.total_cmp(&b.value));
        let mut weights = vec![0.0; sums.len()];
        for entry in &entries {
            weights[entry.cell as usize] += entry.weight;
        }
        Series {
            entries,
            weights,
            sums,
            count,
            approximate: true,
            scale: 1.0,
        }
    }

    /// Returns the number of samples.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of cells.
    pub(crate) fn cells(&self) -> usize {
        self.weights.len()
    }

    /// Returns true if percentiles come from a histogram.
    pub(crate) fn is_approximate(&self) -> bool {
        self.approximate
    }

    /// Returns the sum of the original weights: the count if all were 1.
    pub(crate) fn weight(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// Returns the sum of values times their original weights.
    pub(crate) fn sum(&self) -> f64 {
        self.sums.iter().sum::<f64>() * self.scale
    }

    pub(crate) fn mean(&self) -> Option<f64> {
        let weight = self.weight();
        // Rounding may carry the mean of equal values past them.
        let (first, last) = (self.entries.first()?, self.entries.last()?);
        Some((self.sums.iter().sum::<f64>() / weight).clamp(first.value, last.value))
    }

    /// Returns the population standard deviation.
    pub(crate) fn std(&self) -> Option<f64> {
        let mean = self.mean()?;
        let squares: f64 = self
            .entries
            .iter()
            .map(|entry| entry.weight * (entry.value - mean).powi(2))
            .sum();
        Some((squares / self.weight()).sqrt())
    }

    /// Returns the `p`-quantile by [`veeksha_stats::percentile`] or, for unequal weights,
    /// [`veeksha_stats::weighted_percentile`].
    pub(crate) fn quantile(&self, p: f64) -> Option<f64> {
        let first = self.entries.first()?;
        if !self.approximate && self.entries.iter().any(|entry| entry.weight != first.weight) {
            let weighted: Vec<(f64, f64)> = self
                .entries
                .iter()
                .map(|entry| (entry.value, entry.weight))
                .collect();
            return weighted_percentile(&weighted, p);
        }
        let ones = vec![1.0; self.cells()];
        self.anchor(0).quantile(p, &ones)
    }

    /// Returns the mean if cell `c` counts `times[c]` times.
    pub(crate) fn mean_of(&self, times: &[f64]) -> Option<f64> {
        let weight = dot(&self.weights, times);
        (weight > 0.0).then(|| dot(&self.sums, times) / weight)
    }

    /// Returns an anchor in the order of values near which quantiles are searched.
    pub(crate) fn anchor(&self, place: usize) -> QuantileAnchor<'_> {
        let mut below = vec![0.0; self.cells()];
        for entry in &self.entries[..place] {
            below[entry.cell as usize] += entry.weight;
        }
        QuantileAnchor {
            series: self,
            place,
            below,
        }
    }

    /// Returns the index of the first entry that is not below `value`.
    pub(crate) fn place_of(&self, value: f64) -> usize {
        self.entries.partition_point(|entry| entry.value < value)
    }

    /// Returns the contribution of each cell to the mean's error, its sum less the one expected
    /// from the mean, in order of time.
    pub(crate) fn influence_on_mean(&self) -> Vec<f64> {
        let mean = self.mean().unwrap_or(0.0);
        let of = |(sum, weight): (&f64, &f64)| sum - mean * weight;
        self.sums.iter().zip(&self.weights).map(of).collect()
    }

    /// Returns the contribution of each cell to the error of the `p`-quantile: its weight above the
    /// quantile less the expected one.
    pub(crate) fn influence_on_quantile(&self, p: f64) -> Vec<f64> {
        let quantile = self.quantile(p).unwrap_or(0.0);
        let mut influence: Vec<f64> = self.weights.iter().map(|weight| (p - 1.0) * weight).collect();
        let above = self.entries.partition_point(|entry| entry.value <= quantile);
        for entry in &self.entries[above..] {
            influence[entry.cell as usize] += entry.weight;
        }
        influence
    }
}

/// A position in the order of values. The quantile of a resample is near that of the samples, so
/// its search begins there.
#[derive(Debug)]
pub(crate) struct QuantileAnchor<'a> {
    series: &'a Series,
    place: usize,
    /// Weight of each cell before that position.
    below: Vec<f64>,
}

impl QuantileAnchor<'_> {
    /// Returns the `p`-quantile if cell `c` counts `times[c]` times; `None` if nothing counts.
    pub(crate) fn quantile(&self, p: f64, times: &[f64]) -> Option<f64> {
        let entries = &self.series.entries;
        let total = dot(&self.series.weights, times);
        if total <= 0.0 || entries.is_empty() {
            return None;
        }
        let position = (total - 1.0).max(0.0) * p;
        let rank = position.floor();
        let weight = |place: usize| entries[place].weight * times[entries[place].cell as usize];
        let mut place = self.place.min(entries.len() - 1);
        let mut before = dot(&self.below, times);
        if place < self.place {
            before -= weight(place);
        }
        while before > rank && place > 0 {
            place -= 1;
            before -= weight(place);
        }
        let mut value_at = |rank: f64| {
            // Ranks that rounding carries past the last weight belong to the largest value.
            while before + weight(place) <= rank && place + 1 < entries.len() {
                before += weight(place);
                place += 1;
            }
            // An entry that counts zero times is not a value of the resample.
            let mut counted = place;
            while weight(counted) == 0.0 && counted > 0 {
                counted -= 1;
            }
            entries[counted].value
        };
        let low = value_at(rank);
        let high = value_at((rank + 1.0).min((total - 1.0).max(0.0)));
        let high = high.max(low);
        Some((low + (position - rank) * (high - low)).min(high))
    }
}

/// Sorts by instant. Samples of one instant stay grouped by key, and otherwise in order: the gaps
/// of an answer in sequence.
pub(crate) fn in_order(samples: &mut [TimedSample]) {
    samples.sort_by_key(|sample| (sample.at, sample.key));
}

/// Scales weights to a mean of 1 and returns the factor: weights are relative and do not increase
/// the number of samples.
fn level(samples: &mut [TimedSample]) -> f64 {
    let Some(first) = samples.first().map(|sample| sample.weight) else {
        return 1.0;
    };
    let equal = samples.iter().all(|sample| sample.weight == first);
    let total: f64 = samples.iter().map(|sample| sample.weight).sum();
    let mean = if equal {
        first
    } else {
        total / samples.len() as f64
    };
    for sample in samples {
        sample.weight /= mean;
    }
    mean
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use veeksha_stats::percentile;

    use super::*;

    fn series(values: &[(f64, f64)]) -> Series {
        let sample = |(place, (value, weight)): (usize, &(f64, f64))| TimedSample {
            at: place as u64,
            value: *value,
            weight: *weight,
            key: None,
        };
        Series::of_samples(values.iter().enumerate().map(sample).collect())
    }

    #[test]
    fn weights_count_against_one_another() {
        let weighted = series(&[(1.0, 2.0), (5.0, 1.0), (3.0, 3.0)]);
        assert!((weighted.mean().unwrap() - 16.0 / 6.0).abs() < 1e-12);
        assert_eq!(weighted.count(), 3);
        assert!((weighted.sum() - 16.0).abs() < 1e-12);
        let sorted = [(1.0, 1.0), (3.0, 1.5), (5.0, 0.5)];
        for p in [0.0, 0.2, 0.5, 0.9, 1.0] {
            assert_eq!(weighted.quantile(p), weighted_percentile(&sorted, p), "{p}");
        }
        let doubled = series(&[(1.0, 2.0), (2.0, 2.0), (3.0, 2.0), (4.0, 2.0)]);
        assert_eq!(doubled.quantile(0.3), percentile(&[1.0, 2.0, 3.0, 4.0], 0.3));
    }

    #[test]
    fn empty_series_has_no_statistics() {
        let none = series(&[]);
        assert_eq!((none.mean(), none.quantile(0.5), none.std()), (None, None, None));
    }

    /// 40 answers of 1 to 7 gaps, some of them at the same instant: a cell is an answer.
    #[test]
    fn samples_of_an_answer_stay_in_one_cell() {
        let gaps = |answer: u64| answer % 7 + 1;
        let of = |answer: u64| {
            (0..gaps(answer)).map(move |_| TimedSample {
                at: answer / 4,
                value: answer as f64,
                weight: 1.0,
                key: Some(answer),
            })
        };
        let series = Series::of_samples((0..40).flat_map(of).collect());
        assert_eq!(series.cells(), 40);
        for answer in 0..40 {
            let weight = gaps(answer) as f64;
            assert_eq!(series.weights[answer as usize], weight);
            assert_eq!(series.sums[answer as usize], weight * answer as f64);
        }
    }

    #[test]
    fn influences_sum_to_zero() {
        let values: Vec<(f64, f64)> = (0..1000).map(|i| (f64::from(i * 7919 % 1000), 1.0)).collect();
        let series = series(&values);
        assert!(series.influence_on_mean().iter().sum::<f64>().abs() < 1e-6);
        // One in a hundred is above the P99 of 1000 values, exactly ten.
        assert!(series.influence_on_quantile(0.99).iter().sum::<f64>().abs() < 1e-6);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// The statistic of a resample equals that of the repeated samples, wherever the search
        /// begins.
        #[test]
        fn a_resample_is_its_samples_repeated(
            values in prop::collection::vec(-5i32..20, 1..60),
            times in prop::collection::vec(0u8..4, 60),
            anchor in 0usize..60,
            p in 0.0..=1.0f64,
        ) {
            let weighted: Vec<(f64, f64)> = values.iter().map(|value| (f64::from(*value), 1.0)).collect();
            let series = series(&weighted);
            let times = &times[..values.len()];
            let mut repeated: Vec<f64> = values
                .iter()
                .zip(times)
                .flat_map(|(value, times)| std::iter::repeat_n(f64::from(*value), usize::from(*times)))
                .collect();
            repeated.sort_unstable_by(f64::total_cmp);
            let counts: Vec<f64> = times.iter().map(|times| f64::from(*times)).collect();
            let anchor = series.anchor(anchor.min(values.len()));
            prop_assert_eq!(anchor.quantile(p, &counts), percentile(&repeated, p));
        }
    }
}
