//! The end of a session: given up, cut, over.

use veeksha_events::{NeverSentReason, SessionEnd, ToolDropReason};
use veeksha_model::{Nanos, RequestId};

use super::node::NodeState;
use super::tool_runs::dropped;
use super::{Agent, SessionState, Withdrawal, Withdrawn};
use crate::contract::{Action, NodeWork};
use crate::conversation::ConversationHistory;

impl<P> SessionState<P> {
    /// The agent was asked about a completion.
    pub(crate) fn asked(&mut self) {
        self.asks += 1;
    }

    /// The agent answered; `done`: it will add nothing more.
    pub(crate) fn answered(&mut self, done: bool, now: Nanos) {
        self.asks = self.asks.saturating_sub(1);
        if done {
            self.agent = Agent::Closed;
            self.closed_at = now;
        }
    }

    /// The agent cannot go on.
    pub(crate) fn agent_failed(&mut self) {
        self.agent = Agent::Failed;
        self.worsen(SessionEnd::Errored);
    }

    /// Returns true if the agent failed.
    pub(crate) fn has_failed_agent(&self) -> bool {
        self.agent == Agent::Failed
    }

    /// Gives up every node that was not sent and every tool run that no server has taken, lowest id
    /// first. One that was cancelled and waited for its edges ends now.
    pub(crate) fn withdraw(&mut self, why: Withdrawal, at: Nanos, actions: &mut Vec<Action<P>>) -> Withdrawn {
        let (mut withdrawn, mut is_lost, mut cancelled) = (Withdrawn::default(), false, Vec::new());
        if self.unsent == 0 && self.tool_runs == 0 {
            return withdrawn;
        }
        for (id, node) in &mut self.nodes {
            let id = RequestId {
                session: self.id,
                node: *id,
            };
            let due_at = match node.state {
                NodeState::Waiting { .. } => None,
                NodeState::Queued { intended } => Some(intended),
                NodeState::InTool {
                    started: None,
                    ready_at,
                    ..
                } => Some(ready_at),
                _ => continue,
            };
            let reason = match why.due {
                _ if node.cancelled_at.is_some() => NeverSentReason::CancelledByClient,
                Some((end, _)) if due_at.is_some_and(|due| due < end) && node.state.is_in_tool() => {
                    NeverSentReason::Held
                }
                Some((end, reason)) if due_at.is_some_and(|due| due < end) => reason,
                _ => why.reason,
            };
            is_lost |= reason != NeverSentReason::CancelledByClient;
            match &node.work {
                NodeWork::Request(_) => {
                    withdrawn.queued += usize::from(due_at.is_some());
                    actions.push(Action::NeverSent {
                        request: id,
                        reason,
                        at,
                    });
                }
                NodeWork::ToolRun(run) => {
                    if let NodeState::InTool { measured, .. } = node.state {
                        self.in_flight -= 1;
                        withdrawn.awaited_tool_runs += usize::from(measured && run.is_drained());
                        withdrawn.calls.push((run.class, id));
                    }
                    let reason = ToolDropReason::NotServed(reason);
                    actions.push(dropped(id, run, due_at, reason, at));
                }
            }
            self.obsolete
                .extend(node.cancel_at.take().map(|at| (at, id.node)));
            node.state = NodeState::Withdrawn;
            if node.cancelled_at.is_some() {
                cancelled.push(id.node);
            }
        }
        for node in cancelled {
            self.end_unsent(node, at, ConversationHistory::new());
            self.release_cancellations(node, at);
        }
        self.unsent = 0;
        if is_lost {
            self.worsen(match why.reason {
                NeverSentReason::SessionCancelled => SessionEnd::Cancelled,
                NeverSentReason::RunEnded | NeverSentReason::Held | NeverSentReason::Missed => {
                    SessionEnd::Incomplete
                }
                NeverSentReason::PluginFailed => SessionEnd::Errored,
                // The workload wanted no answer.
                NeverSentReason::CancelledByClient => SessionEnd::Completed,
            });
        }
        withdrawn
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

    /// A node was lost because the run ended.
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
