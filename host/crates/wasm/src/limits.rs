//! Limits of plugins, and the options of an engine.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

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

/// The limits of every plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineLimits {
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
}

impl EngineLimits {
    /// The resolution of deadlines: a call is stopped at most this much (and one scheduling delay)
    /// after its deadline.
    pub const TICK: Duration = Duration::from_millis(10);
}

impl Default for EngineLimits {
    fn default() -> Self {
        EngineLimits {
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
        }
    }
}
