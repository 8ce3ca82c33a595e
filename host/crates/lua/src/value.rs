//! Conversion of the returned table to a document.

use std::sync::Arc;

use mlua::{Table, Value as Lua};
use veeksha_scenario::{Node, Place, Value};

use crate::error::LuaError;
use crate::places::Places;
use crate::shape::{At, ShapeError, describe, number_of};

/// Maximum nesting depth of tables.
const MAX_DEPTH: usize = 64;
/// Maximum number of values in a file: a sweep contains many scenarios.
const MAX_VALUES: usize = 1_000_000;
/// Maximum total bytes of its strings: one string may occur many times.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Reads the table that a scenario returned.
pub(crate) fn document(table: &Table, places: &Places, file: &Arc<str>) -> Result<Node, LuaError> {
    let mut walk = DocumentWalk {
        file,
        values: 0,
        bytes: 0,
        open: Vec::new(),
        line: None,
    };
    walk.table(&At::Root(""), table, Some(places))
        .map_err(|shape| LuaError::Value {
            file: file.to_string(),
            line: walk.line,
            path: if shape.path.is_empty() {
                "the scenario".to_owned()
            } else {
                shape.path
            },
            message: shape.message,
        })
}

struct DocumentWalk<'a> {
    file: &'a Arc<str>,
    values: usize,
    bytes: usize,
    /// The enclosing tables of the current one, to detect cycles.
    open: Vec<*const std::ffi::c_void>,
    /// The line of the last visited key, for messages.
    line: Option<u32>,
}

impl DocumentWalk<'_> {
    fn node(&mut self, at: &At<'_>, value: &Lua, places: Option<&Places>) -> Result<Node, ShapeError> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(at.shape(format!("the scenario has more than {MAX_VALUES} values")));
        }
        if let Some(line) = places.and_then(|places| places.line) {
            self.line = Some(line);
        }
        if let Lua::String(text) = value {
            self.bytes += text.as_bytes().len();
            if self.bytes > MAX_BYTES {
                return Err(at.shape(format!("the scenario has more than {MAX_BYTES} bytes of text")));
            }
        }
        let scalar = match value {
            Lua::Nil => Value::Null,
            Lua::Boolean(flag) => Value::Bool(*flag),
            Lua::Integer(number) => Value::Int(*number),
            Lua::Number(number) => number_value(*number),
            Lua::String(_) => Value::Text(crate::content::string(at, value)?),
            Lua::Function(_) => Value::Function,
            Lua::Table(table) => return self.table(at, table, places),
            other => return Err(at.shape(format!("{} cannot stand in a scenario", describe(other)))),
        };
        Ok(Node {
            value: scalar,
            place: self.place(places),
        })
    }

    fn place(&self, places: Option<&Places>) -> Option<Place> {
        places.and_then(|places| places.line).map(|line| Place {
            file: self.file.clone(),
            line,
        })
    }

    fn table(&mut self, at: &At<'_>, table: &Table, places: Option<&Places>) -> Result<Node, ShapeError> {
        let pointer = table.to_pointer();
        if self.open.contains(&pointer) {
            return Err(at.shape("the table contains itself"));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(at.shape(format!("nested deeper than {MAX_DEPTH} tables")));
        }
        self.open.push(pointer);
        let value = self.entries(at, table, places)?;
        self.open.pop();
        Ok(Node {
            value,
            place: self.place(places),
        })
    }

    fn entries(&mut self, at: &At<'_>, table: &Table, places: Option<&Places>) -> Result<Value, ShapeError> {
        let length = table.raw_len();
        let mut named = Vec::new();
        let mut indexed = 0;
        let mut wrong = None;
        let walked = table.for_each(|key: Lua, value: Lua| {
            match &key {
                Lua::String(_) => match crate::content::string(at, &key) {
                    Ok(name) => named.push((name, value)),
                    Err(shape) => wrong = Some(shape),
                },
                _ if number_of(&key).is_some_and(|n| n.fract() == 0.0 && n >= 1.0 && n <= length as f64) => {
                    indexed += 1
                }
                _ if number_of(&key).is_some() => {
                    let message = format!(
                        "the list has a gap: its length is {length}, but it has an element at {}",
                        describe(&key)
                    );
                    wrong = Some(at.shape(message));
                }
                _ => wrong = Some(at.expected("names or list positions as keys", &key)),
            }
            Ok(())
        });
        if let Some(shape) = wrong {
            return Err(shape);
        }
        walked.map_err(|error| at.shape(error.to_string()))?;
        match (indexed, named.is_empty()) {
            (0, _) => self.map(at, named, places),
            (_, true) => self.list(at, table, length, places),
            (_, false) => Err(at.shape(format!(
                "the table is both a list (of {indexed}) and a set of named fields (`{}`); write one or the other",
                named[0].0
            ))),
        }
    }

    fn map(
        &mut self,
        at: &At<'_>,
        named: Vec<(String, Lua)>,
        places: Option<&Places>,
    ) -> Result<Value, ShapeError> {
        let place = |name: &str| places.and_then(|places| places.key(name));
        let mut entries = Vec::with_capacity(named.len());
        for (name, value) in named {
            let places = place(&name);
            let node = self.node(&At::Key(at, &name), &value, places)?;
            entries.push((places.map_or(usize::MAX, |places| places.order), name, node));
        }
        // Luau iterates tables in unspecified order; sort by source position, then by name.
        entries.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        Ok(Value::Map(
            entries.into_iter().map(|(_, name, node)| (name, node)).collect(),
        ))
    }

    fn list(
        &mut self,
        at: &At<'_>,
        table: &Table,
        length: usize,
        places: Option<&Places>,
    ) -> Result<Value, ShapeError> {
        let mut items = Vec::with_capacity(length.min(MAX_VALUES));
        for index in 1..=length {
            let value: Lua = table.raw_get(index).unwrap_or(Lua::Nil);
            if value.is_nil() {
                return Err(at.shape(format!("the list has a gap at {index}")));
            }
            let places = places.and_then(|places| places.item(index));
            items.push(self.node(&At::Index(at, index), &value, places)?);
        }
        Ok(Value::List(items))
    }
}

/// Converts a Lua number, which has one type; integral values become integers.
fn number_value(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0 {
        Value::Int(number as i64)
    } else {
        Value::Float(number)
    }
}
