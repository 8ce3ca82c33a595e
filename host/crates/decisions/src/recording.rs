//! A workload whose agents' steps are recorded.

use std::collections::HashSet;
use std::sync::Arc;

use veeksha_model::{FailureReason, Nanos, NodeId, Response, SessionId};
use veeksha_ports::{
    AgentSource, AgentStep, Guarantees, PluginFailure, ToolRunEnd, Workload, WorkloadFactory, WorkloadInfo,
};

use crate::writer::DecisionSender;

/// Records the steps of another workload. Planned workloads pass through it unchanged.
pub struct RecordingFactory {
    inner: Arc<dyn WorkloadFactory>,
    sender: DecisionSender,
}

impl RecordingFactory {
    /// A workload like `inner` whose steps go to `sender`.
    pub fn new(inner: Arc<dyn WorkloadFactory>, sender: DecisionSender) -> Self {
        RecordingFactory { inner, sender }
    }
}

impl WorkloadFactory for RecordingFactory {
    fn info(&self) -> &WorkloadInfo {
        self.inner.info()
    }

    fn open(&self) -> Result<Workload, PluginFailure> {
        Ok(match self.inner.open()? {
            Workload::Planned(source) => Workload::Planned(source),
            Workload::Reactive(agents) => {
                self.sender.open();
                Workload::Reactive(Box::new(RecordedAgents {
                    agents,
                    sender: self.sender.clone(),
                    done: HashSet::new(),
                }))
            }
        })
    }

    fn open_silent(&self) -> Result<Workload, PluginFailure> {
        self.inner.open_silent()
    }

    fn guarantees(&self) -> Result<Guarantees, PluginFailure> {
        self.inner.guarantees()
    }
}

struct RecordedAgents {
    agents: Box<dyn AgentSource>,
    sender: DecisionSender,
    /// Live sessions whose agent has reported its end.
    done: HashSet<SessionId>,
}

impl RecordedAgents {
    /// Records a step if it decides anything, or if later steps may name calls of the answer.
    fn record(
        &mut self,
        session: SessionId,
        after: Option<NodeId>,
        tool_call_ids: &[&str],
        step: AgentStep,
    ) -> AgentStep {
        // The end of a node may have been on its way when the agent ended.
        let is_over = self.done.contains(&session);
        let adds = step.added.nodes().next().is_some() || !step.cancel.is_empty();
        if after.is_none() || !is_over && (adds || step.done || !tool_call_ids.is_empty()) {
            self.sender.step(session, after, tool_call_ids, &step);
        }
        if step.done {
            self.done.insert(session);
        }
        step
    }
}

impl AgentSource for RecordedAgents {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        self.agents.length()
    }

    fn start(&mut self, session: SessionId) -> Result<AgentStep, PluginFailure> {
        let step = self.agents.start(session)?;
        Ok(self.record(session, None, &[], step))
    }

    fn answered(
        &mut self,
        session: SessionId,
        node: NodeId,
        response: &Response,
        completed_at: Nanos,
    ) -> Result<AgentStep, PluginFailure> {
        let step = self.agents.answered(session, node, response, completed_at)?;
        let calls = response.tool_calls.iter();
        let ids: Vec<&str> = calls.map(|call| call.id.as_str()).collect();
        Ok(self.record(session, Some(node), &ids, step))
    }

    fn failed(&mut self, session: SessionId, reason: &FailureReason) -> Result<AgentStep, PluginFailure> {
        let step = self.agents.failed(session, reason)?;
        Ok(self.record(session, Some(reason.request.node), &[], step))
    }

    fn tool_ended(&mut self, session: SessionId, end: ToolRunEnd<'_>) -> Result<AgentStep, PluginFailure> {
        let step = self.agents.tool_ended(session, end)?;
        Ok(self.record(session, Some(end.node()), &[], step))
    }

    fn finish(&mut self, session: SessionId) {
        self.done.remove(&session);
        self.agents.finish(session);
    }
}
