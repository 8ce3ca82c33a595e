//! Globals of a script.
//!
//! Absent: introspection, compilation, other environments. Refused with a hint: the operating
//! system, files, and `math.random`, which would make sessions depend on each other. Bounded: the
//! library functions whose cost grows with the product of two lengths, because Luau cannot
//! interrupt them.

use std::rc::Rc;

use mlua::{Function, IntoLua, Lua, MultiValue, Table, Value, Variadic};

use crate::absent_libraries;
use crate::blocks;
use crate::content::string;
use crate::host::LuaHost;
use crate::segments;
use crate::shape::{At, number_of};
use crate::tools;
use crate::watch::CallWatch;

/// Globals of Luau and mlua that are removed.
const REMOVED: [&str; 11] = [
    "collectgarbage",
    "debug",
    "gcinfo",
    "getfenv",
    "io",
    "loadstring",
    "newproxy",
    "os",
    "package",
    "setfenv",
    "load",
];

/// Maximum number of elements per `table.move`.
const MAX_MOVE: f64 = 50_000_000.0;

/// Installs the host's globals and removes others.
pub(crate) fn install(lua: &Lua, host: &Rc<LuaHost>, watch: &Rc<CallWatch>) -> mlua::Result<()> {
    let globals = lua.globals();
    for name in REMOVED {
        globals.raw_set(name, Value::Nil)?;
    }
    absent_libraries::install(lua, &globals, host)?;
    segments::install(lua, &globals, host)?;
    tools::install(lua, &globals, host)?;
    blocks::install(lua, &globals, host)?;
    install_log(lua, &globals, host)?;
    install_tokens(lua, &globals, host, watch)?;
    refuse_random(lua, &globals.raw_get("math")?)?;
    bound_strings(lua, &globals.raw_get("string")?)?;
    bound_tables(lua, &globals.raw_get("table")?)
}

fn install_log(lua: &Lua, globals: &Table, host: &Rc<LuaHost>) -> mlua::Result<()> {
    let log = lua.create_table()?;
    for level in ["debug", "info", "warn", "error"] {
        log.raw_set(level, writer(lua, host, level)?)?;
    }
    globals.raw_set("log", log)?;
    globals.raw_set("print", writer(lua, host, "info")?)
}

/// Joins its arguments with tabs, like `print`.
fn writer(lua: &Lua, host: &Rc<LuaHost>, level: &'static str) -> mlua::Result<mlua::Function> {
    let host = host.clone();
    lua.create_function(move |_, values: Variadic<Value>| {
        let mut line = String::new();
        for (i, value) in values.iter().enumerate() {
            if i > 0 {
                line.push('\t');
            }
            match value {
                // An address would differ between runs.
                Value::Table(table) if !table.has_metatable() => line.push_str("table"),
                Value::Function(_) => line.push_str("function"),
                other => line.push_str(&other.to_string()?),
            }
        }
        host.log.write(level, &line);
        Ok(())
    })
}

fn install_tokens(lua: &Lua, globals: &Table, host: &Rc<LuaHost>, watch: &Rc<CallWatch>) -> mlua::Result<()> {
    let tokens = lua.create_table()?;
    let count = |lua: &Lua, ids: Vec<u32>| ids.len().into_lua(lua);
    let encode = |lua: &Lua, ids: Vec<u32>| ids.into_lua(lua);
    tokens.raw_set(
        "count",
        token_function(lua, host, watch, "tokens.count(s)", count)?,
    )?;
    tokens.raw_set(
        "encode",
        token_function(lua, host, watch, "tokens.encode(s)", encode)?,
    )?;
    globals.raw_set("tokens", tokens)
}

/// Returns a function that passes a text of a permitted size to the tokenizer, and its ids to
/// `answer`.
fn token_function(
    lua: &Lua,
    host: &Rc<LuaHost>,
    watch: &Rc<CallWatch>,
    name: &'static str,
    answer: impl Fn(&Lua, Vec<u32>) -> mlua::Result<Value> + 'static,
) -> mlua::Result<Function> {
    let (host, watch) = (host.clone(), watch.clone());
    lua.create_function(move |lua, text: Value| {
        let at = At::Root(name);
        let text = string(&at, &text)?;
        if text.len() > host.count_bytes {
            return Err(at
                .shape(format!(
                    "the text has {} bytes, at most {} are allowed; pass it in parts",
                    text.len(),
                    host.count_bytes
                ))
                .into());
        }
        match &host.tokens {
            Some(tokenizer) => {
                let ids = tokenizer(&text).map_err(|reason| at.shape(reason))?;
                watch.check(lua)?;
                answer(lua, ids)
            }
            None => Err(at
                .shape("no tokenizer is available here; call it in a session")
                .into()),
        }
    })
}

