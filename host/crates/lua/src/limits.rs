//! What a script may use, and what it is given.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How long a script may run and how much memory it may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LuaLimits {
    /// Time for reading the scenario: the files it requires and its own top level.
    pub load_deadline: Duration,
    /// Time for one call of a session function, or for an agent between two requests.
    pub call_deadline: Duration,
    /// Memory of one virtual machine, in bytes.
    pub memory_bytes: usize,
}

impl Default for LuaLimits {
    /// 5 s to load, 10 s for a call, 256 MiB.
    fn default() -> Self {
        LuaLimits {
            load_deadline: Duration::from_secs(5),
            call_deadline: Duration::from_secs(10),
            memory_bytes: 256 * 1024 * 1024,
        }
    }
}

/// Which of the two kinds of workload a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LuaKind {
    /// `function(index, rng)`: returns a whole session.
    Sessions,
    /// `function(session)`: runs as a coroutine, one request at a time.
    Agent,
}

/// Counts the tokens of a text with the target's tokenizer.
pub type CountTokens = Arc<dyn Fn(&str) -> u32 + Send + Sync>;

/// Takes a level (`debug`, `info`, `warn`, `error`) and a line.
pub type LogSink = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// What the host hands to a workload's functions.
#[derive(Clone)]
pub struct LuaGrants {
    /// The run's seed: the root of every random stream.
    pub seed: u64,
    /// `tokens.count(text)`; without it that function raises an error.
    pub tokens: Option<CountTokens>,
    /// Where `log.*` and `print` go.
    pub log: LogSink,
}

impl fmt::Debug for LuaGrants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LuaGrants")
            .field("seed", &self.seed)
            .field("tokens", &self.tokens.is_some())
            .finish_non_exhaustive()
    }
}
