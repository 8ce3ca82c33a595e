//! Compared statistics of a metric.

use std::fmt;

use veeksha_slo::Aggregate;

use crate::series::Series;

/// Minimum number of samples for a verdict, and of their requests, because all samples of a request
/// share its fate.
pub(crate) const ENOUGH: f64 = 20.0;

/// Minimum number of samples on each side of a quantile.
const ENOUGH_BEYOND: f64 = 5.0;

/// Compared statistic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// Aggregate of a metric's samples.
    OfSamples(Aggregate),
    /// The single number of a run-level value.
    Value,
}

/// Default statistics of every metric.
pub(crate) const USUAL: [Statistic; 4] = [
    Statistic::OfSamples(Aggregate::Mean),
    Statistic::OfSamples(Aggregate::Percentile(50.0)),
    Statistic::OfSamples(Aggregate::Percentile(90.0)),
    Statistic::OfSamples(Aggregate::Percentile(99.0)),
];

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Statistic::OfSamples(aggregate) => aggregate.fmt(f),
            Statistic::Value => f.write_str("value"),
        }
    }
}

/// Statistic to compute for each resample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Resampled {
    Mean,
    /// `0.0..=1.0`
    Quantile(f64),
}

/// Returns the statistic of the samples; `None` without samples.
pub(crate) fn value_of(series: &Series, aggregate: Aggregate) -> Option<f64> {
    match aggregate {
        Aggregate::Percentile(percent) => series.quantile(percent / 100.0),
        Aggregate::Mean => series.mean(),
        Aggregate::Min => series.quantile(0.0),
        Aggregate::Max => series.quantile(1.0),
        Aggregate::Std => series.std(),
        Aggregate::Sum => series.mean().map(|_| series.sum()),
        Aggregate::Count => Some(series.count() as f64),
    }
}

/// Returns the statistic to resample for the error. The others have no error by a block bootstrap:
/// the extremes of a resample never exceed those of the samples, and a sum depends on the length of
/// the run.
pub(crate) fn resampled(aggregate: Aggregate) -> Option<Resampled> {
    match aggregate {
        Aggregate::Mean => Some(Resampled::Mean),
        Aggregate::Percentile(percent) if percent > 0.0 && percent < 100.0 => {
            Some(Resampled::Quantile(percent / 100.0))
        }
        _ => None,
    }
}

/// Returns the minimum number of samples for a verdict: 20, and for a quantile as many as leave 5
/// on each side of it (100 for `p95`, 500 for `p99`).
pub(crate) fn enough(resampled: Resampled) -> f64 {
    match resampled {
        Resampled::Mean => ENOUGH,
        // Slightly less, so that 500 × 0.01 is 5 in doubles too.
        Resampled::Quantile(p) => ENOUGH.max((ENOUGH_BEYOND / p.min(1.0 - p) - 1e-6).ceil()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_needs_samples_beyond_it() {
        for (p, expected) in [
            (0.5, 20.0),
            (0.9, 50.0),
            (0.95, 100.0),
            (0.99, 500.0),
            (0.01, 500.0),
        ] {
            assert_eq!(enough(Resampled::Quantile(p)), expected, "{p}");
        }
    }
}
