//! A loaded plugin, and the factories of its kinds.

use std::sync::Arc;

use veeksha_ports::{
    ArrivalFactory, FlavorFactory, MetricFactory, PluginFailure, PluginFailureKind, RequestCheckFactory,
    SloCheck, WorkloadFactory, WorkloadInfo,
};

use crate::arrival_process::WasmArrivalFactory;
use crate::bindings::types as wit;
use crate::bindings::{
    agent_generator, arrival_process, endpoint_codec as wit_codec, metric as wit_metric,
    request_check as wit_check, session_generator, slo_check as wit_slo, trace_flavor as wit_flavor,
};
use crate::bound::BoundPlugin;
use crate::describe::Descriptor;
use crate::discovery::Kinds;
use crate::endpoint_codec::{self, PluginEndpoint};
use crate::grants::{Grants, NoLog};
use crate::instance::PluginInstance;
use crate::interface::Interface;
use crate::loaded::{CodeOrigin, LoadedComponent};
use crate::metric::WasmMetricFactory;
use crate::request_check::WasmRequestCheckFactory;
use crate::slo_check::WasmSloCheck;
use crate::trace_flavor::WasmFlavorFactory;
use crate::workload::WasmWorkloadFactory;

const DESCRIBE: &str = "describe";

/// A loaded plugin. Cheap to clone.
#[derive(Clone)]
pub struct PluginComponent {
    loaded: Arc<LoadedComponent>,
}

impl PluginComponent {
    pub(crate) fn new(loaded: LoadedComponent) -> Self {
        PluginComponent {
            loaded: Arc::new(loaded),
        }
    }

    /// Returns the BLAKE3 digest of the component, in hex.
    pub fn digest(&self) -> &str {
        &self.loaded.digest
    }

    /// Returns the imports of the component: capabilities by their short names (`blobs`, `log`,
    /// `random`, `tokens`), in order, and last `wasi` if it imports any of WASI (which is a
    /// stand-in).
    pub fn imports(&self) -> &[String] {
        &self.loaded.discovered.imports
    }

    /// Returns the kinds of plugin that it implements.
    pub fn kinds(&self) -> Kinds {
        self.loaded.discovered.kinds
    }

    /// Returns true if its machine code was read from the cache instead of compiled.
    pub fn compiled_from_cache(&self) -> bool {
        self.loaded.origin == CodeOrigin::Cache
    }

    /// Returns the plugin's descriptor. The component is queried once; the cache stores the result.
    pub fn describe(&self) -> Result<Descriptor, PluginFailure> {
        let LoadedComponent {
            host,
            digest,
            descriptor,
            ..
        } = &*self.loaded;
        if let Some(known) = descriptor.get() {
            return Ok(known.clone());
        }
        let kept = host.cache.as_ref().and_then(|cache| cache.descriptor(digest));
        let answer = match kept {
            Some(kept) => kept,
            None => {
                let fresh = self.ask_descriptor()?;
                if let Some(cache) = &host.cache {
                    host.note_cache(cache.keep_descriptor(digest, &fresh));
                }
                fresh
            }
        };
        Ok(descriptor.get_or_init(|| answer).clone())
    }

    /// Binds a configuration (JSON text, not read here) and grants. The plugin reads the
    /// configuration when an instance is opened, and may refuse it then. A component that is both a
    /// session generator and an agent generator is used as a session generator; one that is neither
    /// is refused here.
    pub fn workload(
        &self,
        config: String,
        grants: Grants,
    ) -> Result<Arc<dyn WorkloadFactory>, PluginFailure> {
        let kinds = self.kinds();
        if !kinds.session_generator && !kinds.agent_generator {
            let remedy = if kinds.trace_flavor {
                "set session_generator.type to `trace` and name the plugin as its `flavor`"
            } else if kinds.arrival_process {
                "set traffic_scheduler.type to `arrival_process` and name the plugin as its `process`"
            } else if kinds.endpoint_codec {
                "name it as the client's `codec`"
            } else {
                "name it among the `evaluators`"
            };
            return Err(self.another_kind("does not generate sessions", remedy));
        }
        let (bound, info) = self.bind(config, grants)?;
        Ok(Arc::new(WasmWorkloadFactory::new(bound, info)))
    }

    /// Binds like [`workload`](Self::workload), for a trace flavor; any other component is refused.
    pub fn flavor(&self, config: String, grants: Grants) -> Result<Arc<dyn FlavorFactory>, PluginFailure> {
        if !self.kinds().trace_flavor {
            return Err(self.another_kind(
                "does not read traces",
                "name a plugin that exports `trace-flavor`, or use this one as the session_generator",
            ));
        }
        let (bound, info) = self.bind(config, grants)?;
        Ok(Arc::new(WasmFlavorFactory::new(bound, info)))
    }

