//! Cancellation by the workload, at the instant of its event.

use std::sync::Arc;

use veeksha_events::NeverSentReason;
use veeksha_model::{Nanos, RequestId, Response, SessionId};

use super::{Scheduler, is_queued};
use crate::contract::{Action, NodeOutcome};
use crate::deadline::RunPhase;
use crate::session::{CancelledNode, CancelledToolRun};

impl<P> Scheduler<P> {
    /// Cancels a node, as of an instant, and asks the agent about one that will not be sent once it
    /// is complete.
    pub(super) fn cancel(&mut self, request: RequestId, at: Nanos, actions: &mut Vec<Action<P>>) {
        let RequestId { session: id, node } = request;
        let Some(session) = self
            .sessions
            .get_mut(&id)
            .filter(|_| self.phase != RunPhase::Stopping)
        else {
            return;
        };
        match session.cancel(node, at, &mut self.ready) {
            CancelledNode::Unchanged => {}
            CancelledNode::InFlight => actions.push(Action::Cancel { request }),
            CancelledNode::Unsent { queued, at } => {
                let reason = NeverSentReason::CancelledByClient;
                actions.push(Action::NeverSent { request, reason, at });
                let part = Response {
                    cancelled: true,
                    ..Response::default()
                };
                let outcome = NodeOutcome::Answered(Arc::new(part));
                self.ask_about_unsent(request, outcome, at, actions);
                let sessions = &self.sessions;
                self.ready
                    .withdraw(usize::from(queued), |id| is_queued(sessions, id));
            }
            CancelledNode::NotServed(CancelledToolRun { run, call }) => {
                let at = run.at;
                let run = Box::new(run);
                actions.push(Action::ToolDropped(run.clone()));
                if let Some((class, was_awaited)) = call {
                    self.tools.drop_call(class, request);
                    self.measured_in_flight -= usize::from(was_awaited);
                }
                self.ask_about_unsent(request, NodeOutcome::ToolCancelled(run), at, actions);
            }
        }
    }

    /// Asks the agent about a node that was cancelled before it was sent or served.
    fn ask_about_unsent(
        &mut self,
        request: RequestId,
        outcome: NodeOutcome,
        at: Nanos,
        actions: &mut Vec<Action<P>>,
    ) {
        let RequestId { session: id, node } = request;
        if let Some(session) = self.sessions.get_mut(&id).filter(|session| session.agent_open()) {
            session.asked();
            actions.push(Action::AskAgent {
                session: id,
                node,
                outcome,
                at,
            });
        }
    }

    /// Takes the instants of cancellations that a session has learned of.
    pub(super) fn arm(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        for (at, node) in session.take_obsolete() {
            self.cancellations.remove(&(at, id, node));
        }
        for (node, at, before) in session.take_cancellations() {
            if let Some(before) = before {
                self.cancellations.remove(&(before, id, node));
            }
            self.cancellations.insert((at, id, node));
        }
    }

    pub(super) fn next_cancellation(&self) -> Option<Nanos> {
        self.cancellations.first().map(|(at, ..)| *at)
    }

    /// Carries out the first cancellation.
    pub(super) fn cancel_first(&mut self, actions: &mut Vec<Action<P>>) {
        if let Some((at, id, node)) = self.cancellations.pop_first() {
            self.cancel(RequestId { session: id, node }, at, actions);
            self.arm(id);
            self.settle_at_latest(id, actions);
        }
    }
}
