//! A tool run as written in a script, read from its table.

use mlua::{Table, Value};
use veeksha_coroutines::StartEdge;
use veeksha_model::{Edge, Label, Nanos, NodeId, ToolRun};

use crate::budget::Budget;
use crate::content::counted;
use crate::duration;
use crate::fields::{each_field, flag, whole};
use crate::request::{edges, join_start, labels};
use crate::shape::{At, ShapeError};

const FIELDS: [&str; 7] = [
    "tool",
    "node",
    "after",
    "time",
    "result_tokens",
    "fails",
    "labels",
];
/// Fields of the second argument of `session:tool`.
const OPTIONS: [&str; 5] = {
    let [_, _, after, time, result_tokens, fails, labels] = FIELDS;
    [after, time, result_tokens, fails, labels]
};

/// Contents of a tool run's table.
#[derive(Default)]
pub(crate) struct ToolRunDraft {
    pub(crate) node: Option<NodeId>,
    pub(crate) after: Vec<Edge>,
    class: String,
    service_time: Option<Nanos>,
    result_tokens: Option<u32>,
    fails: Option<bool>,
    pub(crate) labels: Vec<Label>,
}

impl ToolRunDraft {
    /// Returns true if a table is that of a tool run, not of a request.
    pub(crate) fn is_meant(table: &Table) -> bool {
        table.raw_get::<Value>("tool").is_ok_and(|class| !class.is_nil())
    }

    /// Reads a tool run's table.
    pub(crate) fn read(at: &At<'_>, table: &Table, budget: &Budget) -> Result<Self, ShapeError> {
        let mut draft = ToolRunDraft::default();
        each_field(at, table, &FIELDS, |key, at, value| {
            draft.set(key, at, value, budget)
        })?;
        Ok(draft)
    }

    /// Reads the arguments of `session:tool`: the class, and a table or nil.
    pub(crate) fn of_call(
        at: &At<'_>,
        class: &Value,
        options: &Value,
        budget: &Budget,
    ) -> Result<Self, ShapeError> {
        let mut draft = ToolRunDraft::default();
        let class_at = At::Index(at, 1);
        if !class.is_string() {
            return Err(class_at.expected("the name of a tool", class));
        }
        draft.set("tool", &class_at, class, budget)?;
        let at = At::Index(at, 2);
        match options {
            Value::Nil => {}
            Value::Table(options) => {
                each_field(&at, options, &OPTIONS, |key, at, value| {
                    draft.set(key, at, value, budget)
                })?;
            }
            other => return Err(at.expected("a table of options", other)),
        }
        Ok(draft)
    }

    fn set(&mut self, key: &str, at: &At<'_>, value: &Value, budget: &Budget) -> Result<(), ShapeError> {
        match key {
            "tool" => self.class = counted(at, value, budget)?,
            "node" => self.node = Some(NodeId(whole(at, value)?)),
            "after" => self.after = edges(at, value)?,
            "time" => self.service_time = Some(duration::nanos(at, value)?),
            "result_tokens" => self.result_tokens = Some(whole(at, value)?),
            "fails" => self.fails = Some(flag(at, value)?),
            _ => self.labels = labels(at, value, budget)?,
        }
        Ok(())
    }

    /// Builds the run with the number `node`. It waits for the nodes in its table, and for `start`.
    pub(crate) fn finish(self, node: NodeId, start: &[StartEdge]) -> ToolRun {
        let mut parents = self.after;
        join_start(&mut parents, start);
        ToolRun {
            node,
            parents,
            class: self.class,
            service_time: self.service_time,
            result_tokens: self.result_tokens,
            fails: self.fails,
            labels: self.labels,
            key: 0,
        }
    }
}
