//! Objectives: a quantity, a comparison and a bound.

use std::time::Duration;

/// A service-level objective: `p99(ttfc{tier="gold"}, window = 10s) <= 500ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// The user-defined name.
    pub name: Option<String>,
    /// The bounded quantity.
    pub quantity: Quantity,
    /// The side of the bound that meets the objective.
    pub comparison: ComparisonOperator,
    /// The bound.
    pub bound: SloBound,
}

/// The quantity that an objective bounds.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// A metric of the whole run: `error_rate`, `goodput`, `requests_per_second`.
    RunMetric(String),
    /// An aggregate of a metric's samples: `p99(ttfc)`, `mean(tpot{tier="gold"})`.
    Samples {
        /// The aggregate.
        aggregate: Aggregate,
        /// The metric's name.
        metric: String,
        /// Labels that a sample's request must have, all of them, sorted by name.
        filter: Vec<(String, String)>,
        /// Length of the windows in which the aggregate is computed; the worst window counts.
        window: Option<Duration>,
    },
}

/// An aggregate of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aggregate {
    /// `p99`, `p99.9`: 0 to 100. `median` is `p50`.
    Percentile(f64),
    /// `mean`, `avg`
    Mean,
    /// `min`
    Min,
    /// `max`: an upper bound on it bounds each sample.
    Max,
    /// `std`
    Std,
    /// `sum`
    Sum,
    /// `count`
    Count,
}

/// The side of a bound that meets an objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonOperator {
    /// `<`
    Below,
    /// `<=`, `≤`
    AtMost,
    /// `>`
    Above,
    /// `>=`, `≥`
    AtLeast,
}

/// A bound as it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SloBound {
    /// Seconds for a time, a share (0.01) for a percentage, else the number itself.
    pub value: f64,
    /// The unit as written.
    pub unit: BoundUnit,
}

/// The unit that follows a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundUnit {
    /// None: the number is in the quantity's unit.
    None,
    /// `ns`, `us`, `µs`, `ms`, `s`, `m`, `h`
    Time,
    /// `%`
    Percent,
}

/// Values within this relative error of each other are equal, as in Veeksha, so that rounding does
/// not decide about a value that is exactly at its bound.
const RELATIVE_EQUALITY: f64 = 1e-9;

impl Aggregate {
    /// Returns the unit of the aggregate of a metric with this unit: a count of times is not a
    /// time.
    pub fn unit(self, metric_unit: &str) -> &str {
        match self {
            Aggregate::Count => "samples",
            _ => metric_unit,
        }
    }
}

impl ComparisonOperator {
    /// Returns true if `observed` is on this side of `bound`. Values within a relative error of
    /// 1e-9 are equal: they meet `<=` and `>=`, but not `<` and `>`. NaN meets no bound.
    pub fn holds(self, observed: f64, bound: f64) -> bool {
        let scale = observed.abs().max(bound.abs());
        let equal =
            observed == bound || (scale.is_finite() && (observed - bound).abs() <= RELATIVE_EQUALITY * scale);
        match self {
            ComparisonOperator::Below => !equal && observed < bound,
            ComparisonOperator::AtMost => equal || observed < bound,
            ComparisonOperator::Above => !equal && observed > bound,
            ComparisonOperator::AtLeast => equal || observed > bound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_within_rounding_error_equal_the_bound() {
        // 0.1 + 0.2 is above 0.3 in doubles.
        for (observed, at) in [
            (0.1 + 0.2, true),
            (0.3 * (1.0 + 0.9e-9), true),
            (0.3 * (1.0 + 1.1e-9), false),
        ] {
            assert_eq!(ComparisonOperator::AtMost.holds(observed, 0.3), at, "{observed}");
            assert_eq!(ComparisonOperator::Above.holds(observed, 0.3), !at, "{observed}");
            assert!(!ComparisonOperator::Below.holds(observed, 0.3), "{observed}");
            assert!(ComparisonOperator::AtLeast.holds(observed, 0.3), "{observed}");
        }
        assert!(ComparisonOperator::AtMost.holds(0.0, 0.0) && !ComparisonOperator::Below.holds(0.0, 0.0));
        assert!(ComparisonOperator::AtLeast.holds(-1.0, -1.0) && ComparisonOperator::Below.holds(-2.0, -1.0));
    }

    #[test]
    fn nan_meets_no_bound() {
        let all = [
            ComparisonOperator::Below,
            ComparisonOperator::AtMost,
            ComparisonOperator::Above,
            ComparisonOperator::AtLeast,
        ];
        for comparison in all {
            assert!(!comparison.holds(f64::NAN, 1.0));
        }
        assert!(!ComparisonOperator::AtMost.holds(f64::INFINITY, 1.0));
        assert!(ComparisonOperator::AtLeast.holds(f64::INFINITY, 1.0));
    }
}
