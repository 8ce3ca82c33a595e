//! Samples with the statistics that the tools use: numpy's mean, population standard deviation and
//! linear percentiles.

use veeksha_stats::interpolate;

/// Marker for a gap that does not fit 32 bits; its value is stored in `large`.
const LARGE: u32 = u32::MAX;

/// Durations in nanoseconds in order of arrival. Four bytes each, since nearly all are below 4.29
/// s.
#[derive(Clone, Debug, Default)]
pub(crate) struct GapPool {
    small: Vec<u32>,
    large: Vec<(usize, u64)>,
}

impl GapPool {
    pub(crate) fn push(&mut self, gap: u64) {
        match u32::try_from(gap) {
            Ok(small) if small != LARGE => self.small.push(small),
            _ => {
                self.large.push((self.small.len(), gap));
                self.small.push(LARGE);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.small.len()
    }

    /// Returns the gap at an index below `len`.
    pub(crate) fn get(&self, at: usize) -> u64 {
        match self.small.get(at).copied() {
            None => 0,
            Some(LARGE) => {
                let found = self.large.binary_search_by_key(&at, |large| large.0);
                found
                    .ok()
                    .and_then(|found| self.large.get(found))
                    .map_or(0, |large| large.1)
            }
            Some(small) => u64::from(small),
        }
    }

    /// Sorts all gaps into a sample, in units of `per` nanoseconds.
    pub(crate) fn into_sample(mut self, per: f64) -> ToolSample {
        self.small.retain(|&gap| gap != LARGE);
        self.small.sort_unstable();
        let mut large: Vec<u64> = self.large.into_iter().map(|large| large.1).collect();
        large.sort_unstable();
        ToolSample(SampleValues::GapPool {
            small: self.small,
            large,
            per,
        })
    }
}

/// A sample in ascending order.
#[derive(Clone, Debug)]
pub(crate) struct ToolSample(SampleValues);

#[derive(Clone, Debug)]
enum SampleValues {
    Floats(Vec<f64>),
    GapPool {
        small: Vec<u32>,
        large: Vec<u64>,
        per: f64,
    },
}

impl ToolSample {
    /// Creates a sample from finite values.
    pub(crate) fn of(mut values: Vec<f64>) -> ToolSample {
        values.sort_unstable_by(f64::total_cmp);
        ToolSample(SampleValues::Floats(values))
    }

    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            SampleValues::Floats(values) => values.len(),
            SampleValues::GapPool { small, large, .. } => small.len() + large.len(),
        }
    }

    /// Returns the value of a rank below `len`.
    pub(crate) fn rank(&self, rank: usize) -> f64 {
        match &self.0 {
            SampleValues::Floats(values) => values[rank],
            SampleValues::GapPool { small, large, per } => {
                let gap = small
                    .get(rank)
                    .map_or_else(|| large[rank - small.len()], |&gap| u64::from(gap));
                gap as f64 / per
            }
        }
    }

    fn ranks(&self) -> impl Iterator<Item = f64> + '_ {
        (0..self.len()).map(|rank| self.rank(rank))
    }

    pub(crate) fn sum(&self) -> f64 {
        self.ranks().sum()
    }

    pub(crate) fn mean(&self) -> Option<f64> {
        (self.len() > 0).then(|| self.sum() / self.len() as f64)
    }

    /// Returns the population standard deviation, as numpy's `std`.
    pub(crate) fn std(&self) -> Option<f64> {
        let mean = self.mean()?;
        let squares: f64 = self.ranks().map(|value| (value - mean).powi(2)).sum();
        Some((squares / self.len() as f64).sqrt())
    }

    pub(crate) fn min(&self) -> Option<f64> {
        (self.len() > 0).then(|| self.rank(0))
    }

    pub(crate) fn max(&self) -> Option<f64> {
        (self.len() > 0).then(|| self.rank(self.len() - 1))
    }

    /// Returns the `p`-th percentile (`0.0..=100.0`), interpolated linearly between ranks.
    pub(crate) fn percentile(&self, p: f64) -> Option<f64> {
        interpolate(self.len(), p / 100.0, |rank| self.rank(rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_keep_their_order_and_size() {
        let mut gaps = GapPool::default();
        let times = [5, 6_000_000_000, 0, u64::from(u32::MAX), 7];
        times.iter().for_each(|&gap| gaps.push(gap));
        assert_eq!((0..gaps.len()).map(|at| gaps.get(at)).collect::<Vec<_>>(), times);
        let sample = gaps.into_sample(1.0);
        assert_eq!(
            (sample.len(), sample.min(), sample.percentile(50.0), sample.max()),
            (5, Some(0.0), Some(7.0), Some(6_000_000_000.0))
        );
    }

    #[test]
    fn statistics_equal_numpys() {
        // np.mean, np.std, np.percentile of [1, 2, 4, 9]: mean 4, variance (9 + 4 + 0 + 25) / 4 =
        // 9.5, p50 3, p90 at rank 2.7: 4 + 0.7 * 5.
        let sample = ToolSample::of(vec![9.0, 1.0, 4.0, 2.0]);
        assert_eq!((sample.mean(), sample.percentile(50.0)), (Some(4.0), Some(3.0)));
        assert_eq!(sample.std(), Some(9.5_f64.sqrt()));
        assert!((sample.percentile(90.0).unwrap() - 7.5).abs() < 1e-12);
        assert_eq!(ToolSample::of(Vec::new()).mean(), None);
    }
}
