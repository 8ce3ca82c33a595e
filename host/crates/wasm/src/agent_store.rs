//! A store that several agents share.

use veeksha_ports::PluginFailure;
use wasmtime::component::ResourceAny;

use crate::agent_history::AgentInput;
use crate::bindings::agent_generator::{Guest, Opening, Step};
use crate::bindings::types::Error;
use crate::bound::BoundPlugin;
use crate::resource::PinnedResource;

/// The function that starts an agent.
pub(crate) const START: &str = "generator.start";

/// A store with an open generator, and the agents that it has served.
#[derive(Default)]
pub(crate) struct AgentStore {
    /// `None` until it is needed, and after a trap.
    generator: Option<PinnedResource<Guest>>,
    /// Agents started.
    pub(crate) started: u64,
    /// Live agents, including those that have to be rebuilt after a trap.
    pub(crate) live: usize,
    /// True if the last generator trapped and was not replaced yet.
    trapped: bool,
}

impl AgentStore {
    pub(crate) fn of(generator: PinnedResource<Guest>) -> Self {
        AgentStore {
            generator: Some(generator),
            ..AgentStore::default()
        }
    }

    /// Returns true if another agent may start here.
    pub(crate) fn has_capacity(&self, bound: &BoundPlugin) -> bool {
        self.live < bound.agents_per_store()
            && self.started < bound.loaded.host.limits.calls_per_store
            && !self
                .generator
                .as_ref()
                .is_some_and(|generator| generator.instance.is_swollen())
    }

    /// Starts an agent.
    pub(crate) fn start(
        &mut self,
        bound: &BoundPlugin,
        session: u64,
        input: impl FnOnce() -> Option<String>,
    ) -> Result<Result<(ResourceAny, Opening), Error>, PluginFailure> {
        let generator = match &mut self.generator {
            Some(generator) => generator,
            none => {
                let opened = none.insert(PinnedResource::new(bound)?);
                if std::mem::take(&mut self.trapped) {
                    bound.grants.meter.restarted();
                }
                opened
            }
        };
        generator.call(START, input, |store, guest, generator| {
            store.data_mut().restart_wasi(session, 0);
            guest.generator().call_start(store, generator, session)
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
        let Some(generator) = &mut self.generator else {
            return Err(bound.unusable(event.function(), None, "its store was dropped"));
        };
        generator.call(event.function(), input, |store, guest, _| {
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
        let Some(PinnedResource { instance, .. }) = &mut self.generator else {
            return;
        };
        if let Err(failure) = instance.release("agent (destructor)", agent) {
            instance.warn(&format!("the destructor of an agent failed: {}", failure.message));
        }
    }

    /// Drops a store that trapped, and returns true if so. Its agents must be started again.
    pub(crate) fn drop_if_trapped(&mut self) -> bool {
        let trapped = self
            .generator
            .take_if(|generator| generator.instance.is_trapped());
        self.trapped |= trapped.is_some();
        trapped.is_some()
    }
}
