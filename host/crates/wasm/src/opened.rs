//! A resource of a guest that was opened with a configuration: what all kinds but agents have in common.
//!
//! [`Opened`] is one in a store that is replaced when it trapped, has served enough or is swollen. [`Current`] is one that stays
//! in its store, for what keeps something from one call to the next.

use std::sync::Arc;

use veeksha_ports::PluginFailure;
use wasmtime::Store;
use wasmtime::component::ResourceAny;

use crate::bindings::types::Error;
use crate::convert;
use crate::instance::Instance;
use crate::state::HostState;
use crate::text::cut;
use crate::workload::Bound;

/// Characters of a configuration shown in a report.
const CONFIG: usize = 200;

/// One of the contract's resources that `open` a configuration.
pub(crate) trait Opens: Sized {
    /// The contract's name of the function that opens it.
    const OPEN: &'static str;

    /// A new instance of the kind that has the resource.
    fn instance(bound: &Bound) -> Result<Instance<Self>, PluginFailure>;

    /// Opens the resource with a configuration.
    fn open(
        &self,
        store: &mut Store<HostState>,
        config: &str,
    ) -> wasmtime::Result<Result<ResourceAny, Error>>;
}

/// An open resource that outlives its stores.
pub(crate) struct Opened<G> {
    pub(crate) bound: Arc<Bound>,
    current: Option<Current<G>>,
}

/// An open resource in the store of the moment.
pub(crate) struct Current<G> {
    instance: Instance<G>,
    resource: ResourceAny,
    calls: u64,
}

impl<G: Opens> Opened<G> {
    /// Opens the resource now, so that a configuration is refused before anything else happens.
    pub(crate) fn new(bound: Arc<Bound>) -> Result<Self, PluginFailure> {
        let current = Some(Current::new(&bound)?);
        Ok(Opened { bound, current })
    }

    /// Calls a function of the resource: in the store at hand, or in a fresh one.
    pub(crate) fn call<T>(
        &mut self,
        function: &'static str,
        input: impl FnOnce() -> Option<String>,
        call: impl FnOnce(&mut Store<HostState>, &G, ResourceAny) -> wasmtime::Result<T>,
    ) -> Result<T, PluginFailure> {
        self.ready()?.call(function, input, call)
    }

    /// Whether its last call trapped, so that the store at hand serves nothing any more.
    pub(crate) fn is_trapped(&self) -> bool {
        let current = self.current.as_ref();
        current.is_some_and(|current| current.instance.is_trapped())
    }

    fn ready(&mut self) -> Result<&mut Current<G>, PluginFailure> {
        let limits = &self.bound.loaded.host.limits;
        let worn = |current: &Current<G>| {
            current.instance.is_trapped()
                || current.instance.is_swollen()
                || current.calls >= limits.calls_per_store
        };
        let current = match self.current.take().filter(|current| !worn(current)) {
            Some(current) => current,
            None => Current::new(&self.bound)?,
        };
        let current = self.current.insert(current);
        current.calls += 1;
        Ok(current)
    }
}

impl<G: Opens> Current<G> {
    /// Opens the resource in a store of its own.
    pub(crate) fn new(bound: &Bound) -> Result<Self, PluginFailure> {
        let mut instance = G::instance(bound)?;
        let input = || Some(format!("config = {}", cut(&bound.config, CONFIG)));
        let opened = instance.call(G::OPEN, input, |store, guest| guest.open(store, &bound.config))?;
        let resource =
            opened.map_err(|error| convert::refusal(&bound.loaded.name, G::OPEN, input(), error))?;
        Ok(Current {
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
