//! Objectives and conditions after their validation.

use veeksha_model::Nanos;

use super::ask::{Limit, SampleQuery};
use super::stated::Stated;
use crate::run_metric::RunMetric;

/// A validated objective.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Checked {
    pub(crate) stated: Stated,
    pub(crate) target: ObjectiveTarget,
    pub(crate) limit: Limit,
    /// The unit of the bound and of the observed value.
    pub(crate) unit: String,
}

/// The target of an objective's bound.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ObjectiveTarget {
    Run(RunMetric),
    Samples {
        samples: SampleQuery,
        window: Option<Nanos>,
    },
}

/// A condition on a single request's samples.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Condition {
    /// The text of the condition, or of the objective that implies it.
    pub(crate) text: String,
    pub(crate) samples: SampleQuery,
    pub(crate) limit: Limit,
}
