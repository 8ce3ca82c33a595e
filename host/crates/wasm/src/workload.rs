//! Workloads of components that generate sessions.

use std::sync::Arc;

use veeksha_ports::{Guarantees, PluginFailure, Workload, WorkloadFactory, WorkloadInfo};

use crate::agent_generator::{self, WasmAgents};
use crate::bound::BoundPlugin;
use crate::session_generator::WasmSessions;

/// A generator with a configuration and grants.
pub(crate) struct WasmWorkloadFactory {
    bound: Arc<BoundPlugin>,
    info: WorkloadInfo,
}

impl WasmWorkloadFactory {
    pub(crate) fn new(bound: Arc<BoundPlugin>, info: WorkloadInfo) -> Self {
        WasmWorkloadFactory { bound, info }
    }

    fn open_bound(bound: Arc<BoundPlugin>) -> Result<Workload, PluginFailure> {
        Ok(if bound.loaded.exported.session_generator.is_some() {
            Workload::Planned(Box::new(WasmSessions::open(bound)?))
        } else {
            Workload::Reactive(Box::new(WasmAgents::open(bound)?))
        })
    }
}

impl WorkloadFactory for WasmWorkloadFactory {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn open(&self) -> Result<Workload, PluginFailure> {
        Self::open_bound(Arc::clone(&self.bound))
    }

    fn open_silent(&self) -> Result<Workload, PluginFailure> {
        Self::open_bound(Arc::new(self.bound.silent()))
    }

    fn guarantees(&self) -> Result<Guarantees, PluginFailure> {
        if self.bound.loaded.exported.session_generator.is_some() {
            WasmSessions::open(Arc::clone(&self.bound))?.guarantees()
        } else {
            agent_generator::guarantees(&self.bound)
        }
    }
}
