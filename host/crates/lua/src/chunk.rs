//! Compilation of files, and read-only tables.

use mlua::chunk::ChunkMode;
use mlua::{Lua, Table, Value};

use crate::sources::LuaSource;

/// Compiles a file. Byte code is refused.
pub(crate) fn compile(lua: &Lua, source: &LuaSource) -> mlua::Result<mlua::Function> {
    let name = format!("={}", source.name);
    lua.load(&*source.text)
        .set_name(name)
        .set_mode(ChunkMode::Text)
        .into_function()
}

/// Sets a table and its nested tables read-only. A read-only table was visited before.
pub(crate) fn freeze(table: &Table) {
    let mut open = vec![table.clone()];
    while let Some(table) = open.pop() {
        if table.is_readonly() {
            continue;
        }
        table.set_readonly(true);
        let _ = table.for_each::<Value, Value>(|_, value| {
            if let Value::Table(inner) = value {
                open.push(inner);
            }
            Ok(())
        });
    }
}
