//! Agents whose sessions end with their first error.

use std::collections::HashSet;

use veeksha_model::{Nanos, NodeId, SessionId};
use veeksha_ports::{AgentSource, AgentStep, PluginFailure, SessionSource, ToolRunEnd, Workload};
use veeksha_scheduler::NodeOutcome;

/// An open instance of a workload.
pub(crate) enum OpenWorkload {
    /// Whole graphs ahead of time.
    Planned(Box<dyn SessionSource>),
    /// Nodes in answer to completions.
    Reactive(LiveAgents),
}

impl From<Workload> for OpenWorkload {
    fn from(workload: Workload) -> Self {
        match workload {
            Workload::Planned(source) => OpenWorkload::Planned(source),
            Workload::Reactive(agents) => OpenWorkload::Reactive(LiveAgents {
                agents,
                failed: HashSet::new(),
            }),
        }
    }
}

impl OpenWorkload {
    /// Returns the number of sessions, or `None` if there is no end.
    pub(crate) fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        match self {
            OpenWorkload::Planned(source) => source.length(),
            OpenWorkload::Reactive(LiveAgents { agents, .. }) => agents.length(),
        }
    }
}

/// Live agents. A session fails once, whether its agent fails or a step of it cannot be prepared:
/// ends of nodes that were on their way are not passed on.
pub(crate) struct LiveAgents {
    agents: Box<dyn AgentSource>,
    /// Sessions that have failed, until they are over.
    failed: HashSet<SessionId>,
}

impl LiveAgents {
    /// Starts a session and prepares the first step.
    pub(crate) fn start<T>(
        &mut self,
        session: SessionId,
        prepare: impl FnOnce(AgentStep) -> Result<T, PluginFailure>,
    ) -> Result<T, PluginFailure> {
        let prepared = self.agents.start(session).and_then(prepare);
        self.keep(session, prepared)
    }

    /// Passes the end of a node to its agent and prepares the next step. Returns `None` if the
    /// session has failed before.
    pub(crate) fn ended<T>(
        &mut self,
        session: SessionId,
        node: NodeId,
        outcome: &NodeOutcome,
        at: Nanos,
        prepare: impl FnOnce(AgentStep) -> Result<T, PluginFailure>,
    ) -> Option<Result<T, PluginFailure>> {
        if self.failed.contains(&session) {
            return None;
        }
        let step = match outcome {
            NodeOutcome::Answered(response) => self.agents.answered(session, node, response, at),
            NodeOutcome::Failed(reason) => self.agents.failed(session, reason),
            NodeOutcome::ToolRan(run) => self.agents.tool_ended(session, ToolRunEnd::Served(run)),
            NodeOutcome::ToolCancelled(run) => {
                let end = ToolRunEnd::Cancelled {
                    node,
                    waiting_time: run.ready_at.map_or(0, |ready_at| at.saturating_sub(ready_at)),
                    at,
                };
                self.agents.tool_ended(session, end)
            }
        };
        Some(self.keep(session, step.and_then(prepare)))
    }

    /// Notes that a session is over.
    pub(crate) fn finish(&mut self, session: SessionId) {
        self.failed.remove(&session);
        self.agents.finish(session);
    }

    fn keep<T>(
        &mut self,
        session: SessionId,
        prepared: Result<T, PluginFailure>,
    ) -> Result<T, PluginFailure> {
        if prepared.is_err() {
            self.failed.insert(session);
        }
        prepared
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::sync::Arc;

    use veeksha_events::{DroppedToolRun, NeverSentReason, ToolDropReason};
    use veeksha_model::{FailureReason, RequestId, Response};

    use super::*;

    /// Keeps what its agent learns of cancelled tool runs.
    struct Waits(Rc<RefCell<Vec<(NodeId, Nanos, Nanos)>>>);

    impl AgentSource for Waits {
        fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
            Ok(None)
        }

        fn start(&mut self, _: SessionId) -> Result<AgentStep, PluginFailure> {
            Ok(AgentStep::default())
        }

        fn answered(
            &mut self,
            _: SessionId,
            _: NodeId,
            _: &Response,
            _: Nanos,
        ) -> Result<AgentStep, PluginFailure> {
            Ok(AgentStep::default())
        }

        fn failed(&mut self, _: SessionId, _: &FailureReason) -> Result<AgentStep, PluginFailure> {
            Ok(AgentStep::default())
        }

        fn tool_ended(&mut self, _: SessionId, end: ToolRunEnd<'_>) -> Result<AgentStep, PluginFailure> {
            if let ToolRunEnd::Cancelled {
                node,
                waiting_time,
                at,
            } = end
            {
                self.0.borrow_mut().push((node, waiting_time, at));
            }
            Ok(AgentStep::default())
        }

        fn finish(&mut self, _: SessionId) {}
    }

    /// From the call to the cancellation; nothing if it was not called, or would have been later.
    #[test]
    fn cancelled_tool_runs_reach_their_agent_with_their_waiting_time() {
        let seen = Rc::default();
        let workload = Workload::Reactive(Box::new(Waits(Rc::clone(&seen))));
        let OpenWorkload::Reactive(mut agents) = workload.into() else {
            unreachable!();
        };
        let (session, node) = (SessionId(1), NodeId(4));
        for ready_at in [Some(30), None, Some(95)] {
            let outcome = NodeOutcome::ToolCancelled(Box::new(DroppedToolRun {
                id: RequestId { session, node },
                class: Arc::from("sandbox"),
                ready_at,
                reason: ToolDropReason::NotServed(NeverSentReason::CancelledByClient),
                at: 90,
            }));
            agents.ended(session, node, &outcome, 90, Ok).unwrap().unwrap();
        }
        assert_eq!(*seen.borrow(), [(node, 60, 90), (node, 0, 90), (node, 0, 90)]);
    }
}
