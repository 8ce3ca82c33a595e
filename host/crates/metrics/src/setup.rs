//! The settings of an evaluator.

use std::collections::BTreeSet;

use veeksha_model::Nanos;

use crate::catalogue::Catalogue;
use crate::fluidity::Deadlines;
use crate::objectives::{Objectives, Slo};

/// The objectives of a run and the parameters of its metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The available metrics; metrics that the events define are added.
    pub catalogue: Catalogue,
    /// The objectives.
    pub objectives: Objectives,
    /// Token deadlines for `fluidity` and `fluidity_tokens`.
    pub deadlines: Deadlines,
    /// The length of the slices of the run, in nanoseconds.
    pub slice: Nanos,
    /// Metrics of plugins that measure every request of a record again: their samples are complete
    /// even if the record is not.
    pub measured_anew: BTreeSet<String>,
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            catalogue: Catalogue::built_in(),
            objectives: Objectives::default(),
            deadlines: Deadlines::default(),
            slice: 10_000_000_000,
            measured_anew: BTreeSet::new(),
        }
    }
}

/// Uses Veeksha's objectives and defaults for the rest.
impl From<Vec<Slo>> for Setup {
    fn from(slos: Vec<Slo>) -> Self {
        Setup {
            objectives: Objectives::constants(slos),
            ..Setup::default()
        }
    }
}
