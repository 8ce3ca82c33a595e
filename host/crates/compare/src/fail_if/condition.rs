//! Expressions of `--fail-if`.

use std::ops::Range;

use veeksha_slo::{Aggregate, ComparisonOperator, Quantity, SloBound};

use crate::verdict::DifferenceVerdict;

/// Condition under which a comparison fails. The grammar is in the [crate's
/// documentation](crate#when-a-comparison-fails).
#[derive(Clone, Debug, PartialEq)]
pub struct FailIf {
    pub(super) text: String,
    pub(super) condition: FailCondition,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FailCondition {
    Any(Vec<FailCondition>),
    All(Vec<FailCondition>),
    Not {
        within: Box<FailCondition>,
        place: Range<usize>,
    },
    NotComparable,
    Judged {
        verdict: DifferenceVerdict,
        of: Judged,
    },
    Measured(MeasuredTerm),
}

/// Subject of a verdict.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Judged {
    /// Any metric.
    Any,
    /// Any statistic of a metric, or a value of the whole run.
    Name(Name),
    /// One statistic of a metric.
    Statistic(Aggregate, Name),
}

/// A number compared with a bound.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MeasuredTerm {
    pub(super) name: Name,
    /// `None`: the name must be that of a value of the whole run.
    pub(super) aggregate: Option<Aggregate>,
    pub(super) what: MeasuredChange,
    pub(super) comparison: ComparisonOperator,
    pub(super) bound: SloBound,
    /// Position of the term in the text.
    pub(super) place: Range<usize>,
    /// Position of the bound in the text.
    pub(super) bound_place: Range<usize>,
}

impl MeasuredTerm {
    /// Returns the bounded quantity, as named in objectives.
    pub(super) fn quantity(&self) -> Quantity {
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
pub(super) enum MeasuredChange {
    /// The candidate's value.
    Value,
    /// Candidate − baseline: the bound has a sign.
    Difference,
    /// Candidate ÷ baseline − 1: the bound has a sign and is a percentage.
    Relative,
}

/// A name with its position.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Name {
    pub(super) name: String,
    pub(super) place: Range<usize>,
}
