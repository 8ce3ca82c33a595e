//! A store that some agents share.

use veeksha_ports::PluginFailure;
use wasmtime::component::ResourceAny;

use crate::bindings::agent_generator::{Guest, Step};
use crate::bindings::types::Error;
use crate::instance::Instance;
use crate::replay::Event;
use crate::workload::Bound;

/// The function that begins an agent.
pub(crate) const START: &str = "agent.start";

/// One store and how much it has served.
#[derive(Default)]
pub(crate) struct Shard {
    /// None until it is needed, and after a trap.
    instance: Option<Instance<Guest>>,
    /// Agents begun.
    pub(crate) begun: u64,
    /// Agents that live here, or will again once rebuilt.
    pub(crate) live: usize,
}

impl Shard {
    /// Whether another agent may begin here.
    pub(crate) fn has_room(&self, bound: &Bound) -> bool {
        let limits = &bound.loaded.host.limits;
        self.live < limits.agents_per_store
            && self.begun < limits.calls_per_store
            && !self.instance.as_ref().is_some_and(Instance::is_swollen)
    }

    /// Begins an agent.
    pub(crate) fn start(
        &mut self,
        bound: &Bound,
        session: u64,
        input: impl FnOnce() -> Option<String>,
    ) -> Result<Result<(ResourceAny, Step), Error>, PluginFailure> {
        let instance = match &mut self.instance {
            Some(instance) => instance,
            none => none.insert(bound.loaded.reactive(&bound.grants)?),
        };
        instance.call(START, input, |store, guest| {
            guest.agent().call_start(store, &bound.config, session)
        })
    }

    /// Tells an agent something. `agent` must have been begun in this shard since its last trap.
    pub(crate) fn tell(
        &mut self,
        bound: &Bound,
        agent: ResourceAny,
        event: &Event,
        input: impl FnOnce() -> Option<String>,
    ) -> Result<Result<Step, Error>, PluginFailure> {
        let Some(instance) = &mut self.instance else {
            return Err(bound.unusable(event.function(), String::new(), "its store is gone"));
        };
        instance.call(event.function(), input, |store, guest| match event {
            Event::Answered(response) => guest.agent().call_answered(store, agent, response),
            Event::Failed(failure) => guest.agent().call_failed(store, agent, failure),
        })
    }

    /// Lets an agent go. A destructor that traps takes the store along.
    pub(crate) fn release(&mut self, agent: ResourceAny) {
        if let Some(instance) = &mut self.instance
            && let Err(failure) = instance.release("agent (destructor)", agent)
        {
            instance.warn(&format!("an agent could not be let go: {}", failure.message));
        }
    }

    /// Drops a store that trapped. Its agents must be begun anew.
    pub(crate) fn drop_if_trapped(&mut self) -> bool {
        self.instance.take_if(|instance| instance.is_trapped()).is_some()
    }
}
