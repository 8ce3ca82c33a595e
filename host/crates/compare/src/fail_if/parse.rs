//! Parser of fail-if expressions.

use veeksha_slo::{BoundUnit, ParseError, Quantity, SloReader, TokenKind};

use super::condition::{FailCondition, FailIf, Judged, MeasuredChange, MeasuredTerm, Name};
use crate::verdict::DifferenceVerdict;

/// Maximum nesting of parentheses and `not`.
const DEEPEST: usize = 32;

/// Description of a term in messages.
const TERM: &str = "a condition such as worse(ttfc), p99(ttfc) > +5%, error_rate > 1% or not_comparable";

/// Words before a parenthesis that are aggregates rather than verdicts.
const AGGREGATES: [&str; 8] = ["median", "mean", "avg", "min", "max", "std", "sum", "count"];

const VERDICTS: [(&str, DifferenceVerdict); 3] = [
    ("worse", DifferenceVerdict::Worse),
    ("better", DifferenceVerdict::Better),
    ("differs", DifferenceVerdict::Differs),
];

impl FailIf {
    /// Parses an expression. [`FailIf::check`] verifies that its names exist.
    pub fn parse(text: &str) -> Result<FailIf, ParseError> {
        let mut reader = SloReader::new(text)?;
        let condition = any(&mut reader, 0)?;
        match reader.peek_text() {
            "&&" => return Err(reader.error(reader.peek().place.clone(), "`&&` is written `and` here")),
            "||" | "," => {
                return Err(reader.error(reader.peek().place.clone(), "either of two is written with `or`"));
            }
            _ => reader.expect_end(0)?,
        }
        Ok(FailIf {
            text: text.trim().to_owned(),
            condition,
        })
    }
}

fn any(reader: &mut SloReader<'_>, depth: usize) -> Result<FailCondition, ParseError> {
    joined(reader, depth, "or", all, FailCondition::Any)
}

fn all(reader: &mut SloReader<'_>, depth: usize) -> Result<FailCondition, ParseError> {
    joined(reader, depth, "and", term, FailCondition::All)
}

/// Parses one or more parts with a word between them.
fn joined(
    reader: &mut SloReader<'_>,
    depth: usize,
    word: &str,
    part: fn(&mut SloReader<'_>, usize) -> Result<FailCondition, ParseError>,
    of: fn(Vec<FailCondition>) -> FailCondition,
) -> Result<FailCondition, ParseError> {
    let first = part(reader, depth)?;
    if !reader.at_keyword(word) {
        return Ok(first);
    }
    let mut parts = vec![first];
    while reader.take_keyword(word) {
        parts.push(part(reader, depth)?);
    }
    Ok(of(parts))
}

fn term(reader: &mut SloReader<'_>, depth: usize) -> Result<FailCondition, ParseError> {
    if depth > DEEPEST {
        let problem = format!("more than {DEEPEST} parentheses within one another");
        return Err(reader.error(reader.peek().place.clone(), problem));
    }
    let since = reader.at();
    if reader.take_keyword("not") {
        let within = Box::new(term(reader, depth + 1)?);
        let place = since..since + reader.consumed(since).len();
        return Ok(FailCondition::Not { within, place });
    }
    if reader.take_symbol("(") {
        let within = any(reader, depth + 1)?;
        reader.expect_symbol(")", since)?;
        return Ok(within);
    }
    if reader.take_keyword("not_comparable") {
        return Ok(FailCondition::NotComparable);
    }
    if !reader.at_word() || reader.at_keyword("and") || reader.at_keyword("or") {
        return Err(reader.unexpected(TERM, 0));
    }
    let verdict = VERDICTS.iter().find(|(name, _)| reader.at_keyword(name));
    match verdict {
        Some((_, verdict)) => judged(reader, *verdict),
        None => {
            no_other_verdict(reader)?;
            measured(reader).map(FailCondition::Measured)
        }
    }
}

/// Returns an error if the next word looks like an unknown verdict.
fn no_other_verdict(reader: &SloReader<'_>) -> Result<(), ParseError> {
    let word = reader.peek_text();
    let names = VERDICTS.iter().map(|(name, _)| *name);
    match veeksha_slo::nearest(word, names.chain(AGGREGATES)) {
        Some(meant) if reader.peek_second_text() == "(" && !AGGREGATES.contains(&meant) => {
            let problem = format!("there is no verdict `{word}`; did you mean `{meant}`?");
            Err(reader.error(reader.peek().place.clone(), problem))
        }
        _ => Ok(()),
    }
}

/// Parses `worse(…)`.
fn judged(reader: &mut SloReader<'_>, verdict: DifferenceVerdict) -> Result<FailCondition, ParseError> {
    let since = reader.advance().start;
    reader.expect_symbol("(", since)?;
    let of = if reader.take_keyword("any") {
        Judged::Any
    } else {
        let place = reader.peek().place.clone();
        if reader.at_word()
            && reader.peek_second().kind == TokenKind::Symbol
            && reader.peek_second_text() == "("
        {
            let (quantity, name) = quantity(reader)?;
            match quantity {
                Quantity::Samples { aggregate, .. } => Judged::Statistic(aggregate, name),
                Quantity::RunMetric(_) => Judged::Name(name),
            }
        } else {
            let name = reader.metric(since)?;
            Judged::Name(Name { name, place })
        }
    };
    reader.expect_symbol(")", since)?;
    Ok(FailCondition::Judged { verdict, of })
}

/// Parses `quantity comparison bound`.
fn measured(reader: &mut SloReader<'_>) -> Result<MeasuredTerm, ParseError> {
    let since = reader.at();
    let (quantity, name) = quantity(reader)?;
    let comparison = reader.comparison(since)?;
    let bound_begins = reader.at();
    let written = reader.bound(since)?;
    let what = match (written.sign, written.bound.unit) {
        (None, _) => MeasuredChange::Value,
        (Some(_), BoundUnit::Percent) => MeasuredChange::Relative,
        (Some(_), _) => MeasuredChange::Difference,
    };
    let length = |from: usize| from..from + reader.consumed(from).len();
    Ok(MeasuredTerm {
        aggregate: match quantity {
            Quantity::Samples { aggregate, .. } => Some(aggregate),
            Quantity::RunMetric(_) => None,
        },
        name,
        what,
        comparison,
        bound: written.bound,
        place: length(since),
        bound_place: length(bound_begins),
    })
}

/// Parses a quantity without labels and windows; returns it with its name and position.
fn quantity(reader: &mut SloReader<'_>) -> Result<(Quantity, Name), ParseError> {
    let since = reader.at();
    // The name is the word itself, or the one after the parenthesis.
    let mut ahead = reader.clone();
    let quantity = reader.quantity()?;
    let place = match &quantity {
        Quantity::RunMetric(_) => ahead.advance(),
        Quantity::Samples { filter, window, .. } => {
            if !filter.is_empty() || window.is_some() {
                let end = since + reader.consumed(since).len();
                return Err(reader.error(
                    since..end,
                    "runs are compared as wholes: without labels and windows",
                ));
            }
            ahead.advance();
            ahead.advance();
            ahead.advance()
        }
    };
    let name = reader.text_of(place.clone()).to_owned();
    Ok((quantity, Name { name, place }))
}
