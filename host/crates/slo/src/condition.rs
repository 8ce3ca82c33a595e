//! Conditions on each request: `ttfc <= 500ms`.

use crate::display::Named;
use crate::error::ParseError;
use crate::objective::{Aggregate, ComparisonOperator, Objective, Quantity};
use crate::reader::SloReader;

impl Objective {
    /// Reads a condition on each request, such as `ttfc <= 500ms`: a metric without an aggregate,
    /// which every sample of the request has to meet (a request has one time to first chunk, and
    /// many gaps). So an upper bound applies to the largest sample ([`Aggregate::Max`]), and a
    /// lower bound to the smallest ([`Aggregate::Min`]).
    ///
    /// An explicit aggregate is over the samples of one request: `p99(tbc) <= 50ms`. A window is
    /// refused.
    pub fn parse_condition(text: &str) -> Result<Objective, ParseError> {
        let mut reader = SloReader::new(text)?;
        if reader.at_word() && reader.peek_second_text() == "(" {
            return aggregated(&mut reader);
        }
        if !reader.at_word() {
            return Err(reader.unexpected("a metric, as in ttfc <= 500ms", 0));
        }
        let metric = reader.metric(0)?;
        let filter = reader.labels()?;
        let of_samples = |aggregate| Quantity::Samples {
            aggregate,
            metric,
            filter,
            window: None,
        };
        let mut condition = reader.objective_of(of_samples(Aggregate::Max))?;
        if let Quantity::Samples { aggregate, .. } = &mut condition.quantity {
            *aggregate = implied(condition.comparison);
        }
        Ok(condition)
    }

    /// Returns the condition as text: without the aggregate if [`Objective::parse_condition`] would
    /// add it.
    pub fn condition_text(&self) -> String {
        let Quantity::Samples {
            aggregate,
            metric,
            filter,
            window: None,
        } = &self.quantity
        else {
            return self.to_string();
        };
        if *aggregate != implied(self.comparison) {
            return self.to_string();
        }
        let named = Named { metric, filter };
        format!("{named} {} {}", self.comparison, self.bound)
    }
}

/// Every sample meets an upper bound if the largest does, and a lower bound if the smallest does.
fn implied(comparison: ComparisonOperator) -> Aggregate {
    match comparison {
        ComparisonOperator::Below | ComparisonOperator::AtMost => Aggregate::Max,
        ComparisonOperator::Above | ComparisonOperator::AtLeast => Aggregate::Min,
    }
}

fn aggregated(reader: &mut SloReader<'_>) -> Result<Objective, ParseError> {
    let quantity = reader.quantity()?;
    if let Quantity::Samples { window: Some(_), .. } = quantity {
        let problem = "a condition applies to each request separately and cannot have a window";
        let end = reader.consumed(0).len();
        return Err(reader.error(0..end, problem));
    }
    reader.objective_of(quantity)
}
