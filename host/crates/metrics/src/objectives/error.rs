//! Why an objective is refused before the run.

use veeksha_slo::{UninformativeBound, UnitMismatch};

/// An objective that cannot be answered, whatever the run does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {} `{objective}`: {problem}", if *.is_condition { "condition" } else { "objective" })]
pub struct ObjectiveError {
    /// The objective or condition as text.
    pub objective: String,
    /// Its place in the list that it came in, from 0.
    pub place: usize,
    /// Whether it is a condition of goodput.
    pub is_condition: bool,
    /// What is wrong.
    pub problem: ObjectiveProblem,
}

/// What is wrong with an objective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectiveProblem {
    /// No such metric.
    #[error("there is no metric `{name}`{}", meant(.nearest, "; `veeksha-host metrics` lists them"))]
    UnknownMetric {
        /// What was written.
        name: String,
        /// What was probably meant.
        nearest: Option<String>,
    },
    /// No such figure.
    #[error("there is no figure `{name}`{}", meant(.nearest, "; `veeksha-host metrics` lists them"))]
    UnknownFigure {
        /// What was written.
        name: String,
        /// What was probably meant.
        nearest: Option<String>,
    },
    /// A metric where a figure must stand.
    #[error("`{name}` is a metric with many samples; say which figure of them, such as p99({name})")]
    MetricWithoutAggregate {
        /// The metric.
        name: String,
    },
    /// A figure where a metric must stand.
    #[error("`{name}` is one figure of the whole run: it has no aggregate, labels or window; write it alone")]
    FigureWithAggregate {
        /// The figure.
        name: String,
    },
    /// It exists, but not in this run.
    #[error("`{name}` cannot exist in this run: {why}")]
    Absent {
        /// The metric or figure.
        name: String,
        /// Why.
        why: String,
    },
    /// The bound's unit is of another kind.
    #[error(transparent)]
    Unit(#[from] UnitMismatch),
    /// The number of samples is bounded in a unit.
    #[error("a number of samples has no unit; write the bound as a number")]
    UnitOfCount,
    /// Goodput, and nothing that a good request would have to keep.
    #[error(
        "nothing says what a good request is; name conditions (`goodput: [\"ttfc <= 500ms\"]`), or an objective on a metric of requests"
    )]
    NoConditions,
    /// A condition on what a request does not have.
    #[error("`{name}` is not a metric of requests, so no request can keep it by itself")]
    NotOfRequests {
        /// The metric or figure.
        name: String,
    },
    /// A condition over windows.
    #[error("a condition is asked of each request by itself, so it has no window")]
    ConditionWithWindow,
    /// A bound that is no number.
    #[error("the bound is not a finite number")]
    Bound,
    /// A bound that no value can keep, or all do.
    #[error(transparent)]
    UninformativeBound(#[from] UninformativeBound),
    /// A percentile beyond 0 to 100.
    #[error("a percentile lies between 0 and 100")]
    Percentile,
}

fn meant(nearest: &Option<String>, otherwise: &str) -> String {
    match nearest {
        Some(nearest) => format!("; did you mean `{nearest}`?"),
        None => otherwise.to_owned(),
    }
}
