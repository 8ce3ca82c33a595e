//! Lua tables as JSON text (`body`), and JSON as Lua tables (the rows of a trace).

use mlua::{Lua, Value};
use serde_json::{Map, Number, Value as Json};

use crate::budget::Budget;
use crate::content::counted;
use crate::shape::{At, ShapeError};

/// Maximum nesting depth.
const MAX_DEPTH: usize = 32;

/// Converts a table with named fields to the text of a JSON object. Names are sorted, so that equal
/// tables give equal text. A table without elements is an empty object.
pub(crate) fn object(at: &At<'_>, value: &Value, budget: &Budget) -> Result<String, ShapeError> {
    match convert(at, value, budget, 0)? {
        json @ Json::Object(_) => Ok(json.to_string()),
        _ => Err(at.expected("a table with named fields", value)),
    }
}

/// Converts a list to the text of a JSON array, like [`object`]. A table without elements is an
/// empty array.
pub(crate) fn list(at: &At<'_>, value: &Value, budget: &Budget) -> Result<String, ShapeError> {
    match convert(at, value, budget, 0)? {
        json @ Json::Array(_) => Ok(json.to_string()),
        Json::Object(members) if members.is_empty() => Ok("[]".to_owned()),
        _ => Err(at.expected("a list", value)),
    }
}

/// Reads JSON text as it is, or converts a table with named fields to it.
pub(crate) fn text(at: &At<'_>, value: &Value, budget: &Budget) -> Result<String, ShapeError> {
    match value {
        Value::String(_) => counted(at, value, budget),
        Value::Table(_) => object(at, value, budget),
        other => Err(at.expected("JSON text or a table", other)),
    }
}

fn convert(at: &At<'_>, value: &Value, budget: &Budget, depth: usize) -> Result<Json, ShapeError> {
    if depth > MAX_DEPTH {
        return Err(at.shape(format!(
            "nested deeper than {MAX_DEPTH} tables; does it contain itself?"
        )));
    }
    budget.take(at, 0)?;
    match value {
        Value::Boolean(flag) => Ok(Json::Bool(*flag)),
        Value::String(_) => counted(at, value, budget).map(Json::String),
        Value::Integer(number) => Ok(Json::Number((*number).into())),
        Value::Number(number) => {
            let whole = number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0;
            let json = if whole {
                Some(Number::from(*number as i64))
            } else {
                Number::from_f64(*number)
            };
            json.map(Json::Number)
                .ok_or_else(|| at.expected("a finite number", value))
        }
        Value::Table(table) if table.raw_len() > 0 => {
            let mut list = Vec::new();
            for index in 1..=table.raw_len() {
                let item: Value = table.raw_get(index).unwrap_or(Value::Nil);
                list.push(convert(&At::Index(at, index), &item, budget, depth + 1)?);
            }
            let mut entries = 0;
            let _ = table.for_each::<Value, Value>(|_, _| {
                entries += 1;
                Ok(())
            });
            if entries != list.len() {
                return Err(at.shape("the table is both a list and a set of named fields"));
            }
            Ok(Json::Array(list))
        }
        Value::Table(table) => {
            let mut entries = Vec::new();
            let _ = table.for_each::<Value, Value>(|key, value| {
                entries.push((key, value));
                Ok(())
            });
            let mut object = Map::new();
            for (key, value) in entries {
                let name = counted(at, &key, budget)?;
                let json = convert(&At::Key(at, &name), &value, budget, depth + 1)?;
                object.insert(name, json);
            }
            Ok(Json::Object(object))
        }
        other => Err(at.expected("a value that JSON has", other)),
    }
}

/// Integers above this limit are not exact in Lua.
const EXACT: u64 = 1 << 53;

/// Converts JSON to a Lua value: arrays and objects are tables, null is nil. An integer that Lua
/// cannot represent becomes a string of its digits, so that distinct ids remain distinct.
pub(crate) fn to_lua(lua: &Lua, json: &Json) -> mlua::Result<Value> {
    Ok(match json {
        Json::Null => Value::Nil,
        Json::Bool(flag) => Value::Boolean(*flag),
        Json::String(text) => Value::String(lua.create_string(text)?),
        Json::Number(number) => {
            let whole = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            match number.as_f64() {
                Some(float) if whole.is_none_or(|whole| whole <= EXACT) => Value::Number(float),
                _ => Value::String(lua.create_string(number.to_string())?),
            }
        }
        Json::Array(items) => {
            let table = lua.create_table_with_capacity(items.len(), 0)?;
            for (index, item) in items.iter().enumerate() {
                table.raw_set(index + 1, to_lua(lua, item)?)?;
            }
            Value::Table(table)
        }
        Json::Object(members) => {
            let table = lua.create_table_with_capacity(0, members.len())?;
            for (name, value) in members {
                table.raw_set(name.as_str(), to_lua(lua, value)?)?;
            }
            Value::Table(table)
        }
    })
}
