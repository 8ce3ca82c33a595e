//! The nodes of two sessions that correspond.

use std::collections::HashMap;

use veeksha_model::{Edge, NodeId, Segment};

use super::graph::DecisionGraph;

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

    /// Returns true if two nodes correspond, or if both are not known yet.
    pub(super) fn nodes(&self, one: NodeId, other: NodeId) -> bool {
        match (self.to_other.get(&one), self.to_recorded.get(&other)) {
            (Some(found), _) => *found == other,
            (None, found) => found.is_none(),
        }
    }

    /// Returns true if the edges of two nodes, or the events that cancel them, correspond.
    pub(super) fn edges(&self, one: &[Edge], other: &[Edge], own: [NodeId; 2]) -> bool {
        let is_same = |one: &Edge, other: &Edge| {
            let owns = [one.parent == own[0], other.parent == own[1]];
            one.trigger == other.trigger
                && one.delay == other.delay
                && owns[0] == owns[1]
                && (owns[0] || self.nodes(one.parent, other.parent))
        };
        // Their order has no meaning.
        one.len() == other.len()
            && one
                .iter()
                .all(|edge| other.iter().any(|candidate| is_same(edge, candidate)))
    }

    /// Returns true if the content of two messages is the same.
    pub(super) fn segments(&self, one: &[Segment], other: &[Segment]) -> bool {
        let mut pairs = one.iter().zip(other);
        one.len() == other.len()
            && pairs.all(|pair| match pair {
                (Segment::ToolResult(one), Segment::ToolResult(other)) => self.nodes(*one, *other),
                (one, other) => one == other,
            })
    }

    /// Returns true if two ids represent the same call of corresponding answers.
    pub(super) fn call_ids(&self, one: &str, other: &str) -> bool {
        let expected = self.recorded.call(one).and_then(|(node, place)| {
            let node = self.to_other.get(&node)?;
            self.other.call_id(*node, place)
        });
        expected.unwrap_or(one) == other
    }

    /// Notes that two nodes correspond.
    pub(super) fn add(&mut self, one: NodeId, other: NodeId) {
        self.to_other.insert(one, other);
        self.to_recorded.insert(other, one);
    }
}