    /// Binds like [`workload`](Self::workload), for an arrival process; any other component is
    /// refused.
    pub fn arrivals(&self, config: String, grants: Grants) -> Result<Arc<dyn ArrivalFactory>, PluginFailure> {
        if !self.kinds().arrival_process {
            return Err(self.another_kind(
                "does not decide when sessions arrive",
                "name a plugin that exports `arrival-process`",
            ));
        }
        let (bound, info) = self.bind(config, grants)?;
        bound.require_state("an arrival process")?;
        Ok(Arc::new(WasmArrivalFactory::new(bound, info)))
    }

    /// Binds like [`workload`](Self::workload), for an endpoint codec. Opens it and asks for the
    /// endpoint, so that a refusal is reported before any request is sent.
    pub fn codec(&self, config: String, grants: Grants) -> Result<PluginEndpoint, PluginFailure> {
        if !self.kinds().endpoint_codec {
            return Err(self.another_kind(
                "does not implement an endpoint",
                "name a plugin that exports `endpoint-codec`",
            ));
        }
        let (bound, info) = self.bind(config, grants)?;
        endpoint_codec::open(bound, info)
    }

    /// Binds like [`workload`](Self::workload), for a metric. Opens it once, so that a refusal is
    /// reported before the run begins.
    pub fn metric(&self, config: String, grants: Grants) -> Result<Arc<dyn MetricFactory>, PluginFailure> {
        if !self.kinds().metric {
            return Err(self.another_kind("does not measure metrics", "name a plugin that exports `metric`"));
        }
        let (bound, info) = self.bind(config, grants)?;
        bound.require_state("a metric")?;
        Ok(Arc::new(WasmMetricFactory::new(bound, info)?))
    }

    /// Binds like [`metric`](Self::metric), for a request check.
    pub fn request_check(
        &self,
        config: String,
        grants: Grants,
    ) -> Result<Arc<dyn RequestCheckFactory>, PluginFailure> {
        if !self.kinds().request_check {
            return Err(self.another_kind(
                "does not judge requests",
                "name a plugin that exports `request-check`",
            ));
        }
        let (bound, info) = self.bind(config, grants)?;
        Ok(Arc::new(WasmRequestCheckFactory::new(bound, info)?))
    }

    /// Binds like [`metric`](Self::metric), for an SLO check.
    pub fn slo_check(&self, config: String, grants: Grants) -> Result<Arc<dyn SloCheck>, PluginFailure> {
        if !self.kinds().slo_check {
            return Err(self.another_kind("does not judge a run", "name a plugin that exports `slo-check`"));
        }
        let (bound, info) = self.bind(config, grants)?;
        Ok(Arc::new(WasmSloCheck::new(bound, info)?))
    }

    /// Asks the component to describe itself, through the first interface that it exports.
    fn ask_descriptor(&self) -> Result<Descriptor, PluginFailure> {
        let kinds = self.kinds();
        let answer = if kinds.session_generator {
            self.describe_as::<session_generator::Guest>()
        } else if kinds.agent_generator {
            self.describe_as::<agent_generator::Guest>()
        } else if kinds.arrival_process {
            self.describe_as::<arrival_process::Guest>()
        } else if kinds.trace_flavor {
            self.describe_as::<wit_flavor::Guest>()
        } else if kinds.endpoint_codec {
            self.describe_as::<wit_codec::Guest>()
        } else if kinds.metric {
            self.describe_as::<wit_metric::Guest>()
        } else if kinds.request_check {
            self.describe_as::<wit_check::Guest>()
        } else {
            self.describe_as::<wit_slo::Guest>()
        };
        Descriptor::convert(answer?)
            .map_err(|why| PluginFailure::new(&*self.loaded.name, DESCRIBE, PluginFailureKind::Result, why))
    }

    fn describe_as<G: Interface>(&self) -> Result<wit::Descriptor, PluginFailure> {
        // A descriptor does not depend on a run, so nothing is granted.
        let grants = Grants::new(0, Arc::new(NoLog));
        PluginInstance::<G>::new(&self.loaded, &grants)?.call(
            DESCRIBE,
            || None,
            |store, guest| guest.describe(store),
        )
    }

    fn bind(
        &self,
        config: String,
        grants: Grants,
    ) -> Result<(Arc<BoundPlugin>, WorkloadInfo), PluginFailure> {
        let descriptor = self.describe()?;
        let bound = BoundPlugin::new(Arc::clone(&self.loaded), config, grants);
        let info = bound.info(descriptor);
        Ok((Arc::new(bound), info))
    }

    fn another_kind(&self, lack: &str, remedy: &str) -> PluginFailure {
        let message = format!("it is {}, which {lack}; {remedy}", self.kinds().as_text());
        PluginFailure::new(&*self.loaded.name, "load", PluginFailureKind::Load, message)
    }
}
