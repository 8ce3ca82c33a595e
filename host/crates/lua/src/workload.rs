//! Makes workloads of a scenario's functions.

use std::sync::Arc;

use mlua::{Function, Value};
use veeksha_ports::{PluginFailure, PluginFailureKind, Workload, WorkloadFactory, WorkloadInfo};

use crate::agent::Agents;
use crate::fault::Fault;
use crate::host::Host;
use crate::limits::{LuaGrants, LuaKind, LuaLimits};
use crate::modules::Origin;
use crate::planned::Planned;
use crate::sources::Sources;
use crate::vm::Vm;

/// A function of a scenario, ready to be opened on any thread.
pub(crate) struct LuaFactory {
    pub(crate) info: WorkloadInfo,
    pub(crate) sources: Arc<Sources>,
    pub(crate) limits: LuaLimits,
    pub(crate) path: String,
    pub(crate) kind: LuaKind,
    pub(crate) length: Option<u64>,
    pub(crate) grants: LuaGrants,
}

impl LuaFactory {
    fn build(&self) -> Result<Workload, Fault> {
        let LuaGrants { seed, tokens, log } = self.grants.clone();
        let vm = Vm::new(self.limits, Host::new(seed, tokens, log))?;
        // What the top level prints was shown when the scenario was loaded.
        vm.host.quiet.set(true);
        let (value, _) = vm.execute((*self.sources).clone(), Origin::Kept)?;
        vm.host.quiet.set(false);
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
        self.build().map_err(|fault| {
            let mut failure =
                fault.into_failure(&self.info.name, "load", Some(format!("function = {}", self.path)));
            if failure.kind == PluginFailureKind::Trap || failure.kind == PluginFailureKind::Result {
                failure.kind = PluginFailureKind::Load;
            }
            failure
        })
    }
}

/// The function at a dotted path; elements of lists are counted from 0, as in the paths of the scenario.
fn lookup(value: &Value, path: &str) -> Result<Function, Fault> {
    let missing = || {
        Fault::shape(format!(
            "`{path}` is not a function when the scenario is loaded again"
        ))
    };
    let mut value = value.clone();
    for step in path.split('.') {
        let Value::Table(table) = &value else {
            return Err(missing());
        };
        let mut next: Value = table.raw_get(step).unwrap_or(Value::Nil);
        if next.is_nil()
            && let Ok(index) = step.parse::<usize>()
        {
            next = table.raw_get(index.saturating_add(1)).unwrap_or(Value::Nil);
        }
        value = next;
    }
    match value {
        Value::Function(function) => Ok(function),
        _ => Err(missing()),
    }
}
