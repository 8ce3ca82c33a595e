//! Duration, sessions and threads of a run; contents of the trace.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::plugin_limits::PluginLimits;
use crate::plan::traffic::Traffic;

/// Duration, sessions and threads of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Runtime {
    /// Maximum number of sessions to start; -1 for no limit. A trace that does not wrap is replayed
    /// to its end, unless this is set.
    #[schemars(range(min = -1, max = 1_000_000_000_i64))]
    pub max_sessions: i64,
    /// Seconds after which measuring ends; 0 or less for no limit. A trace that does not wrap has
    /// no limit, unless this is set. Requests dispatched earlier count. Requests continue to be
    /// sent, without counting, so that the load holds until the others are answered or the grace
    /// period is over.
    #[schemars(range(max = 1e8))]
    pub benchmark_timeout: f64,
    /// Seconds that requests dispatched before the timeout may take after it: -1 waits for all of
    /// them, 0 cancels them immediately.
    #[schemars(range(min = -1.0, max = 1e8))]
    pub post_timeout_grace_seconds: f64,
    /// Threads that dispatch requests. One suffices for more than 100,000 requests per second.
    #[schemars(range(min = 1, max = 64))]
    pub num_dispatcher_threads: u32,
    /// Threads that pass results to the scheduler and the evaluators.
    #[schemars(range(min = 1, max = 256))]
    pub num_completion_threads: u32,
    /// Threads that send requests and read answers, each with a separate connection pool. Each
    /// client has as many. Null chooses by load: one per 128 concurrent sessions, or for open-loop
    /// traffic half the cores up to four; never more than the number of cores.
    #[schemars(range(min = 1, max = 1024))]
    pub num_client_threads: Option<u32>,
    /// Threads that run plugins. Null chooses half the cores, at least one and at most eight.
    #[schemars(range(min = 1, max = 256))]
    pub num_plugin_threads: Option<u32>,
    /// True to make all sessions before the clock starts. Needs a positive `max_sessions`.
    pub pregenerate_sessions: bool,
    /// Microseconds before each arrival in which the dispatcher busy-waits: it is then about 5 us
    /// late rather than 40, and keeps a core busy for that time. 0 always sleeps.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub spin_microseconds: f64,
    /// Real-time priority (`SCHED_FIFO`, 1 to 99) of the threads that dispatch, send and read; 0
    /// leaves the priority unchanged. Needs permission (`veeksha-host doctor` checks it). Null uses
    /// 10 if it is permitted and the target is not the built-in simulator, whose threads need the
    /// same cores; otherwise the normal priority.
    #[schemars(range(max = 99))]
    pub realtime_priority: Option<u8>,
    /// Cores that dispatcher threads are pinned to, in turn; empty leaves the choice to the system.
    pub dispatcher_cores: Vec<u32>,
    /// Cores that client threads are pinned to, in turn; empty leaves the choice to the system.
    pub client_cores: Vec<u32>,
    /// Resource limits of plugins.
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

/// Treatment of requests in flight at the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grace {
    /// Wait for all of them.
    Unlimited,
    /// Wait for at most this long; zero cancels them immediately.
    For(Duration),
}

impl Runtime {
    /// Returns the number of sessions to start; `None` if unlimited.
    pub fn session_limit(&self) -> Option<u64> {
        u64::try_from(self.max_sessions).ok()
    }

    /// Returns the time at which measuring ends; `None` for never.
    pub fn timeout(&self) -> Option<Duration> {
        if self.benchmark_timeout > 0.0 {
            Duration::try_from_secs_f64(self.benchmark_timeout).ok()
        } else {
            None
        }
    }

    /// Returns the treatment of requests in flight at the timeout. Any negative number waits for
    /// all.
    pub fn grace(&self) -> Grace {
        match Duration::try_from_secs_f64(self.post_timeout_grace_seconds) {
            Ok(grace) => Grace::For(grace),
            Err(_) => Grace::Unlimited,
        }
    }

    /// Returns the number of client threads to start on a machine with `cores` cores.
    pub fn client_threads(&self, traffic: &Traffic, cores: usize) -> usize {
        let cores = cores.max(1);
        match (self.num_client_threads, traffic.concurrent_sessions()) {
            (Some(threads), _) => threads as usize,
            (None, Some(sessions)) => (sessions as usize).div_ceil(128).clamp(1, cores),
            (None, None) => (cores / 2).clamp(1, 4),
        }
    }

    /// Returns the number of plugin threads to start on a machine with `cores` cores.
    pub fn plugin_threads(&self, cores: usize) -> usize {
        self.num_plugin_threads
            .map_or((cores / 2).clamp(1, 8), |threads| threads as usize)
    }
}

/// Contents of `traces/trace.jsonl`, and the record of agents' decisions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TraceRecorder {
    /// True to write the trace.
    pub enabled: bool,
    /// True to include the texts of prompts and answers.
    pub include_content: bool,
    /// True to write the decisions of agents to `decisions.jsonl` of the run, from which
    /// `session_generator: {type: replay}` sends them again. The file has the texts that agents
    /// send; false keeps them off the disk.
    pub decisions: bool,
    /// True to write the log lines of plugins, with level, function and session, to
    /// `plugin_logs.jsonl` of the run.
    pub plugin_logs: bool,
}

impl Default for TraceRecorder {
    fn default() -> Self {
        TraceRecorder {
            enabled: true,
            include_content: false,
            decisions: true,
            plugin_logs: false,
        }
    }
}
