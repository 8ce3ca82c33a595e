//! Cancellation of nodes by the workload.

use std::sync::Arc;

use veeksha_events::{DroppedToolRun, NeverSentReason, ToolDropReason};
use veeksha_model::{Edge, EventInstants, Nanos, NodeId, RequestId, Trigger};

use super::node::NodeState;
use super::{CancelledNode, CancelledToolRun, LinkedEdge, SessionState};
use crate::contract::{NodeWork, ToolRunPlan};
use crate::conversation::ConversationHistory;
use crate::ready::ReadyQueue;

/// A node at its cancellation.
struct Unserved {
    /// The instant at which it was or would have been due, if that is known.
    ready_at: Option<Nanos>,
    /// Of a tool run whose call waits for a server: whether it is measured.
    call: Option<bool>,
}

impl Unserved {
    fn tool_run(self, id: RequestId, run: &ToolRunPlan, at: Nanos) -> CancelledToolRun {
        CancelledToolRun {
            run: DroppedToolRun {
                id,
                class: Arc::clone(&run.name),
                ready_at: self.ready_at,
                reason: ToolDropReason::NotServed(NeverSentReason::CancelledByClient),
                at,
            },
            call: self
                .call
                .map(|measured| (run.class, measured && run.is_drained())),
        }
    }
}

impl<P> SessionState<P> {
    /// Cancels a node at an instant. One that was not sent is complete, without an answer, from
    /// then on or once the events of its edges have happened, whichever is later: nodes that follow
    /// it keep their order, and the conversation before it. It waits neither for delays nor for its
    /// think time.
    pub(crate) fn cancel(&mut self, id: NodeId, mut at: Nanos, ready: &mut ReadyQueue) -> CancelledNode {
        let Some(node) = self.nodes.get_mut(&id) else {
            return CancelledNode::Unchanged;
        };
        self.obsolete.extend(node.cancel_at.take().map(|at| (at, id)));
        let cancelled = match &mut node.state {
            NodeState::InFlight { cancelled, .. } => {
                return if std::mem::replace(cancelled, true) {
                    CancelledNode::Unchanged
                } else {
                    CancelledNode::InFlight
                };
            }
            NodeState::Queued { intended } => Unserved {
                ready_at: Some(*intended),
                call: None,
            },
            NodeState::Waiting { left, event, .. } => {
                let (left, event) = (*left, *event);
                let Some(start) = self.start.filter(|_| left == 0) else {
                    node.cancelled_at.get_or_insert(at);
                    return CancelledNode::Unchanged;
                };
                at = at.max(event).max(start);
                Unserved {
                    ready_at: None,
                    call: None,
                }
            }
            NodeState::InTool {
                started: None,
                ready_at,
                measured,
            } => Unserved {
                ready_at: Some(*ready_at),
                call: Some(*measured),
            },
            // A tool that has begun to work is not stopped.
            NodeState::InTool { .. } | NodeState::Complete { .. } | NodeState::Withdrawn => {
                return CancelledNode::Unchanged;
            }
        };
        if cancelled.call.is_some() {
            self.in_flight -= 1;
        } else {
            self.unsent -= 1;
        }
        let (parent, mode) = (node.history_parent, node.history_mode);
        let recorded = node.recorded_answer.take();
        let (result, conversation) = match &node.work {
            NodeWork::Request(payload) => {
                let payload = payload.clone();
                let before = self.conversation_before(parent, mode);
                let queued = cancelled.ready_at.is_some();
                (
                    CancelledNode::Unsent { queued, at },
                    before.with(payload, None, recorded),
                )
            }
            NodeWork::ToolRun(run) => {
                let id = RequestId {
                    session: self.id,
                    node: id,
                };
                let tool_run = cancelled.tool_run(id, run, at);
                (CancelledNode::NotServed(tool_run), ConversationHistory::new())
            }
        };
        self.end_unsent(id, at, conversation);
        self.latest = self.latest.max(at);
        self.release_children(id, Trigger::Completed, at, ready);
        result
    }

    /// Notes the end of a node that was cancelled and will not be sent.
    pub(super) fn end_unsent(&mut self, id: NodeId, at: Nanos, conversation: ConversationHistory<P>) {
        if let Some(node) = self.nodes.get_mut(&id) {
            let events = EventInstants {
                dispatched: at,
                first_chunk: at,
                completed: at,
            };
            node.state = NodeState::Complete { events, conversation };
        }
    }

    /// Releases the cancellations that wait for events of a node, all of which happened at `at`.
    pub(super) fn release_cancellations(&mut self, id: NodeId, at: Nanos) {
        let children = self.nodes.get(&id).into_iter().flat_map(|node| &node.children);
        let cancels = children.filter(|edge| edge.cancels);
        self.cancellations
            .extend(cancels.map(|edge| (at.saturating_add(edge.delay), edge.child)));
    }

    /// Takes the cancellations that will not be carried out any more.
    pub(crate) fn take_obsolete(&mut self) -> Vec<(Nanos, NodeId)> {
        std::mem::take(&mut self.obsolete)
    }

    /// Takes the nodes whose cancellation is now known, earlier than before, or possible now, with
    /// the new instant and the former one.
    pub(crate) fn take_cancellations(&mut self) -> Vec<(NodeId, Nanos, Option<Nanos>)> {
        let mut changed = Vec::new();
        for (at, id) in self.cancellations.drain(..) {
            let Some(node) = self.nodes.get_mut(&id) else {
                continue;
            };
            let ended = matches!(
                node.state,
                NodeState::Complete { .. }
                    | NodeState::Withdrawn
                    | NodeState::InFlight { cancelled: true, .. }
            );
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
            if let LinkedEdge::Met { at, .. } = self.link_edge(node, edge, true) {
                self.cancellations.push((at.max(known), node));
            }
        }
    }
}
