//! A finished request for metrics and checks: a read-only table whose fields are created on access.
//!
//! Most functions read a few fields of each of a million requests, so nothing is created in
//! advance. Lists and tables are created once per request.

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr;
use std::rc::Rc;

use mlua::{IntoLua, Lua, Table, Value};
use veeksha_definitions::{FieldValue, FinishedRequest, RequestField};
use veeksha_model::{Nanos, RequestRecord};

use crate::content::string;
use crate::shape::{At, ShapeError, unknown_field};

/// Creates the request tables of one virtual machine.
pub(crate) struct Completions {
    metatable: Table,
    open: Rc<RefCell<Option<Open>>>,
}

/// The request that can be read now.
struct Open {
    table: *const c_void,
    record: RequestRecord,
}

impl Completions {
    pub(crate) fn new(lua: &Lua) -> mlua::Result<Self> {
        let open: Rc<RefCell<Option<Open>>> = Rc::default();
        let known = open.clone();
        let index = lua.create_function(move |lua, (table, key): (Table, Value)| {
            let at = At::Root("request");
            let name = string(&at, &key)?;
            let open = known.borrow();
            let Some(open) = open.as_ref().filter(|open| ptr::eq(open.table, table.to_pointer())) else {
                let message = format!(
                    "`{name}`: a request can be read only while the function that it was given to runs; keep the values that \
                     you need, not the request"
                );
                return Err(at.shape(message).into());
            };
            let value = field(lua, &open.record, &name)?;
            if let Value::Table(made) = &value {
                made.set_readonly(true);
                table.set_readonly(false);
                let kept = table.raw_set(name, made);
                table.set_readonly(true);
                kept?;
            }
            Ok(value)
        })?;
        let iterate = lua.create_function(|_, _: Value| -> mlua::Result<()> {
            Err(At::Root("request")
                .shape("its fields are read by their names and cannot be walked through")
                .into())
        })?;
        let change = lua.create_function(|_, _: Value| -> mlua::Result<()> {
            Err(At::Root("request")
                .shape("a finished request cannot be changed")
                .into())
        })?;
        let metatable = lua.create_table_with_capacity(0, 4)?;
        metatable.raw_set("__index", index)?;
        metatable.raw_set("__newindex", change)?;
        metatable.raw_set("__iter", iterate)?;
        metatable.raw_set("__metatable", "the table is the host's")?;
        Ok(Completions { metatable, open })
    }

    /// Returns the table of a request. Only the last table can be read, and only until
    /// [`Completions::close`].
    pub(crate) fn open(&self, lua: &Lua, record: &RequestRecord) -> mlua::Result<Table> {
        let table = lua.create_table()?;
        table.set_metatable(Some(self.metatable.clone()))?;
        table.set_readonly(true);
        *self.open.borrow_mut() = Some(Open {
            table: table.to_pointer(),
            record: record.clone(),
        });
        Ok(table)
    }

    /// Ends access to the current request.
    pub(crate) fn close(&self) {
        *self.open.borrow_mut() = None;
    }
}

fn field(lua: &Lua, record: &RequestRecord, name: &str) -> mlua::Result<Value> {
    let Some(field) = RequestField::named(name) else {
        return Err(unknown(name).into());
    };
    match field.value(&FinishedRequest::new(record)) {
        FieldValue::Absent => Ok(Value::Nil),
        FieldValue::Flag(flag) => flag.into_lua(lua),
        FieldValue::Count(count) => (count as f64).into_lua(lua),
        FieldValue::Number(number) => number.into_lua(lua),
        FieldValue::Text(text) => text.into_lua(lua),
        FieldValue::Name(name) => name.into_lua(lua),
        FieldValue::Counts(counts) => list(lua, counts),
        FieldValue::Numbers(numbers) => list(lua, numbers),
        FieldValue::Names(names) => list(lua, names),
        FieldValue::Labels(labels) => {
            let table = lua.create_table_with_capacity(0, labels.len())?;
            for (name, value) in labels {
                table.raw_set(name.as_str(), value.as_str())?;
            }
            Ok(Value::Table(table))
        }
        FieldValue::Usage(usage) => crate::response::usage(lua, &usage).map(Value::Table),
        FieldValue::Recorded(recorded) => {
            let seconds = |nanos: Option<Nanos>| nanos.map(|nanos| nanos as f64 / 1e9);
            let table = lua.create_table_with_capacity(0, 4)?;
            table.raw_set("at", seconds(recorded.at))?;
            table.raw_set("latency", seconds(recorded.latency))?;
            table.raw_set("prompt_tokens", recorded.prompt_tokens)?;
            table.raw_set("output_tokens", recorded.output_tokens)?;
            Ok(Value::Table(table))
        }
    }
}

fn unknown(name: &str) -> ShapeError {
    let at = At::Root("request");
    match name {
        // Names of fields in the response that an agent receives.
        "ok" => at.shape("unknown field `ok`; write `request.status == \"ok\"`"),
        "error" => at.shape("unknown field `error`; there are `error_class` and `error_message`"),
        _ => unknown_field(&at, name, &RequestField::names().collect::<Vec<_>>()),
    }
}

fn list<T: IntoLua>(lua: &Lua, items: impl IntoIterator<Item = T>) -> mlua::Result<Value> {
    lua.create_sequence_from(items).map(Value::Table)
}
