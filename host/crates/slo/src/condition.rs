//! What is asked of each request: `ttfc <= 500ms`.

use crate::display::Named;
use crate::{Aggregate, Comparison, Objective, ParseError, Quantity, Reader};

impl Objective {
    /// Reads what is asked of each request, such as `ttfc <= 500ms`: a metric without an aggregate, which every sample of the request has
    /// to keep (a request has one time to first chunk, and many gaps). So an upper bound is one on the largest sample
    /// ([`Aggregate::Max`]), and a lower bound one on the smallest ([`Aggregate::Min`]).
    ///
    /// An aggregate may be given, and is then over the samples of one request: `p99(tbc) <= 50ms`. A window may not.
    pub fn parse_condition(text: &str) -> Result<Objective, ParseError> {
        let mut reader = Reader::new(text)?;
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

    /// What is asked of each request as text: without the aggregate, where [`Objective::parse_condition`] would add it.
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

/// Every sample keeps an upper bound if the largest does, and a lower bound if the smallest does.
fn implied(comparison: Comparison) -> Aggregate {
    match comparison {
        Comparison::Below | Comparison::AtMost => Aggregate::Max,
        Comparison::Above | Comparison::AtLeast => Aggregate::Min,
    }
}

fn aggregated(reader: &mut Reader<'_>) -> Result<Objective, ParseError> {
    let quantity = reader.quantity()?;
    if let Quantity::Samples { window: Some(_), .. } = quantity {
        let problem = "a condition is asked of each request by itself: it has no window";
        let end = reader.passed(0).len();
        return Err(reader.error(0..end, problem));
    }
    reader.objective_of(quantity)
}
