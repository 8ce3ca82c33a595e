//! Cancellation of nodes by the workload.

use veeksha_model::{Edge, EventInstants, Nanos, NodeId, Trigger};

use super::{CancelledNode, LinkedEdge, NodeState, SessionState};
use crate::contract::NodeWork;
use crate::conversation::ConversationHistory;
use crate::ready::ReadyQueue;

impl<P> SessionState<P> {
    /// Cancels a node at an instant. One that was not sent counts as complete from then on: the
    /// turn has no answer.
    pub(crate) fn cancel(&mut self, id: NodeId, at: Nanos, ready: &mut ReadyQueue) -> CancelledNode {
        let Some(node) = self.nodes.get_mut(&id) else {
            return CancelledNode::Unchanged;
        };
        node.cancel_at = None;
        let queued = match &mut node.state {
            NodeState::InFlight { cancelled, .. } => {
                return if std::mem::replace(cancelled, true) {
                    CancelledNode::Unchanged
                } else {
                    CancelledNode::InFlight
                };
            }
            NodeState::Queued { .. } => matches!(node.work, NodeWork::Request(_)),
            NodeState::Waiting { .. } | NodeState::InTool { started: None, .. } => false,
            // A tool that has begun to work is not stopped.
            NodeState::InTool { .. } | NodeState::Complete { .. } | NodeState::Withdrawn => {
                return CancelledNode::Unchanged;
            }
        };
        if let NodeState::InTool { .. } = node.state {
            self.in_flight -= 1;
        } else {
            self.unsent -= 1;
        }
        let (parent, mode) = (node.history_parent, node.history_mode);
        let recorded = node.recorded_answer.take();
        let payload = match &node.work {
            NodeWork::Request(payload) => Some(payload.clone()),
            NodeWork::ToolRun(_) => None,
        };
        let is_request = payload.is_some();
        let conversation = match payload {
            Some(payload) => self
                .conversation_before(parent, mode)
                .with(payload, None, recorded),
            None => ConversationHistory::new(),
        };
        if let Some(node) = self.nodes.get_mut(&id) {
            let events = EventInstants {
                dispatched: at,
                first_chunk: at,
                completed: at,
            };
            node.state = NodeState::Complete { events, conversation };
        }
        self.latest = self.latest.max(at);
        self.release_children(id, Trigger::Completed, at, ready);
        CancelledNode::Unsent { queued, is_request }
    }

    /// Takes the nodes whose cancellation is now known or earlier than before, with the new instant
    /// and the former one.
    pub(crate) fn take_cancellations(&mut self) -> Vec<(NodeId, Nanos, Option<Nanos>)> {
        let mut changed = Vec::new();
        for (at, id) in self.cancellations.drain(..) {
            let Some(node) = self.nodes.get_mut(&id) else {
                continue;
            };
            let ended = matches!(node.state, NodeState::Complete { .. } | NodeState::Withdrawn);
            if !ended && node.cancel_at.is_none_or(|known| at < known) {
                changed.push((id, at, node.cancel_at.replace(at)));
            }
        }
        changed
    }

    /// Enters the events that cancel a node of which the scheduler learned at `known`. It is not
    /// cancelled before.
    pub(super) fn link_cancellation(&mut self, node: NodeId, when: &[Edge], known: Nanos) {
        for edge in when {
            if let LinkedEdge::Met(at) = self.link_edge(node, edge, true) {
                self.cancellations.push((at.max(known), node));
            }
        }
    }
}
