//! The state of one session: its nodes, what they wait for, and how it ended.

mod cancellation;
mod ending;
mod node;
mod tool_runs;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use veeksha_events::{DroppedToolRun, NeverSentReason, SessionEnd};
use veeksha_model::{
    Edge, EventInstants, History, HistoryMode, Nanos, NodeId, RequestId, Response, SessionId, Trigger,
};

use crate::contract::{NodePlan, NodeWork, SessionKind};
use crate::conversation::ConversationHistory;
use crate::ready::ReadyQueue;
use node::{ChildEdge, NodeState, SessionNode};

/// A session that is held or live.
#[derive(Debug)]
pub(crate) struct SessionState<P> {
    pub(crate) id: SessionId,
    pub(crate) kind: SessionKind,
    nodes: BTreeMap<NodeId, SessionNode<P>>,
    /// Its start; `None` while it is held.
    start: Option<Nanos>,
    /// Instant since which a slot has been free for it; 0 where sessions are not limited.
    slot_since: Nanos,
    /// The last completion so far, or the start.
    latest: Nanos,
    /// The instant at which its agent reported that nothing more will come: the session does not
    /// end before, although instants of tool runs can be earlier.
    closed_at: Nanos,
    /// Nodes that are waiting or queued.
    unsent: usize,
    /// Requests without a result, and tool runs that wait for a server or are served.
    in_flight: usize,
    tool_runs: u32,
    /// Steps that the agent owes: one for each completion it was asked about.
    asks: usize,
    agent: Agent,
    outcome: SessionEnd,
    /// Cancellations whose instants became known since the scheduler last took them.
    cancellations: Vec<(Nanos, NodeId)>,
    /// Cancellations that the scheduler has taken and that came to nothing since: the node ended
    /// or was cancelled before.
    obsolete: Vec<(Nanos, NodeId)>,
    /// Nodes to cancel when the session starts.
    pub(crate) cancelled_at_start: Vec<NodeId>,
}

/// The state of a session's agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agent {
    /// Steps.
    Open,
    /// No more steps: the session is planned, the agent reported `done`, or its steps make no
    /// difference any more.
    Closed,
    /// Nothing: it failed.
    Failed,
}

/// The result of entering an edge.
#[derive(Clone, Copy, Debug)]
enum LinkedEdge {
    /// Its parent does not exist.
    Unknown,
    /// The event has happened: it is met at this instant.
    Met { event: Nanos, at: Nanos },
    /// The event has not happened.
    Waiting,
}

/// The data for dispatching a node.
pub(crate) struct DispatchData<P> {
    pub(crate) payload: Arc<P>,
    pub(crate) history: Option<Arc<History<P>>>,
    pub(crate) session_requests: u32,
    /// True if a node waits for its first chunk, or if its agent may add such a node.
    pub(crate) first_chunk_matters: bool,
}

/// The state of a request when its result came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndedRequest {
    pub(crate) measured: bool,
    pub(crate) prefilling: bool,
}

/// The result of cancelling a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CancelledNode {
    /// It had ended or was cancelled before, or does not exist: nothing changes.
    Unchanged,
    /// It is in flight, and comes back with the part of its answer that has arrived.
    InFlight,
    /// The request will not be sent; `queued` if it was in the queue of ready requests.
    /// It ended at this instant.
    Unsent { queued: bool, at: Nanos },
    /// No server will take the tool run.
    NotServed(CancelledToolRun),
}

/// A tool run that was cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CancelledToolRun {
    pub(crate) run: DroppedToolRun,
    /// The index of its class if the call had been made and waited for a server, and whether the
    /// end of the run waited for it.
    pub(crate) call: Option<(usize, bool)>,
}

/// The instant since which a due request could have been sent, apart from the request limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Eligible {
    pub(crate) since: Nanos,
    /// Time for which its session waited for a slot after the request was due.
    pub(crate) held_by_sessions: Nanos,
}

/// The reason for which nodes are withdrawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Withdrawal {
    pub(crate) reason: NeverSentReason,
    /// The reason of those that were due before an instant, where it is another.
    pub(crate) due: Option<(Nanos, NeverSentReason)>,
}

/// What was withdrawn, apart from the session's own state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Withdrawn {
    /// Requests in the ready queue.
    pub(crate) queued: usize,
    /// Calls that waited for a server, with the indices of their classes.
    pub(crate) calls: Vec<(usize, RequestId)>,
    /// Those of them for which the end of the run waited.
    pub(crate) awaited_tool_runs: usize,
}

