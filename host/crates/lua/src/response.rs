//! What an agent receives for a node: a table, for an answer, the part of a cancelled one, a
//! failure, or the end of a tool run.

use mlua::{Lua, Table, Value};
use veeksha_model::{FailureReason, Nanos, NodeId, Response, Usage, seconds};
use veeksha_ports::ToolRunEnd;

/// Returns the table of an answer that was complete at an instant of the run.
pub(crate) fn answered(
    lua: &Lua,
    node: NodeId,
    response: &Response,
    completed_at: Nanos,
) -> mlua::Result<Table> {
    let calls = lua.create_table_with_capacity(response.tool_calls.len(), 0)?;
    for call in &response.tool_calls {
        let entry = lua.create_table_with_capacity(0, 3)?;
        entry.raw_set("id", call.id.as_str())?;
        entry.raw_set("name", call.name.as_str())?;
        entry.raw_set("arguments", call.arguments.as_str())?;
        calls.raw_push(entry)?;
    }
    let table = lua.create_table_with_capacity(0, 11)?;
    table.raw_set("completed_at", seconds(completed_at))?;
    table.raw_set("ok", !response.cancelled)?;
    if response.cancelled {
        table.raw_set("cancelled", true)?;
        let error = lua.create_table_with_capacity(0, 2)?;
        error.raw_set("code", "cancelled_by_client")?;
        error.raw_set("message", "the workload cancelled the request")?;
        table.raw_set("error", error)?;
    }
    table.raw_set("node", node.0)?;
    table.raw_set("text", response.text.as_str())?;
    table.raw_set("reasoning", response.reasoning.as_str())?;
    table.raw_set("reasoning_signature", response.reasoning_signature.as_deref())?;
    table.raw_set("tool_calls", calls)?;
    table.raw_set("finish_reason", response.finish_reason.as_str())?;
    table.raw_set("output_tokens", response.output_tokens)?;
    if let Some(counts) = &response.usage {
        table.raw_set("usage", usage(lua, counts)?)?;
    }
    if let Some(tokens) = &response.log_probabilities {
        table.raw_set("log_probabilities", tokens.answer.logarithms.clone())?;
        table.raw_set("greedy", tokens.answer.greedy.clone())?;
        if !tokens.prompt.logarithms.is_empty() {
            table.raw_set("prompt_log_probabilities", tokens.prompt.logarithms.clone())?;
            table.raw_set("prompt_greedy", tokens.prompt.greedy.clone())?;
        }
    }
    Ok(table)
}

/// Returns the table of the server's counts.
pub(crate) fn usage(lua: &Lua, usage: &Usage) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(0, 4)?;
    table.raw_set("prompt", usage.prompt)?;
    table.raw_set("completion", usage.completion)?;
    table.raw_set("cached", usage.cached)?;
    table.raw_set("reasoning", usage.reasoning)?;
    Ok(table)
}

/// Returns the table of a failure: the fields of an answer, empty, and `error`.
pub(crate) fn failed(lua: &Lua, reason: &FailureReason) -> mlua::Result<Table> {
    let error = lua.create_table_with_capacity(0, 4)?;
    error.raw_set("code", reason.class.name())?;
    error.raw_set("message", reason.message.as_str())?;
    error.raw_set(
        "status",
        reason
            .status
            .map_or(Value::Nil, |status| Value::Number(f64::from(status))),
    )?;
    error.raw_set("retry_after", reason.retry_after.map(seconds))?;
    let table = answered(lua, reason.request.node, &Response::default(), reason.at)?;
    table.raw_set("ok", false)?;
    table.raw_set("error", error)?;
    Ok(table)
}

/// Returns the table of the end of a tool run.
pub(crate) fn tool_result(lua: &Lua, end: ToolRunEnd<'_>) -> mlua::Result<Table> {
    let (ok, waiting_time, service_time, completed_at) = match end {
        ToolRunEnd::Served(run) => (
            !run.failed,
            run.waiting_time(),
            run.service_time(),
            run.completed_at,
        ),
        ToolRunEnd::Cancelled { waiting_time, at, .. } => (false, waiting_time, 0, at),
    };
    let table = lua.create_table_with_capacity(0, 7)?;
    table.raw_set("ok", ok)?;
    if let ToolRunEnd::Cancelled { .. } = end {
        table.raw_set("cancelled", true)?;
    }
    table.raw_set("node", end.node().0)?;
    table.raw_set("tokens", end.result_tokens())?;
    table.raw_set("waiting_time", seconds(waiting_time))?;
    table.raw_set("service_time", seconds(service_time))?;
    table.raw_set("completed_at", seconds(completed_at))?;
    Ok(table)
}
