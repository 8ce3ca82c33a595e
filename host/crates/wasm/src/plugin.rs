//! A component that is ready to be used.

use std::sync::{Arc, OnceLock};

use veeksha_ports::{
    FlavorFactory, MetricFactory, PluginFailure, PluginFailureKind, RequestCheckFactory, SloCheck,
    WorkloadFactory, WorkloadInfo,
};
use wasmtime::component::{Component, InstancePre};

use crate::bindings::{
    agent_generator, endpoint_codec, metric, request_check, session_generator, slo_check, trace_flavor,
};
use crate::discovery::Discovered;
use crate::engine::Host;
use crate::instance::Instance;
use crate::state::HostState;
use crate::workload::{Bound, Factory};
use crate::{Descriptor, Grants, Kinds, NoLog, PluginEndpoint, codec, collector, flavor, judge, verdicts};

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
    origin: Origin,
    descriptor: OnceLock<Descriptor>,
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

    fn describe(self: &Arc<Self>) -> Result<Descriptor, PluginFailure> {
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

/// A loaded plugin. Cheap to clone.
#[derive(Clone)]
pub struct Plugin {
    loaded: Arc<Loaded>,
}

impl Plugin {
    pub(crate) fn new(loaded: Loaded) -> Self {
        Plugin {
            loaded: Arc::new(loaded),
        }
    }

    /// BLAKE3 of the component, in hex.
    pub fn digest(&self) -> &str {
        &self.loaded.digest
    }

    /// What the component imports: capabilities by their short names (`blobs`, `log`, `random`, `tokens`), in order, and
    /// last `wasi` if it imports anything of WASI (it gets a stand-in).
    pub fn imports(&self) -> &[String] {
        &self.loaded.discovered.imports
    }

    /// Which kinds of plugin it is.
    pub fn kinds(&self) -> Kinds {
        self.loaded.discovered.kinds
    }

    /// Whether its machine code was read from the cache, and not compiled just now.
    pub fn compiled_from_cache(&self) -> bool {
        self.loaded.origin == Origin::Cache
    }

    /// What the plugin says of itself. Asked once, and kept in the cache.
    pub fn describe(&self) -> Result<Descriptor, PluginFailure> {
        let Loaded {
            host,
            digest,
            descriptor,
            ..
        } = &*self.loaded;
        if let Some(known) = descriptor.get() {
            return Ok(known.clone());
        }
        let kept = host.cache().and_then(|cache| cache.descriptor(digest));
        let answer = match kept {
            Some(kept) => kept,
            None => {
                let fresh = self.loaded.describe()?;
                if let Some(cache) = host.cache() {
                    host.note(cache.keep_descriptor(digest, &fresh));
                }
                fresh
            }
        };
        Ok(descriptor.get_or_init(|| answer).clone())
    }

    /// Binds a configuration (JSON text, not looked at here) and grants. The plugin sees the configuration when an
    /// instance is opened; a refusal comes from there. A component of both kinds is used as a session generator; one that
    /// makes no sessions of its own is refused here.
    pub fn workload(
        &self,
        config: String,
        grants: Grants,
    ) -> Result<Arc<dyn WorkloadFactory>, PluginFailure> {
        let Loaded {
            sessions,
            agents,
            flavors,
            codecs,
            ..
        } = &*self.loaded;
        if sessions.is_none() && agents.is_none() {
            let remedy = if flavors.is_some() {
                "give it a trace: session_generator.type `trace`, and the plugin as its `flavor`"
            } else if codecs.is_some() {
                "it says how a server is spoken to: name it as the client's `codec`"
            } else {
                "it measures or judges a run: name it among the plugins of the evaluation"
            };
            return Err(self.another_kind("makes no sessions of its own", remedy));
        }
        let (bound, info) = self.bind(config, grants)?;
        Ok(Arc::new(Factory { bound, info }))
    }

    /// As [`workload`](Self::workload), for a component that makes sessions of a trace's rows; any other is refused.
    pub fn flavor(&self, config: String, grants: Grants) -> Result<Arc<dyn FlavorFactory>, PluginFailure> {
        if self.loaded.flavors.is_none() {
            return Err(self.another_kind(
                "reads no trace",
                "name a plugin that exports `trace-flavor`, or use this one as session_generator itself",
            ));
        }
        let (bound, info) = self.bind(config, grants)?;
        Ok(Arc::new(flavor::Factory { bound, info }))
    }

    /// As [`workload`](Self::workload), for a component that adds the API of an endpoint; any other is refused. It is opened
    /// here and asked for the endpoint, so that what it refuses is known before anything is sent.
    pub fn codec(&self, config: String, grants: Grants) -> Result<PluginEndpoint, PluginFailure> {
        if self.loaded.codecs.is_none() {
            return Err(self.another_kind(
                "does not know how a server is spoken to",
                "name a plugin that exports `endpoint-codec`",
            ));
        }
        let (bound, info) = self.bind(config, grants)?;
        codec::open(bound, info)
    }

    /// As [`workload`](Self::workload), for a component that measures metrics of its own; any other is refused. It is opened
    /// once here, so that what it refuses is known before the run begins.
    pub fn metric(&self, config: String, grants: Grants) -> Result<Arc<dyn MetricFactory>, PluginFailure> {
        if self.loaded.metrics.is_none() {
            return Err(self.another_kind(
                "measures no metrics of its own",
                "name a plugin that exports `metric`",
            ));
        }
        let (bound, info) = self.bind(config, grants)?;
        Ok(Arc::new(collector::Factory::new(bound, info)?))
    }

    /// As [`metric`](Self::metric), for a component that says of each request whether it was good.
    pub fn request_check(
        &self,
        config: String,
        grants: Grants,
    ) -> Result<Arc<dyn RequestCheckFactory>, PluginFailure> {
        if self.loaded.request_checks.is_none() {
            return Err(self.another_kind(
                "does not judge requests",
                "name a plugin that exports `request-check`",
            ));
        }
        let (bound, info) = self.bind(config, grants)?;
        Ok(Arc::new(judge::Factory::new(bound, info)?))
    }

    /// As [`metric`](Self::metric), for a component that judges a run by its results.
    pub fn slo_check(&self, config: String, grants: Grants) -> Result<Arc<dyn SloCheck>, PluginFailure> {
        if self.loaded.slo_checks.is_none() {
            return Err(self.another_kind("does not judge a run", "name a plugin that exports `slo-check`"));
        }
        let (bound, info) = self.bind(config, grants)?;
        Ok(Arc::new(verdicts::Checker::new(bound, info)?))
    }

    fn bind(&self, config: String, grants: Grants) -> Result<(Arc<Bound>, WorkloadInfo), PluginFailure> {
        let descriptor = self.describe()?;
        let bound = Bound {
            loaded: Arc::clone(&self.loaded),
            config,
            grants,
        };
        let info = bound.info(descriptor);
        Ok((Arc::new(bound), info))
    }

    fn another_kind(&self, so: &str, remedy: &str) -> PluginFailure {
        let message = format!("it is {}, which {so}; {remedy}", self.kinds().in_words());
        PluginFailure::new(&*self.loaded.name, "load", PluginFailureKind::Load, message)
    }
}
