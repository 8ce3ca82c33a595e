//! The edges of session graphs: the delay between the events that a request waits for and its
//! dispatch.

use std::collections::HashMap;

use veeksha_events::RequestRecord;
use veeksha_model::{
    Edge, EventInstants, Nanos, NodeId, Recorded, RequestId, SessionId, ToolRunRecord, Trigger, edges_met_at,
};

use veeksha_definitions::seconds_between;

/// Measures each request that has parents against them. Records may arrive in any order; a session
/// is dropped once all of it has ended.
#[derive(Debug, Default)]
pub(crate) struct EdgeTracker {
    open: HashMap<SessionId, OpenSession>,
    sent: Vec<ReleasedRequest>,
    /// Achieved gap − recorded gap, in seconds.
    pub(crate) gap_difference: Vec<f64>,
}

#[derive(Debug, Default)]
struct OpenSession {
    ended: HashMap<NodeId, EndedParent>,
    waiting: Vec<WaitingChild>,
    /// Requests that ended or were never sent.
    settled: u32,
    /// The number of requests in the session, known when the session is over.
    all: Option<u32>,
}

/// The facts about a request that its children need.
#[derive(Clone, Copy, Debug)]
struct EndedParent {
    events: EventInstants,
    /// The instant at which the answer was complete in the recording.
    recorded_end: Option<Nanos>,
}

/// A request that waited for others.
#[derive(Debug)]
struct WaitingChild {
    parents: Vec<Edge>,
    wait_after_ready: Nanos,
    dispatched_at: Nanos,
    recorded_at: Option<Nanos>,
}

/// A request whose release by its parents is known. The instant at which its recorded arrival was
/// due is known only at the end of the run: the session that arrived first may be the last to
/// answer.
#[derive(Clone, Copy, Debug)]
struct ReleasedRequest {
    ready: Nanos,
    dispatched: Nanos,
    recorded: Option<Nanos>,
}

impl EdgeTracker {
    /// Processes a finished request.
    pub(crate) fn on_record(&mut self, record: &RequestRecord) {
        let recorded = record.recorded.unwrap_or_default();
        let session = self.open.entry(record.id.session).or_default();
        session.settled += 1;
        let ended = EndedParent {
            events: record.events(),
            recorded_end: recorded_end(&recorded),
        };
        session.ended.insert(record.id.node, ended);
        if record.measured && !record.parents.is_empty() {
            session.waiting.push(WaitingChild {
                parents: record.parents.clone(),
                wait_after_ready: record.wait_after_ready,
                dispatched_at: record.dispatched_at,
                recorded_at: recorded.at,
            });
        }
        self.measure_waiting(record.id.session);
        self.forget_if_over(record.id.session);
    }

    /// Processes the end of a tool run, which a recording does not have.
    pub(crate) fn on_tool_run(&mut self, record: &ToolRunRecord) {
        let ended = EndedParent {
            events: record.events(),
            recorded_end: None,
        };
        let session = self.open.entry(record.id.session).or_default();
        session.ended.insert(record.id.node, ended);
        self.measure_waiting(record.id.session);
        self.forget_if_over(record.id.session);
    }

    fn measure_waiting(&mut self, session: SessionId) {
        let Some(OpenSession { ended, waiting, .. }) = self.open.get_mut(&session) else {
            return;
        };
        // Fast path: the parents almost always ended first, and nothing is waiting.
        let (sent, gaps) = (&mut self.sent, &mut self.gap_difference);
        waiting.retain(|child| !child.measure(ended, sent, gaps));
    }

    pub(crate) fn on_never_sent(&mut self, session: SessionId) {
        self.open.entry(session).or_default().settled += 1;
        self.forget_if_over(session);
    }

    /// Processes the end of a node that its workload cancelled before it was sent.
    pub(crate) fn on_unsent_end(&mut self, node: RequestId, at: Nanos) {
        let ended = EndedParent {
            events: EventInstants {
                dispatched: at,
                first_chunk: at,
                completed: at,
            },
            recorded_end: None,
        };
        let session = self.open.entry(node.session).or_default();
        session.ended.insert(node.node, ended);
        self.measure_waiting(node.session);
    }

    pub(crate) fn on_session_finished(&mut self, session: SessionId, requests: u32) {
        self.open.entry(session).or_default().all = Some(requests);
        self.forget_if_over(session);
    }

    /// Returns dispatched − due, in seconds, for every request with parents. `mapped` maps a
    /// recorded instant to its due instant, if traffic replays recorded instants: such a request is
    /// not sent earlier.
    pub(crate) fn slack(&self, mapped: impl Fn(Nanos) -> Option<Nanos>) -> Vec<f64> {
        let slack = |sent: &ReleasedRequest| {
            let not_before = sent.recorded.and_then(&mapped).unwrap_or(0);
            seconds_between(sent.ready.max(not_before), sent.dispatched)
        };
        self.sent.iter().map(slack).collect()
    }

    pub(crate) fn forget_if_over(&mut self, session: SessionId) {
        let over = |open: &OpenSession| open.all.is_some_and(|all| all <= open.settled);
        if self.open.get(&session).is_some_and(over) {
            self.open.remove(&session);
        }
    }
}

impl WaitingChild {
    /// Measures the request if all its parents have ended. Returns true if they have.
    fn measure(
        &self,
        ended: &HashMap<NodeId, EndedParent>,
        sent: &mut Vec<ReleasedRequest>,
        gap_difference: &mut Vec<f64>,
    ) -> bool {
        let met = edges_met_at(&self.parents, |parent| Some(ended.get(&parent)?.events));
        let Some(met) = met else { return false };
        sent.push(ReleasedRequest {
            ready: met.saturating_add(self.wait_after_ready),
            dispatched: self.dispatched_at,
            recorded: self.recorded_at,
        });
        gap_difference.extend(self.gap_difference(ended));
        true
    }

    /// Returns achieved gap − recorded gap, in seconds. A recording has no other events of a parent
    /// than its end.
    fn gap_difference(&self, ended: &HashMap<NodeId, EndedParent>) -> Option<f64> {
        let (mut last, mut recorded_last) = (0, 0);
        for edge in &self.parents {
            let parent = ended
                .get(&edge.parent)
                .filter(|_| edge.trigger == Trigger::Completed)?;
            last = last.max(parent.events.completed);
            recorded_last = recorded_last.max(parent.recorded_end?);
        }
        let recorded_gap = seconds_between(recorded_last, self.recorded_at?);
        Some(seconds_between(last, self.dispatched_at) - recorded_gap)
    }
}

fn recorded_end(recorded: &Recorded) -> Option<Nanos> {
    Some(recorded.at? + recorded.latency?)
}
