//! What a plugin may use up.

use std::path::PathBuf;
use std::time::Duration;

/// How an engine is set up.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    /// Where compiled components are kept, below a folder `components`; `None`: nowhere.
    pub cache_dir: Option<PathBuf>,
    /// The limits of every plugin that the engine loads.
    pub limits: Limits,
}

/// The bounds that every plugin runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest that one call may take. Watched in steps of [`Limits::TICK`].
    pub call_deadline: Duration,
    /// The longest that the host itself may take, during one call, to answer what is asked of the results of a run. It does not
    /// count as the plugin's time.
    pub results_deadline: Duration,
    /// Bytes of all memories and tables of one store.
    pub memory_bytes: u64,
    /// Bytes that one call may hand to the host (results, log lines, arguments of host functions).
    pub lift_bytes: usize,
    /// Live agents that share a store. When one of them traps, the others have to be rebuilt.
    pub agents_per_store: usize,
    /// Calls of a planned generator, or agents begun, after which a store is replaced. Bounds what leaky guests keep.
    pub calls_per_store: u64,
    /// Guest memory above which a store is replaced at the next opportunity.
    pub recycle_memory_bytes: u64,
    /// Bytes of answers that are kept so that agents can be rebuilt after another one's trap, per open workload.
    pub replay_bytes: usize,
    /// Bytes of standard output and standard error that are kept, the newest.
    pub stderr_bytes: usize,
}

impl Limits {
    /// The grain of the deadline: a call is stopped at most this much (and one scheduling delay) after its allowance.
    pub const TICK: Duration = Duration::from_millis(10);
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            call_deadline: Duration::from_secs(10),
            results_deadline: Duration::from_secs(300),
            memory_bytes: 256 << 20,
            lift_bytes: 32 << 20,
            agents_per_store: 128,
            calls_per_store: 4096,
            recycle_memory_bytes: 128 << 20,
            replay_bytes: 64 << 20,
            stderr_bytes: 16 << 10,
        }
    }
}
