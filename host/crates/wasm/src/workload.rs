//! A plugin with a configuration and grants: what the plugin threads open their instances from.

use std::sync::Arc;

use veeksha_ports::{PluginFailure, PluginFailureKind, Workload, WorkloadFactory, WorkloadInfo};

use crate::agents::Agents;
use crate::planned::Planned;
use crate::plugin::Loaded;
use crate::{Descriptor, Grants};

/// What every instance of a workload shares.
pub(crate) struct Bound {
    pub(crate) loaded: Arc<Loaded>,
    /// JSON text.
    pub(crate) config: String,
    pub(crate) grants: Grants,
}

impl Bound {
    /// A report about an answer that cannot be used.
    pub(crate) fn unusable(&self, function: &str, input: String, why: impl Into<String>) -> PluginFailure {
        let mut failure = PluginFailure::new(&*self.loaded.name, function, PluginFailureKind::Result, why);
        failure.input = Some(input);
        failure
    }
}

pub(crate) struct Factory {
    bound: Arc<Bound>,
    info: WorkloadInfo,
}

impl Factory {
    pub(crate) fn new(loaded: Arc<Loaded>, descriptor: Descriptor, config: String, grants: Grants) -> Self {
        let info = WorkloadInfo {
            name: descriptor.name,
            version: descriptor.version,
            summary: descriptor.summary,
            engine: "wasm",
            digest: loaded.digest.clone(),
            granted: grants.among(&loaded.discovered.imports),
        };
        Factory {
            bound: Arc::new(Bound {
                loaded,
                config,
                grants,
            }),
            info,
        }
    }
}

impl WorkloadFactory for Factory {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn open(&self) -> Result<Workload, PluginFailure> {
        let bound = Arc::clone(&self.bound);
        if bound.loaded.sessions.is_some() {
            Ok(Workload::Planned(Box::new(Planned::open(bound)?)))
        } else {
            Ok(Workload::Reactive(Box::new(Agents::open(bound)?)))
        }
    }
}
