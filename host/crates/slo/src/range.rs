//! Ranges of quantities, and bounds that are always or never met.

use crate::objective::{Aggregate, BoundUnit, ComparisonOperator, Objective, Quantity, SloBound};

/// The range of a quantity's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// 0 to 1.
    Share,
    /// 0 and more: times, counts and rates.
    NotNegative,
    /// Any value: metrics of plugins.
    Any,
}

/// A bound that no value meets, or that every value meets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UninformativeBound {
    /// A bound on a share.
    #[error("{verdict}: `{quantity}` is a share, from 0 to 1; {remedy}")]
    Share {
        /// The clause that states whether nothing or everything meets the bound.
        verdict: &'static str,
        /// The bounded quantity.
        quantity: String,
        /// The fix.
        remedy: String,
    },
    /// A bound on what is never negative.
    #[error("{verdict}: `{quantity}` is never below 0; give a bound above 0")]
    NotNegative {
        /// The clause that states whether nothing or everything meets the bound.
        verdict: &'static str,
        /// The bounded quantity.
        quantity: String,
    },
}

impl Range {
    /// Returns the range of an aggregate over samples with this range.
    pub fn of(self, aggregate: Aggregate) -> Range {
        match (aggregate, self) {
            (Aggregate::Count | Aggregate::Std, _) => Range::NotNegative,
            (Aggregate::Sum, Range::Share | Range::NotNegative) => Range::NotNegative,
            _ => self,
        }
    }

    /// Refuses a bound that no value can meet, and one that every value meets: neither is
    /// informative. `value` is the bound in the quantity's unit.
    ///
    /// # Errors
    /// The bound is uninformative; the error contains the fix.
    pub fn fits(
        self,
        quantity: &Quantity,
        comparison: ComparisonOperator,
        bound: SloBound,
        value: f64,
    ) -> Result<(), UninformativeBound> {
        let (least, most) = match self {
            Range::Share => (0.0, 1.0),
            Range::NotNegative => (0.0, f64::INFINITY),
            Range::Any => return Ok(()),
        };
        let Some(verdict) = comparison.uninformative(value, least, most) else {
            return Ok(());
        };
        Err(match self {
            Range::Share => UninformativeBound::Share {
                verdict,
                quantity: quantity.to_string(),
                remedy: remedy(quantity, comparison, bound),
            },
            _ => UninformativeBound::NotNegative {
                verdict,
                quantity: quantity.to_string(),
            },
        })
    }
}

impl ComparisonOperator {
    /// Returns the clause that states that nothing or everything from `least` to `most` meets this
    /// bound; `None` if only some of it does.
    pub fn uninformative(self, bound: f64, least: f64, most: f64) -> Option<&'static str> {
        let (never, always) = match self {
            ComparisonOperator::Below => (bound <= least, bound > most),
            ComparisonOperator::AtMost => (bound < least, bound >= most),
            ComparisonOperator::Above => (bound >= most, bound < least),
            ComparisonOperator::AtLeast => (bound > most, bound <= least),
        };
        match (never, always) {
            (true, _) => Some("no value can meet it"),
            (_, true) => Some("every value meets it"),
            _ => None,
        }
    }
}

/// Returns the likely intention: 95 usually means 95%.
fn remedy(quantity: &Quantity, comparison: ComparisonOperator, bound: SloBound) -> String {
    if bound.unit == BoundUnit::None && bound.value > 1.0 && bound.value < 100.0 {
        let meant = Objective {
            name: None,
            quantity: quantity.clone(),
            comparison,
            bound: SloBound {
                value: bound.value / 100.0,
                unit: BoundUnit::Percent,
            },
        };
        return format!("did you mean `{meant}`?");
    }
    match comparison {
        ComparisonOperator::Below | ComparisonOperator::AtLeast => "give a bound above 0%, up to 100%",
        ComparisonOperator::AtMost | ComparisonOperator::Above => "give a bound from 0%, below 100%",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(range: Range, text: &str) -> bool {
        let objective = Objective::parse(text).unwrap();
        let bound = objective.bound;
        range
            .fits(&objective.quantity, objective.comparison, bound, bound.value)
            .is_err()
    }

    #[test]
    fn refuses_bounds_at_the_ends_of_a_share_that_decide_nothing() {
        for text in [
            "goodput <= 100%",
            "goodput < 0%",
            "goodput <= -1%",
            "goodput > 100%",
            "goodput >= 0%",
            "goodput >= 101%",
        ] {
            assert!(is_refused(Range::Share, text), "{text}");
        }
        for text in [
            "goodput <= 99%",
            "goodput <= 0%",
            "goodput < 100%",
            "goodput > 0%",
            "goodput > 99%",
            "goodput >= 100%",
        ] {
            assert!(!is_refused(Range::Share, text), "{text}");
        }
    }

    #[test]
    fn sum_count_and_std_of_shares_are_not_bounded_by_one() {
        for aggregate in [Aggregate::Sum, Aggregate::Count, Aggregate::Std] {
            assert_eq!(Range::Share.of(aggregate), Range::NotNegative, "{aggregate}");
        }
        for aggregate in [Aggregate::Mean, Aggregate::Max, Aggregate::Percentile(99.0)] {
            assert_eq!(Range::Share.of(aggregate), Range::Share, "{aggregate}");
        }
        assert_eq!(Range::Any.of(Aggregate::Sum), Range::Any);
        assert!(!is_refused(Range::Share.of(Aggregate::Sum), "sum(cached) <= 5"));
    }
}
