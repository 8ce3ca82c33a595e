//! A session as written in a script: a table with its requests, or a plain list of them.

use mlua::{Table, Value};
use veeksha_coroutines::Start;
use veeksha_model::{KnownNodes, MAX_NODES, NodeId, Session, check_session};

use crate::budget::Budget;
use crate::duration;
use crate::fields::each_field;
use crate::request::{RequestDraft, headers, labels};
use crate::shape::{At, ShapeError};
use crate::tool_run::ToolRunDraft;

const FIELDS: [&str; 4] = ["requests", "headers", "labels", "arrives_at"];

/// Reads a valid session. The error is a message for the author; `or` describes the other values
/// that the function may return.
pub(crate) fn read(value: &Value, or: &str) -> Result<Session, String> {
    let session = table(value, or).map_err(|shape| shape.to_string())?;
    check_session(&session, &KnownNodes::new())
        .map_err(|error| format!("the session cannot run: {error}"))?;
    Ok(session)
}

fn table(value: &Value, or: &str) -> Result<Session, ShapeError> {
    let at = At::Root("");
    let Value::Table(table) = value else {
        let expected = format!("a table: {{ requests = {{ ... }} }}{or}");
        return Err(At::Root("session").expected(&expected, value));
    };
    let budget = Budget::new();
    let mut session = Session::default();
    if table.raw_len() > 0 {
        let mut entries = 0;
        let _ = table.for_each::<Value, Value>(|_, _| {
            entries += 1;
            Ok(())
        });
        if entries != table.raw_len() {
            return Err(At::Root("session").shape(
                "the table is both a list of requests and a set of named fields; put the requests into `requests`",
            ));
        }
        nodes(&At::Root("requests"), table, &budget, &mut session)?;
        return Ok(session);
    }
    each_field(&at, table, &FIELDS, |key, at, value| {
        match key {
            "headers" => session.headers = headers(at, value, &budget)?,
            "labels" => session.labels = labels(at, value, &budget)?,
            "arrives_at" => session.arrives_at = Some(duration::nanos(at, value)?),
            _ => {
                let Value::Table(list) = value else {
                    return Err(at.expected("a list of requests", value));
                };
                nodes(at, list, &budget, &mut session)?;
            }
        }
        Ok(())
    })
    .map_err(|mut shape| {
        if shape.path.is_empty() {
            shape.path = "session".to_owned();
        }
        shape
    })?;
    Ok(session)
}

/// Reads the list of requests and tool runs.
fn nodes(at: &At<'_>, list: &Table, budget: &Budget, session: &mut Session) -> Result<(), ShapeError> {
    let length = list.raw_len();
    if length > MAX_NODES {
        return Err(at.shape(format!("{length} requests; a session may have {MAX_NODES}")));
    }
    for index in 1..=length {
        let item: Value = list.raw_get(index).unwrap_or(Value::Nil);
        let (at, number) = (At::Index(at, index), NodeId(index as u32));
        match &item {
            Value::Table(table) if ToolRunDraft::is_meant(table) => {
                let draft = ToolRunDraft::read(&at, table, budget)?;
                let node = draft.node.unwrap_or(number);
                session.tool_runs.push(draft.finish(node, &[]));
            }
            item => {
                let draft = RequestDraft::read(&at, item, budget)?;
                let node = draft.node.unwrap_or(number);
                session.requests.push(draft.finish(node, &Start::default()));
            }
        }
    }
    Ok(())
}
