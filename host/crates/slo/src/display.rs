//! Objectives as canonical text: parsing it gives the same objective.

use std::fmt::{self, Display, Formatter, Write};
use std::time::Duration;

use crate::decimal::decimal_text;
use crate::objective::{Aggregate, BoundUnit, ComparisonOperator, Objective, Quantity, SloBound};

/// The objective without its name.
impl Display for Objective {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.quantity, self.comparison, self.bound)
    }
}

impl Display for Quantity {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::RunMetric(name) => f.write_str(name),
            Quantity::Samples {
                aggregate,
                metric,
                filter,
                window,
            } => {
                write!(f, "{aggregate}({}", Named { metric, filter })?;
                if let Some(window) = window {
                    write!(f, ", window = {}", time(*window))?;
                }
                f.write_char(')')
            }
        }
    }
}

/// A metric with the label filter of its samples.
pub(crate) struct Named<'a> {
    pub(crate) metric: &'a str,
    pub(crate) filter: &'a [(String, String)],
}

impl Display for Named<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.metric)?;
        for (place, label) in self.filter.iter().enumerate() {
            f.write_str(if place == 0 { "{" } else { ", " })?;
            write_label(f, label)?;
        }
        if !self.filter.is_empty() {
            f.write_char('}')?;
        }
        Ok(())
    }
}

fn write_label(f: &mut Formatter<'_>, (name, value): &(String, String)) -> fmt::Result {
    if is_bare(name) {
        f.write_str(name)?;
    } else {
        quoted(f, name)?;
    }
    f.write_char('=')?;
    quoted(f, value)
}

/// A label in the syntax of objectives: `tier="gold"`.
pub struct LabelText<'a>(pub &'a (String, String));

impl Display for LabelText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_label(f, self.0)
    }
}

/// Returns true if a label's name needs no quotes.
fn is_bare(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn quoted(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if c.is_control() => write!(f, "{}", c.escape_unicode())?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

/// Formats a time in the largest unit up to seconds of which it is a whole multiple.
fn time(time: Duration) -> String {
    let nanos = time.as_nanos();
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us"), (1, "ns")];
    units
        .into_iter()
        .find(|(size, _)| nanos.is_multiple_of(*size))
        .map_or_else(
            || "0s".to_owned(),
            |(size, unit)| format!("{}{unit}", nanos / size),
        )
}

impl Display for Aggregate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Aggregate::Percentile(percent) => write!(f, "p{percent}"),
            Aggregate::Mean => f.write_str("mean"),
            Aggregate::Min => f.write_str("min"),
            Aggregate::Max => f.write_str("max"),
            Aggregate::Std => f.write_str("std"),
            Aggregate::Sum => f.write_str("sum"),
            Aggregate::Count => f.write_str("count"),
        }
    }
}

impl Display for ComparisonOperator {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ComparisonOperator::Below => "<",
            ComparisonOperator::AtMost => "<=",
            ComparisonOperator::Above => ">",
            ComparisonOperator::AtLeast => ">=",
        })
    }
}

/// The bound with its unit: `500ms`, `1%`, `0.05`. A time is in the largest unit up to seconds in
/// which it is at least 1.
impl Display for SloBound {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (shift, unit) = match self.unit {
            BoundUnit::None => (0, ""),
            BoundUnit::Percent => (2, "%"),
            BoundUnit::Time => match self.value.abs() {
                size if size >= 1.0 || size == 0.0 => (0, "s"),
                size if size >= 1e-3 => (3, "ms"),
                size if size >= 1e-6 => (6, "us"),
                _ => (9, "ns"),
            },
        };
        write!(f, "{}{unit}", decimal_text(self.value, shift))
    }
}