impl From<NeverSentReason> for Withdrawal {
    fn from(reason: NeverSentReason) -> Self {
        Withdrawal { reason, due: None }
    }
}

impl<P> SessionState<P> {
    pub(crate) fn new(id: SessionId, kind: SessionKind) -> Self {
        let agent = match kind {
            SessionKind::Planned => Agent::Closed,
            SessionKind::Reactive => Agent::Open,
        };
        SessionState {
            id,
            kind,
            nodes: BTreeMap::new(),
            start: None,
            slot_since: 0,
            latest: 0,
            closed_at: 0,
            unsent: 0,
            in_flight: 0,
            tool_runs: 0,
            asks: 0,
            agent,
            outcome: SessionEnd::Completed,
            cancellations: Vec::new(),
            obsolete: Vec::new(),
            cancelled_at_start: Vec::new(),
        }
    }

    /// Requests it ever had.
    pub(crate) fn requests(&self) -> u32 {
        self.nodes.len() as u32 - self.tool_runs
    }

    /// Returns the instant of its end, if it has ended: of its last completion, its start, or the
    /// last step of its agent.
    pub(crate) fn latest(&self) -> Nanos {
        self.latest.max(self.closed_at)
    }

    /// Returns the instant since which a slot was free for it.
    pub(crate) fn slot_since(&self) -> Nanos {
        self.slot_since
    }

    /// Returns true if it has left the look-ahead.
    pub(crate) fn has_started(&self) -> bool {
        self.start.is_some()
    }

    /// Returns true if its agent may still add nodes.
    pub(crate) fn agent_open(&self) -> bool {
        self.agent == Agent::Open
    }

    /// Returns true if a node waits in the ready queue.
    pub(crate) fn is_queued(&self, node: NodeId) -> bool {
        matches!(
            self.nodes.get(&node),
            Some(SessionNode {
                state: NodeState::Queued { .. },
                ..
            })
        )
    }

    /// Returns the instant since which a node that was due at `intended` could have been sent.
    pub(crate) fn free(&self, node: NodeId, intended: Nanos) -> Eligible {
        let known = self.nodes.get(&node).map_or(0, |node| node.known);
        let wanted = intended.max(known);
        Eligible {
            since: wanted.max(self.slot_since),
            held_by_sessions: self.slot_since.saturating_sub(wanted),
        }
    }

    /// Adds nodes that the scheduler learned of at `known`; those whose id is taken are ignored.
    /// Parents that do not exist count as complete.
    pub(crate) fn add(&mut self, plans: Vec<NodePlan<P>>, known: Nanos, ready: &mut ReadyQueue) {
        let mut added = Vec::with_capacity(plans.len());
        for plan in plans {
            if let Entry::Vacant(slot) = self.nodes.entry(plan.node) {
                let parents = match &plan.work {
                    NodeWork::Request(_) => Vec::new(),
                    NodeWork::ToolRun(_) => {
                        self.tool_runs += 1;
                        plan.parents.clone()
                    }
                };
                slot.insert(SessionNode {
                    history_parent: plan.history_parent,
                    history_mode: plan.history_mode,
                    recorded_answer: plan.recorded_answer,
                    wait: plan.wait_after_ready,
                    not_before: plan.not_before.unwrap_or(0),
                    known,
                    parents,
                    work: plan.work,
                    children: Vec::new(),
                    cancel_at: None,
                    cancelled_at: None,
                    state: NodeState::Waiting {
                        left: 0,
                        event: 0,
                        base: None,
                    },
                });
                added.push((plan.node, plan.parents, plan.cancel_when));
            }
        }
        self.unsent += added.len();
        for (node, parents, cancel_when) in added {
            self.link(node, &parents);
            self.link_cancellation(node, &cancel_when, known);
            self.queue_if_free(node, ready);
        }
    }

    /// Enters a node with its edges and notes those that are not met yet.
    ///
    /// An agent learns of a dispatch or a first chunk only with a completion. Such an edge of a
    /// node that it adds is met at the last completion at the earliest, when it can have thought of
    /// it.
    fn link(&mut self, node: NodeId, parents: &[Edge]) {
        let (mut left, mut last, mut base) = (0, 0, None);
        for edge in parents {
            match self.link_edge(node, edge, false) {
                LinkedEdge::Unknown => {}
                LinkedEdge::Met { event, at } => {
                    last = last.max(event);
                    base = base.max(Some(at));
                }
                LinkedEdge::Waiting => left += 1,
            }
        }
        if let Some(node) = self.nodes.get_mut(&node) {
            node.state = NodeState::Waiting {
                left,
                event: last,
                base,
            };
        }
    }

