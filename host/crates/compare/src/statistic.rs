//! What is compared of a metric.

use std::fmt;

use veeksha_slo::Aggregate;

use crate::series::Series;

/// Samples without which nothing is said of a side; and requests that they are of, for what happens to one request happens to all its samples.
pub(crate) const ENOUGH: f64 = 20.0;

/// Samples that must lie on each side of a quantile for it to be judged.
const ENOUGH_BEYOND: f64 = 5.0;

/// What is compared of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// A figure of a metric's samples.
    OfSamples(Aggregate),
    /// The one number that a figure of the whole run is.
    Value,
}

/// What is compared of every metric.
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

/// What a resample is taken of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Resampled {
    Mean,
    /// `0.0..=1.0`
    Quantile(f64),
}

/// The statistic of the samples; `None` where there are none.
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

/// What to resample for the statistic's error. The others have none that a bootstrap of blocks gives: the extremes of a resample are
/// never beyond those of the samples, and a sum depends on how long the run was.
pub(crate) fn resampled(aggregate: Aggregate) -> Option<Resampled> {
    match aggregate {
        Aggregate::Mean => Some(Resampled::Mean),
        Aggregate::Percentile(percent) if percent > 0.0 && percent < 100.0 => {
            Some(Resampled::Quantile(percent / 100.0))
        }
        _ => None,
    }
}

/// How many samples it takes to judge this statistic: 20, and of a quantile as many as leave 5 on each side of it (100 for `p95`, 500 for
/// `p99`).
pub(crate) fn enough(resampled: Resampled) -> f64 {
    match resampled {
        Resampled::Mean => ENOUGH,
        // Less a little, so that 500 × 0.01 is 5 in doubles too.
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
