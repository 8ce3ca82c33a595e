//! Functions that the model may call, and the form of its answer, as fields of a request's table.

use std::rc::Rc;

use mlua::{Lua, Table, UserData, Value};
use veeksha_model::{AnswerForm, ToolChoice, ToolDefinitions};

use crate::budget::Budget;
use crate::content::{counted, string};
use crate::fields::{each_field, flag, whole};
use crate::host::LuaHost;
use crate::json;
use crate::seeds::seed;
use crate::shape::{At, ShapeError};

/// The request fields about functions and the form of the answer.
pub(crate) const FIELDS: [&str; 5] = [
    "tools",
    "tool_choice",
    "response_schema",
    "log_probabilities",
    "prompt_log_probabilities",
];

/// Result of `synthetic_tools`.
#[derive(Clone)]
struct SyntheticTools(ToolDefinitions);

impl UserData for SyntheticTools {}

/// Registers the global function `synthetic_tools`.
pub(crate) fn install(lua: &Lua, globals: &Table, host: &Rc<LuaHost>) -> mlua::Result<()> {
    let host = host.clone();
    let function = lua.create_function(move |lua, (count, tokens, of): (Value, Value, Value)| {
        let at = At::Root("synthetic_tools(count, tokens, seed)");
        lua.create_userdata(SyntheticTools(ToolDefinitions::Synthetic {
            count: whole(&at, &count)?,
            tokens: whole(&at, &tokens)?,
            seed: seed(&at, &host, &of)?,
        }))
    })?;
    globals.raw_set("synthetic_tools", function)
}

/// Reads one of the fields about the answer's form.
pub(crate) fn read_form(
    key: &str,
    at: &At<'_>,
    value: &Value,
    budget: &Budget,
    form: &mut AnswerForm,
) -> Result<(), ShapeError> {
    match key {
        "tool_choice" => form.tool_choice = Some(choice(at, value)?),
        "response_schema" => form.schema = Some(json::schema(at, value, budget)?),
        "prompt_log_probabilities" => form.prompt_log_probabilities = flag(at, value)?,
        _ => form.log_probabilities = Some(whole(at, value)?),
    }
    Ok(())
}

/// Reads definitions: a list of tables, JSON text that is sent verbatim, or the result of
/// `synthetic_tools`.
pub(crate) fn tools(at: &At<'_>, value: &Value, budget: &Budget) -> Result<ToolDefinitions, ShapeError> {
    match value {
        Value::String(_) => Ok(ToolDefinitions::Verbatim(counted(at, value, budget)?)),
        Value::Table(_) => Ok(ToolDefinitions::Definitions(json::tools(at, value, budget)?)),
        Value::UserData(object) => object
            .borrow::<SyntheticTools>()
            .map(|tools| tools.0.clone())
            .map_err(|_| expected(at, value)),
        _ => Err(expected(at, value)),
    }
}

fn expected(at: &At<'_>, value: &Value) -> ShapeError {
    at.expected(
        "a list of tools: { { name = ..., description = ..., parameters = ... } }, their JSON text, or synthetic_tools(count, tokens)",
        value,
    )
}

fn choice(at: &At<'_>, value: &Value) -> Result<ToolChoice, ShapeError> {
    let expected = || at.expected("\"auto\", \"none\", \"required\" or { name = ... }", value);
    if let Value::Table(table) = value {
        let mut name = None;
        each_field(at, table, &["name"], |_, at, value| {
            name = Some(string(at, value)?);
            Ok(())
        })?;
        return name.map(ToolChoice::Function).ok_or_else(expected);
    }
    let text = value.as_string().map(|text| text.to_string_lossy());
    match text.as_deref() {
        Some("auto") => Ok(ToolChoice::Automatic),
        Some("none") => Ok(ToolChoice::None),
        Some("required") => Ok(ToolChoice::Required),
        _ => Err(expected()),
    }
}
