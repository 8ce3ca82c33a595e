//! A component that is ready to be used, and an instance of it as any of its kinds.

use std::sync::{Arc, OnceLock};

use veeksha_ports::{PluginFailure, PluginFailureKind};
use wasmtime::component::{Component, InstancePre};

use crate::bindings::{
    agent_generator, endpoint_codec, metric, request_check, session_generator, slo_check, trace_flavor,
};
use crate::describe::Descriptor;
use crate::discovery::Discovered;
use crate::discovery::Kinds;
use crate::engine::Host;
use crate::grants::{Grants, NoLog};
use crate::instance::Instance;
use crate::state::HostState;

/// Where a component's machine code came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Cache,
    Compiler,
}

/// A compiled, linked and type-checked component.
pub(crate) struct Loaded {
    pub(crate) host: Arc<Host>,
    pub(crate) name: Arc<str>,
    pub(crate) digest: String,
    pub(crate) discovered: Discovered,
    pub(crate) pre: InstancePre<HostState>,
    pub(crate) sessions: Option<session_generator::GuestIndices>,
    pub(crate) agents: Option<agent_generator::GuestIndices>,
    pub(crate) flavors: Option<trace_flavor::GuestIndices>,
    pub(crate) codecs: Option<endpoint_codec::GuestIndices>,
    pub(crate) metrics: Option<metric::GuestIndices>,
    pub(crate) request_checks: Option<request_check::GuestIndices>,
    pub(crate) slo_checks: Option<slo_check::GuestIndices>,
    pub(crate) origin: Origin,
    /// What it says of itself, once it was asked.
    pub(crate) descriptor: OnceLock<Descriptor>,
}

impl Loaded {
    /// Links a component. Its exports are checked against the contract's types here.
    pub(crate) fn new(
        host: Arc<Host>,
        name: &str,
        digest: String,
        discovered: Discovered,
        origin: Origin,
        component: Component,
    ) -> wasmtime::Result<Self> {
        let pre = host.linker.instantiate_pre(&component)?;
        let Kinds {
            session_generator,
            agent_generator,
            trace_flavor,
            endpoint_codec,
            metric,
            request_check,
            slo_check,
        } = discovered.kinds;
        let sessions = session_generator
            .then(|| session_generator::GuestIndices::new(&pre))
            .transpose()?;
        let agents = agent_generator
            .then(|| agent_generator::GuestIndices::new(&pre))
            .transpose()?;
        let flavors = trace_flavor
            .then(|| trace_flavor::GuestIndices::new(&pre))
            .transpose()?;
        let codecs = endpoint_codec
            .then(|| endpoint_codec::GuestIndices::new(&pre))
            .transpose()?;
        let metrics = metric.then(|| metric::GuestIndices::new(&pre)).transpose()?;
        let request_checks = request_check
            .then(|| request_check::GuestIndices::new(&pre))
            .transpose()?;
        let slo_checks = slo_check
            .then(|| slo_check::GuestIndices::new(&pre))
            .transpose()?;
        let descriptor = OnceLock::new();
        Ok(Loaded {
            host,
            name: name.into(),
            digest,
            discovered,
            pre,
            sessions,
            agents,
            flavors,
            codecs,
            metrics,
            request_checks,
            slo_checks,
            origin,
            descriptor,
        })
    }

    /// A new instance as a session generator.
    pub(crate) fn planned(
        self: &Arc<Self>,
        grants: &Grants,
    ) -> Result<Instance<session_generator::Guest>, PluginFailure> {
        Instance::new(self, grants, |store, exports| match &self.sessions {
            Some(indices) => indices.load(store, exports),
            None => wasmtime::bail!("it exports no `session-generator`"),
        })
    }

    /// A new instance as an agent generator.
    pub(crate) fn reactive(
        self: &Arc<Self>,
        grants: &Grants,
    ) -> Result<Instance<agent_generator::Guest>, PluginFailure> {
        Instance::new(self, grants, |store, exports| match &self.agents {
            Some(indices) => indices.load(store, exports),
            None => wasmtime::bail!("it exports no `agent-generator`"),
        })
    }

    /// A new instance as a trace flavor.
    pub(crate) fn flavor(
        self: &Arc<Self>,
        grants: &Grants,
    ) -> Result<Instance<trace_flavor::Guest>, PluginFailure> {
        Instance::new(self, grants, |store, exports| match &self.flavors {
            Some(indices) => indices.load(store, exports),
            None => wasmtime::bail!("it exports no `trace-flavor`"),
        })
    }

    /// A new instance as an endpoint codec.
    pub(crate) fn codec(
        self: &Arc<Self>,
        grants: &Grants,
    ) -> Result<Instance<endpoint_codec::Guest>, PluginFailure> {
        Instance::new(self, grants, |store, exports| match &self.codecs {
            Some(indices) => indices.load(store, exports),
            None => wasmtime::bail!("it exports no `endpoint-codec`"),
        })
    }

    /// A new instance as a metric.
    pub(crate) fn metric(
        self: &Arc<Self>,
        grants: &Grants,
    ) -> Result<Instance<metric::Guest>, PluginFailure> {
        Instance::new(self, grants, |store, exports| match &self.metrics {
            Some(indices) => indices.load(store, exports),
            None => wasmtime::bail!("it exports no `metric`"),
        })
    }

    /// A new instance as a request check.
    pub(crate) fn request_check(
        self: &Arc<Self>,
        grants: &Grants,
    ) -> Result<Instance<request_check::Guest>, PluginFailure> {
        Instance::new(self, grants, |store, exports| match &self.request_checks {
            Some(indices) => indices.load(store, exports),
            None => wasmtime::bail!("it exports no `request-check`"),
        })
    }

    /// A new instance as an SLO check.
    pub(crate) fn slo_check(
        self: &Arc<Self>,
        grants: &Grants,
    ) -> Result<Instance<slo_check::Guest>, PluginFailure> {
        Instance::new(self, grants, |store, exports| match &self.slo_checks {
            Some(indices) => indices.load(store, exports),
            None => wasmtime::bail!("it exports no `slo-check`"),
        })
    }

    /// Asks it what it is, as whichever kind it is.
    pub(crate) fn describe(self: &Arc<Self>) -> Result<Descriptor, PluginFailure> {
        const FUNCTION: &str = "describe";
        // Without a run there is nothing to grant; a descriptor may not depend on it.
        let grants = Grants::new(0, Arc::new(NoLog));
        let answer = if self.sessions.is_some() {
            self.planned(&grants)?
                .call(FUNCTION, || None, |store, guest| guest.call_describe(store))?
        } else if self.agents.is_some() {
            self.reactive(&grants)?
                .call(FUNCTION, || None, |store, guest| guest.call_describe(store))?
        } else if self.flavors.is_some() {
            self.flavor(&grants)?
                .call(FUNCTION, || None, |store, guest| guest.call_describe(store))?
        } else if self.codecs.is_some() {
            self.codec(&grants)?
                .call(FUNCTION, || None, |store, guest| guest.call_describe(store))?
        } else if self.metrics.is_some() {
            self.metric(&grants)?
                .call(FUNCTION, || None, |store, guest| guest.call_describe(store))?
        } else if self.request_checks.is_some() {
            self.request_check(&grants)?
                .call(FUNCTION, || None, |store, guest| guest.call_describe(store))?
        } else {
            self.slo_check(&grants)?
                .call(FUNCTION, || None, |store, guest| guest.call_describe(store))?
        };
        Descriptor::admit(answer)
            .map_err(|why| PluginFailure::new(&*self.name, FUNCTION, PluginFailureKind::Result, why))
    }
}
