//! The content of a message: strings, and the objects that the segment functions return.

use mlua::{AnyUserData, Lua, UserData, Value};
use veeksha_model::{MediaKind, NodeId, Seed, Segment};

use crate::budget::Budget;
use crate::fields::whole;
use crate::shape::{At, ShapeError};

/// Result of the segment functions. Strings remain in the virtual machine (as the object's user
/// value), where they count towards its limit.
pub(crate) enum LuaSegment {
    /// Synthetic text.
    Synthetic(Synthetic),
    /// A line with the name of a tool, and synthetic text.
    ToolResult(Synthetic),
    /// The result of a tool run.
    ResultOf(NodeId),
    /// A reference to media.
    Media(MediaKind),
    /// Token ids; the list is the object's user value.
    TokenIds,
}

#[derive(Clone, Copy)]
pub(crate) struct Synthetic {
    pub(crate) seed: Seed,
    pub(crate) tokens: u32,
}

impl From<Synthetic> for Segment {
    fn from(Synthetic { seed, tokens }: Synthetic) -> Self {
        Segment::Synthetic { seed, tokens }
    }
}

impl UserData for LuaSegment {}

/// Returns synthetic text of a seed, as a Lua object.
pub(crate) fn made_up(lua: &Lua, seed: Seed, tokens: u32) -> mlua::Result<AnyUserData> {
    lua.create_userdata(LuaSegment::Synthetic(Synthetic { seed, tokens }))
}

/// Reads the content of a message: a string, a segment, or a list of them.
pub(crate) fn content(at: &At<'_>, value: &Value, budget: &Budget) -> Result<Vec<Segment>, ShapeError> {
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

fn append(
    at: &At<'_>,
    value: &Value,
    budget: &Budget,
    segments: &mut Vec<Segment>,
) -> Result<(), ShapeError> {
    let no_segment = || at.expected("a string, a segment or a list of them", value);
    match value {
        Value::String(_) => segments.push(Segment::Text(counted(at, value, budget)?)),
        Value::UserData(object) => {
            let piece = object.borrow::<LuaSegment>().map_err(|_| no_segment())?;
            let string = || {
                let string = object.user_value::<Value>().unwrap_or(Value::Nil);
                counted(at, &string, budget)
            };
            match &*piece {
                LuaSegment::Synthetic(made) => {
                    budget.take(at, 0)?;
                    segments.push((*made).into());
                }
                LuaSegment::ToolResult(made) => {
                    segments.push(Segment::Text(format!("Result of the tool `{}`:\n", string()?)));
                    segments.push((*made).into());
                }
                LuaSegment::ResultOf(run) => segments.push(Segment::ToolResult(*run)),
                LuaSegment::TokenIds => {
                    let list = object.user_value::<Value>().unwrap_or(Value::Nil);
                    segments.push(Segment::TokenIds(token_ids(at, &list, budget)?));
                }
                LuaSegment::Media(kind) => segments.push(Segment::Media {
                    kind: *kind,
                    source: string()?,
                }),
            }
        }
        _ => return Err(no_segment()),
    }
    Ok(())
}

/// Reads a list of token ids.
pub(crate) fn token_ids(at: &At<'_>, value: &Value, budget: &Budget) -> Result<Vec<u32>, ShapeError> {
    let Value::Table(list) = value else {
        return Err(at.expected("a list of token ids", value));
    };
    let length = list.raw_len();
    if length == 0 {
        return Err(at.shape("the list of token ids is empty"));
    }
    budget.take(at, 4 * length)?;
    (1..=length)
        .map(|index| {
            let id: Value = list.raw_get(index).unwrap_or(Value::Nil);
            whole(&At::Index(at, index), &id)
        })
        .collect()
}

/// Reads a string as text, counted before it is copied.
pub(crate) fn counted(at: &At<'_>, value: &Value, budget: &Budget) -> Result<String, ShapeError> {
    if let Value::String(text) = value {
        budget.take(at, text.as_bytes().len())?;
    }
    string(at, value)
}

/// Reads a string as text.
pub(crate) fn string(at: &At<'_>, value: &Value) -> Result<String, ShapeError> {
    utf8(at, value, str::to_owned)
}

pub(crate) fn utf8<R>(at: &At<'_>, value: &Value, read: impl FnOnce(&str) -> R) -> Result<R, ShapeError> {
    match value {
        Value::String(text) => match text.to_str() {
            Ok(text) => Ok(read(&text)),
            Err(_) => Err(at.shape("the string is not UTF-8")),
        },
        other => Err(at.expected("a string", other)),
    }
}
