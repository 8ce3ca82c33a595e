//! Objectives in the form in which a user states them.

use veeksha_slo::Objective;

use veeksha_definitions::Metric;

/// An objective as stated.
#[derive(Clone, Debug, PartialEq)]
pub enum Stated {
    /// One of Veeksha's: a percentile of a built-in metric against a constant.
    Constant(Slo),
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
        f.write_str(&super::check::text(self))
    }
}

impl From<Slo> for Stated {
    fn from(slo: Slo) -> Self {
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
pub struct Slo {
    /// The user-defined name.
    pub name: Option<String>,
    /// The bounded metric.
    pub metric: Metric,
    /// `0.0..=1.0`.
    pub percentile: f64,
    /// The bound, in the metric's unit.
    pub value: f64,
}
