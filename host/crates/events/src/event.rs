//! The closed set of things that happen in a run.

use veeksha_model::{
    MetricDefinition, MetricSample, Nanos, RequestId, RequestRecord, SessionId, ToolRunRecord,
};

use crate::dropped_tool_run::DroppedToolRun;
use crate::never_sent::NeverSentReason;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The clock started.
    RunStarted(RunInfo),
    /// A session was planned: what the workload wants of it is settled, whatever the servers will
    /// answer.
    SessionPlanned {
        /// The session's id.
        session: SessionId,
        /// A digest of its requests as the workload describes them, before any text is made (of an
        /// agent's session: of its first step). Equal digests in two runs: the same work.
        digest: u64,
    },
    /// A plugin worked, off the timed path.
    PluginCalled(PluginCall),
    /// A session's first nodes became known to the scheduler and its start instant was fixed.
    SessionStarted {
        /// The session's id.
        session: SessionId,
        /// The instant its roots count from.
        at: Nanos,
        /// Nodes known at that time (an agent's session grows).
        requests: u32,
    },
    /// A request was handed to a client.
    Dispatched {
        /// The request's id.
        request: RequestId,
        /// The instant the schedule asked for.
        intended: Nanos,
        /// The instant at which it was handed over.
        at: Nanos,
    },
    /// A request was answered or failed.
    Finished(Box<RequestRecord>),
    /// A tool run ended.
    ToolRan(Box<ToolRunRecord>),
    /// A tool run that was known and did not end.
    ToolDropped(Box<DroppedToolRun>),
    /// A request that was known and was never sent.
    NeverSent {
        /// The request's id.
        request: RequestId,
        /// The reason.
        reason: NeverSentReason,
        /// The instant of that decision.
        at: Nanos,
    },
    /// A session is over.
    SessionFinished {
        /// The session's id.
        session: SessionId,
        /// The instant at which its last node completed, or at which it was given up.
        at: Nanos,
        /// The outcome.
        end: SessionEnd,
        /// All nodes it ever had.
        requests: u32,
    },
    /// A plugin measures a metric.
    MetricDefined(MetricDefinition),
    /// A plugin measured something.
    Sampled(MetricSample),
    /// A plugin judged a request: part of goodput.
    Judged {
        /// The plugin.
        plugin: String,
        /// The request's id.
        request: RequestId,
        /// True if the request counts as good.
        good: bool,
    },
    /// An SLO check judged the run after all metrics were known: one of its verdicts.
    RunJudged {
        /// The plugin.
        plugin: String,
        /// The verdict's name.
        name: String,
        /// True if the objective is met.
        met: bool,
        /// The observed value; `None` if there was nothing to observe.
        observed: Option<f64>,
        /// The required value.
        threshold: f64,
        /// One readable line; may be empty.
        detail: String,
    },
    /// A plugin failed. A metric or check plugin is not called again, and its results are unknown
    /// from then on; a workload's plugin loses the session.
    PluginFailed(FailedPlugin),
    /// The scheduler wanted a session that the plugin had not delivered yet.
    Starved {
        /// The instant at which the session was due.
        due: Nanos,
        /// The instant at which it was delivered.
        at: Nanos,
    },
    /// Processor use of one measurement thread since the last sample.
    ThreadSampled(ThreadSample),
    /// The wall clock was set while the run went on: kernel timestamps near it are worth nothing.
    ClockStepped {
        /// The instant at which the step was noticed.
        at: Nanos,
        /// By how much it jumped, in nanoseconds.
        by: i64,
    },
    /// The run ended before sessions that had arrived were made: how many requests they would have
    /// sent is not known.
    ArrivalsMissed {
        /// Number of sessions.
        sessions: u64,
        /// The end of the run, as far as these sessions are concerned.
        at: Nanos,
    },
    /// `benchmark_timeout` passed: what finishes from now on is drained, not measured.
    TimeoutReached {
        /// The instant, in nanoseconds since the run's zero.
        at: Nanos,
    },
    /// The user asked to stop.
    Interrupted {
        /// The instant, in nanoseconds since the run's zero.
        at: Nanos,
    },
    /// Nothing more will happen in the run; results of metric and check plugins may still follow.
    RunEnded {
        /// The instant, in nanoseconds since the run's zero.
        at: Nanos,
    },
}

/// A stretch of a plugin's work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginCall {
    /// The thread: `plugin-0`, `metrics-0`, ...
    pub thread: String,
    /// Short description of the work: `sessions 64..128`.
    pub what: String,
    /// Start of the call.
    pub begin: Nanos,
    /// End of the call.
    pub end: Nanos,
}

/// Processor use of one thread over one interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadSample {
    /// Thread name: `client-0`, `dispatcher-0`, ...
    pub thread: String,
    /// The end of the stretch.
    pub at: Nanos,
    /// Length of the interval.
    pub span: Nanos,
    /// Of it, the time on a processor.
    pub busy: Nanos,
    /// Of it, the time in which the thread could have run and had no processor.
    pub waiting: Nanos,
}

/// Clock readings at the start of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunInfo {
    /// Wall-clock nanoseconds since 1970 at the run's zero.
    pub epoch_wall_nanos: u64,
    /// `CLOCK_MONOTONIC` at the run's zero, in nanoseconds: relates the run to logs of the same
    /// machine.
    pub epoch_monotonic_nanos: u64,
    /// Id of the run, which no other run has; `None` in virtual time, whose results are identical
    /// every time, and in older records. It is part of each `x-request-id`.
    pub run_id: Option<String>,
}

/// A plugin that failed while it measured or judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedPlugin {
    /// Name of the plugin.
    pub plugin: String,
    /// The plugin's role in the run.
    pub part: PluginRole,
    /// One line with the failing function and the cause.
    pub message: String,
    /// The session that it could not make or continue; `None` for plugins that evaluate, and if it
    /// failed on a prompt of the warm-up.
    pub session: Option<SessionId>,
    /// When it failed; `None` for plugins that evaluate, which have no place in time.
    pub at: Option<Nanos>,
}

/// The role of a plugin in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginRole {
    /// It measures a metric.
    Metric,
    /// It judges each request.
    RequestCheck,
    /// It judges the run.
    SloCheck,
    /// It makes the sessions, decides when they arrive, or answers for an agent.
    Workload,
}

impl PluginRole {
    /// All of them.
    pub const ALL: [PluginRole; 4] = [
        PluginRole::Metric,
        PluginRole::RequestCheck,
        PluginRole::SloCheck,
        PluginRole::Workload,
    ];

    /// Returns the snake-case name used in files.
    pub fn name(self) -> &'static str {
        match self {
            PluginRole::Metric => "metric",
            PluginRole::RequestCheck => "request_check",
            PluginRole::SloCheck => "slo_check",
            PluginRole::Workload => "workload",
        }
    }
}

/// The outcome of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SessionEnd {
    /// All its requests were answered, or cancelled by the workload.
    Completed,
    /// At least one request failed, and all were tried.
    Errored,
    /// A failure withdrew the requests that had not been sent.
    Cancelled,
    /// The run ended first.
    Incomplete,
}

impl SessionEnd {
    /// Returns the snake-case name used in files.
    pub fn name(self) -> &'static str {
        match self {
            SessionEnd::Completed => "completed",
            SessionEnd::Errored => "errored",
            SessionEnd::Cancelled => "cancelled",
            SessionEnd::Incomplete => "incomplete",
        }
    }
}
