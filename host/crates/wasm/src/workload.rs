//! A plugin with a configuration and grants: what the plugin threads open their instances from.

use std::sync::Arc;

use veeksha_ports::{PluginFailure, PluginFailureKind, Workload, WorkloadFactory, WorkloadInfo};

use crate::agents::Agents;
use crate::describe::Descriptor;
use crate::grants::Grants;
use crate::loaded::Loaded;
use crate::planned::Planned;

/// What every instance of a workload or a flavor shares.
pub(crate) struct Bound {
    pub(crate) loaded: Arc<Loaded>,
    /// JSON text.
    pub(crate) config: String,
    pub(crate) grants: Grants,
}

impl Bound {
    /// What is said of the plugin before it is opened.
    pub(crate) fn info(&self, descriptor: Descriptor) -> WorkloadInfo {
        WorkloadInfo {
            name: descriptor.name,
            version: descriptor.version,
            summary: descriptor.summary,
            engine: "wasm",
            digest: self.loaded.digest.clone(),
            granted: self.grants.among(&self.loaded.discovered.imports),
        }
    }

    /// A report about an answer that cannot be used.
    pub(crate) fn unusable(&self, function: &str, input: String, why: impl Into<String>) -> PluginFailure {
        let mut failure = PluginFailure::new(&*self.loaded.name, function, PluginFailureKind::Result, why);
        failure.input = Some(input);
        failure
    }
}

/// A generator with a configuration and grants.
pub(crate) struct Factory {
    pub(crate) bound: Arc<Bound>,
    pub(crate) info: WorkloadInfo,
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
