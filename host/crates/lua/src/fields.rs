//! Fields of a script's tables.

use mlua::{Table, Value};

use crate::shape::{At, ShapeError, describe, number_of, unknown_field};

/// Visits the fields of a table. A key that is not in `known` is an error that suggests the nearest
/// name.
pub(crate) fn each_field(
    at: &At<'_>,
    table: &Table,
    known: &[&str],
    mut visit: impl FnMut(&str, &At<'_>, &Value) -> Result<(), ShapeError>,
) -> Result<(), ShapeError> {
    let mut failure = None;
    let walked = table.for_each(|key: Value, value: Value| {
        let result = match &key {
            Value::String(name) => match known.iter().find(|field| name.as_bytes() == field.as_bytes()) {
                Some(field) => visit(field, &At::Key(at, field), &value),
                None => Err(unknown_field(at, &name.to_string_lossy(), known)),
            },
            other => Err(at.shape(format!(
                "expected named fields ({}), found an element at {}",
                known.join(", "),
                describe(other)
            ))),
        };
        result.map_err(|shape| {
            failure = Some(shape);
            mlua::Error::runtime("")
        })
    });
    match (failure, walked) {
        (Some(shape), _) => Err(shape),
        (None, Err(error)) => Err(at.shape(error.to_string())),
        (None, Ok(())) => Ok(()),
    }
}

/// Reads a boolean.
pub(crate) fn flag(at: &At<'_>, value: &Value) -> Result<bool, ShapeError> {
    match value {
        Value::Boolean(flag) => Ok(*flag),
        other => Err(at.expected("true or false", other)),
    }
}

/// Reads an integer from 0 to 2^32 - 1.
pub(crate) fn whole(at: &At<'_>, value: &Value) -> Result<u32, ShapeError> {
    match number_of(value) {
        Some(number) if number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number) => {
            Ok(number as u32)
        }
        _ => Err(at.expected("a whole number from 0 to 4294967295", value)),
    }
}
