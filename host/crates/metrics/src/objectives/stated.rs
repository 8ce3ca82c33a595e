//! Objectives in the form in which a user states them.

use veeksha_definitions::Metric;
use veeksha_slo::{Aggregate, BoundUnit, ComparisonOperator, Objective, Quantity, SloBound};

/// An objective as stated.
#[derive(Clone, Debug, PartialEq)]
pub enum Stated {
    /// One of Veeksha's: a percentile of a built-in metric against a constant.
    Constant(ConstantSlo),
    /// An expression.
    Expression(Objective),
}

impl Stated {
    /// Returns the user-defined name.
    pub fn name(&self) -> Option<&str> {
        match self {
            Stated::Constant(slo) => slo.name.as_deref(),
            Stated::Expression(objective) => objective.name.as_deref(),
        }
    }
}

/// Formats the objective as an expression.
impl std::fmt::Display for Stated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stated::Constant(slo) => slo.objective().fmt(f),
            Stated::Expression(objective) => objective.fmt(f),
        }
    }
}

impl From<ConstantSlo> for Stated {
    fn from(slo: ConstantSlo) -> Self {
        Stated::Constant(slo)
    }
}

impl From<Objective> for Stated {
    fn from(objective: Objective) -> Self {
        Stated::Expression(objective)
    }
}

/// "The `percentile` of `metric` is at most `value`"; for a metric that improves upwards (output
/// throughput): "a share `percentile` of all samples is at least `value`".
#[derive(Clone, Debug, PartialEq)]
pub struct ConstantSlo {
    /// The user-defined name.
    pub name: Option<String>,
    /// The bounded metric.
    pub metric: Metric,
    /// `0.0..=1.0`.
    pub percentile: f64,
    /// The bound, in the metric's unit.
    pub value: f64,
}

impl ConstantSlo {
    /// Returns the objective as an expression.
    pub(crate) fn objective(&self) -> Objective {
        let upper = self.metric.lower_is_better();
        let share = if upper {
            self.percentile
        } else {
            1.0 - self.percentile
        };
        Objective {
            name: self.name.clone(),
            quantity: Quantity::Samples {
                aggregate: Aggregate::Percentile(percent(share)),
                metric: self.metric.name().to_owned(),
                filter: Vec::new(),
                window: None,
            },
            comparison: if upper {
                ComparisonOperator::AtMost
            } else {
                ComparisonOperator::AtLeast
            },
            bound: SloBound {
                value: self.value,
                unit: BoundUnit::None,
            },
        }
    }
}

/// Returns a fraction in percent. Ten digits hide that 0.999 * 100 is 99.90000000000001 in binary.
pub(crate) fn percent(fraction: f64) -> f64 {
    (fraction * 100.0 * 1e10).round() / 1e10
}
