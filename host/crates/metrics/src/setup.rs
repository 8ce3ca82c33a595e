//! The settings of an evaluator.

use std::collections::BTreeSet;

use veeksha_model::Nanos;

use crate::catalogue::Catalogue;
use crate::fluidity::Deadlines;
use crate::objectives::{ConstantSlo, Objectives};
use crate::what_if::WhatIf;

/// The objectives of a run and the parameters of its metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setup {
    /// The available metrics; metrics that the events define are added.
    pub catalogue: Catalogue,
    /// The objectives.
    pub objectives: Objectives,
    /// Token deadlines for `fluidity` and `fluidity_tokens`.
    pub deadlines: Deadlines,
    /// The length of the slices of the run, in nanoseconds; `None` adapts it to the run's length.
    pub slice: Option<Nanos>,
    /// The labels by whose values the requests are grouped; `None` selects the labels with few
    /// values.
    pub group_by: Option<Vec<String>>,
    /// Metrics of plugins that measure every request of a record again: their samples are complete
    /// even if the record is not.
    pub repeated_metrics: BTreeSet<String>,
    /// Changes whose effect on the makespans of sessions is computed.
    pub what_if: Vec<WhatIf>,
}

/// Uses Veeksha's objectives and defaults for the rest.
impl From<Vec<ConstantSlo>> for Setup {
    fn from(slos: Vec<ConstantSlo>) -> Self {
        Setup {
            objectives: Objectives::constants(slos),
            ..Setup::default()
        }
    }
}
