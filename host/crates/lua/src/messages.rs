//! Messages of a request, and the reasoning and the calls of the assistant.

use mlua::Value;
use veeksha_model::{Message, ReasoningContent, Role, ToolCall};

use crate::budget::Budget;
use crate::content::{content, counted};
use crate::fields::each_field;
use crate::json;
use crate::shape::{At, ShapeError};

const MESSAGE_FIELDS: [&str; 5] = ["role", "content", "tool_call_id", "tool_calls", "reasoning"];
const REASONING_FIELDS: [&str; 2] = ["content", "signature"];
const CALL_FIELDS: [&str; 3] = ["id", "name", "arguments"];

/// Reads the content of a message.
pub(crate) fn message(
    role: Role,
    at: &At<'_>,
    value: &Value,
    budget: &Budget,
) -> Result<Message, ShapeError> {
    Ok(Message::new(role, content(at, value, budget)?))
}

/// Reads a list of messages.
pub(crate) fn messages(at: &At<'_>, value: &Value, budget: &Budget) -> Result<Vec<Message>, ShapeError> {
    let Value::Table(list) = value else {
        return Err(at.expected("a list of messages", value));
    };
    let mut messages = Vec::new();
    for index in 1..=list.raw_len() {
        let item: Value = list.raw_get(index).unwrap_or(Value::Nil);
        messages.push(read(&At::Index(at, index), &item, budget)?);
    }
    Ok(messages)
}

fn read(at: &At<'_>, value: &Value, budget: &Budget) -> Result<Message, ShapeError> {
    budget.take(at, 0)?;
    let Value::Table(table) = value else {
        return Err(at.expected("a message: { role = ..., content = ... }", value));
    };
    let (mut role, mut said) = (None, None);
    let mut message = Message::new(Role::User, Vec::new());
    each_field(at, table, &MESSAGE_FIELDS, |key, at, value| {
        match key {
            "role" => role = Some(read_role(at, value)?),
            "content" => said = Some(content(at, value, budget)?),
            "tool_call_id" => message.tool_call_id = Some(counted(at, value, budget)?),
            "tool_calls" => message.tool_calls = calls(at, value, budget)?,
            _ => message.reasoning = Some(reasoning(at, value, budget)?),
        }
        Ok(())
    })?;
    message.role = role.ok_or_else(|| at.shape("the message has no `role`"))?;
    message.content = match said {
        Some(content) => content,
        // A message may consist of calls alone.
        None if !message.tool_calls.is_empty() => Vec::new(),
        None => return Err(at.shape("the message has no `content`")),
    };
    Ok(message)
}

fn read_role(at: &At<'_>, value: &Value) -> Result<Role, ShapeError> {
    let roles = [Role::System, Role::User, Role::Assistant, Role::Tool];
    let found = value
        .as_string()
        .and_then(|name| roles.into_iter().find(|role| *name == role.name()));
    found.ok_or_else(|| at.expected("\"system\", \"user\", \"assistant\" or \"tool\"", value))
}

/// Reads reasoning: content, or a table with content and the server's signature.
pub(crate) fn reasoning(at: &At<'_>, value: &Value, budget: &Budget) -> Result<ReasoningContent, ShapeError> {
    let table = match value {
        Value::Table(table) if table.raw_len() == 0 => table,
        said => {
            return Ok(ReasoningContent {
                content: content(at, said, budget)?,
                signature: None,
            });
        }
    };
    let mut reasoning = ReasoningContent::default();
    each_field(at, table, &REASONING_FIELDS, |key, at, value| {
        match key {
            "content" => reasoning.content = content(at, value, budget)?,
            _ => reasoning.signature = Some(counted(at, value, budget)?),
        }
        Ok(())
    })?;
    Ok(reasoning)
}

/// Reads the calls of a message or an answer.
pub(crate) fn calls(at: &At<'_>, value: &Value, budget: &Budget) -> Result<Vec<ToolCall>, ShapeError> {
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
                _ => arguments = Some(json::text(at, value, budget)?),
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
