//! Conditions under which a comparison fails: `worse(ttfc) or error_rate > 1%`.

mod decide;
mod known;
mod parse;

use std::ops::Range;

use veeksha_slo::{Aggregate, Bound, Comparison, Quantity};

use crate::statistic::Statistic;
use crate::verdict::Verdict;

pub use decide::{CandidateDecision, Decision, Outcome};
pub use known::{Known, KnownKind};

/// Condition under which a comparison fails. The grammar is in the [crate's
/// documentation](crate#when-a-comparison-fails).
#[derive(Clone, Debug, PartialEq)]
pub struct FailIf {
    text: String,
    condition: Condition,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
enum Condition {
    Any(Vec<Condition>),
    All(Vec<Condition>),
    Not {
        within: Box<Condition>,
        place: Range<usize>,
    },
    NotComparable,
    Judged {
        verdict: Verdict,
        of: Judged,
    },
    Measured(Measured),
}

/// Subject of a verdict.
#[derive(Clone, Debug, PartialEq)]
enum Judged {
    /// Any metric.
    Any,
    /// Any statistic of a metric, or a value of the whole run.
    Name(Name),
    /// One statistic of a metric.
    Statistic(Aggregate, Name),
}

/// A number compared with a bound.
#[derive(Clone, Debug, PartialEq)]
struct Measured {
    name: Name,
    /// `None`: the name must be that of a value of the whole run.
    aggregate: Option<Aggregate>,
    what: What,
    comparison: Comparison,
    bound: Bound,
    /// Position of the term in the text.
    place: Range<usize>,
    /// Position of the bound in the text.
    bound_place: Range<usize>,
}

impl Measured {
    /// Returns the bounded quantity, as named in objectives.
    fn quantity(&self) -> Quantity {
        let name = self.name.name.clone();
        match self.aggregate {
            None => Quantity::RunMetric(name),
            Some(aggregate) => Quantity::Samples {
                aggregate,
                metric: name,
                filter: Vec::new(),
                window: None,
            },
        }
    }
}

/// The bounded number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// The candidate's value.
    Value,
    /// Candidate − baseline: the bound has a sign.
    Difference,
    /// Candidate ÷ baseline − 1: the bound has a sign and is a percentage.
    Relative,
}

/// A name with its position.
#[derive(Clone, Debug, PartialEq)]
struct Name {
    name: String,
    place: Range<usize>,
}

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
                Condition::Judged {
                    of: Judged::Statistic(aggregate, name),
                    ..
                } => (Some(*aggregate), name),
                Condition::Measured(measured) => (measured.aggregate, &measured.name),
                _ => return,
            };
            if let Some(aggregate) = aggregate {
                named.push((name.name.clone(), Statistic::OfSamples(aggregate)));
            }
        });
        named
    }
}

impl Condition {
    fn names<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Condition::Any(parts) | Condition::All(parts) => parts.iter().for_each(|part| part.names(names)),
            Condition::Not { within, .. } => within.names(names),
            Condition::Judged {
                of: Judged::Name(name) | Judged::Statistic(_, name),
                ..
            }
            | Condition::Measured(Measured { name, .. }) => names.push(&name.name),
            Condition::NotComparable | Condition::Judged { of: Judged::Any, .. } => {}
        }
    }

    /// Calls `look` with every condition.
    fn visit(&self, look: &mut dyn FnMut(&Condition)) {
        look(self);
        match self {
            Condition::Any(parts) | Condition::All(parts) => parts.iter().for_each(|part| part.visit(look)),
            Condition::Not { within, .. } => within.visit(look),
            Condition::NotComparable | Condition::Judged { .. } | Condition::Measured(_) => {}
        }
    }
}
