//! The reasons why an objective is rejected before the run.

use veeksha_slo::{UninformativeBound, UnitMismatch};

/// An objective that cannot be evaluated in any run with these settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {} `{objective}`: {problem}", if *.is_condition { "condition" } else { "objective" })]
pub struct ObjectiveError {
    /// The objective or condition as text.
    pub objective: String,
    /// The index in its list, from 0.
    pub place: usize,
    /// True if it is a condition of goodput.
    pub is_condition: bool,
    /// The problem.
    pub problem: ObjectiveProblem,
}

/// The problem with an objective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectiveProblem {
    /// The metric does not exist.
    #[error("there is no metric `{name}`{}", meant(.nearest, "; `veeksha-host metrics` lists them"))]
    UnknownMetric {
        /// The given name.
        name: String,
        /// The closest existing name.
        nearest: Option<String>,
    },
    /// The run metric does not exist.
    #[error("there is no run metric `{name}`{}", meant(.nearest, "; `veeksha-host metrics` lists them"))]
    UnknownRunMetric {
        /// The given name.
        name: String,
        /// The closest existing name.
        nearest: Option<String>,
    },
    /// A metric in place of a run metric.
    #[error("`{name}` is a metric with many samples; write an aggregate of them, such as p99({name})")]
    MetricWithoutAggregate {
        /// The metric.
        name: String,
    },
    /// A run metric in place of a metric.
    #[error("`{name}` is a run metric: it has no aggregate, labels or window; write it alone")]
    RunMetricWithAggregate {
        /// The run metric.
        name: String,
    },
    /// The name is unavailable in this run.
    #[error("`{name}` cannot exist in this run: {why}")]
    Absent {
        /// The metric or run metric.
        name: String,
        /// The reason.
        why: String,
    },
    /// The bound's unit is of a different kind.
    #[error(transparent)]
    Unit(#[from] UnitMismatch),
    /// The bound of a sample count has a unit.
    #[error("a number of samples has no unit; write the bound as a number")]
    UnitOfCount,
    /// Goodput without any condition on a good request.
    #[error(
        "no condition defines a good request; name conditions (`goodput: [\"ttfc <= 500ms\"]`), or an objective on a metric of requests"
    )]
    NoConditions,
    /// A condition on a value that single requests do not have.
    #[error("`{name}` is not a metric of requests; a condition must be on one")]
    NotOfRequests {
        /// The metric or run metric.
        name: String,
    },
    /// A condition over windows.
    #[error("a condition must not have a window, because it applies to single requests")]
    ConditionWithWindow,
    /// The bound is not a number.
    #[error("the bound is not a finite number")]
    Bound,
    /// A bound that no value meets, or that all values meet.
    #[error(transparent)]
    UninformativeBound(#[from] UninformativeBound),
    /// A percentile outside of its range.
    #[error("the percentile {value} is not between 0 and {max}")]
    Percentile {
        /// The stated percentile.
        value: String,
        /// The end of the range: 100 for an expression, 1 for a constant objective.
        max: u8,
    },
}

fn meant(nearest: &Option<String>, otherwise: &str) -> String {
    match nearest {
        Some(nearest) => format!("; did you mean `{nearest}`?"),
        None => otherwise.to_owned(),
    }
}
