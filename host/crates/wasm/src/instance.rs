//! One instance of a component in a store of its own, and the one way to call it.

use std::sync::Arc;

use veeksha_ports::PluginFailure;
use wasmtime::component::{Instance as Exports, ResourceAny};
use wasmtime::{Store, UpdateDeadline};

use crate::grants::Grants;
use crate::loaded::Loaded;
use crate::state::HostState;
use crate::{ticker, trap};

/// A store with an instance. `G` are the functions of the interface that it is used for.
pub(crate) struct Instance<G> {
    loaded: Arc<Loaded>,
    store: Store<HostState>,
    guest: G,
    health: Health,
}

/// After a trap nothing in a store can be entered again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Health {
    Sound,
    Trapped,
}

impl<G> Instance<G> {
    /// Makes a store and an instance. `find` takes the interface's functions out of it.
    pub(crate) fn new(
        loaded: &Arc<Loaded>,
        grants: &Grants,
        find: impl FnOnce(&mut Store<HostState>, &Exports) -> wasmtime::Result<G>,
    ) -> Result<Self, PluginFailure> {
        let limits = &loaded.host.limits;
        let mut store = Store::new(
            &loaded.host.engine,
            HostState::new(Arc::clone(&loaded.name), &loaded.host, grants),
        );
        store.epoch_deadline_callback(|mut store| {
            // What the host took to answer is not the guest's time: it gets as much again.
            Ok(match store.data_mut().answering.take_owed() {
                0 => UpdateDeadline::Interrupt,
                owed => UpdateDeadline::Continue(owed),
            })
        });
        store.limiter(|state| &mut state.memory);
        store.set_hostcall_fuel(limits.lift_bytes);
        store.set_epoch_deadline(ticker::epochs(limits.call_deadline));
        let made = loaded
            .pre
            .instantiate(&mut store)
            .and_then(|exports| find(&mut store, &exports));
        store.data_mut().leave();
        match made {
            Ok(guest) => Ok(Instance {
                loaded: Arc::clone(loaded),
                store,
                guest,
                health: Health::Sound,
            }),
            Err(error) => Err(trap::failure(&error, store.data(), limits, "instantiate", None)),
        }
    }

    /// Calls the guest: with a fresh deadline, and with a report if it does not return. `input` describes the call's
    /// arguments and is asked for only then.
    pub(crate) fn call<T>(
        &mut self,
        function: &'static str,
        input: impl FnOnce() -> Option<String>,
        call: impl FnOnce(&mut Store<HostState>, &G) -> wasmtime::Result<T>,
    ) -> Result<T, PluginFailure> {
        let limits = &self.loaded.host.limits;
        self.store
            .set_epoch_deadline(ticker::epochs(limits.call_deadline));
        self.store.data_mut().enter(function);
        let result = call(&mut self.store, &self.guest);
        self.store.data_mut().leave();
        result.map_err(|error| {
            self.health = Health::Trapped;
            trap::failure(&error, self.store.data(), limits, function, input())
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

    /// Whether a call trapped.
    pub(crate) fn is_trapped(&self) -> bool {
        self.health == Health::Trapped
    }

    /// Whether the guest holds so much memory that the store should be replaced.
    pub(crate) fn is_swollen(&self) -> bool {
        self.store.data().memory.used > self.loaded.host.limits.recycle_memory_bytes
    }

    /// Writes a line to the log in the plugin's name.
    pub(crate) fn warn(&self, message: &str) {
        self.store.data().warn(message);
    }
}
