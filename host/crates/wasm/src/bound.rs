//! A plugin with its configuration and grants: the source of all its instances.

use std::sync::{Arc, OnceLock};

use veeksha_manifest::{InstancePolicy, OnTrap};
use veeksha_ports::{PluginFailure, PluginFailureKind, WorkloadInfo};

use crate::describe::Descriptor;
use crate::grants::{Grants, LogLevel, LogLine, NoLog};
use crate::instance_pool::InstancePool;
use crate::loaded::LoadedComponent;

/// A plugin with its configuration and grants.
#[derive(Clone)]
pub(crate) struct BoundPlugin {
    pub(crate) loaded: Arc<LoadedComponent>,
    /// The configuration as JSON text.
    pub(crate) config: String,
    pub(crate) grants: Grants,
    /// Idle instances, with the policy `pooled`.
    pub(crate) pool: Arc<InstancePool>,
    /// The failure after which the plugin is not called again.
    disabled_by: Arc<OnceLock<String>>,
}

impl BoundPlugin {
    pub(crate) fn new(loaded: Arc<LoadedComponent>, config: String, grants: Grants) -> Self {
        BoundPlugin {
            loaded,
            config,
            grants,
            pool: Arc::default(),
            disabled_by: Arc::default(),
        }
    }

    /// Returns the maximum number of live agents in one store.
    pub(crate) fn agents_per_store(&self) -> usize {
        match self.grants.instances {
            InstancePolicy::PerCall => 1,
            InstancePolicy::PerWorker | InstancePolicy::Pooled => self.loaded.host.limits.agents_per_store,
        }
    }

    /// Refuses policies under which a plugin would lose the state that it keeps between calls.
    pub(crate) fn require_state(&self, kind: &str) -> Result<(), PluginFailure> {
        match self.grants.instances {
            InstancePolicy::PerWorker => Ok(()),
            policy => {
                let message = format!(
                    "`instances: {}` cannot be used with {kind}, which keeps its state between calls; use \
                     `per-worker`",
                    policy.name()
                );
                Err(PluginFailure::new(
                    &*self.loaded.name,
                    "load",
                    PluginFailureKind::Load,
                    message,
                ))
            }
        }
    }

    /// Returns true if a failure is to be followed by a second attempt in a new instance, and logs
    /// the failure.
    pub(crate) fn restarts_after(&self, failure: &PluginFailure) -> bool {
        let restarts = self.grants.on_trap == OnTrap::Restart && failure.is_trap();
        if restarts {
            let note = format!(
                "restarted after a failure in `{}`: {}",
                failure.function, failure.message
            );
            self.grants.log.record(&LogLine {
                plugin: &self.loaded.name,
                level: LogLevel::Warn,
                function: &failure.function,
                session: None,
                message: &note,
            });
        }
        restarts
    }

    /// Applies the policy `disable` to a failure.
    pub(crate) fn disable_after(&self, failure: &PluginFailure) {
        if self.grants.on_trap == OnTrap::Disable && failure.is_trap() {
            let why = format!("{} in `{}`", failure.message, failure.function);
            let _ = self.disabled_by.set(why);
        }
    }

    /// Returns true if the plugin is not called again.
    pub(crate) fn is_disabled(&self) -> bool {
        self.disabled_by.get().is_some()
    }

    /// Refuses a call of a plugin that was disabled.
    pub(crate) fn check_enabled(&self, function: &str) -> Result<(), PluginFailure> {
        let Some(why) = self.disabled_by.get() else {
            return Ok(());
        };
        let message = format!("the plugin was disabled after its first failure: {why}");
        let mut failure = PluginFailure::new(&*self.loaded.name, function, PluginFailureKind::Trap, message);
        failure.ends_workload = true;
        Err(failure)
    }

    /// Marks the failure of a plugin that evaluates a run as one that the run goes on without.
    pub(crate) fn tolerate(&self, mut failure: PluginFailure) -> PluginFailure {
        failure.is_tolerated = self.grants.on_trap == OnTrap::Disable && failure.is_trap();
        failure
    }

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

    /// Returns the same plugin with its log lines dropped and its use not counted.
    pub(crate) fn silent(&self) -> Self {
        let mut silent = self.clone();
        silent.grants.log = Arc::new(NoLog);
        silent.grants.meter = Arc::default();
        silent.pool = Arc::default();
        silent.disabled_by = Arc::default();
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
