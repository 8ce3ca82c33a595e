//! GuideLLM's distributions: `guidellm/schemas/base/statistics.py`, `DistributionSummary`.
//!
//! Values have weights (1, the tokens of a request, or the duration of a level) and equal values
//! are pooled. A percentile is the smallest value at which the cumulative weight reaches its share:
//! always an observed value, never interpolated.

use serde_json::{Map, Value, json};

use crate::report::number;

/// Times closer than this, in seconds, are merged.
const THRESHOLD: f64 = 1e-4;
const EPSILON: f64 = 1e-6;
const PERCENTILES: [(&str, f64); 11] = [
    ("p001", 0.001),
    ("p01", 0.01),
    ("p05", 0.05),
    ("p10", 0.1),
    ("p25", 0.25),
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p999", 0.999),
];

/// A distribution with GuideLLM's statistics. An empty one is all zeros, as in GuideLLM.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GuidellmDistribution {
    pub(crate) mean: f64,
    mode: f64,
    variance: f64,
    min: f64,
    max: f64,
    pub(crate) count: u64,
    pub(crate) total_sum: f64,
    percentiles: [f64; 11],
}

impl GuidellmDistribution {
    pub(crate) fn median(&self) -> f64 {
        self.percentiles[5]
    }

    pub(crate) fn p95(&self) -> f64 {
        self.percentiles[8]
    }

    /// `from_values`; the count defaults to the sum of the weights.
    pub(crate) fn of(mut values: Vec<(f64, f64)>, count: Option<u64>) -> GuidellmDistribution {
        let weights: f64 = values.iter().map(|value| value.1).sum();
        let count = count.unwrap_or(weights.round_ties_even() as u64);
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Pool equal values.
        let mut pooled: Vec<(f64, f64)> = Vec::with_capacity(values.len());
        for (value, weight) in values {
            match pooled.last_mut() {
                Some(last) if last.0 == value => last.1 += weight,
                _ => pooled.push((value, weight)),
            }
        }
        pooled.retain(|value| value.1 > 0.0);
        if pooled.is_empty() {
            return GuidellmDistribution {
                count,
                ..GuidellmDistribution::default()
            };
        }
        let mut total: f64 = pooled.iter().map(|value| value.1).sum();
        if total <= EPSILON {
            pooled.iter_mut().for_each(|value| value.1 = 1.0);
            total = pooled.len() as f64;
        }
        pooled.iter_mut().for_each(|value| value.1 /= total);
        GuidellmDistribution::of_shares(&pooled, count)
    }

    /// `from_pdf`: values ascending, with shares that sum to 1.
    fn of_shares(shares: &[(f64, f64)], count: u64) -> GuidellmDistribution {
        let mean: f64 = shares.iter().map(|(value, share)| value * share).sum();
        let variance = shares
            .iter()
            .map(|(value, share)| (value - mean).powi(2) * share)
            .sum();
        let mut mode = (0.0, f64::NEG_INFINITY);
        for &(value, share) in shares {
            if share > mode.1 {
                mode = (value, share);
            }
        }
        let mut percentiles = [shares.last().map_or(0.0, |last| last.0); 11];
        let (mut cumulated, mut next) = (0.0, 0);
        for &(value, share) in shares {
            cumulated += share;
            while next < PERCENTILES.len() && cumulated >= PERCENTILES[next].1 {
                percentiles[next] = value;
                next += 1;
            }
        }
        GuidellmDistribution {
            mean,
            mode: mode.0,
            variance,
            min: shares.first().map_or(0.0, |first| first.0),
            max: shares.last().map_or(0.0, |last| last.0),
            count,
            total_sum: mean * count as f64,
            percentiles,
        }
    }

    /// `rate_distribution_from_timings`: the events at each instant, over the time that belongs to
    /// that instant (half way to its neighbours). `times` must be ascending, in seconds, inside the
    /// window.
    pub(crate) fn of_rates(
        times: impl Iterator<Item = (f64, f64)>,
        (start, end): (f64, f64),
    ) -> GuidellmDistribution {
        let mut merged = MergedTimes::default();
        let mut events = std::iter::once((start, 0.0)).chain(times).peekable();
        while let Some((at, weight)) = events.next() {
            merged.push(at, weight);
            if events.peek().is_none() {
                merged.push(end.max(at), 0.0);
            }
        }
        let groups = merged.0;
        if groups.len() <= 1 {
            return GuidellmDistribution::of(Vec::new(), Some(groups.len() as u64));
        }
        let last = groups.len() - 1;
        let middle = |at: usize| (groups[at].0 + groups[at + 1].0) / 2.0;
        let count: f64 = groups.iter().map(|group| group.1).sum();
        let rates = groups.iter().enumerate().map(|(at, &(time, weight))| {
            let duration = match at {
                0 => middle(0) - time,
                at if at == last => (time - middle(at - 1)).max(EPSILON),
                at => middle(at) - middle(at - 1),
            };
            (weight / duration, duration)
        });
        GuidellmDistribution::of(rates.collect(), Some(count.round_ties_even() as u64))
    }

