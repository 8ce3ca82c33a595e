//! Limits of plugins.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Resource limits of plugins; exceeding one ends the run with an error that names the plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PluginLimits {
    /// Maximum seconds per call into a plugin.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 86_400.0))]
    pub call_deadline_seconds: f64,
    /// Maximum seconds for the compilation of a component, which happens once: the result is
    /// cached.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 86_400.0))]
    pub compile_deadline_seconds: f64,
    /// Maximum memory per instance, in MiB.
    #[schemars(range(min = 1, max = 4096))]
    pub memory_mib: u32,
    /// Maximum MiB that one call of a component may pass to the host.
    #[schemars(range(min = 1, max = 1024))]
    pub output_mib: u32,
    /// The measure by which a call of a component is stopped: `time`, or `fuel`, which stops it at
    /// the same instruction on every machine and costs about as much.
    pub call_budget: PluginCallBudget,
    /// Maximum fuel of one call, about one unit per instruction. With `call_budget: fuel`; the
    /// deadline is then ten times as long.
    #[schemars(range(min = 1, max = 1_000_000_000_000_000_u64))]
    pub call_fuel: u64,
    /// Maximum elements of all tables of an instance.
    #[schemars(range(min = 1, max = 100_000_000))]
    pub table_elements: u64,
    /// Maximum core instances, and maximum tables, of an instance of a component.
    #[schemars(range(min = 1, max = 10_000))]
    pub core_instances: u32,
    /// Maximum handles (open files, streams) of an instance.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub handles: u32,
    /// Maximum live agents in one instance. When one of them traps, the others are rebuilt.
    #[schemars(range(min = 1, max = 100_000))]
    pub agents_per_instance: u32,
    /// Maximum lines that one call may log; further ones are counted.
    #[schemars(range(max = 1_000_000))]
    pub log_lines_per_call: u32,
    /// Maximum KiB that one call may log.
    #[schemars(range(max = 1_048_576))]
    pub log_kib_per_call: u32,
    /// Maximum lines that a plugin may log in one run.
    #[schemars(range(max = 1_000_000_000))]
    pub log_lines_per_run: u32,
    /// Maximum MiB that a plugin may log in one run.
    #[schemars(range(max = 1_048_576))]
    pub log_mib_per_run: u32,
}

/// The measure by which a call of a plugin is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PluginCallBudget {
    /// Elapsed time.
    #[default]
    Time,
    /// Executed instructions.
    Fuel,
}

impl Default for PluginLimits {
    fn default() -> Self {
        PluginLimits {
            call_deadline_seconds: 10.0,
            compile_deadline_seconds: 300.0,
            memory_mib: 256,
            output_mib: 32,
            call_budget: PluginCallBudget::Time,
            call_fuel: 10_000_000_000,
            table_elements: 1 << 20,
            core_instances: 1000,
            handles: 1024,
            agents_per_instance: 128,
            log_lines_per_call: 256,
            log_kib_per_call: 256,
            log_lines_per_run: 10_000,
            log_mib_per_run: 8,
        }
    }
}

impl PluginLimits {
    /// Returns the maximum duration of one call.
    pub fn call_deadline(&self) -> Duration {
        Duration::try_from_secs_f64(self.call_deadline_seconds).unwrap_or(Duration::MAX)
    }

    /// Returns the maximum duration of the compilation of a component.
    pub fn compile_deadline(&self) -> Duration {
        Duration::try_from_secs_f64(self.compile_deadline_seconds).unwrap_or(Duration::MAX)
    }

    /// Returns the maximum memory of one instance in bytes.
    pub fn memory_bytes(&self) -> u64 {
        u64::from(self.memory_mib) << 20
    }
}
