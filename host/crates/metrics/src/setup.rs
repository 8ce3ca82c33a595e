//! What an evaluator is told before the first event.

use std::collections::BTreeSet;

use veeksha_model::Nanos;

use crate::catalogue::Catalogue;
use crate::fluidity::Deadlines;
use crate::objectives::{Objectives, Slo};

/// What is asked of a run, and how some figures are taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// What can be measured; metrics that the events define are added.
    pub catalogue: Catalogue,
    /// What is asked.
    pub objectives: Objectives,
    /// When tokens are due, for `fluidity` and `fluidity_tokens`.
    pub deadlines: Deadlines,
    /// The length of the slices of the run, in nanoseconds.
    pub slice: Nanos,
    /// Metrics of plugins that see every request of a record anew: what they say is whole, also where the record is not.
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

/// Veeksha's objectives, and everything else as usual.
impl From<Vec<Slo>> for Setup {
    fn from(slos: Vec<Slo>) -> Self {
        Setup {
            objectives: Objectives::constants(slos),
            ..Setup::default()
        }
    }
}