fn refuse_random(lua: &Lua, math: &Table) -> mlua::Result<()> {
    for name in ["random", "randomseed"] {
        let refuse = lua.create_function(move |_, _: MultiValue| -> mlua::Result<()> {
            Err(mlua::Error::runtime(format!(
                "math.{name} is not available, because sessions must not depend on one another; draw from the `rng` \
                 that the function receives, such as rng:int(1, 6), or from session.rng in an agent"
            )))
        })?;
        math.raw_set(name, refuse)?;
    }
    Ok(())
}

/// Replaces `string.find` without a pattern and `string.split`. The originals compare at every
/// position: with two long strings, one call could take hours without an interrupt. The
/// replacements search in linear time.
fn bound_strings(lua: &Lua, library: &Table) -> mlua::Result<()> {
    let original: mlua::Function = library.raw_get("find")?;
    let find = lua.create_function(move |_, arguments: MultiValue| {
        let plain = |needle: &[u8]| !needle.iter().any(|byte| b"^$*+?.([%-".contains(byte));
        let forced = !matches!(arguments.get(3), None | Some(Value::Nil | Value::Boolean(false)));
        if let (Some(Value::String(text)), Some(Value::String(needle))) =
            (arguments.front(), arguments.get(1))
            && (needle.as_bytes().len() > 64 && (forced || plain(&needle.as_bytes())))
        {
            let text = text.as_bytes();
            let start = match arguments.get(2) {
                None | Some(Value::Nil) => 1.0,
                Some(value) => match number_of(value) {
                    Some(start) => start,
                    None => return original.call::<MultiValue>(arguments),
                },
            };
            let start = if start < 0.0 {
                (text.len() as f64 + start + 1.0).max(1.0)
            } else {
                start.max(1.0)
            } as usize;
            let rest = text.get(start - 1..);
            let found = rest.and_then(|rest| memchr::memmem::find(rest, &needle.as_bytes()));
            let place = found.map(|at| (start + at) as f64);
            return Ok(match place {
                Some(first) => MultiValue::from_iter([
                    Value::Number(first),
                    Value::Number(first + needle.as_bytes().len() as f64 - 1.0),
                ]),
                None => MultiValue::from_iter([Value::Nil]),
            });
        }
        original.call::<MultiValue>(arguments)
    })?;
    library.raw_set("find", find)?;

    let original: mlua::Function = library.raw_get("split")?;
    let split = lua.create_function(move |lua, arguments: MultiValue| {
        if let (Some(Value::String(text)), Some(Value::String(separator))) =
            (arguments.front(), arguments.get(1))
            && separator.as_bytes().len() > 64
        {
            let (text, separator) = (text.as_bytes(), separator.as_bytes());
            let parts = lua.create_table()?;
            let mut from = 0;
            for at in memchr::memmem::find_iter(&text, &separator) {
                parts.raw_push(lua.create_string(&text[from..at])?)?;
                from = at + separator.len();
            }
            parts.raw_push(lua.create_string(&text[from..])?)?;
            return Ok(MultiValue::from_iter([Value::Table(parts)]));
        }
        original.call::<MultiValue>(arguments)
    })?;
    library.raw_set("split", split)?;
    bound_repetition(lua, library)
}

/// Replaces `string.rep`. The original converts the number of repetitions to 32 bits, and returns
/// an empty string if it is larger.
fn bound_repetition(lua: &Lua, library: &Table) -> mlua::Result<()> {
    let original: mlua::Function = library.raw_get("rep")?;
    let rep = lua.create_function(move |lua, arguments: MultiValue| {
        let count = arguments.get(1).cloned().unwrap_or(Value::Nil);
        let is_empty = matches!(arguments.front(), Some(Value::String(text)) if text.as_bytes().is_empty());
        if !is_empty
            && lua
                .coerce_number(count)?
                .is_some_and(|count| count > f64::from(i32::MAX))
        {
            return Err(mlua::Error::MemoryError("not enough memory".to_owned()));
        }
        original.call::<MultiValue>(arguments)
    })?;
    library.raw_set("rep", rep)
}

/// Bounds `table.move`: its range may be far larger than the table and is iterated to its end.
fn bound_tables(lua: &Lua, library: &Table) -> mlua::Result<()> {
    let original: mlua::Function = library.raw_get("move")?;
    let bounded = lua.create_function(move |_, arguments: MultiValue| {
        let number = |i: usize| arguments.get(i).and_then(number_of).unwrap_or(0.0);
        if number(2) - number(1) > MAX_MOVE {
            return Err(At::Root("table.move")
                .shape(format!("more than {MAX_MOVE} elements"))
                .into());
        }
        original.call::<MultiValue>(arguments)
    })?;
    library.raw_set("move", bounded)
}
