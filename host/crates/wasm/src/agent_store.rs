//! A store that several agents share.

use veeksha_ports::PluginFailure;
use wasmtime::component::ResourceAny;

use crate::agent_history::AgentInput;
use crate::bindings::agent_generator::{Guest, Opening, Step};
use crate::bindings::types::Error;
use crate::bound::BoundPlugin;
use crate::instance::PluginInstance;

/// The function that starts an agent.
pub(crate) const START: &str = "agent.start";

/// A store, and the agents that it has served.
#[derive(Default)]
pub(crate) struct AgentStore {
    /// `None` until it is needed, and after a trap.
    instance: Option<PluginInstance<Guest>>,
    /// Agents started.
    pub(crate) started: u64,
    /// Live agents, including those that have to be rebuilt after a trap.
    pub(crate) live: usize,
}

impl AgentStore {
    /// Returns true if another agent may start here.
    pub(crate) fn has_capacity(&self, bound: &BoundPlugin) -> bool {
        let limits = &bound.loaded.host.limits;
        self.live < limits.agents_per_store
            && self.started < limits.calls_per_store
            && !self.instance.as_ref().is_some_and(PluginInstance::is_swollen)
    }

    /// Starts an agent.
    pub(crate) fn start(
        &mut self,
        bound: &BoundPlugin,
        session: u64,
        input: impl FnOnce() -> Option<String>,
    ) -> Result<Result<(ResourceAny, Opening), Error>, PluginFailure> {
        let instance = match &mut self.instance {
            Some(instance) => instance,
            none => none.insert(PluginInstance::new(&bound.loaded, &bound.grants)?),
        };
        instance.call(START, input, |store, guest| {
            store.data_mut().restart_wasi(session, 0);
            guest.agent().call_start(store, &bound.config, session)
        })
    }

    /// Passes an input to an agent that was started in this store since its last trap. `call`
    /// counts the agent's inputs, from 1.
    pub(crate) fn send(
        &mut self,
        bound: &BoundPlugin,
        (agent, session, call): (ResourceAny, u64, u64),
        event: &AgentInput,
        input: impl FnOnce() -> Option<String>,
    ) -> Result<Result<Step, Error>, PluginFailure> {
        let Some(instance) = &mut self.instance else {
            return Err(bound.unusable(event.function(), None, "its store was dropped"));
        };
        instance.call(event.function(), input, |store, guest| {
            store.data_mut().restart_wasi(session, call);
            match event {
                AgentInput::Answered(response) => guest.agent().call_answered(store, agent, response),
                AgentInput::Cancelled(response) => guest.agent().call_cancelled(store, agent, response),
                AgentInput::Failed(failure) => guest.agent().call_failed(store, agent, failure),
                AgentInput::ToolEnded(ended) => guest.agent().call_tool_ended(store, agent, *ended),
            }
        })
    }

    /// Drops an agent. A destructor that traps invalidates the store.
    pub(crate) fn release(&mut self, agent: ResourceAny) {
        if let Some(instance) = &mut self.instance
            && let Err(failure) = instance.release("agent (destructor)", agent)
        {
            instance.warn(&format!("the destructor of an agent failed: {}", failure.message));
        }
    }

    /// Drops a store that trapped, and returns true if so. Its agents must be started again.
    pub(crate) fn drop_if_trapped(&mut self) -> bool {
        self.instance.take_if(|instance| instance.is_trapped()).is_some()
    }
}
