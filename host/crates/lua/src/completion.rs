//! A finished request, as metrics and checks see it: a table that cannot be changed, whose fields are made when they are read.
//!
//! Most functions look at a few fields of each of a million requests, so nothing is made ahead of time. Lists and tables are
//! made once for each request.

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr;
use std::rc::Rc;

use mlua::{IntoLua, Lua, Table, Value};
use veeksha_definitions::Metric;
use veeksha_model::{Chunk, ErrorClass, Nanos, RequestRecord, Status};

use crate::segments::string;
use crate::shape::{At, Shape, unknown_field};

/// The words of the contract's `completion`, with underscores, and three latencies.
const FIELDS: [&str; 42] = [
    "session",
    "node",
    "session_requests",
    "parents",
    "history_parent",
    "wait_after_ready",
    "intended_at",
    "held",
    "dispatched_at",
    "picked_up_at",
    "sent_at",
    "first_byte_at",
    "completed_at",
    "measured",
    "status",
    "error_class",
    "error_message",
    "finish_reason",
    "http_status",
    "chunk_at",
    "chunk_tokens",
    "chunk_kinds",
    "target_prompt_tokens",
    "prompt_tokens",
    "total_prompt_tokens",
    "template_tokens",
    "target_output_tokens",
    "output_tokens",
    "output_tokens_from_usage",
    "usage",
    "ideal_cached_tokens",
    "connection_reused",
    "retried",
    "server",
    "resolve",
    "connect",
    "tls",
    "recorded",
    "labels",
    "ttfc",
    "tpot",
    "end_to_end_latency",
];

/// Makes the tables of one virtual machine's requests.
pub(crate) struct Completions {
    metatable: Table,
    open: Rc<RefCell<Option<Open>>>,
}

/// The request that may be read now.
struct Open {
    table: *const c_void,
    record: RequestRecord,
}

impl Completions {
    pub(crate) fn new(lua: &Lua) -> mlua::Result<Self> {
        let open: Rc<RefCell<Option<Open>>> = Rc::default();
        let known = open.clone();
        let index = lua.create_function(move |lua, (table, key): (Table, Value)| {
            let at = At::Root("request");
            let name = string(&at, &key)?;
            let open = known.borrow();
            let Some(open) = open.as_ref().filter(|open| ptr::eq(open.table, table.to_pointer())) else {
                let message = format!(
                    "`{name}`: a request can be read only while the function that it was given to runs; keep the values that \
                     you need, not the request"
                );
                return Err(at.shape(message).into());
            };
            let value = field(lua, &open.record, &name)?;
            if let Value::Table(made) = &value {
                made.set_readonly(true);
                table.set_readonly(false);
                let kept = table.raw_set(name, made);
                table.set_readonly(true);
                kept?;
            }
            Ok(value)
        })?;
        let iterate = lua.create_function(|_, _: Value| -> mlua::Result<()> {
            Err(At::Root("request")
                .shape("its fields are read by their names and cannot be walked through")
                .into())
        })?;
        let change = lua.create_function(|_, _: Value| -> mlua::Result<()> {
            Err(At::Root("request")
                .shape("a finished request cannot be changed")
                .into())
        })?;
        let metatable = lua.create_table_with_capacity(0, 4)?;
        metatable.raw_set("__index", index)?;
        metatable.raw_set("__newindex", change)?;
        metatable.raw_set("__iter", iterate)?;
        metatable.raw_set("__metatable", "the table is the host's")?;
        Ok(Completions { metatable, open })
    }

    /// The table of a request. Only the one made last can be read, and only until [`Completions::close`].
    pub(crate) fn open(&self, lua: &Lua, record: &RequestRecord) -> mlua::Result<Table> {
        let table = lua.create_table()?;
        table.set_metatable(Some(self.metatable.clone()))?;
        table.set_readonly(true);
        *self.open.borrow_mut() = Some(Open {
            table: table.to_pointer(),
            record: record.clone(),
        });
        Ok(table)
    }

    /// From here on no request can be read.
    pub(crate) fn close(&self) {
        *self.open.borrow_mut() = None;
    }
}

fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / 1e9
}