    /// `concurrency_distribution_from_timings` of intervals inside the window, in seconds.
    pub(crate) fn of_concurrency(intervals: &[(f64, f64)], (start, end): (f64, f64)) -> GuidellmDistribution {
        let mut steps: Vec<(f64, f64)> = Vec::with_capacity(2 * intervals.len());
        steps.extend(intervals.iter().map(|interval| (interval.0, 1.0)));
        steps.extend(intervals.iter().map(|interval| (interval.1, -1.0)));
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut merged = MergedTimes::default();
        steps.into_iter().for_each(|(at, step)| merged.push(at, step));
        let mut levels = merged.0;
        let count = intervals.len() as u64;
        if levels.is_empty() {
            return GuidellmDistribution::of(Vec::new(), None);
        }
        levels.insert(0, (start, 0.0));
        levels.push((end, 0.0));
        let mut level = 0.0;
        let weighted = levels.windows(2).map(|pair| {
            level += pair[0].1;
            (f64::max(level, 0.0), f64::max(pair[1].0 - pair[0].0, 0.0))
        });
        let weighted: Vec<_> = weighted.collect();
        let record_span = weighted.iter().any(|value| value.1 > 0.0);
        GuidellmDistribution::of(if record_span { weighted } else { Vec::new() }, Some(count))
    }

    pub(crate) fn json(&self) -> Value {
        let percentiles: Map<String, Value> = PERCENTILES
            .iter()
            .zip(self.percentiles)
            .map(|((name, _), value)| ((*name).to_owned(), number(Some(value))))
            .collect();
        json!({
            "mean": self.mean,
            "median": self.median(),
            "mode": self.mode,
            "variance": self.variance,
            "std_dev": self.variance.sqrt(),
            "min": self.min,
            "max": self.max,
            "count": self.count,
            "total_sum": self.total_sum,
            "percentiles": percentiles,
        })
    }
}

/// `_merge_sorted_times_with_weights`: a group contains every time within the threshold of its
/// first.
#[derive(Debug, Default)]
struct MergedTimes(Vec<(f64, f64)>);

impl MergedTimes {
    fn push(&mut self, at: f64, weight: f64) {
        match self.0.last_mut() {
            Some(group) if at <= group.0 + THRESHOLD => group.1 += weight,
            _ => self.0.push((at, weight)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_is_an_observed_value() {
        // Four values of equal weight: the cumulative shares are 0.25, 0.5, 0.75, 1; the median is
        // the second.
        let values = [4.0, 1.0, 3.0, 2.0].map(|value| (value, 1.0)).to_vec();
        let summary = GuidellmDistribution::of(values, None);
        assert_eq!((summary.median(), summary.p95(), summary.mean), (2.0, 4.0, 2.5));
        assert_eq!(
            (summary.count, summary.total_sum, summary.variance),
            (4, 10.0, 1.25)
        );
    }

    #[test]
    fn statistics_use_weights() {
        // 10 with weight 1, 20 with weight 3: mean 17.5, median 20; a value of weight 0 does not
        // count.
        let summary = GuidellmDistribution::of(vec![(10.0, 1.0), (20.0, 3.0), (5.0, 0.0)], None);
        assert_eq!((summary.mean, summary.median(), summary.min), (17.5, 20.0, 10.0));
        assert_eq!((summary.count, summary.mode, summary.total_sum), (4, 20.0, 70.0));
        assert_eq!(
            GuidellmDistribution::of(vec![(5.0, 0.0)], None),
            GuidellmDistribution::default(),
            "without weight there is nothing"
        );
    }

    #[test]
    fn rate_covers_the_time_around_its_instant() {
        // Window 0..4, one event at 1: instants 0, 1, 4 own 0.5, 2, 1.5 seconds; rates 0, 0.5, 0.
        // Weighted mean: 0.5 * 2 / 4 = 0.25 events a second; half of the time at 0.5.
        let summary = GuidellmDistribution::of_rates([(1.0, 1.0)].into_iter(), (0.0, 4.0));
        assert_eq!((summary.mean, summary.max, summary.count), (0.25, 0.5, 1));
        assert_eq!(summary.median(), 0.0);
    }

    #[test]
    fn merges_times_within_a_tenth_of_a_millisecond() {
        let near = [(1.0, 1.0), (1.00005, 1.0), (1.00012, 1.0)];
        // 1.00005 is within 0.1 ms of 1; 1.00012 is not, though it is near 1.00005.
        let mut merged = MergedTimes::default();
        near.iter().for_each(|&(at, weight)| merged.push(at, weight));
        assert_eq!(merged.0, [(1.0, 2.0), (1.00012, 1.0)]);
    }

    #[test]
    fn concurrency_is_weighted_by_time() {
        // 0..2 and 1..3 in a window of 0..4: one for 2 s, two for 1 s, none for 1 s: mean 1.
        let summary = GuidellmDistribution::of_concurrency(&[(0.0, 2.0), (1.0, 3.0)], (0.0, 4.0));
        assert_eq!((summary.mean, summary.median(), summary.max), (1.0, 1.0, 2.0));
        assert_eq!(summary.count, 2);
        assert_eq!(
            GuidellmDistribution::of_concurrency(&[], (0.0, 4.0)),
            GuidellmDistribution::default()
        );
    }
}
