//! An open resource of a guest: shared by all kinds of plugins.
//!
//! [`RenewableResource`] is reopened in a new store when its store trapped, served enough calls or
//! grew too large. [`PinnedResource`] stays in one store, for plugins that keep state between
//! calls.

use std::sync::Arc;

use veeksha_ports::PluginFailure;
use wasmtime::Store;
use wasmtime::component::ResourceAny;

use crate::bindings::types::Error;
use crate::bindings::{
    agent_generator, arrival_process, endpoint_codec, metric, request_check, session_generator, slo_check,
    trace_flavor,
};
use crate::bound::BoundPlugin;
use crate::convert;
use crate::instance::PluginInstance;
use crate::interface::Interface;
use crate::state::HostState;
use crate::text::cut;

/// Maximum length of a configuration's excerpt in a report, in characters.
const MAX_CONFIG_CHARS: usize = 200;

/// A resource of the contract that is opened with a configuration.
pub(crate) trait GuestResource: Interface {
    /// The contract's name of the function that opens it.
    const OPEN: &'static str;

    /// Opens the resource with a configuration.
    fn open(
        &self,
        store: &mut Store<HostState>,
        config: &str,
    ) -> wasmtime::Result<Result<ResourceAny, Error>>;
}

macro_rules! resources {
    ($($interface:ident, $resource:ident, $open:literal;)*) => {
        $(impl GuestResource for $interface::Guest {
            const OPEN: &'static str = $open;

            fn open(
                &self,
                store: &mut Store<HostState>,
                config: &str,
            ) -> wasmtime::Result<Result<ResourceAny, Error>> {
                self.$resource().call_open(store, config)
            }
        })*
    };
}

resources! {
    session_generator, workload, "workload.open";
    agent_generator, generator, "generator.open";
    arrival_process, process, "process.open";
    trace_flavor, flavor, "flavor.open";
    endpoint_codec, codec, "codec.open";
    metric, collector, "collector.open";
    request_check, checker, "checker.open";
    slo_check, checker, "checker.open";
}

/// An open resource that outlives its stores.
pub(crate) struct RenewableResource<G> {
    pub(crate) bound: Arc<BoundPlugin>,
    current: Option<PinnedResource<G>>,
}

/// An open resource in one store.
pub(crate) struct PinnedResource<G> {
    pub(crate) instance: PluginInstance<G>,
    resource: ResourceAny,
    calls: u64,
}

impl<G: GuestResource> RenewableResource<G> {
    /// Opens the resource now, so that a bad configuration is refused before anything else happens.
    pub(crate) fn new(bound: Arc<BoundPlugin>) -> Result<Self, PluginFailure> {
        let current = Some(PinnedResource::new(&bound)?);
        Ok(RenewableResource { bound, current })
    }

    /// Calls a function of the resource, in the current store or in a new one.
    pub(crate) fn call<T>(
        &mut self,
        function: &'static str,
        input: impl FnOnce() -> Option<String>,
        call: impl FnOnce(&mut Store<HostState>, &G, ResourceAny) -> wasmtime::Result<T>,
    ) -> Result<T, PluginFailure> {
        self.ready()?.call(function, input, call)
    }

    /// Returns true if the last call trapped, so that its store cannot serve another call.
    pub(crate) fn is_trapped(&self) -> bool {
        let current = self.current.as_ref();
        current.is_some_and(|current| current.instance.is_trapped())
    }

    fn ready(&mut self) -> Result<&mut PinnedResource<G>, PluginFailure> {
        let limits = &self.bound.loaded.host.limits;
        let is_worn = |current: &PinnedResource<G>| {
            current.instance.is_trapped()
                || current.instance.is_swollen()
                || current.calls >= limits.calls_per_store
        };
        let current = match self.current.take().filter(|current| !is_worn(current)) {
            Some(current) => current,
            None => PinnedResource::new(&self.bound)?,
        };
        let current = self.current.insert(current);
        current.calls += 1;
        Ok(current)
    }
}

impl<G: GuestResource> PinnedResource<G> {
    /// Opens the resource in a new store.
    pub(crate) fn new(bound: &BoundPlugin) -> Result<Self, PluginFailure> {
        let mut instance = PluginInstance::<G>::new(&bound.loaded, &bound.grants)?;
        let input = || Some(format!("config = {}", cut(&bound.config, MAX_CONFIG_CHARS)));
        let opened = instance.call(G::OPEN, input, |store, guest| guest.open(store, &bound.config))?;
        let resource =
            opened.map_err(|error| convert::refusal(&bound.loaded.name, G::OPEN, input(), error))?;
        Ok(PinnedResource {
            instance,
            resource,
            calls: 0,
        })
    }

    /// Calls a function of the resource.
    pub(crate) fn call<T>(
        &mut self,
        function: &'static str,
        input: impl FnOnce() -> Option<String>,
        call: impl FnOnce(&mut Store<HostState>, &G, ResourceAny) -> wasmtime::Result<T>,
    ) -> Result<T, PluginFailure> {
        let resource = self.resource;
        self.instance
            .call(function, input, |store, guest| call(store, guest, resource))
    }
}
