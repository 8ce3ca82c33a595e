//! Opening of a scenario's functions: a separate virtual machine that has executed the scenario's
//! text.

use std::sync::Arc;

use mlua::{Function, Value};
use veeksha_ports::{PluginErrorCode, PluginFailure, PluginFailureKind};

use crate::fault::LuaFault;
use crate::host::LuaHost;
use crate::limits::{LuaGrants, LuaLimits};
use crate::log::LuaLog;
use crate::modules::ModuleOrigin;
use crate::sources::Sources;
use crate::vm::Vm;

/// Initial state of every virtual machine of a scenario.
pub(crate) struct ScenarioOpening {
    pub(crate) sources: Arc<Sources>,
    pub(crate) limits: LuaLimits,
    pub(crate) grants: LuaGrants,
}

impl ScenarioOpening {
    /// Returns a machine, and the value that the scenario returned in it.
    pub(crate) fn machine(&self) -> Result<(Vm, Value), LuaFault> {
        let LuaGrants {
            seed,
            tokens,
            log,
            meter,
        } = self.grants.clone();
        let vm = Vm::new(
            self.limits,
            LuaHost::new(seed, tokens, LuaLog::new(&self.limits, log, meter), &self.limits),
        )?;
        // The output of the top level was shown when the scenario was loaded.
        vm.host.log.quiet.set(true);
        let (value, _) = vm.execute((*self.sources).clone(), ModuleOrigin::Kept)?;
        vm.host.log.quiet.set(false);
        Ok((vm, value))
    }
}

/// Returns the report of a scenario that cannot be opened again.
pub(crate) fn failure(fault: LuaFault, plugin: &str, path: &str) -> PluginFailure {
    let mut failure = fault.into_failure(plugin, "load", Some(format!("function = {path}")));
    if failure.kind == PluginFailureKind::Trap || failure.kind == PluginFailureKind::Result {
        failure.kind = PluginFailureKind::Load;
        failure.code = PluginErrorCode::NotLoaded;
    }
    failure
}

/// Returns the path of a key in the table at `path`; empty for the table that the file returns.
pub(crate) fn join(path: &str, key: &str) -> String {
    match (path.is_empty(), key.is_empty()) {
        (true, _) => key.to_owned(),
        (false, true) => path.to_owned(),
        (false, false) => format!("{path}.{key}"),
    }
}

/// Returns the function at a dotted path. Elements of lists are counted from 0, as in the paths of
/// the scenario.
pub(crate) fn lookup(value: &Value, path: &str) -> Result<Function, LuaFault> {
    let missing = || {
        LuaFault::shape(format!(
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
