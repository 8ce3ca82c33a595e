//! How long, how many, on how many threads; and what the trace holds.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Traffic;

/// How long, how many, on how many threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Runtime {
    /// Sessions to start; -1 for as many as fit into the time. A trace that does not wrap is replayed to its end, unless this is set.
    #[schemars(range(min = -1, max = 1_000_000_000_i64))]
    pub max_sessions: i64,
    /// Seconds after which measuring ends; 0 or less for no limit. A trace that does not wrap has none, unless this is set. What was sent before counts. Requests go on being sent, without
    /// counting, so that the load holds until the others are answered or the grace is over.
    #[schemars(range(max = 1e8))]
    pub benchmark_timeout: f64,
    /// Seconds that requests sent before the timeout may take after it: -1 waits for all of them, 0 gives them up at once.
    #[schemars(range(min = -1.0, max = 1e8))]
    pub post_timeout_grace_seconds: f64,
    /// Threads that dispatch requests. One is enough beyond 100 000 requests a second.
    #[schemars(range(min = 1, max = 64))]
    pub num_dispatcher_threads: u32,
    /// Threads that take results to the scheduler and the evaluators.
    #[schemars(range(min = 1, max = 256))]
    pub num_completion_threads: u32,
    /// Threads that send requests and read answers, each with its own connections. Null chooses by the load: one for
    /// each 128 concurrent sessions, or for open-loop traffic half the cores up to four; never more than there are cores.
    #[schemars(range(min = 1, max = 1024))]
    pub num_client_threads: Option<u32>,
    /// Threads that run plugins. Null chooses: half the cores, at least one, at most eight.
    #[schemars(range(min = 1, max = 256))]
    pub num_plugin_threads: Option<u32>,
    /// Whether all sessions are made before the clock starts. Needs a positive `max_sessions`.
    pub pregenerate_sessions: bool,
    /// Microseconds before each arrival in which the dispatcher no longer sleeps but looks at the clock: it is then some 5 us late in
    /// place of 40, and keeps a core busy for as long. 0 always sleeps.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub spin_microseconds: f64,
    /// Real-time priority (`SCHED_FIFO`, 1 to 99) of the threads that dispatch, send and read. Needs the right to set it
    /// (`veeksha-host doctor` tells); null leaves them as they are.
    #[schemars(range(min = 1, max = 99))]
    pub realtime_priority: Option<u8>,
    /// Cores that dispatcher threads are kept on, one each in turn; empty leaves the choice to the system.
    pub dispatcher_cores: Vec<u32>,
    /// Cores that client threads are kept on, one each in turn; empty leaves the choice to the system.
    pub client_cores: Vec<u32>,
    /// What a plugin may use.
    pub plugin_limits: PluginLimits,
}

impl Default for Runtime {
    fn default() -> Self {
        Runtime {
            max_sessions: 25,
            benchmark_timeout: 300.0,
            post_timeout_grace_seconds: -1.0,
            num_dispatcher_threads: 1,
            num_completion_threads: 2,
            num_client_threads: None,
            num_plugin_threads: None,
            pregenerate_sessions: false,
            spin_microseconds: 0.0,
            realtime_priority: None,
            dispatcher_cores: Vec::new(),
            client_cores: Vec::new(),
            plugin_limits: PluginLimits::default(),
        }
    }
}

/// What happens at the timeout to requests that were sent before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grace {
    /// They are waited for.
    Unlimited,
    /// They are waited for so long; zero gives them up at once.
    For(Duration),
}

impl Runtime {
    /// How many sessions to start; `None` for no limit.
    pub fn session_limit(&self) -> Option<u64> {
        u64::try_from(self.max_sessions).ok()
    }

    /// When measuring ends; `None` for never.
    pub fn timeout(&self) -> Option<Duration> {
        if self.benchmark_timeout > 0.0 {
            Duration::try_from_secs_f64(self.benchmark_timeout).ok()
        } else {
            None
        }
    }

    /// What happens at the timeout to requests in flight. Any negative number waits for all.
    pub fn grace(&self) -> Grace {
        match Duration::try_from_secs_f64(self.post_timeout_grace_seconds) {
            Ok(grace) => Grace::For(grace),
            Err(_) => Grace::Unlimited,
        }
    }

    /// How many client threads to start on a machine of so many cores.
    pub fn client_threads(&self, traffic: &Traffic, cores: usize) -> usize {
        let cores = cores.max(1);
        match (self.num_client_threads, traffic) {
            (Some(threads), _) => threads as usize,
            (None, Traffic::Concurrent(concurrent)) => (concurrent.target_concurrent_sessions as usize)
                .div_ceil(128)
                .clamp(1, cores),
            (None, Traffic::Rate(_) | Traffic::FixedSchedule(_)) => (cores / 2).clamp(1, 4),
        }
    }

    /// How many plugin threads to start on a machine of so many cores.
    pub fn plugin_threads(&self, cores: usize) -> usize {
        self.num_plugin_threads
            .map_or((cores / 2).clamp(1, 8), |threads| threads as usize)
    }
}

/// What a plugin may use; beyond it the run ends with an error that names the plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PluginLimits {
    /// Seconds that one call into a plugin may take.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 86_400.0))]
    pub call_deadline_seconds: f64,
    /// Memory of one instance, in MiB.
    #[schemars(range(min = 1, max = 4096))]
    pub memory_mib: u32,
}

impl Default for PluginLimits {
    fn default() -> Self {
        PluginLimits {
            call_deadline_seconds: 10.0,
            memory_mib: 256,
        }
    }
}

impl PluginLimits {
    /// The allowance of one call.
    pub fn call_deadline(&self) -> Duration {
        Duration::try_from_secs_f64(self.call_deadline_seconds).unwrap_or(Duration::MAX)
    }

    /// The allowance of one instance, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        u64::from(self.memory_mib) << 20
    }
}

/// What `traces/trace.jsonl` holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TraceRecorder {
    /// Whether the trace is written.
    pub enabled: bool,
    /// Whether it holds the texts of prompts and answers.
    pub include_content: bool,
}

impl Default for TraceRecorder {
    fn default() -> Self {
        TraceRecorder {
            enabled: true,
            include_content: false,
        }
    }
}
