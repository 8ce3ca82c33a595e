//! The kinds of nodes, and those that earlier steps of a session brought.

use std::collections::HashMap;

use crate::ids::NodeId;

/// The kinds of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A request to the model.
    Request,
    /// A tool call.
    ToolRun {
        /// [`ToolRun::key`](crate::ToolRun::key).
        key: u64,
    },
    /// A tool call of an earlier step that has ended.
    EndedToolRun {
        /// [`ToolRun::key`](crate::ToolRun::key).
        key: u64,
        /// The tokens of its result.
        tokens: u32,
    },
}

impl NodeKind {
    /// Returns true for a tool run that has not ended.
    pub fn is_open_tool_run(self) -> bool {
        matches!(self, NodeKind::ToolRun { .. })
    }

    /// Ends a tool run with a result of `tokens` tokens.
    pub fn end_tool_run(&mut self, tokens: u32) {
        if let NodeKind::ToolRun { key } = *self {
            *self = NodeKind::EndedToolRun { key, tokens };
        }
    }

    /// Returns the key of a tool run that has ended and the tokens of its result.
    pub fn result(self) -> Option<(u64, u32)> {
        match self {
            NodeKind::EndedToolRun { key, tokens } => Some((key, tokens)),
            NodeKind::Request | NodeKind::ToolRun { .. } => None,
        }
    }
}

/// The nodes that earlier steps of a session brought.
pub type KnownNodes = HashMap<NodeId, NodeKind>;
