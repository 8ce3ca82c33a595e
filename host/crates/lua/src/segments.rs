//! `text`, `synthetic`, `tool_result`, `image`, `audio`, `video`: pieces of messages.

use std::rc::Rc;

use mlua::{AnyUserData, Lua, Table, UserData, Value};
use veeksha_model::{MediaKind, Seed, Segment};
use veeksha_stats::RandomStream;

use crate::host::Host;
use crate::shape::{At, Shape, number_of};

/// The most tokens of one synthetic segment.
const MAX_TOKENS: f64 = 16_777_216.0;

/// What the functions return: one or two segments.
pub(crate) struct Piece(pub(crate) Vec<Segment>);

impl UserData for Piece {}

/// Puts the functions among the globals.
pub(crate) fn install(lua: &Lua, globals: &Table, host: &Rc<Host>) -> mlua::Result<()> {
    let text = lua.create_function(|lua, value: Value| {
        let text = string(&At::Root("text(s)"), &value)?;
        piece(lua, vec![Segment::Text(text)])
    })?;
    globals.raw_set("text", text)?;

    let shared = host.clone();
    let synthetic = lua.create_function(move |lua, (tokens, seed): (Value, Value)| {
        let segment = synthetic_segment(&At::Root("synthetic(tokens, seed)"), &shared, &tokens, &seed)?;
        piece(lua, vec![segment])
    })?;
    globals.raw_set("synthetic", synthetic)?;

    let shared = host.clone();
    let tool_result = lua.create_function(move |lua, (name, tokens, seed): (Value, Value, Value)| {
        let at = At::Root("tool_result(name, tokens, seed)");
        let name = string(&at, &name)?;
        let body = synthetic_segment(&at, &shared, &tokens, &seed)?;
        piece(
            lua,
            vec![Segment::Text(format!("Result of the tool `{name}`:\n")), body],
        )
    })?;
    globals.raw_set("tool_result", tool_result)?;

    for kind in [MediaKind::Image, MediaKind::Audio, MediaKind::Video] {
        let media = lua.create_function(move |lua, source: Value| {
            let source = string(&At::Root(kind.name()), &source)?;
            piece(lua, vec![Segment::Media { kind, source }])
        })?;
        globals.raw_set(kind.name(), media)?;
    }
    Ok(())
}

fn piece(lua: &Lua, segments: Vec<Segment>) -> mlua::Result<AnyUserData> {
    lua.create_userdata(Piece(segments))
}

fn synthetic_segment(at: &At<'_>, host: &Host, tokens: &Value, seed: &Value) -> Result<Segment, Shape> {
    let count = number_of(tokens).filter(|n| n.fract() == 0.0 && (1.0..=MAX_TOKENS).contains(n));
    let Some(count) = count else {
        return Err(at.expected("a whole number of tokens from 1 to 16777216", tokens));
    };
    let seed = match seed {
        Value::Nil => host.next_seed(),
        Value::String(name) => {
            let name = name.to_str().map_err(|_| at.shape("the seed is not UTF-8"))?;
            stream_seed(&RandomStream::new(0, 0, &name), 0)
        }
        other => match number_of(other)
            .filter(|n| n.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(n))
        {
            Some(number) => Seed::from(number as u64),
            None => return Err(at.expected("a string or a whole number from 0 to 2^53 as the seed", other)),
        },
    };
    Ok(Segment::Synthetic {
        seed,
        tokens: count as u32,
    })
}

/// Words `2 i` and `2 i + 1` of a stream, as a seed.
pub(crate) fn stream_seed(stream: &RandomStream, index: u64) -> Seed {
    Seed {
        high: stream.word(2 * index),
        low: stream.word(2 * index + 1),
    }
}

/// The content of a message: a string, a segment, or a list of them.
pub(crate) fn content(at: &At<'_>, value: &Value) -> Result<Vec<Segment>, Shape> {
    let mut segments = Vec::new();
    match value {
        Value::Table(list) => {
            for index in 1..=list.raw_len() {
                let item: Value = list.raw_get(index).unwrap_or(Value::Nil);
                append(&At::Index(at, index), &item, &mut segments)?;
            }
            if segments.is_empty() {
                return Err(at.shape(
                    "expected a string, a segment or a list of them, found a table without elements",
                ));
            }
        }
        other => append(at, other, &mut segments)?,
    }
    Ok(segments)
}

fn append(at: &At<'_>, value: &Value, segments: &mut Vec<Segment>) -> Result<(), Shape> {
    match value {
        Value::String(_) => segments.push(Segment::Text(string(at, value)?)),
        Value::UserData(data) => match data.borrow::<Piece>() {
            Ok(piece) => segments.extend(piece.0.iter().cloned()),
            Err(_) => return Err(at.expected("a string, a segment or a list of them", value)),
        },
        other => return Err(at.expected("a string, a segment or a list of them", other)),
    }
    Ok(())
}

/// A string of the script as text.
pub(crate) fn string(at: &At<'_>, value: &Value) -> Result<String, Shape> {
    match value {
        Value::String(text) => match text.to_str() {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(at.shape("the string is not UTF-8")),
        },
        other => Err(at.expected("a string", other)),
    }
}
