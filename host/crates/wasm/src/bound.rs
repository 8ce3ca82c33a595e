//! A plugin with its configuration and grants: the source of all its instances.

use std::sync::Arc;

use veeksha_ports::{PluginFailure, PluginFailureKind, WorkloadInfo};

use crate::describe::Descriptor;
use crate::grants::{Grants, NoLog};
use crate::loaded::LoadedComponent;

/// A plugin with its configuration and grants.
#[derive(Clone)]
pub(crate) struct BoundPlugin {
    pub(crate) loaded: Arc<LoadedComponent>,
    /// The configuration as JSON text.
    pub(crate) config: String,
    pub(crate) grants: Grants,
}

impl BoundPlugin {
    /// Returns the description of the plugin for results and messages.
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

    /// Returns the same plugin with its log lines dropped.
    pub(crate) fn silent(&self) -> Self {
        let mut silent = self.clone();
        silent.grants.log = Arc::new(NoLog);
        silent
    }

    /// Returns the failure of an invalid result; `input` describes the call's arguments.
    pub(crate) fn unusable(
        &self,
        function: &str,
        input: Option<String>,
        why: impl Into<String>,
    ) -> PluginFailure {
        let mut failure = PluginFailure::new(&*self.loaded.name, function, PluginFailureKind::Result, why);
        failure.input = input;
        failure
    }
}
