//! Recorded data of a request from a trace, as fields of the request's table.

use mlua::Value;
use veeksha_model::{HistoryMode, RecordedAnswer, Replay};

use crate::budget::Budget;
use crate::content::content;
use crate::duration;
use crate::fields::{each_field, whole};
use crate::messages::{calls, reasoning};
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

const ANSWER_FIELDS: [&str; 3] = ["content", "tool_calls", "reasoning"];

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
            "tool_calls" => answer.tool_calls = calls(at, value, budget)?,
            _ => answer.reasoning = Some(reasoning(at, value, budget)?),
        }
        Ok(())
    })?;
    if answer == RecordedAnswer::default() {
        return Err(at.shape("the answer is empty; give it `content` or `tool_calls`, or leave it out"));
    }
    Ok(answer)
}
