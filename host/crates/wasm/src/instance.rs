//! An instance of a component in a dedicated store, with a single entry point for calls.

use std::sync::Arc;

use veeksha_ports::PluginFailure;
use wasmtime::component::ResourceAny;
use wasmtime::{Store, UpdateDeadline};

use crate::grants::Grants;
use crate::interface::Interface;
use crate::loaded::LoadedComponent;
use crate::state::HostState;
use crate::trap;

/// A store with an instance. `G` are the functions of the interface that it is used for.
pub(crate) struct PluginInstance<G> {
    loaded: Arc<LoadedComponent>,
    store: Store<HostState>,
    guest: G,
    /// After a trap no function of the store can be entered.
    trapped: bool,
}

impl<G: Interface> PluginInstance<G> {
    /// Creates a store and an instance.
    pub(crate) fn new(loaded: &Arc<LoadedComponent>, grants: &Grants) -> Result<Self, PluginFailure> {
        let limits = &loaded.host.limits;
        let state = HostState::new(
            Arc::clone(&loaded.name),
            limits,
            loaded.host.ticks.clone(),
            grants,
            loaded.uses_wasi(),
        );
        let mut store = Store::new(&loaded.host.engine, state);
        store.epoch_deadline_callback(|mut store| {
            // The host's time is not charged to the guest: the deadline is extended by it.
            Ok(match store.data_mut().host_time.take_owed() {
                0 => UpdateDeadline::Interrupt,
                owed => UpdateDeadline::Continue(owed),
            })
        });
        store.limiter(|state| &mut state.memory);
        store.set_hostcall_fuel(limits.lift_bytes);
        let host = &loaded.host;
        let set = host.allow_call(&mut store);
        let made = set
            .and_then(|()| loaded.pre.instantiate(&mut store))
            .and_then(|instance| G::load(&loaded.exported, &mut store, &instance));
        store.data_mut().leave(made.is_err());
        let meter = &grants.meter;
        meter.opened();
        match made {
            Ok(guest) => Ok(PluginInstance {
                loaded: Arc::clone(loaded),
                store,
                guest,
                trapped: false,
            }),
            Err(error) => {
                meter.trapped();
                Err(trap::failure(&error, store.data(), host, "instantiate", None))
            }
        }
    }
}

impl<G> PluginInstance<G> {
    /// Calls the guest with a new deadline. A call that does not return becomes a report; `input`
    /// describes the call's arguments and is evaluated only for that report.
    pub(crate) fn call<T>(
        &mut self,
        function: &'static str,
        input: impl FnOnce() -> Option<String>,
        call: impl FnOnce(&mut Store<HostState>, &G) -> wasmtime::Result<T>,
    ) -> Result<T, PluginFailure> {
        let host = &self.loaded.host;
        let set = host.allow_call(&mut self.store);
        self.store.data_mut().enter(function);
        let begun = host.clock.now();
        let result = set.and_then(|()| call(&mut self.store, &self.guest));
        let took = host.clock.now().saturating_sub(begun);
        self.store.data_mut().leave(result.is_err());
        let state = self.store.data();
        state.meter.called(took, state.memory.peak);
        if let Some(used) = host.used_fuel(&self.store) {
            state.meter.executed(used);
        }
        result.map_err(|error| {
            self.trapped = true;
            state.meter.trapped();
            trap::failure(&error, state, host, function, input())
        })
    }

    /// Drops a resource of the guest; its destructor is a call like any other.
    pub(crate) fn release(
        &mut self,
        function: &'static str,
        resource: ResourceAny,
    ) -> Result<(), PluginFailure> {
        self.call(function, || None, |store, _| resource.resource_drop(store))
    }

    /// Returns true if a call trapped.
    pub(crate) fn is_trapped(&self) -> bool {
        self.trapped
    }

    /// Returns true if the guest uses so much memory that the store should be replaced.
    pub(crate) fn is_swollen(&self) -> bool {
        self.store.data().memory.used > self.loaded.host.limits.recycle_memory_bytes
    }

    /// Writes a warning to the plugin's log.
    pub(crate) fn warn(&self, message: &str) {
        self.store.data().warn(message);
    }
}
