//! The libraries of Lua that reach the machine: absent, with an error that names the alternative.

use std::rc::Rc;

use mlua::{Lua, Table, Value};
use veeksha_ports::SandboxedAccess;

use crate::host::LuaHost;

/// The libraries, and the access that most of their functions are for.
const LIBRARIES: [(&str, SandboxedAccess); 2] =
    [("io", SandboxedAccess::Files), ("os", SandboxedAccess::Clock)];

/// Functions of `os` for other accesses.
const OTHERS: [(&str, SandboxedAccess); 6] = [
    ("getenv", SandboxedAccess::Environment),
    ("execute", SandboxedAccess::Processes),
    ("exit", SandboxedAccess::Processes),
    ("remove", SandboxedAccess::Files),
    ("rename", SandboxedAccess::Files),
    ("tmpname", SandboxedAccess::Files),
];

/// Installs a table for each library, whose members raise an error.
pub(crate) fn install(lua: &Lua, globals: &Table, host: &Rc<LuaHost>) -> mlua::Result<()> {
    for (library, most) in LIBRARIES {
        let host = Rc::clone(host);
        let refuse = lua.create_function(move |_, (_, member): (Table, Value)| -> mlua::Result<()> {
            let member = match &member {
                Value::String(name) => name.to_string_lossy(),
                _ => "?".to_owned(),
            };
            let other = OTHERS.iter().find(|(name, _)| library == "os" && *name == member);
            let access = other.map_or(most, |(_, access)| *access);
            let message = access.lua_message(&format!("{library}.{member}"));
            if !host.log.quiet.get() && host.log.meter.note(&message) {
                host.log.write("warn", &message);
            }
            Err(mlua::Error::runtime(message))
        })?;
        let metatable = lua.create_table()?;
        metatable.raw_set("__index", refuse)?;
        metatable.raw_set("__metatable", false)?;
        let table = lua.create_table()?;
        table.set_metatable(Some(metatable))?;
        globals.raw_set(library, table)?;
    }
    Ok(())
}
