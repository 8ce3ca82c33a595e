//! Rules for nodes that agents of all languages share.

use crate::moment::{Event, Nanos, Node, StartEdge};

/// The label with the place of a node's subagent.
pub const SUBAGENT: &str = "subagent";

/// Returns true if a node of a subagent receives the label [`SUBAGENT`]: its author has not set it.
pub fn lacks_subagent(labels: &[(String, String)]) -> bool {
    labels.iter().all(|(name, _)| name != SUBAGENT)
}

/// An edge of a node, as a language represents it.
pub trait NodeEdge {
    /// Creates an edge.
    fn new(node: Node, event: Event, delay: Nanos) -> Self;

    /// Returns true if both wait for the same event of the same node.
    fn has_event_of(&self, other: &Self) -> bool;

    /// The time after the event.
    fn delay_mut(&mut self) -> &mut Nanos;
}

/// Adds the edges of a node's start to those that its author wrote. Of two edges to one event, the
/// longer delay counts.
pub fn join_edges<E: NodeEdge>(written: &mut Vec<E>, start: &[StartEdge]) {
    let count = written.len();
    for edge in start {
        let mut edge = E::new(edge.node, edge.event, edge.delay);
        match written[..count]
            .iter_mut()
            .find(|known| known.has_event_of(&edge))
        {
            Some(known) => *known.delay_mut() = (*edge.delay_mut()).max(*known.delay_mut()),
            None => written.push(edge),
        }
    }
}
