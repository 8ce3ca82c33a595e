//! Recorded data of a request from a trace, as fields of the request's table.

use mlua::Value;
use veeksha_model::{HistoryMode, RecordedAnswer, Replay, ToolCall};

use crate::budget::Budget;
use crate::content::{content, counted};
use crate::duration;
use crate::fields::{each_field, whole};
use crate::json;
use crate::shape::{At, ShapeError};

/// The request fields with recorded data. The first also determines the requests of an agent.
pub(crate) const FIELDS: [&str; 6] = [
    "history_mode",
    "answer",
    "at",
    "latency",
    "prompt_tokens",
    "output_tokens",
];

const ANSWER_FIELDS: [&str; 2] = ["content", "tool_calls"];
const CALL_FIELDS: [&str; 3] = ["id", "name", "arguments"];

/// Reads one of [`FIELDS`].
pub(crate) fn read(
    key: &str,
    at: &At<'_>,
    value: &Value,
    budget: &Budget,
    replay: &mut Replay,
) -> Result<(), ShapeError> {
    let recorded = &mut replay.recorded;
    match key {
        "history_mode" => replay.history = history_mode(at, value)?,
        "answer" => replay.answer = Some(answer(at, value, budget)?),
        "at" => recorded.at = Some(duration::nanos(at, value)?),
        "latency" => recorded.latency = Some(duration::nanos(at, value)?),
        "prompt_tokens" => recorded.prompt_tokens = Some(whole(at, value)?),
        _ => recorded.output_tokens = Some(whole(at, value)?),
    }
    Ok(())
}

fn history_mode(at: &At<'_>, value: &Value) -> Result<HistoryMode, ShapeError> {
    let modes = [HistoryMode::Live, HistoryMode::Recorded, HistoryMode::Fresh];
    let found = value
        .as_string()
        .and_then(|name| modes.into_iter().find(|mode| *name == mode.name()));
    found.ok_or_else(|| at.expected("\"live\", \"recorded\" or \"fresh\"", value))
}

/// Reads content, or a table with content and calls.
fn answer(at: &At<'_>, value: &Value, budget: &Budget) -> Result<RecordedAnswer, ShapeError> {
    let table = match value {
        Value::Table(table) if table.raw_len() == 0 => table,
        said => {
            return Ok(RecordedAnswer {
                content: content(at, said, budget)?,
                ..RecordedAnswer::default()
            });
        }
    };
    let mut answer = RecordedAnswer::default();
    each_field(at, table, &ANSWER_FIELDS, |key, at, value| {
        match key {
            "content" => answer.content = content(at, value, budget)?,
            _ => answer.tool_calls = calls(at, value, budget)?,
        }
        Ok(())
    })?;
    if answer == RecordedAnswer::default() {
        return Err(at.shape("the answer is empty; give it `content` or `tool_calls`, or leave it out"));
    }
    Ok(answer)
}

fn calls(at: &At<'_>, value: &Value, budget: &Budget) -> Result<Vec<ToolCall>, ShapeError> {
    let Value::Table(list) = value else {
        return Err(at.expected(
            "a list of calls: { { id = ..., name = ..., arguments = ... } }",
            value,
        ));
    };
    let call = |index: usize| {
        let at = At::Index(at, index);
        let item: Value = list.raw_get(index).unwrap_or(Value::Nil);
        let Value::Table(table) = &item else {
            return Err(at.expected("a call: { id = ..., name = ..., arguments = ... }", &item));
        };
        let (mut id, mut name, mut arguments) = (None, None, None);
        each_field(&at, table, &CALL_FIELDS, |key, at, value| {
            match key {
                "id" => id = Some(counted(at, value, budget)?),
                "name" => name = Some(counted(at, value, budget)?),
                _ => arguments = Some(self::arguments(at, value, budget)?),
            }
            Ok(())
        })?;
        let missing = |what: &str| at.shape(format!("the call has no `{what}`"));
        Ok(ToolCall {
            id: id.ok_or_else(|| missing("id"))?,
            name: name.ok_or_else(|| missing("name"))?,
            arguments: arguments.unwrap_or_else(|| "{}".to_owned()),
        })
    };
    (1..=list.raw_len()).map(call).collect()
}

/// Reads recorded JSON text, or a table.
fn arguments(at: &At<'_>, value: &Value, budget: &Budget) -> Result<String, ShapeError> {
    match value {
        Value::String(_) => counted(at, value, budget),
        Value::Table(_) => json::object(at, value, budget),
        other => Err(at.expected("JSON text or a table", other)),
    }
}