fn field(lua: &Lua, record: &RequestRecord, name: &str) -> mlua::Result<Value> {
    let time = |nanos: Nanos| seconds(nanos).into_lua(lua);
    let maybe_time = |nanos: Option<Nanos>| nanos.map(seconds).into_lua(lua);
    match name {
        "session" => (record.id.session.0 as f64).into_lua(lua),
        "node" => record.id.node.0.into_lua(lua),
        "session_requests" => record.session_requests.into_lua(lua),
        "parents" => list(lua, record.parents.iter().map(|node| node.0)),
        "history_parent" => record.history_parent.map(|node| node.0).into_lua(lua),
        "wait_after_ready" => time(record.wait_after_ready),
        "intended_at" => time(record.intended),
        "held" => time(record.held.total()),
        "dispatched_at" => time(record.dispatched_at),
        "picked_up_at" => maybe_time(record.picked_up_at),
        "sent_at" => maybe_time(record.sent_at),
        "first_byte_at" => maybe_time(record.first_byte_at),
        "completed_at" => time(record.completed_at),
        "measured" => record.measured.into_lua(lua),
        "status" => status(&record.status).into_lua(lua),
        "error_class" => failure(&record.status)
            .map(|(class, _)| class.name())
            .into_lua(lua),
        "error_message" => failure(&record.status).map(|(_, message)| message).into_lua(lua),
        "finish_reason" => match &record.status {
            Status::Ok { finish_reason } => finish_reason.as_str().into_lua(lua),
            Status::Failed { .. } => Ok(Value::Nil),
        },
        "http_status" => record.http_status.into_lua(lua),
        "chunk_at" => list(lua, generated(record).map(|chunk| seconds(chunk.at))),
        "chunk_tokens" => match record.tokens_by_chunk() {
            Some(tokens) => list(lua, tokens),
            None => Ok(Value::Nil),
        },
        "chunk_kinds" => list(lua, generated(record).map(|chunk| chunk.kind.name())),
        "target_prompt_tokens" => record.target_prompt_tokens.into_lua(lua),
        "prompt_tokens" => record.prompt_tokens.into_lua(lua),
        "total_prompt_tokens" => record.total_prompt_tokens.into_lua(lua),
        "template_tokens" => record.template_tokens.into_lua(lua),
        "target_output_tokens" => record.target_output_tokens.into_lua(lua),
        "output_tokens" => record.output_tokens.into_lua(lua),
        "output_tokens_from_usage" => record.output_tokens_from_usage.into_lua(lua),
        "usage" => match &record.usage {
            Some(usage) => crate::response::usage(lua, usage).map(Value::Table),
            None => Ok(Value::Nil),
        },
        "ideal_cached_tokens" => record.ideal_cached_tokens.into_lua(lua),
        "connection_reused" => record.connection_reused.into_lua(lua),
        "retried" => record.retried.into_lua(lua),
        "server" => record.server.into_lua(lua),
        "resolve" => maybe_time(record.resolve),
        "connect" => maybe_time(record.connect),
        "tls" => maybe_time(record.tls),
        "recorded" => recorded(lua, record),
        "labels" => {
            let labels = lua.create_table_with_capacity(0, record.labels.len())?;
            for (name, value) in &record.labels {
                labels.raw_set(name.as_str(), value.as_str())?;
            }
            Ok(Value::Table(labels))
        }
        "ttfc" => Metric::Ttfc.sample_of(record).into_lua(lua),
        "end_to_end_latency" => Metric::EndToEnd.sample_of(record).into_lua(lua),
        "tpot" => Metric::Tpot.sample_of(record).into_lua(lua),
        other => Err(unknown(other).into()),
    }
}

fn unknown(name: &str) -> Shape {
    let at = At::Root("request");
    match name {
        // What an agent's response calls them.
        "ok" => at.shape("unknown field `ok`; write `request.status == \"ok\"`"),
        "error" => at.shape("unknown field `error`; there are `error_class` and `error_message`"),
        _ => unknown_field(&at, name, &FIELDS),
    }
}

fn list<T: IntoLua>(lua: &Lua, items: impl IntoIterator<Item = T>) -> mlua::Result<Value> {
    lua.create_sequence_from(items).map(Value::Table)
}

fn status(status: &Status) -> &'static str {
    match status {
        Status::Ok { .. } => "ok",
        Status::Failed {
            class: ErrorClass::Cancelled,
            ..
        } => "cancelled",
        Status::Failed { .. } => "failed",
    }
}

fn failure(status: &Status) -> Option<(ErrorClass, &str)> {
    match status {
        Status::Ok { .. } => None,
        Status::Failed { class, message } => Some((*class, message)),
    }
}

fn generated(record: &RequestRecord) -> impl Iterator<Item = &Chunk> {
    record.chunks.iter().filter(|chunk| chunk.kind.is_generated())
}

fn recorded(lua: &Lua, record: &RequestRecord) -> mlua::Result<Value> {
    let Some(recorded) = &record.recorded else {
        return Ok(Value::Nil);
    };
    let table = lua.create_table_with_capacity(0, 4)?;
    table.raw_set("at", recorded.at.map(seconds))?;
    table.raw_set("latency", recorded.latency.map(seconds))?;
    table.raw_set("prompt_tokens", recorded.prompt_tokens)?;
    table.raw_set("output_tokens", recorded.output_tokens)?;
    Ok(Value::Table(table))
}
