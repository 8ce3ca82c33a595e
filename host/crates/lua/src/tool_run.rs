//! A tool run as written in a script, read from its table.

use mlua::{Table, Value};
use veeksha_model::{Edge, Label, Nanos, NodeId, ToolRun};

use crate::budget::Budget;
use crate::content::counted;
use crate::duration;
use crate::fields::{each_field, whole};
use crate::request::{edges, labels};
use crate::shape::{At, ShapeError};

const FIELDS: [&str; 6] = ["tool", "node", "after", "time", "result_tokens", "labels"];

/// Contents of a tool run's table.
#[derive(Default)]
pub(crate) struct ToolRunDraft {
    pub(crate) node: Option<NodeId>,
    pub(crate) after: Vec<Edge>,
    class: String,
    service_time: Option<Nanos>,
    result_tokens: Option<u32>,
    labels: Vec<Label>,
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
            match key {
                "tool" => draft.class = counted(at, value, budget)?,
                "node" => draft.node = Some(NodeId(whole(at, value)?)),
                "after" => draft.after = edges(at, value)?,
                "time" => draft.service_time = Some(duration::nanos(at, value)?),
                "result_tokens" => draft.result_tokens = Some(whole(at, value)?),
                _ => draft.labels = labels(at, value, budget)?,
            }
            Ok(())
        })?;
        Ok(draft)
    }

    /// Builds the run with the number `node`. It waits for the nodes in its table, and for
    /// `earlier`.
    pub(crate) fn finish(self, node: NodeId, earlier: &[NodeId]) -> ToolRun {
        let mut parents = self.after;
        for &node in earlier {
            if !parents.iter().any(|edge| edge.parent == node) {
                parents.push(node.into());
            }
        }
        ToolRun {
            node,
            parents,
            class: self.class,
            service_time: self.service_time,
            result_tokens: self.result_tokens,
            labels: self.labels,
        }
    }
}
