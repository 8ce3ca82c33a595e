//! `text`, `synthetic`, `tool_result`, `image`, `audio`, `video`: pieces of messages.

use std::rc::Rc;

use mlua::{AnyUserData, Lua, Table, UserData, Value};
use veeksha_model::{MediaKind, Seed, Segment};
use veeksha_stats::RandomStream;

use crate::budget::Budget;
use crate::host::Host;
use crate::shape::{At, Shape, number_of};

/// Maximum number of tokens of one synthetic segment.
const MAX_TOKENS: f64 = 16_777_216.0;

/// Result of the segment functions. Strings remain in the virtual machine (as the object's user
/// value), where they count towards its limit.
enum Piece {
    /// Synthetic text.
    Synthetic(Synthetic),
    /// A line with the name of a tool, and synthetic text.
    ToolResult(Synthetic),
    /// A reference to media.
    Media(MediaKind),
}

#[derive(Clone, Copy)]
struct Synthetic {
    seed: Seed,
    tokens: u32,
}

impl From<Synthetic> for Segment {
    fn from(Synthetic { seed, tokens }: Synthetic) -> Self {
        Segment::Synthetic { seed, tokens }
    }
}

impl UserData for Piece {}

/// Registers the global functions.
pub(crate) fn install(lua: &Lua, globals: &Table, host: &Rc<Host>) -> mlua::Result<()> {
    // A string is a segment already; the function only validates it early.
    let text = lua.create_function(|_, value: Value| {
        utf8(&At::Root("text(s)"), &value, |_| ())?;
        Ok(value)
    })?;
    globals.raw_set("text", text)?;

    let shared = host.clone();
    let function = lua.create_function(move |lua, (tokens, seed): (Value, Value)| {
        let made = synthetic(&At::Root("synthetic(tokens, seed)"), &shared, &tokens, &seed)?;
        lua.create_userdata(Piece::Synthetic(made))
    })?;
    globals.raw_set("synthetic", function)?;

    crate::blocks::install(lua, globals, host)?;

    let shared = host.clone();
    let function = lua.create_function(move |lua, (name, tokens, seed): (Value, Value, Value)| {
        let at = At::Root("tool_result(name, tokens, seed)");
        utf8(&at, &name, |_| ())?;
        let made = synthetic(&at, &shared, &tokens, &seed)?;
        with_string(lua, Piece::ToolResult(made), name)
    })?;
    globals.raw_set("tool_result", function)?;

    for kind in [MediaKind::Image, MediaKind::Audio, MediaKind::Video] {
        let function = lua.create_function(move |lua, source: Value| {
            utf8(&At::Root(kind.name()), &source, |_| ())?;
            with_string(lua, Piece::Media(kind), source)
        })?;
        globals.raw_set(kind.name(), function)?;
    }
    Ok(())
}

fn with_string(lua: &Lua, piece: Piece, string: Value) -> mlua::Result<AnyUserData> {
    let object = lua.create_userdata(piece)?;
    object.set_user_value(string)?;
    Ok(object)
}

fn synthetic(at: &At<'_>, host: &Host, tokens: &Value, seed: &Value) -> Result<Synthetic, Shape> {
    let count = number_of(tokens).filter(|n| n.fract() == 0.0 && (1.0..=MAX_TOKENS).contains(n));
    let Some(count) = count else {
        return Err(at.expected("a whole number of tokens from 1 to 16777216", tokens));
    };
    Ok(Synthetic {
        seed: self::seed(at, host, seed)?,
        tokens: count as u32,
    })
}

/// Reads a seed of a script; without one, the text is unique.
pub(crate) fn seed(at: &At<'_>, host: &Host, seed: &Value) -> Result<Seed, Shape> {
    Ok(match seed {
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
    })
}

/// Returns synthetic text of a seed, as a Lua object.
pub(crate) fn made_up(lua: &Lua, seed: Seed, tokens: u32) -> mlua::Result<AnyUserData> {
    lua.create_userdata(Piece::Synthetic(Synthetic { seed, tokens }))
}

/// Returns words `2 i` and `2 i + 1` of a stream, as a seed.
pub(crate) fn stream_seed(stream: &RandomStream, index: u64) -> Seed {
    Seed {
        high: stream.word(2 * index),
        low: stream.word(2 * index + 1),
    }
}

/// Reads the content of a message: a string, a segment, or a list of them.
pub(crate) fn content(at: &At<'_>, value: &Value, budget: &Budget) -> Result<Vec<Segment>, Shape> {
    let mut segments = Vec::new();
    match value {
        Value::Table(list) => {
            for index in 1..=list.raw_len() {
                let item: Value = list.raw_get(index).unwrap_or(Value::Nil);
                let at = At::Index(at, index);
                match &item {
                    // A nested list, as returned by `blocks`. Deeper nesting is refused, so that a
                    // table that contains itself terminates.
                    Value::Table(inner) if inner.raw_len() > 0 => {
                        for place in 1..=inner.raw_len() {
                            let item: Value = inner.raw_get(place).unwrap_or(Value::Nil);
                            append(&At::Index(&at, place), &item, budget, &mut segments)?;
                        }
                    }
                    item => append(&at, item, budget, &mut segments)?,
                }
            }
            if segments.is_empty() {
                return Err(at.shape(
                    "expected a string, a segment or a list of them, found a table without elements",
                ));
            }
        }
        other => append(at, other, budget, &mut segments)?,
    }
    Ok(segments)
}

fn append(at: &At<'_>, value: &Value, budget: &Budget, segments: &mut Vec<Segment>) -> Result<(), Shape> {
    let no_segment = || at.expected("a string, a segment or a list of them", value);
    match value {
        Value::String(_) => segments.push(Segment::Text(counted(at, value, budget)?)),
        Value::UserData(object) => {
            let piece = object.borrow::<Piece>().map_err(|_| no_segment())?;
            let string = || {
                let string = object.user_value::<Value>().unwrap_or(Value::Nil);
                counted(at, &string, budget)
            };
            match &*piece {
                Piece::Synthetic(made) => {
                    budget.take(at, 0)?;
                    segments.push((*made).into());
                }
                Piece::ToolResult(made) => {
                    segments.push(Segment::Text(format!("Result of the tool `{}`:\n", string()?)));
                    segments.push((*made).into());
                }
                Piece::Media(kind) => segments.push(Segment::Media {
                    kind: *kind,
                    source: string()?,
                }),
            }
        }
        _ => return Err(no_segment()),
    }
    Ok(())
}

/// Reads a string as text, counted before it is copied.
pub(crate) fn counted(at: &At<'_>, value: &Value, budget: &Budget) -> Result<String, Shape> {
    if let Value::String(text) = value {
        budget.take(at, text.as_bytes().len())?;
    }
    string(at, value)
}

/// Reads a string as text.
pub(crate) fn string(at: &At<'_>, value: &Value) -> Result<String, Shape> {
    utf8(at, value, str::to_owned)
}

fn utf8<R>(at: &At<'_>, value: &Value, read: impl FnOnce(&str) -> R) -> Result<R, Shape> {
    match value {
        Value::String(text) => match text.to_str() {
            Ok(text) => Ok(read(&text)),
            Err(_) => Err(at.shape("the string is not UTF-8")),
        },
        other => Err(at.expected("a string", other)),
    }
}
