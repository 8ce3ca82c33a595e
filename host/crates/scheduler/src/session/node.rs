//! A node of a session: the events that it waits for, and its progress.

use std::sync::Arc;

use veeksha_model::{Edge, EventInstants, HistoryMode, Nanos, NodeId, Response, Trigger};

use crate::contract::NodeWork;
use crate::conversation::ConversationHistory;

/// A node of a session with its edges.
#[derive(Debug)]
pub(super) struct SessionNode<P> {
    pub(super) history_parent: Option<NodeId>,
    pub(super) history_mode: HistoryMode,
    pub(super) recorded_answer: Option<Arc<Response>>,
    pub(super) wait: Nanos,
    /// 0: at any time.
    pub(super) not_before: Nanos,
    /// Instant at which the scheduler learned of it. A plugin's delay is not attributed to a limit.
    pub(super) known: Nanos,
    /// Its edges, for the record of a tool run; empty for a request.
    pub(super) parents: Vec<Edge>,
    pub(super) work: NodeWork<P>,
    pub(super) children: Vec<ChildEdge>,
    /// The instant at which it is to be cancelled, once that is known.
    pub(super) cancel_at: Option<Nanos>,
    /// The instant at which it was cancelled, while it waits for the events of its edges.
    pub(super) cancelled_at: Option<Nanos>,
    pub(super) state: NodeState<P>,
}

/// A node that is started or cancelled by an event of the node that has this edge.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChildEdge {
    pub(super) child: NodeId,
    pub(super) trigger: Trigger,
    pub(super) delay: Nanos,
    pub(super) cancels: bool,
}

/// The progress of a node.
#[derive(Debug)]
pub(super) enum NodeState<P> {
    /// The events of `left` edges have not happened. The last event of the others happened at
    /// `event`, and the last of these edges was met, after its delay, at `base` (`None`: no
    /// parents).
    Waiting {
        left: usize,
        event: Nanos,
        base: Option<Nanos>,
    },
    /// In the ready queue.
    Queued { intended: Nanos },
    /// Dispatched, with this conversation before it.
    InFlight {
        measured: bool,
        dispatched: Nanos,
        /// Its first chunk, once it is reported.
        first_chunk: Option<Nanos>,
        /// True once its cancellation was decided.
        cancelled: bool,
        before: ConversationHistory<P>,
    },
    /// A tool run that waits for a server, or that is served.
    InTool {
        measured: bool,
        ready_at: Nanos,
        /// The instant at which a server took it, and whether that was cold.
        started: Option<(Nanos, bool)>,
    },
    /// Completed, or cancelled before it was sent; the conversation up to and including it.
    Complete {
        events: EventInstants,
        conversation: ConversationHistory<P>,
    },
    /// Will never be sent.
    Withdrawn,
}

impl<P> NodeState<P> {
    /// Returns true for a tool run whose call was made and that has not ended.
    pub(super) fn is_in_tool(&self) -> bool {
        matches!(self, NodeState::InTool { .. })
    }

    /// Returns the instant of an event of the node; `None` if it has not happened.
    pub(super) fn happened_at(&self, trigger: Trigger) -> Option<Nanos> {
        match (self, trigger) {
            (NodeState::Complete { events, .. }, _) => Some(events.of(trigger)),
            (NodeState::InFlight { dispatched, .. }, Trigger::Dispatched) => Some(*dispatched),
            (NodeState::InFlight { first_chunk, .. }, Trigger::FirstChunk) => *first_chunk,
            (NodeState::InTool { started, .. }, Trigger::Dispatched) => started.map(|(at, _)| at),
            _ => None,
        }
    }
}