    /// Enters an edge of a node with its parent, unless the event has happened.
    fn link_edge(&mut self, node: NodeId, edge: &Edge, cancels: bool) -> LinkedEdge {
        let reacted = self.start.map_or(0, |_| self.latest);
        let Some(parent) = self.nodes.get_mut(&edge.parent) else {
            return LinkedEdge::Unknown;
        };
        match parent.state.happened_at(edge.trigger) {
            Some(at) => {
                let met = at.saturating_add(edge.delay);
                let earliest = match edge.trigger {
                    Trigger::Completed => 0,
                    Trigger::Dispatched | Trigger::FirstChunk => reacted,
                };
                LinkedEdge::Met {
                    event: at,
                    at: met.max(earliest),
                }
            }
            None => {
                parent.children.push(ChildEdge {
                    child: node,
                    trigger: edge.trigger,
                    delay: edge.delay,
                    cancels,
                });
                LinkedEdge::Waiting
            }
        }
    }

    /// Moves a node whose edges are met into the ready queue, once the session has started.
    ///
    /// A node without parents counts from the session's start. If an agent adds one later, it
    /// counts from the last completion: the earliest instant at which the agent can have thought of
    /// it.
    ///
    /// One that was cancelled while it waited is cancelled now.
    fn queue_if_free(&mut self, id: NodeId, ready: &mut ReadyQueue) {
        let Some(_) = self.start else { return };
        let latest = self.latest;
        if let Some(node) = self.nodes.get_mut(&id)
            && let NodeState::Waiting { left: 0, base, .. } = node.state
        {
            if let Some(at) = node.cancelled_at {
                self.cancellations.push((at, id));
                return;
            }
            let ready_at = base.unwrap_or(latest).saturating_add(node.wait);
            let mut intended = ready_at.max(node.not_before);
            if let NodeWork::ToolRun(_) = node.work {
                // A tool is called when its session has a slot; a request states how long it was
                // held instead.
                intended = intended.max(self.slot_since);
            }
            node.state = NodeState::Queued { intended };
            let request = RequestId {
                session: self.id,
                node: id,
            };
            match &node.work {
                NodeWork::Request(_) => ready.push(intended, request),
                NodeWork::ToolRun(_) => ready.push_tool_run(intended, request),
            }
        }
    }

    /// Starts the session, for which there has been a slot since `slot_since`.
    pub(crate) fn begin(&mut self, at: Nanos, slot_since: Nanos, ready: &mut ReadyQueue) {
        self.start = Some(at);
        self.slot_since = slot_since;
        self.latest = at;
        let nodes: Vec<NodeId> = self.nodes.keys().copied().collect();
        for node in nodes {
            self.queue_if_free(node, ready);
        }
    }

    /// Takes a queued node out for dispatch.
    pub(crate) fn dispatch(&mut self, node: NodeId, measured: bool, at: Nanos) -> Option<DispatchData<P>> {
        if !self.is_queued(node) {
            return None;
        }
        let SessionNode {
            history_parent,
            history_mode,
            work: NodeWork::Request(payload),
            ..
        } = self.nodes.get(&node)?
        else {
            return None;
        };
        let payload = payload.clone();
        let (parent, mode) = (*history_parent, *history_mode);
        let before = self.conversation_before(parent, mode);
        let history = before.history_for(mode);
        let session_requests = self.requests();
        let agent_open = self.agent_open();
        let node = self.nodes.get_mut(&node)?;
        node.state = NodeState::InFlight {
            measured,
            dispatched: at,
            first_chunk: None,
            cancelled: false,
            before,
        };
        self.unsent -= 1;
        self.in_flight += 1;
        Some(DispatchData {
            payload,
            history,
            session_requests,
            first_chunk_matters: agent_open
                || node
                    .children
                    .iter()
                    .any(|edge| edge.trigger == Trigger::FirstChunk),
        })
    }

