//! A single query of a sample set, and the comparison of its result with a bound.

use veeksha_model::Label;
use veeksha_slo::{Aggregate, ComparisonOperator};
use veeksha_stats::Summary;

use crate::run_samples::fraction;
use crate::sample_set::SampleSet;

/// A percentile with fewer samples than this beyond it is nearly the extreme value: for example, a
/// P99 of fewer than 100 samples.
const BEYOND: f64 = 1.0 - 1e-9;

/// A statistic of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SampleStatistic {
    /// `0.0..=1.0`
    Quantile(f64),
    Mean,
    Min,
    Max,
    Std,
    Sum,
    Count,
}

impl SampleStatistic {
    pub(crate) fn aggregate(aggregate: Aggregate) -> Self {
        match aggregate {
            Aggregate::Percentile(percent) => SampleStatistic::Quantile(fraction(percent)),
            Aggregate::Mean => SampleStatistic::Mean,
            Aggregate::Min => SampleStatistic::Min,
            Aggregate::Max => SampleStatistic::Max,
            Aggregate::Std => SampleStatistic::Std,
            Aggregate::Sum => SampleStatistic::Sum,
            Aggregate::Count => SampleStatistic::Count,
        }
    }

    /// Returns the statistic; `None` if there are no samples. The count of an empty set is 0.
    pub(crate) fn observe(self, set: &SampleSet<'_>) -> Option<f64> {
        if self == SampleStatistic::Count {
            return Some(set.count() as f64);
        }
        if set.count() == 0 {
            return None;
        }
        match self {
            SampleStatistic::Quantile(p) => set.percentile(p),
            SampleStatistic::Mean => set.moments().map(|moments| moments.mean),
            SampleStatistic::Min => set.percentile(0.0),
            SampleStatistic::Max => set.percentile(1.0),
            SampleStatistic::Std => set.moments().map(|moments| moments.std),
            SampleStatistic::Sum => set.sum(),
            SampleStatistic::Count => None,
        }
    }

    /// Returns the statistic from a summary, if the summary contains it. This avoids another
    /// selection over up to a hundred million gaps.
    pub(crate) fn among(self, summary: &Summary) -> Option<f64> {
        match self {
            SampleStatistic::Quantile(p) => summary.known_quantile(p),
            SampleStatistic::Mean => Some(summary.mean),
            SampleStatistic::Min => Some(summary.min),
            SampleStatistic::Max => Some(summary.max),
            SampleStatistic::Std => Some(summary.std),
            SampleStatistic::Count => Some(summary.count as f64),
            SampleStatistic::Sum => None,
        }
    }

    /// Returns true if the statistic is proportional to the duration.
    pub(crate) fn grows_with_time(self) -> bool {
        matches!(self, SampleStatistic::Sum | SampleStatistic::Count)
    }

    /// Returns true if the statistic depends on so few samples that it is nearly the extreme value.
    pub(crate) fn is_thin(self, count: u64) -> bool {
        match self {
            SampleStatistic::Quantile(p) if p > 0.0 && p < 1.0 => count as f64 * p.min(1.0 - p) < BEYOND,
            _ => false,
        }
    }
}

/// The samples of a metric with certain labels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SampleQuery {
    /// The canonical name of the metric.
    pub(crate) metric: String,
    pub(crate) of: SampleStatistic,
    pub(crate) filter: Vec<Label>,
}

/// A bound in the unit of the bounded value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limit {
    pub(crate) comparison: ComparisonOperator,
    pub(crate) value: f64,
}

impl Limit {
    pub(crate) fn is_kept_by(self, observed: f64) -> bool {
        self.comparison.holds(observed, self.value)
    }

    /// Returns true if smaller values are better.
    pub(crate) fn is_upper(self) -> bool {
        matches!(
            self.comparison,
            ComparisonOperator::Below | ComparisonOperator::AtMost
        )
    }

    /// Returns true if the first of two observed values is worse.
    pub(crate) fn is_worse(self, observed: f64, than: f64) -> bool {
        if self.is_upper() {
            observed > than
        } else {
            observed < than
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_that_is_hit_is_met_unless_it_must_be_passed() {
        let of = |comparison| Limit {
            comparison,
            value: 0.3,
        };
        let at_most = of(ComparisonOperator::AtMost);
        assert!(at_most.is_kept_by(0.1 + 0.2));
        assert!(at_most.is_kept_by(0.3 * (1.0 + 0.9e-9)));
        assert!(!at_most.is_kept_by(0.3 * (1.0 + 1.1e-9)));
        assert!(at_most.is_kept_by(0.0));
        assert!(of(ComparisonOperator::AtLeast).is_kept_by(0.3 * (1.0 - 0.9e-9)));
        assert!(!of(ComparisonOperator::AtLeast).is_kept_by(0.29));
        assert!(
            !of(ComparisonOperator::Below).is_kept_by(0.3) && of(ComparisonOperator::Below).is_kept_by(0.29)
        );
        assert!(
            !of(ComparisonOperator::Above).is_kept_by(0.3) && of(ComparisonOperator::Above).is_kept_by(0.31)
        );
    }

    #[test]
    fn a_p99_needs_a_hundred_samples_and_a_p999_a_thousand() {
        let thin = |p, count| SampleStatistic::Quantile(p).is_thin(count);
        assert!(thin(0.99, 99) && !thin(0.99, 100));
        assert!(thin(0.999, 999) && !thin(0.999, 1000));
        assert!(thin(0.01, 99) && !thin(0.01, 100));
        assert!(thin(0.5, 1) && !thin(0.5, 2));
        assert!(!thin(1.0, 1) && !SampleStatistic::Mean.is_thin(1));
    }
}
