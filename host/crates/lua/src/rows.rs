//! The rows of a trace, as Lua tables.

use mlua::{Lua, Table, Value};
use serde_json::Value as Json;
use veeksha_ports::{Layout, TraceFacts, TraceGroup};

use crate::content::string;
use crate::json::to_lua;
use crate::shape::{At, ShapeError, unknown_field};

/// The metatables of a flavor's arguments. An unknown name is an error that suggests the nearest
/// one, instead of a nil that fails later.
pub(crate) struct LuaRows {
    group: Table,
    row: Table,
    cells: Table,
    trace: Table,
}

impl LuaRows {
    pub(crate) fn new(lua: &Lua, layout: &Layout) -> mlua::Result<Self> {
        let known = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let columns = layout.columns.iter().map(|column| column.name.clone()).collect();
        Ok(LuaRows {
            group: strict(lua, "group", known(&["index", "key", "rows"]))?,
            row: strict(lua, "row", known(&["number", "at", "cells"]))?,
            cells: strict(lua, "row.cells", columns)?,
            trace: strict(lua, "trace", known(&["rows", "groups", "first"]))?,
        })
    }

    /// Returns `{ index, key, rows = { { number, at, cells = { ... } }, ... } }`.
    pub(crate) fn group(&self, lua: &Lua, group: &TraceGroup) -> mlua::Result<Table> {
        let rows = lua.create_table_with_capacity(group.rows.len(), 0)?;
        for row in &group.rows {
            let table = lua.create_table_with_capacity(0, 3)?;
            table.raw_set("number", row.number as f64)?;
            if let Some(nanos) = row.at {
                table.raw_set("at", nanos as f64 / 1e9)?;
            }
            let cells = self.cells(lua, &row.fields).map_err(|error| match error {
                Unread::Json(why) => At::Root("row")
                    .shape(format!("{} is not the JSON of one: {why}", row.number))
                    .into(),
                Unread::Lua(error) => error,
            })?;
            table.raw_set("cells", cells)?;
            table.set_metatable(Some(self.row.clone()))?;
            rows.raw_push(table)?;
        }
        let table = lua.create_table_with_capacity(0, 3)?;
        table.raw_set("index", group.index as f64)?;
        table.raw_set("key", group.key.as_str())?;
        table.raw_set("rows", rows)?;
        table.set_metatable(Some(self.group.clone()))?;
        Ok(table)
    }

    /// Returns `{ rows, groups, first = { ... } }`, read-only: one table is shared by many
    /// sessions.
    pub(crate) fn trace(&self, lua: &Lua, facts: &TraceFacts) -> mlua::Result<Table> {
        let table = lua.create_table_with_capacity(0, 3)?;
        table.raw_set("rows", facts.rows as f64)?;
        table.raw_set("groups", facts.groups as f64)?;
        if let Ok(first) = self.cells(lua, &facts.first_row) {
            table.raw_set("first", first)?;
        }
        table.set_metatable(Some(self.trace.clone()))?;
        crate::chunk::freeze(&table);
        Ok(table)
    }

    fn cells(&self, lua: &Lua, fields: &str) -> Result<Table, Unread> {
        let json: Json = serde_json::from_str(fields).map_err(|error| Unread::Json(error.to_string()))?;
        match to_lua(lua, &json)? {
            Value::Table(cells) => {
                cells.set_metatable(Some(self.cells.clone()))?;
                Ok(cells)
            }
            _ => Err(Unread::Json("not an object".to_owned())),
        }
    }
}

enum Unread {
    Json(String),
    Lua(mlua::Error),
}

impl From<mlua::Error> for Unread {
    fn from(error: mlua::Error) -> Self {
        Unread::Lua(error)
    }
}

/// Returns a metatable for tables with fixed names: any other name is an error.
fn strict(lua: &Lua, what: &'static str, known: Vec<String>) -> mlua::Result<Table> {
    let index = lua.create_function(move |_, (_, key): (Value, Value)| {
        let at = At::Root(what);
        let refuse = |shape: ShapeError| Err(shape.into());
        let Value::String(_) = &key else {
            return refuse(at.expected("a name", &key));
        };
        let name = string(&at, &key)?;
        if known.contains(&name) {
            return Ok(Value::Nil);
        }
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        refuse(unknown_field(&at, &name, &names))
    })?;
    let table = lua.create_table_with_capacity(0, 2)?;
    table.raw_set("__index", index)?;
    table.raw_set("__metatable", "the table is the host's")?;
    Ok(table)
}
