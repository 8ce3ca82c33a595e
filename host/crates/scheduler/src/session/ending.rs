//! The end of a session: given up, cut, over.

use veeksha_events::{NeverSentReason, SessionEnd};
use veeksha_model::{Nanos, RequestId};

use super::{Agent, NodeState, SessionState, Withdrawal};
use crate::contract::{Action, NodeWork};

impl<P> SessionState<P> {
    /// Gives up every node that was not sent, lowest id first. Returns how many of them were in the
    /// ready queue.
    pub(crate) fn withdraw(&mut self, why: Withdrawal, at: Nanos, actions: &mut Vec<Action<P>>) -> usize {
        let mut queued = 0;
        if self.unsent == 0 && self.tool_runs == 0 {
            return queued;
        }
        for (id, node) in &mut self.nodes {
            if let NodeWork::ToolRun(_) = node.work {
                match node.state {
                    NodeState::InTool { started: None, .. } => self.in_flight -= 1,
                    NodeState::Queued { .. } | NodeState::Waiting { .. } => {}
                    _ => continue,
                }
                node.state = NodeState::Withdrawn;
                continue;
            }
            let reason = match (&node.state, why.due) {
                (NodeState::Queued { intended }, Some((end, reason))) if *intended < end => {
                    queued += 1;
                    reason
                }
                (NodeState::Queued { .. }, _) => {
                    queued += 1;
                    why.reason
                }
                (NodeState::Waiting { .. }, _) => why.reason,
                _ => continue,
            };
            node.state = NodeState::Withdrawn;
            let request = RequestId {
                session: self.id,
                node: *id,
            };
            actions.push(Action::NeverSent { request, reason, at });
        }
        self.unsent = 0;
        self.worsen(match why.reason {
            NeverSentReason::SessionCancelled => SessionEnd::Cancelled,
            NeverSentReason::RunEnded | NeverSentReason::Held | NeverSentReason::Missed => {
                SessionEnd::Incomplete
            }
            NeverSentReason::PluginFailed => SessionEnd::Errored,
            // The workload wanted no answer.
            NeverSentReason::CancelledByClient => SessionEnd::Completed,
        });
        queued
    }

    /// Ends a session whose agent neither adds a node nor reports `done`, although nothing is left
    /// that it could react to. Called after a step and at the start.
    pub(crate) fn give_up_if_stuck(&mut self) {
        if self.start.is_some() && self.agent == Agent::Open && self.unsent + self.in_flight + self.asks == 0
        {
            self.agent = Agent::Closed;
            self.worsen(SessionEnd::Errored);
        }
    }

    /// Ends the session with the run: one whose agent is still open is incomplete.
    pub(crate) fn cut(&mut self) {
        if self.agent == Agent::Open {
            self.agent = Agent::Closed;
            self.worsen(SessionEnd::Incomplete);
        }
    }

    /// A request was lost because the run ended.
    pub(crate) fn lost(&mut self) {
        self.worsen(SessionEnd::Incomplete);
    }

    /// Returns the outcome once the session is over.
    pub(crate) fn end(&self) -> Option<SessionEnd> {
        let over = self.start.is_some() && self.unsent + self.in_flight == 0 && self.agent != Agent::Open;
        over.then_some(self.outcome)
    }

    /// Keeps the worst: completed, errored, cancelled, incomplete. What a failure cancelled stays
    /// cancelled.
    pub(super) fn worsen(&mut self, end: SessionEnd) {
        if self.outcome != SessionEnd::Cancelled {
            self.outcome = self.outcome.max(end);
        }
    }
}
