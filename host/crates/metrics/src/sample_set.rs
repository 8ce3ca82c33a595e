//! A set of samples of one metric, and its statistics.

use veeksha_ports::MetricStats;
use veeksha_stats::{
    Summary, WeightedSample, interpolate, percentile, weighted_percentile, weighted_summary,
};

use crate::pooled::{GapSet, Moments, TokenSet};

/// Samples of one metric: of the whole run, of a window, or of the requests with some labels.
#[derive(Debug)]
pub(crate) enum SampleSet<'a> {
    /// Ascending.
    Plain(Vec<f64>),
    /// Ascending.
    Weighted(Vec<WeightedSample>),
    /// Gaps between chunks.
    Gaps(GapSet<'a>),
    /// Times between tokens.
    Tokens(TokenSet<'a>),
}

impl SampleSet<'_> {
    pub(crate) fn plain(mut values: Vec<f64>) -> Self {
        values.retain(|value| value.is_finite());
        values.sort_unstable_by(f64::total_cmp);
        SampleSet::Plain(values)
    }

    /// Creates a set from weighted values; values with unit weights become plain.
    pub(crate) fn weighted(mut values: Vec<WeightedSample>) -> Self {
        if values.iter().all(|(_, weight)| *weight == 1.0) {
            return SampleSet::plain(values.into_iter().map(|(value, _)| value).collect());
        }
        values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        SampleSet::Weighted(values)
    }

    pub(crate) fn count(&self) -> u64 {
        match self {
            SampleSet::Plain(values) => values.len() as u64,
            SampleSet::Weighted(values) => values.len() as u64,
            SampleSet::Gaps(gaps) => gaps.count(),
            SampleSet::Tokens(tokens) => tokens.count(),
        }
    }

    /// Returns the `p`-quantiles (`0.0..=1.0`); empty for an empty set.
    pub(crate) fn percentiles(&self, ps: &[f64]) -> Vec<f64> {
        let pooled = |count: u64, at_ranks: &dyn Fn(&[u64]) -> Vec<f64>| {
            let ranks = ranks_of(count, ps);
            let values = at_ranks(&ranks);
            let at = |rank: usize| {
                ranks
                    .binary_search(&(rank as u64))
                    .map_or(f64::NAN, |place| values[place])
            };
            ps.iter()
                .filter_map(|p| interpolate(count as usize, *p, at))
                .collect()
        };
        match self {
            SampleSet::Plain(values) => ps.iter().filter_map(|p| percentile(values, *p)).collect(),
            SampleSet::Weighted(values) => ps
                .iter()
                .filter_map(|p| weighted_percentile(values, *p))
                .collect(),
            SampleSet::Gaps(gaps) => pooled(gaps.count(), &|ranks| gaps.at_ranks(ranks)),
            SampleSet::Tokens(tokens) => pooled(tokens.count(), &|ranks| tokens.at_ranks(ranks)),
        }
    }

    pub(crate) fn percentile(&self, p: f64) -> Option<f64> {
        self.percentiles(&[p]).first().copied()
    }

    pub(crate) fn summary(&self) -> Option<Summary> {
        let Moments { mean, std } = match self {
            SampleSet::Plain(values) => return Summary::of_ranks(values.len(), |rank| values[rank]),
            SampleSet::Weighted(values) => return weighted_summary(&mut values.clone()),
            SampleSet::Gaps(gaps) => gaps.moments()?,
            SampleSet::Tokens(tokens) => tokens.moments()?,
        };
        let percentiles = self.percentiles(&[0.0, 0.5, 0.9, 0.95, 0.99, 1.0]);
        let [min, p50, p90, p95, p99, max] = percentiles.try_into().ok()?;
        Some(Summary {
            count: self.count() as usize,
            mean: mean.clamp(min, max),
            std,
            min,
            max,
            p50,
            p90,
            p95,
            p99,
        })
    }

    /// Returns mean and standard deviation; `None` for an empty set.
    pub(crate) fn moments(&self) -> Option<Moments> {
        match self {
            SampleSet::Gaps(gaps) => gaps.moments(),
            SampleSet::Tokens(tokens) => tokens.moments(),
            SampleSet::Plain(_) | SampleSet::Weighted(_) => self.summary().map(|summary| Moments {
                mean: summary.mean,
                std: summary.std,
            }),
        }
    }

    /// Returns the weighted sum of all values; `None` for an empty set.
    pub(crate) fn sum(&self) -> Option<f64> {
        match self {
            SampleSet::Plain(values) => (!values.is_empty()).then(|| values.iter().sum()),
            SampleSet::Weighted(values) => {
                (!values.is_empty()).then(|| values.iter().map(|(value, weight)| value * weight).sum())
            }
            SampleSet::Gaps(gaps) => Some(gaps.moments()?.mean * gaps.count() as f64),
            SampleSet::Tokens(tokens) => Some(tokens.moments()?.mean * tokens.count() as f64),
        }
    }
}

/// Returns the ranks that linear interpolation needs, ascending, without duplicates.
fn ranks_of(count: u64, ps: &[f64]) -> Vec<u64> {
    let Some(last) = count.checked_sub(1) else {
        return Vec::new();
    };
    let mut ranks: Vec<u64> = ps
        .iter()
        .filter(|p| (0.0..=1.0).contains(*p))
        .flat_map(|p| {
            let below = (last as f64 * p).floor() as u64;
            [below, (below + 1).min(last)]
        })
        .collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// Returns a summary in the format that plugins receive; all 0 if there is none.
pub(crate) fn stats(summary: Option<&Summary>) -> MetricStats {
    summary.map_or_else(MetricStats::default, |summary| MetricStats {
        count: summary.count as u64,
        mean: summary.mean,
        std: summary.std,
        min: summary.min,
        max: summary.max,
        p50: summary.p50,
        p90: summary.p90,
        p95: summary.p95,
        p99: summary.p99,
    })
}
