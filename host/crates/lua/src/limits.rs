//! Limits and grants of a script.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use veeksha_ports::PluginMeter;

/// Limits of a script's run time and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LuaLimits {
    /// Deadline for loading the scenario: its required files and its top level.
    pub load_deadline: Duration,
    /// Deadline for one call of a session function, or for an agent between two requests.
    pub call_deadline: Duration,
    /// Memory of one virtual machine, in bytes.
    pub memory_bytes: usize,
    /// Maximum bytes of the text of one call of a function of `tokens`. The tokenizer's time and
    /// memory do not count as the script's.
    pub count_bytes: usize,
    /// Maximum lines that one call may log. The rest are counted.
    pub log_lines_per_call: u64,
    /// Maximum lines that all machines of a scenario may log in one run.
    pub log_lines_per_run: u64,
    /// Maximum bytes that they may log in one run.
    pub log_bytes_per_run: u64,
}

impl Default for LuaLimits {
    /// Returns 5 s for loading, 10 s per call, 256 MiB.
    fn default() -> Self {
        LuaLimits {
            load_deadline: Duration::from_secs(5),
            call_deadline: Duration::from_secs(10),
            memory_bytes: 256 * 1024 * 1024,
            count_bytes: veeksha_ports::MAX_COUNT_BYTES,
            log_lines_per_call: 256,
            log_lines_per_run: 10_000,
            log_bytes_per_run: 8 << 20,
        }
    }
}

/// The target's tokenizer: returns the token ids of a text, without special tokens, or the reason
/// why it has none.
pub type LuaTokenizer = Arc<dyn Fn(&str) -> Result<Vec<u32>, String> + Send + Sync>;

/// Receives a level (`debug`, `info`, `warn`, `error`) and a line.
pub type LogFunction = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// Resources that the host grants to a workload's functions.
#[derive(Clone)]
pub struct LuaGrants {
    /// The run's seed: the root of every random stream.
    pub seed: u64,
    /// The tokenizer. Without it the functions of `tokens` raise an error.
    pub tokens: Option<LuaTokenizer>,
    /// Sink of `log.*` and `print`.
    pub log: LogFunction,
    /// The counters of the functions' resources.
    pub meter: Arc<PluginMeter>,
}

impl fmt::Debug for LuaGrants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LuaGrants")
            .field("seed", &self.seed)
            .field("tokens", &self.tokens.is_some())
            .finish_non_exhaustive()
    }
}
