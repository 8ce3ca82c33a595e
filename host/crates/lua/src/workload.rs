//! Factories of workloads from a scenario's functions.

use veeksha_ports::{PluginFailure, Workload, WorkloadFactory, WorkloadInfo};
use veeksha_scenario::LuaKind;

use crate::agent::Agents;
use crate::fault::LuaFault;
use crate::opening::{self, ScenarioOpening, lookup};
use crate::planned::Planned;

/// A function of a scenario, ready to be opened on any thread.
pub(crate) struct LuaFactory {
    pub(crate) info: WorkloadInfo,
    pub(crate) opening: ScenarioOpening,
    pub(crate) path: String,
    pub(crate) kind: LuaKind,
    pub(crate) length: Option<u64>,
}

impl LuaFactory {
    fn build(&self, is_quiet: bool) -> Result<Workload, PluginFailure> {
        let workload = self.workload(is_quiet);
        workload.map_err(|fault| opening::failure(fault, &self.info.name, &self.path))
    }

    fn workload(&self, is_quiet: bool) -> Result<Workload, LuaFault> {
        let (vm, value) = self.opening.machine()?;
        vm.host.log.quiet.set(is_quiet);
        let function = lookup(&value, &self.path)?;
        let plugin = self.info.name.clone();
        Ok(match self.kind {
            LuaKind::Sessions => Workload::Planned(Box::new(Planned {
                vm,
                function,
                plugin,
                length: self.length,
                proven: false,
            })),
            LuaKind::Agent => Workload::Reactive(Box::new(Agents::new(vm, function, plugin, self.length))),
        })
    }
}

impl WorkloadFactory for LuaFactory {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn open(&self) -> Result<Workload, PluginFailure> {
        self.build(false)
    }

    fn open_silent(&self) -> Result<Workload, PluginFailure> {
        self.build(true)
    }
}
