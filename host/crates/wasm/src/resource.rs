//! An open resource of a guest: shared by all kinds of plugins.
//!
//! [`RenewableResource`] is reopened in a new store when its store trapped, served enough calls or
//! grew too large, and follows the policies for instances and traps. [`PinnedResource`] stays in
//! one store, for plugins that keep state between calls.

use std::sync::Arc;

use veeksha_manifest::InstancePolicy;
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
    /// The instance of this worker; none after a trap, and between calls if instances are not kept.
    current: Option<PinnedResource<G>>,
    /// True if the last call trapped.
    trapped: bool,
}

/// An open resource in one store.
pub(crate) struct PinnedResource<G> {
    pub(crate) instance: PluginInstance<G>,
    resource: ResourceAny,
    calls: u64,
}

impl<G: GuestResource + Send + 'static> RenewableResource<G> {
    /// Opens the resource now, so that a bad configuration is refused before anything else happens.
    pub(crate) fn new(bound: Arc<BoundPlugin>) -> Result<Self, PluginFailure> {
        let opened = PinnedResource::new(&bound)?;
        let mut resource = RenewableResource {
            bound,
            current: None,
            trapped: false,
        };
        resource.keep(opened);
        Ok(resource)
    }

    /// Calls a function of the resource, in the current store or in a new one. If the call traps,
    /// the policy of the plugin decides what follows.
    pub(crate) fn call<T>(
        &mut self,
        function: &'static str,
        input: impl Fn() -> Option<String>,
        call: impl Fn(&mut Store<HostState>, &G, ResourceAny) -> wasmtime::Result<T>,
    ) -> Result<T, PluginFailure> {
        self.bound.check_enabled(function)?;
        let first = self.call_once(function, &input, &call);
        let Err(failure) = &first else { return first };
        if self.bound.restarts_after(failure) {
            return self.call_once(function, &input, &call);
        }
        self.bound.disable_after(failure);
        first
    }

    fn call_once<T>(
        &mut self,
        function: &'static str,
        input: impl Fn() -> Option<String>,
        call: impl Fn(&mut Store<HostState>, &G, ResourceAny) -> wasmtime::Result<T>,
    ) -> Result<T, PluginFailure> {
        let mut current = self.ready()?;
        current.calls += 1;
        let answer = current.call(function, input, call);
        self.keep(current);
        answer
    }

    /// Returns true if the last call trapped, so that its store cannot serve another call.
    pub(crate) fn is_trapped(&self) -> bool {
        self.trapped
    }

    /// Takes an instance that can serve a call.
    fn ready(&mut self) -> Result<PinnedResource<G>, PluginFailure> {
        let idle = match self.bound.grants.instances {
            InstancePolicy::PerWorker => self.current.take(),
            InstancePolicy::Pooled => self.bound.pool.take(),
            // Opened by `new`, and not used yet.
            InstancePolicy::PerCall => self.current.take(),
        };
        if let Some(idle) = idle {
            return Ok(idle);
        }
        let replacing = PinnedResource::new(&self.bound)?;
        if std::mem::take(&mut self.trapped) {
            self.bound.grants.meter.restarted();
        }
        Ok(replacing)
    }

    /// Keeps an instance for further calls, if it can serve them.
    fn keep(&mut self, used: PinnedResource<G>) {
        let limits = &self.bound.loaded.host.limits;
        self.trapped = used.instance.is_trapped();
        if self.trapped || used.instance.is_swollen() || used.calls >= limits.calls_per_store {
            return;
        }
        match self.bound.grants.instances {
            InstancePolicy::PerWorker => self.current = Some(used),
            InstancePolicy::Pooled => self.bound.pool.put(used),
            InstancePolicy::PerCall => self.current = Some(used).filter(|unused| unused.calls == 0),
        }
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
