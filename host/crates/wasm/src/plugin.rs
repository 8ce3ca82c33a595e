//! A plugin with all that can be made of it.

use std::sync::Arc;

use veeksha_ports::{
    FlavorFactory, MetricFactory, PluginFailure, PluginFailureKind, RequestCheckFactory, SloCheck,
    WorkloadFactory, WorkloadInfo,
};

use crate::codec::PluginEndpoint;
use crate::describe::Descriptor;
use crate::discovery::Kinds;
use crate::grants::Grants;
use crate::loaded::{Loaded, Origin};
use crate::workload::{Bound, Factory};
use crate::{codec, collector, flavor, judge, verdicts};

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
                "it measures or judges a run: name it among the `evaluators`"
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
