//! Limits of plugins, and the options of an engine.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use veeksha_ports::PluginAllowance;

use crate::compile::CompileProgress;

/// The setup of an engine.
#[derive(Clone, Default)]
pub struct EngineOptions {
    /// The folder that caches compiled components, below a folder `components`; `None` disables the
    /// cache.
    pub cache_dir: Option<PathBuf>,
    /// The limits of every plugin that the engine loads.
    pub limits: EngineLimits,
    /// Called every two seconds while a component is being compiled.
    pub on_compile: Option<CompileProgress>,
}

impl fmt::Debug for EngineOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineOptions")
            .field("cache_dir", &self.cache_dir)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The measure by which a call that does not return is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallBudget {
    /// Elapsed time: [`EngineLimits::call_deadline`]. It costs least, and a slow machine may stop a
    /// call that a fast one completes.
    #[default]
    Time,
    /// Executed instructions: [`EngineLimits::call_fuel`]. A call is stopped at the same
    /// instruction on every machine. [`EngineLimits::call_deadline`] still applies, multiplied by
    /// [`EngineLimits::FUEL_TIME_FACTOR`], because an instruction may copy a whole memory.
    Fuel,
}

/// The limits of every plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineLimits {
    /// The measure by which a call is stopped.
    pub call_budget: CallBudget,
    /// Maximum duration of one call, enforced in steps of [`EngineLimits::TICK`].
    pub call_deadline: Duration,
    /// Maximum duration of the compilation of a component.
    pub compile_deadline: Duration,
    /// Maximum time that the host may take, during one call, to answer queries about the results of
    /// a run. It does not count as the plugin's time.
    pub results_deadline: Duration,
    /// Maximum bytes of all memories and tables of one store.
    pub memory_bytes: u64,
    /// Maximum bytes that one call may pass to the host (results, log lines, arguments of host
    /// functions).
    pub lift_bytes: usize,
    /// Maximum bytes of the text of one call of `tokens.count`.
    pub count_bytes: usize,
    /// Maximum number of live agents per store. When one of them traps, the others have to be
    /// rebuilt.
    pub agents_per_store: usize,
    /// Maximum number of calls of a session generator, or of started agents, per store; the store
    /// is then replaced. Bounds the memory of guests that leak.
    pub calls_per_store: u64,
    /// Guest memory above which a store is replaced at the next opportunity, in bytes.
    pub recycle_memory_bytes: u64,
    /// Bytes of answers, per open workload, that are kept so that agents can be rebuilt after
    /// another agent's trap.
    pub replay_bytes: usize,
    /// Bytes of standard output and standard error that are kept, newest first.
    pub stderr_bytes: usize,
    /// Maximum elements of all tables of one store.
    pub table_elements: u64,
    /// Maximum core instances, and maximum tables, of one store. A component of an interpreted
    /// language has some dozens.
    pub instances: usize,
    /// Maximum linear memories of one store.
    pub memories: usize,
    /// Maximum handles (open files, streams, pollables) of one store.
    pub handles: usize,
    /// Maximum lines that one call may log. The rest are counted.
    pub log_lines_per_call: u64,
    /// Maximum bytes that one call may log.
    pub log_bytes_per_call: u64,
    /// Maximum lines that all instances of a plugin may log in one run.
    pub log_lines_per_run: u64,
    /// Maximum bytes that all instances of a plugin may log in one run.
    pub log_bytes_per_run: u64,
    /// Maximum fuel of one call, about one unit per instruction; used with
    /// [`CallBudget::Fuel`].
    pub call_fuel: u64,
}

impl EngineLimits {
    /// The resolution of deadlines: a call is stopped at most this much (and one scheduling delay)
    /// after its deadline.
    pub const TICK: Duration = Duration::from_millis(10);
    /// Multiple of the deadline after which a call is stopped although it has fuel left.
    pub const FUEL_TIME_FACTOR: u32 = 10;

    /// Returns the limits that the use of a plugin is compared with.
    pub fn allowance(&self) -> PluginAllowance {
        PluginAllowance {
            call: self.call_deadline,
            memory_bytes: self.memory_bytes,
            output_bytes: self.lift_bytes as u64,
        }
    }
}

impl Default for EngineLimits {
    fn default() -> Self {
        EngineLimits {
            call_budget: CallBudget::Time,
            call_deadline: Duration::from_secs(10),
            compile_deadline: Duration::from_secs(300),
            results_deadline: Duration::from_secs(300),
            memory_bytes: 256 << 20,
            lift_bytes: 32 << 20,
            count_bytes: veeksha_ports::MAX_COUNT_BYTES,
            agents_per_store: 128,
            calls_per_store: 4096,
            recycle_memory_bytes: 128 << 20,
            replay_bytes: 64 << 20,
            stderr_bytes: 16 << 10,
            table_elements: 1 << 20,
            instances: 1000,
            memories: 100,
            handles: 1024,
            log_lines_per_call: 256,
            log_bytes_per_call: 256 << 10,
            log_lines_per_run: 10_000,
            log_bytes_per_run: 8 << 20,
            call_fuel: 10_000_000_000,
        }
    }
}
