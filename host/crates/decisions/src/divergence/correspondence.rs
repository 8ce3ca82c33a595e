//! The nodes of two sessions that correspond.

use std::collections::HashMap;

use veeksha_model::{Edge, NodeId, Request, Segment, Trigger};

use super::graph::DecisionGraph;
use crate::tool_calls::{CallPlace, NamedCalls};

/// One of the two sessions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum GraphSide {
    Recorded,
    Other,
}

/// A node by the name that both sessions have for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum CommonNode {
    /// The node that names it.
    Own,
    /// The node of the other session that corresponds.
    Known(NodeId),
    /// No node corresponds yet.
    Unknown,
}

/// An edge by the name that both sessions have for its parent.
pub(super) type CommonEdge = (CommonNode, Trigger, u64);

/// The nodes that correspond.
pub(super) struct Correspondence<'g, 'a> {
    pub(super) recorded: &'g DecisionGraph<'a>,
    pub(super) other: &'g DecisionGraph<'a>,
    pub(super) to_other: HashMap<NodeId, NodeId>,
    pub(super) to_recorded: HashMap<NodeId, NodeId>,
}

impl<'g, 'a> Correspondence<'g, 'a> {
    /// No nodes correspond yet.
    pub(super) fn new(recorded: &'g DecisionGraph<'a>, other: &'g DecisionGraph<'a>) -> Self {
        Correspondence {
            recorded,
            other,
            to_other: HashMap::new(),
            to_recorded: HashMap::new(),
        }
    }

    /// Returns the common name of a node. Those of two nodes are equal if they correspond, or if
    /// both are not known yet.
    pub(super) fn node(&self, side: GraphSide, node: NodeId) -> CommonNode {
        let known = match side {
            GraphSide::Recorded => self.to_other.get(&node).copied(),
            GraphSide::Other => self.to_recorded.contains_key(&node).then_some(node),
        };
        known.map_or(CommonNode::Unknown, CommonNode::Known)
    }

    /// Returns the edges of a node, or the events that cancel it, by common names. Their order has
    /// no meaning.
    pub(super) fn edges(&self, side: GraphSide, edges: &[Edge], own: NodeId) -> Vec<CommonEdge> {
        let edge = |edge: &Edge| {
            let parent = if edge.parent == own {
                CommonNode::Own
            } else {
                self.node(side, edge.parent)
            };
            (parent, edge.trigger, edge.delay)
        };
        let mut edges: Vec<CommonEdge> = edges.iter().map(edge).collect();
        edges.sort_unstable();
        edges
    }

    /// Returns true if the content of two messages is the same.
    pub(super) fn segments(&self, one: &[Segment], other: &[Segment]) -> bool {
        let node = |side, node: &NodeId| self.node(side, *node);
        let mut pairs = one.iter().zip(other);
        one.len() == other.len()
            && pairs.all(|pair| match pair {
                (Segment::ToolResult(one), Segment::ToolResult(other)) => {
                    node(GraphSide::Recorded, one) == node(GraphSide::Other, other)
                }
                (one, other) => one == other,
            })
    }

    /// Returns the tool calls that the messages of a request name, by common names; `None` for an
    /// id that no answer of a corresponding node had.
    pub(super) fn calls(&self, side: GraphSide, request: &Request) -> Vec<NamedCalls> {
        let graph = match side {
            GraphSide::Recorded => self.recorded,
            GraphSide::Other => self.other,
        };
        let common = |call: CallPlace| match self.node(side, call.0) {
            CommonNode::Known(node) => Some((node, call.1)),
            CommonNode::Own | CommonNode::Unknown => None,
        };
        let mut named = graph.calls.named(request.node, &request.messages);
        for NamedCalls { answered, calls } in &mut named {
            *answered = answered.and_then(common);
            calls.iter_mut().for_each(|call| *call = call.and_then(common));
        }
        named
    }

    /// Notes that two nodes correspond.
    pub(super) fn add(&mut self, one: NodeId, other: NodeId) {
        self.to_other.insert(one, other);
        self.to_recorded.insert(other, one);
    }
}
