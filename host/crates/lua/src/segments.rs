//! `text`, `synthetic`, `tool_result`, `token_ids`, `image`, `audio`, `video`: pieces of messages.

use std::rc::Rc;

use mlua::{AnyUserData, Lua, Table, Value};
use veeksha_model::MediaKind;

use crate::budget::Budget;
use crate::content::{LuaSegment, Synthetic, token_ids, utf8};
use crate::host::LuaHost;
use crate::request::node;
use crate::seeds;
use crate::shape::{At, ShapeError, number_of};

/// Maximum number of tokens of one synthetic segment.
const MAX_TOKENS: f64 = 16_777_216.0;

/// Registers the global functions.
pub(crate) fn install(lua: &Lua, globals: &Table, host: &Rc<LuaHost>) -> mlua::Result<()> {
    // A string is a segment already; the function only validates it early.
    let text = lua.create_function(|_, value: Value| {
        utf8(&At::Root("text(s)"), &value, |_| ())?;
        Ok(value)
    })?;
    globals.raw_set("text", text)?;

    let shared = host.clone();
    let function = lua.create_function(move |lua, (tokens, seed): (Value, Value)| {
        let made = synthetic(&At::Root("synthetic(tokens, seed)"), &shared, &tokens, &seed)?;
        lua.create_userdata(LuaSegment::Synthetic(made))
    })?;
    globals.raw_set("synthetic", function)?;

    let shared = host.clone();
    let function = lua.create_function(move |lua, (name, tokens, seed): (Value, Value, Value)| {
        let at = At::Root("tool_result(name, tokens, seed)");
        utf8(&at, &name, |_| ())?;
        let made = synthetic(&at, &shared, &tokens, &seed)?;
        with_string(lua, LuaSegment::ToolResult(made), name)
    })?;
    globals.raw_set("tool_result", function)?;

    let function = lua.create_function(|lua, run: Value| {
        let run = node(&At::Root("result_of(run)"), &run)?;
        lua.create_userdata(LuaSegment::ResultOf(run))
    })?;
    globals.raw_set("result_of", function)?;
    let function = lua.create_function(|lua, ids: Value| {
        token_ids(&At::Root("token_ids(ids)"), &ids, &Budget::new())?;
        let object = lua.create_userdata(LuaSegment::TokenIds)?;
        object.set_user_value(ids)?;
        Ok(object)
    })?;
    globals.raw_set("token_ids", function)?;

    for kind in [MediaKind::Image, MediaKind::Audio, MediaKind::Video] {
        let function = lua.create_function(move |lua, source: Value| {
            utf8(&At::Root(kind.name()), &source, |_| ())?;
            with_string(lua, LuaSegment::Media(kind), source)
        })?;
        globals.raw_set(kind.name(), function)?;
    }
    Ok(())
}

fn with_string(lua: &Lua, piece: LuaSegment, string: Value) -> mlua::Result<AnyUserData> {
    let object = lua.create_userdata(piece)?;
    object.set_user_value(string)?;
    Ok(object)
}

fn synthetic(at: &At<'_>, host: &LuaHost, tokens: &Value, seed: &Value) -> Result<Synthetic, ShapeError> {
    let count = number_of(tokens).filter(|n| n.fract() == 0.0 && (0.0..=MAX_TOKENS).contains(n));
    let Some(count) = count else {
        return Err(at.expected("a whole number of tokens from 0 to 16777216", tokens));
    };
    Ok(Synthetic {
        seed: seeds::seed(at, host, seed)?,
        tokens: count as u32,
    })
}