    /// Returns the conversation that a node of this mode continues; an empty one if its history
    /// parent has not ended.
    fn conversation_before(&self, parent: Option<NodeId>, mode: HistoryMode) -> ConversationHistory<P> {
        match parent.and_then(|parent| self.nodes.get(&parent)) {
            Some(SessionNode {
                state: NodeState::Complete { conversation, .. },
                ..
            }) => conversation.before(mode),
            _ => ConversationHistory::new(),
        }
    }

    /// Notes the first chunk of a node; returns false if it was reported before, or if the node is
    /// not in flight.
    pub(crate) fn first_chunk(&mut self, node: NodeId, at: Nanos) -> bool {
        match self.nodes.get_mut(&node).map(|node| &mut node.state) {
            Some(NodeState::InFlight { first_chunk, .. }) => {
                let first = first_chunk.is_none();
                first_chunk.get_or_insert(at);
                first
            }
            _ => false,
        }
    }

    /// Notes the result of a node in flight; returns what it was, or `None` if it was not in
    /// flight.
    pub(crate) fn complete(
        &mut self,
        node: NodeId,
        at: Nanos,
        response: Option<Arc<Response>>,
    ) -> Option<EndedRequest> {
        let id = node;
        let node = self.nodes.get_mut(&id)?;
        let (
            NodeState::InFlight {
                measured,
                dispatched,
                first_chunk,
                before,
                ..
            },
            NodeWork::Request(payload),
        ) = (&mut node.state, &node.work)
        else {
            return None;
        };
        let ended = EndedRequest {
            measured: *measured,
            prefilling: first_chunk.is_none(),
        };
        let events = EventInstants {
            dispatched: *dispatched,
            first_chunk: first_chunk.unwrap_or(at),
            completed: at,
        };
        let failed = response.is_none();
        // A cancelled answer of which nothing had arrived is not a message.
        let turn = response.filter(|response| !response.cancelled || response.output_tokens > 0);
        let conversation = std::mem::take(before).with(payload.clone(), turn, node.recorded_answer.take());
        node.state = NodeState::Complete { events, conversation };
        self.obsolete.extend(node.cancel_at.take().map(|at| (at, id)));
        self.in_flight -= 1;
        self.latest = self.latest.max(at);
        if failed {
            self.worsen(SessionEnd::Errored);
        }
        Some(ended)
    }

    /// Releases the nodes that wait for events of a node up to `trigger`, which happened at `at`. A
    /// node that ends without a first chunk releases those that waited for it, too.
    pub(crate) fn release_children(
        &mut self,
        node: NodeId,
        trigger: Trigger,
        at: Nanos,
        ready: &mut ReadyQueue,
    ) {
        let Some(parent) = self.nodes.get_mut(&node) else {
            return;
        };
        let released: Vec<ChildEdge> = parent
            .children
            .extract_if(.., |edge| edge.trigger <= trigger)
            .collect();
        for edge in released {
            let met = at.saturating_add(edge.delay);
            if edge.cancels {
                // A tool run of a session that came late may have ended before.
                let known = self.nodes.get(&edge.child).map_or(0, |node| node.known);
                self.cancellations.push((met.max(known), edge.child));
                continue;
            }
            if let Some(SessionNode {
                state: NodeState::Waiting { left, event, base },
                ..
            }) = self.nodes.get_mut(&edge.child)
            {
                *left -= 1;
                *event = (*event).max(at);
                *base = (*base).max(Some(met));
            }
            self.queue_if_free(edge.child, ready);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A failure that is reported after the run has ended must not hide that the session was cut.
    #[test]
    fn worst_outcome_wins_over_a_later_one() {
        let mut ready = ReadyQueue::default();
        let mut session = SessionState::new(SessionId(0), SessionKind::Planned);
        let plan = |node| NodePlan {
            node: NodeId(node),
            parents: Vec::new(),
            history_parent: None,
            wait_after_ready: 0,
            not_before: None,
            history_mode: HistoryMode::Live,
            recorded_answer: None,
            cancel_when: Vec::new(),
            work: NodeWork::Request(Arc::new(())),
        };
        session.add(vec![plan(0), plan(1)], 0, &mut ready);
        session.begin(0, 0, &mut ready);
        assert!(session.dispatch(NodeId(0), true, 0).is_some());
        session.withdraw(NeverSentReason::RunEnded.into(), 5, &mut Vec::new());
        assert!(session.complete(NodeId(0), 9, None).is_some());
        assert_eq!(session.end(), Some(SessionEnd::Incomplete));
    }
}
