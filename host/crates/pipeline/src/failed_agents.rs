//! One error for each agent that fails.

use std::collections::HashSet;

use veeksha_model::{FailureReason, Nanos, NodeId, Response, SessionId, ToolRunRecord};
use veeksha_ports::{AgentSource, AgentStep, PluginFailure, Workload};

/// Agents whose sessions end with their first error: ends of nodes that were on their way are not
/// passed on.
struct FirstErrors {
    agents: Box<dyn AgentSource>,
    failed: HashSet<SessionId>,
}

/// Returns a workload whose agents return one error each.
pub(crate) fn with_first_errors(workload: Workload) -> Workload {
    match workload {
        Workload::Planned(source) => Workload::Planned(source),
        Workload::Reactive(agents) => Workload::Reactive(Box::new(FirstErrors {
            agents,
            failed: HashSet::new(),
        })),
    }
}

impl FirstErrors {
    fn step(
        &mut self,
        session: SessionId,
        step: impl FnOnce(&mut dyn AgentSource) -> Result<AgentStep, PluginFailure>,
    ) -> Result<AgentStep, PluginFailure> {
        if self.failed.contains(&session) {
            return Ok(AgentStep {
                done: true,
                ..AgentStep::default()
            });
        }
        let step = step(&mut *self.agents);
        if step.is_err() {
            self.failed.insert(session);
        }
        step
    }
}

impl AgentSource for FirstErrors {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        self.agents.length()
    }

    fn start(&mut self, session: SessionId) -> Result<AgentStep, PluginFailure> {
        self.agents.start(session)
    }

    fn answered(
        &mut self,
        session: SessionId,
        node: NodeId,
        response: &Response,
        completed_at: Nanos,
    ) -> Result<AgentStep, PluginFailure> {
        self.step(session, |agents| {
            agents.answered(session, node, response, completed_at)
        })
    }

    fn failed(&mut self, session: SessionId, reason: &FailureReason) -> Result<AgentStep, PluginFailure> {
        self.step(session, |agents| agents.failed(session, reason))
    }

    fn tool_ended(&mut self, session: SessionId, run: &ToolRunRecord) -> Result<AgentStep, PluginFailure> {
        self.step(session, |agents| agents.tool_ended(session, run))
    }

    fn finish(&mut self, session: SessionId) {
        self.failed.remove(&session);
        self.agents.finish(session);
    }
}
