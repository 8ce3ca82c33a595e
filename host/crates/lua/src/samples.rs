//! Return values of a metric's function: nothing, a number, a sample with a weight, or a list of
//! these.

use mlua::{Table, Value};

use crate::fields::each_field;
use crate::shape::{At, ShapeError, number_of};

/// Maximum number of samples per call.
pub(crate) const MOST: usize = 100_000;
/// Maximum number of samples of `finish`, which covers the whole run.
pub(crate) const MOST_AT_THE_END: usize = 1_000_000;

/// A finite value, and the number of samples that it represents.
pub(crate) type WeightedValue = (f64, f64);

/// Reads a function's result and passes on each sample.
pub(crate) fn read(
    at: &At<'_>,
    value: &Value,
    most: usize,
    take: &mut dyn FnMut(WeightedValue),
) -> Result<(), ShapeError> {
    match value {
        Value::Nil => Ok(()),
        // Objects of the host, such as the request, are not samples.
        Value::Table(table) if table.metatable().is_some() => {
            Err(at.shape("expected a number, a sample or a list of them, found a table with a metatable"))
        }
        Value::Table(table) => match table.raw_len() {
            0 => match one(at, table)? {
                Some(sample) => {
                    take(sample);
                    Ok(())
                }
                None => Ok(()),
            },
            length if length > most => Err(at.shape(format!(
                "{length} samples; one call may return {most}: give equal ones once, with a `weight`"
            ))),
            length => list(at, table, length, take),
        },
        other => {
            take((finite(at, other)?, 1.0));
            Ok(())
        }
    }
}

fn list(
    at: &At<'_>,
    table: &Table,
    length: usize,
    take: &mut dyn FnMut(WeightedValue),
) -> Result<(), ShapeError> {
    for name in ["value", "weight"] {
        if !matches!(table.raw_get(name), Ok(Value::Nil)) {
            return Err(at.shape(format!(
                "the table is both a list of samples and a sample with `{name}`; return one or the other"
            )));
        }
    }
    for index in 1..=length {
        let at = At::Index(at, index);
        let item: Value = table.raw_get(index).unwrap_or(Value::Nil);
        match &item {
            Value::Table(table) => match one(&at, table)? {
                Some(sample) => take(sample),
                None => return Err(at.shape("an empty table; a sample has a `value`")),
            },
            Value::Nil => return Err(at.shape("the list has a gap here")),
            other => take((finite(&at, other)?, 1.0)),
        }
    }
    Ok(())
}

/// Reads `{ value =, weight = }`; `None` for an empty table.
fn one(at: &At<'_>, table: &Table) -> Result<Option<WeightedValue>, ShapeError> {
    let mut value = None;
    let mut weight = None;
    each_field(at, table, &["value", "weight"], |key, at, given| {
        let number = finite(at, given)?;
        match key {
            "weight" if number <= 0.0 => return Err(at.shape(format!("{number} is not positive"))),
            "weight" => weight = Some(number),
            _ => value = Some(number),
        }
        Ok(())
    })?;
    match (value, weight) {
        (Some(value), weight) => Ok(Some((value, weight.unwrap_or(1.0)))),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(at.shape("a `weight` without a `value`")),
    }
}

/// Reads a finite number.
///
/// # Errors
/// If `value` is not one; the message describes the value.
pub(crate) fn finite(at: &At<'_>, value: &Value) -> Result<f64, ShapeError> {
    match number_of(value) {
        Some(number) if number.is_finite() => Ok(number),
        Some(number) if number.is_nan() => Err(at.shape(
            "the value is not a number (NaN), as 0/0 is; return nil where there is nothing to measure",
        )),
        Some(_) => {
            Err(at.shape("the value is infinite, as 1/0 is; return nil where there is nothing to measure"))
        }
        None => Err(at.expected("a number", value)),
    }
}
