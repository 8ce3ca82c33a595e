//! The kinds of nodes, and those that earlier steps of a session brought.

use std::collections::HashMap;

use crate::ids::NodeId;

/// The kinds of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A request to the model.
    Request,
    /// A tool call.
    ToolRun,
    /// A tool call of an earlier step that has ended.
    EndedToolRun {
        /// The tokens of its result.
        tokens: u32,
    },
}

impl NodeKind {
    /// Returns the tokens of the result of a tool run that has ended.
    pub fn result_tokens(self) -> Option<u32> {
        match self {
            NodeKind::EndedToolRun { tokens } => Some(tokens),
            NodeKind::Request | NodeKind::ToolRun => None,
        }
    }
}

/// The nodes that earlier steps of a session brought.
pub type KnownNodes = HashMap<NodeId, NodeKind>;
