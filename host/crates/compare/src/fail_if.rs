//! When a comparison is a failure: `worse(ttfc) or error_rate > 1%`.

mod decide;
mod known;
mod parse;

use std::ops::Range;

use veeksha_slo::{Aggregate, Bound, Comparison, Quantity};

use crate::statistic::Statistic;
use crate::verdict::Verdict;

pub use decide::{CandidateDecision, Decision, Outcome};
pub use known::{Known, KnownKind};

/// When a comparison is a failure. The grammar is in the [crate's documentation](crate#when-a-comparison-fails).
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

/// What a verdict is asked of.
#[derive(Clone, Debug, PartialEq)]
enum Judged {
    /// Of any figure.
    Any,
    /// Of any statistic of a metric, or of a figure of the whole run.
    Name(Name),
    /// Of one statistic of a metric.
    Statistic(Aggregate, Name),
}

/// A number against a bound.
#[derive(Clone, Debug, PartialEq)]
struct Measured {
    name: Name,
    /// `None`: the name should be that of a figure of the whole run.
    aggregate: Option<Aggregate>,
    what: What,
    comparison: Comparison,
    bound: Bound,
    /// The term as it stands in the text.
    place: Range<usize>,
    /// The bound as it stands there.
    bound_place: Range<usize>,
}

impl Measured {
    /// What is bounded, as objectives name it.
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

/// Which number is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// The candidate's value.
    Value,
    /// Candidate less baseline: the bound has a sign.
    Difference,
    /// Candidate ÷ baseline - 1: the bound has a sign and is a percentage.
    Relative,
}

/// A name, and where it stands.
#[derive(Clone, Debug, PartialEq)]
struct Name {
    name: String,
    place: Range<usize>,
}

impl FailIf {
    /// The text that it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The metrics and figures that it names.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.condition.names(&mut names);
        names
    }

    /// The statistics of metrics that it names, for [`crate::compare`] to compute.
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

    /// Looks at every part.
    fn visit(&self, look: &mut dyn FnMut(&Condition)) {
        look(self);
        match self {
            Condition::Any(parts) | Condition::All(parts) => parts.iter().for_each(|part| part.visit(look)),
            Condition::Not { within, .. } => within.visit(look),
            Condition::NotComparable | Condition::Judged { .. } | Condition::Measured(_) => {}
        }
    }
}
