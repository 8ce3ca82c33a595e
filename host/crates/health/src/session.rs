//! State of one session while its requests are in progress.

use std::collections::BTreeMap;

use veeksha_model::{Edge, EventInstants, Nanos, NodeId, edges_met_at};

use crate::cancellation::CancellableRequest;

/// A session that is not completely accounted for yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionProgress {
    pub(crate) started_at: Option<Nanos>,
    pub(crate) finished_at: Option<Nanos>,
    /// Number of requests known at its start.
    pub(crate) known: u32,
    /// Number of all requests, once it is finished.
    pub(crate) all: Option<u32>,
    pub(crate) nodes: BTreeMap<NodeId, RequestState>,
    /// The events of the tool runs that ended. They are not requests.
    pub(crate) tool_runs: BTreeMap<NodeId, EventInstants>,
    /// Requests with parents of which the end of one is not known yet.
    pub(crate) waiting: Vec<WaitingRequest>,
    /// Finished requests that events were to cancel.
    pub(crate) cancellable: Vec<CancellableRequest>,
    pub(crate) first_dispatch: Option<DispatchTimes>,
    /// Latest instant of any of its events.
    pub(crate) last: Nanos,
}

/// State of one request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestState {
    pub(crate) dispatched: bool,
    pub(crate) finished: bool,
    pub(crate) never_sent: bool,
    /// True if its workload cancelled it before it was sent: it counts as complete from then on.
    pub(crate) cancelled: bool,
    /// Its events, once it is finished or cancelled.
    pub(crate) events: EventInstants,
    /// The earliest instants at which the scheduler can have known of these events: a thread stamps
    /// the dispatch after the scheduler decided it, and where a plugin decodes the answer
    /// afterwards, its first event counts as its first chunk.
    pub(crate) events_from: EventInstants,
}

/// A request with parents.
#[derive(Clone, Debug)]
pub(crate) struct WaitingRequest {
    pub(crate) node: NodeId,
    pub(crate) parents: Vec<Edge>,
    pub(crate) wait_after_ready: Nanos,
    pub(crate) intended: Nanos,
    pub(crate) dispatched_at: Nanos,
    pub(crate) held: Nanos,
}

/// The instant at which the last of some edges was met. It is known exactly unless that is a
/// dispatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EdgesMet {
    pub(crate) from: Nanos,
    pub(crate) until: Nanos,
}

/// Instants of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DispatchTimes {
    pub(crate) intended: Nanos,
    pub(crate) at: Nanos,
}

impl SessionProgress {
    /// Returns the number of requests whose outcome is known.
    pub(crate) fn resolved(&self) -> u32 {
        let resolved = self
            .nodes
            .values()
            .filter(|node| node.finished || node.never_sent);
        u32::try_from(resolved.count()).unwrap_or(u32::MAX)
    }

    /// Returns true if no further event is expected: the session, all its requests and all their
    /// dispatches are known. Tool runs are reported before the end of their session, by the same
    /// thread.
    pub(crate) fn is_accounted_for(&self) -> bool {
        self.started_at.is_some()
            && self.all.is_some_and(|all| self.resolved() >= all)
            && self.nodes.values().all(|node| node.dispatched || !node.finished)
    }

    /// Returns the instant from which it occupies a place: its start, later by the lateness of its
    /// first dispatch.
    pub(crate) fn began(&self) -> Option<Nanos> {
        let first = self.first_dispatch?;
        let late = first.at.saturating_sub(first.intended);
        Some(
            self.started_at
                .map_or(first.at, |start| start.saturating_add(late)),
        )
    }

    /// Returns the events of a request that is finished or was cancelled, or of a tool run.
    pub(crate) fn events(&self, node: NodeId) -> Option<EventInstants> {
        self.events_as(node, |request| request.events)
    }

    fn events_as(
        &self,
        node: NodeId,
        of_request: fn(&RequestState) -> EventInstants,
    ) -> Option<EventInstants> {
        let request = self.nodes.get(&node);
        let ended = request.filter(|request| request.finished || request.cancelled);
        ended
            .map(of_request)
            .or_else(|| self.tool_runs.get(&node).copied())
    }

    /// Returns when the last of these edges was met; `None` while a parent's outcome is unknown.
    pub(crate) fn met(&self, parents: &[Edge]) -> Option<EdgesMet> {
        Some(EdgesMet {
            from: edges_met_at(parents, |parent| {
                self.events_as(parent, |request| request.events_from)
            })?,
            until: edges_met_at(parents, |parent| self.events(parent))?,
        })
    }
}
