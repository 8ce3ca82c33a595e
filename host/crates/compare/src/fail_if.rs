//! Conditions under which a comparison fails: `worse(ttfc) or error_rate > 1%`.

mod condition;
mod decide;
mod known;
mod parse;

use crate::statistic::Statistic;

use condition::{FailCondition, Judged, MeasuredTerm};

pub use condition::FailIf;
pub use decide::{CandidateDecision, Decision, FailOutcome};
pub use known::{KnownKind, KnownName};

impl FailIf {
    /// Returns the source text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the metrics and run-level values that it names.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.condition.names(&mut names);
        names
    }

    /// Returns the statistics of metrics that it names, for [`crate::compare`] to compute.
    pub fn statistics(&self) -> Vec<(String, Statistic)> {
        let mut named = Vec::new();
        self.condition.visit(&mut |condition| {
            let (aggregate, name) = match condition {
                FailCondition::Judged {
                    of: Judged::Statistic(aggregate, name),
                    ..
                } => (Some(*aggregate), name),
                FailCondition::Measured(measured) => (measured.aggregate, &measured.name),
                _ => return,
            };
            if let Some(aggregate) = aggregate {
                named.push((name.name.clone(), Statistic::OfSamples(aggregate)));
            }
        });
        named
    }
}

impl FailCondition {
    fn names<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            FailCondition::Any(parts) | FailCondition::All(parts) => {
                parts.iter().for_each(|part| part.names(names))
            }
            FailCondition::Not { within, .. } => within.names(names),
            FailCondition::Judged {
                of: Judged::Name(name) | Judged::Statistic(_, name),
                ..
            }
            | FailCondition::Measured(MeasuredTerm { name, .. }) => names.push(&name.name),
            FailCondition::NotComparable | FailCondition::Judged { of: Judged::Any, .. } => {}
        }
    }

    /// Calls `look` with every condition.
    fn visit(&self, look: &mut dyn FnMut(&FailCondition)) {
        look(self);
        match self {
            FailCondition::Any(parts) | FailCondition::All(parts) => {
                parts.iter().for_each(|part| part.visit(look))
            }
            FailCondition::Not { within, .. } => within.visit(look),
            FailCondition::NotComparable | FailCondition::Judged { .. } | FailCondition::Measured(_) => {}
        }
    }
}
