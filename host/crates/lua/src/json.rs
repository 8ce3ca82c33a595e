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
    object_of(at, value, budget, Meaning::Data)
}

fn object_of(at: &At<'_>, value: &Value, budget: &Budget, meaning: Meaning) -> Result<String, ShapeError> {
    match convert(at, value, budget, meaning, 0)? {
        json @ Json::Object(_) => Ok(json.to_string()),
        _ => Err(at.expected("a table with named fields", value)),
    }
}

/// Converts definitions of tools to the text of a JSON array, like [`object`]. An empty table is an
/// array where there is a list, also in the schemas.
pub(crate) fn tools(at: &At<'_>, value: &Value, budget: &Budget) -> Result<String, ShapeError> {
    match convert(at, value, budget, Meaning::Tools, 0)? {
        json @ Json::Array(_) => Ok(json.to_string()),
        _ => Err(at.expected("a list", value)),
    }
}

/// Reads JSON text as it is, or converts a table with named fields to it.
pub(crate) fn text(at: &At<'_>, value: &Value, budget: &Budget) -> Result<String, ShapeError> {
    text_of(at, value, budget, Meaning::Data)
}

/// Reads a JSON schema: text as it is, or a table, in which empty tables are arrays where a schema
/// has a list.
pub(crate) fn schema(at: &At<'_>, value: &Value, budget: &Budget) -> Result<String, ShapeError> {
    text_of(at, value, budget, Meaning::Schema)
}

fn text_of(at: &At<'_>, value: &Value, budget: &Budget, meaning: Meaning) -> Result<String, ShapeError> {
    match value {
        Value::String(_) => counted(at, value, budget),
        Value::Table(_) => object_of(at, value, budget, meaning),
        other => Err(at.expected("JSON text or a table", other)),
    }
}

/// The meaning of a value. It decides which empty tables are arrays, because Lua has one kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// Any value; an empty table is an object.
    Data,
    /// A list of any values.
    List,
    /// A list of definitions of functions, and one of them.
    Tools,
    Tool,
    /// A JSON schema, a list of schemas, and schemas by the names of properties.
    Schema,
    Schemas,
    SchemasByName,
    /// Lists by the names of properties.
    ListsByName,
}

impl Meaning {
    fn is_list(self) -> bool {
        matches!(self, Meaning::List | Meaning::Tools | Meaning::Schemas)
    }

    /// Returns the meaning of a field. Keywords are those of JSON Schema 2020-12 and of drafts.
    fn of_field(self, name: &str) -> Self {
        match (self, name) {
            (Meaning::Tool, "parameters") | (Meaning::SchemasByName, _) => Meaning::Schema,
            (Meaning::Schema, "required" | "enum" | "examples" | "type") | (Meaning::ListsByName, _) => {
                Meaning::List
            }
            (Meaning::Schema, "allOf" | "anyOf" | "oneOf" | "prefixItems") => Meaning::Schemas,
            (
                Meaning::Schema,
                "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions",
            ) => Meaning::SchemasByName,
            (Meaning::Schema, "dependentRequired") => Meaning::ListsByName,
            (
                Meaning::Schema,
                "items"
                | "additionalItems"
                | "unevaluatedItems"
                | "contains"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "propertyNames"
                | "contentSchema"
                | "not"
                | "if"
                | "then"
                | "else",
            ) => Meaning::Schema,
            _ => Meaning::Data,
        }
    }

    fn of_item(self) -> Self {
        match self {
            Meaning::Tools => Meaning::Tool,
            Meaning::Schemas | Meaning::Schema => Meaning::Schema,
            _ => Meaning::Data,
        }
    }
}

fn convert(
    at: &At<'_>,
    value: &Value,
    budget: &Budget,
    meaning: Meaning,
    depth: usize,
) -> Result<Json, ShapeError> {
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
                let meaning = meaning.of_item();
                list.push(convert(&At::Index(at, index), &item, budget, meaning, depth + 1)?);
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
        Value::Table(table) if table.is_empty() && meaning.is_list() => Ok(Json::Array(Vec::new())),
        Value::Table(table) => {
            let mut entries = Vec::new();
            let _ = table.for_each::<Value, Value>(|key, value| {
                entries.push((key, value));
                Ok(())
            });
            let mut object = Map::new();
            for (key, value) in entries {
                let name = counted(at, &key, budget)?;
                let meaning = meaning.of_field(&name);
                let json = convert(&At::Key(at, &name), &value, budget, meaning, depth + 1)?;
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
