//! Conversion of a scenario's limits of plugins to those of the engines.

use veeksha_lua::LuaLimits;
use veeksha_ports::PluginAllowance;
use veeksha_scenario::{PluginCallBudget, PluginLimits};
use veeksha_wasm::{CallBudget, EngineLimits};

/// Returns the limits of a component.
pub(crate) fn of_components(limits: &PluginLimits) -> EngineLimits {
    EngineLimits {
        call_budget: match limits.call_budget {
            PluginCallBudget::Time => CallBudget::Time,
            PluginCallBudget::Fuel => CallBudget::Fuel,
        },
        call_deadline: limits.call_deadline(),
        compile_deadline: limits.compile_deadline(),
        memory_bytes: limits.memory_bytes(),
        lift_bytes: (limits.output_mib as usize) << 20,
        call_fuel: limits.call_fuel,
        table_elements: limits.table_elements,
        instances: limits.core_instances as usize,
        handles: limits.handles as usize,
        agents_per_store: limits.agents_per_instance as usize,
        log_lines_per_call: limits.log_lines_per_call.into(),
        log_bytes_per_call: u64::from(limits.log_kib_per_call) << 10,
        log_lines_per_run: limits.log_lines_per_run.into(),
        log_bytes_per_run: u64::from(limits.log_mib_per_run) << 20,
        ..EngineLimits::default()
    }
}

/// Returns the limits of a Lua scenario's functions.
pub(crate) fn of_lua(limits: &PluginLimits) -> LuaLimits {
    LuaLimits {
        call_deadline: limits.call_deadline(),
        memory_bytes: usize::try_from(limits.memory_bytes()).unwrap_or(usize::MAX),
        log_lines_per_call: limits.log_lines_per_call.into(),
        log_lines_per_run: limits.log_lines_per_run.into(),
        log_bytes_per_run: u64::from(limits.log_mib_per_run) << 20,
        ..LuaLimits::default()
    }
}

/// Returns the limits that the use of Lua functions is compared with.
pub(crate) fn allowance_of_lua(limits: &PluginLimits) -> PluginAllowance {
    PluginAllowance {
        call: limits.call_deadline(),
        memory_bytes: limits.memory_bytes(),
        // The host counts what a session passes, and does not measure it.
        output_bytes: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The scenario's defaults are the definition; those of the engines repeat them.
    #[test]
    fn defaults_of_the_engines_are_those_of_the_scenario() {
        let limits = PluginLimits::default();
        assert_eq!(of_components(&limits), EngineLimits::default());
        assert_eq!(of_lua(&limits), LuaLimits::default());
    }
}
