//! The closed set of things that happen in a run.

use veeksha_model::{MetricDefinition, MetricSample, Nanos, RequestId, RequestRecord, SessionId};

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The clock started.
    RunStarted(RunInfo),
    /// A session was planned: what the workload wants of it is settled, whatever the servers will answer.
    SessionPlanned {
        /// Which session.
        session: SessionId,
        /// A digest of its requests as the workload describes them, before any text is made (of an agent's session: of its first
        /// step). Equal digests in two runs: the same work.
        digest: u64,
    },
    /// A plugin worked, off the timed path.
    PluginCalled(PluginCall),
    /// A session's first nodes became known to the scheduler and its start instant was fixed.
    SessionStarted {
        /// Which session.
        session: SessionId,
        /// The instant its roots count from.
        at: Nanos,
        /// Nodes known at that time (an agent's session grows).
        requests: u32,
    },
    /// A request was handed to a client.
    Dispatched {
        /// Which request.
        request: RequestId,
        /// The instant the schedule asked for.
        intended: Nanos,
        /// When it was handed over.
        at: Nanos,
    },
    /// A request was answered or failed.
    Finished(Box<RequestRecord>),
    /// A request that was known and was never sent.
    NeverSent {
        /// Which request.
        request: RequestId,
        /// Why.
        reason: NeverSentReason,
        /// When that was decided.
        at: Nanos,
    },
    /// A session is over.
    SessionFinished {
        /// Which session.
        session: SessionId,
        /// When its last node completed, or when it was given up.
        at: Nanos,
        /// How it ended.
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
        /// Which request.
        request: RequestId,
        /// Whether it was good.
        good: bool,
    },
    /// A plugin judged the run by its figures, when all of them were known: one of its verdicts.
    RunJudged {
        /// The plugin.
        plugin: String,
        /// The verdict's name.
        name: String,
        /// Whether it is met.
        met: bool,
        /// What was observed, if there was anything to observe.
        observed: Option<f64>,
        /// What was asked.
        threshold: f64,
        /// One line for a person; may be empty.
        detail: String,
    },
    /// A plugin that measures or judges failed: it is not asked again, and what it would have said is not known.
    PluginFailed(FailedPlugin),
    /// The scheduler wanted a session that the plugin had not delivered yet.
    Starved {
        /// When the session was due.
        due: Nanos,
        /// When it came.
        at: Nanos,
    },
    /// How busy a thread of the measurement was since it was last looked at.
    ThreadSampled(ThreadSample),
    /// The wall clock was set while the run went on: kernel timestamps near it are worth nothing.
    ClockStepped {
        /// When that was noticed.
        at: Nanos,
        /// By how much it jumped, in nanoseconds.
        by: i64,
    },
    /// The run ended before sessions that had arrived were made: how many requests they would have sent is not known.
    ArrivalsMissed {
        /// How many sessions.
        sessions: u64,
        /// When the run ended for them.
        at: Nanos,
    },
    /// `benchmark_timeout` passed: what finishes from now on is drained, not measured.
    TimeoutReached {
        /// When.
        at: Nanos,
    },
    /// The user asked to stop.
    Interrupted {
        /// When.
        at: Nanos,
    },
    /// Nothing more will happen; what plugins make of it may still be told.
    RunEnded {
        /// When.
        at: Nanos,
    },
}

/// A stretch of a plugin's work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginCall {
    /// The thread: `plugin-0`, `metrics-0`, ...
    pub thread: String,
    /// What was done, in a word or two: `sessions 64..128`.
    pub what: String,
    /// When it began.
    pub begin: Nanos,
    /// When it ended.
    pub end: Nanos,
}

/// How busy one thread was in one stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadSample {
    /// Its name: `client-0`, `dispatcher-0`, ...
    pub thread: String,
    /// The end of the stretch.
    pub at: Nanos,
    /// How long it was.
    pub span: Nanos,
    /// Of it, the time on a processor.
    pub busy: Nanos,
    /// Of it, the time in which the thread could have run and had no processor.
    pub waiting: Nanos,
}

/// What is known at the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunInfo {
    /// Wall-clock nanoseconds since 1970 at the run's zero.
    pub epoch_wall_nanos: u64,
    /// `CLOCK_MONOTONIC` at the run's zero, in nanoseconds: relates the run to logs of the same machine.
    pub epoch_monotonic_nanos: u64,
}

/// A plugin that failed while it measured or judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedPlugin {
    /// Its name.
    pub plugin: String,
    /// What it did.
    pub part: PluginPart,
    /// What went wrong, and in which of its functions, in one line.
    pub message: String,
}

/// What a plugin does with the requests of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginPart {
    /// It measures a metric.
    Metric,
    /// It judges each request.
    RequestCheck,
    /// It judges the run.
    SloCheck,
}

impl PluginPart {
    /// All of them.
    pub const ALL: [PluginPart; 3] = [PluginPart::Metric, PluginPart::RequestCheck, PluginPart::SloCheck];

    /// The snake-case name, as it stands in files.
    pub fn name(self) -> &'static str {
        match self {
            PluginPart::Metric => "metric",
            PluginPart::RequestCheck => "request_check",
            PluginPart::SloCheck => "slo_check",
        }
    }
}

/// Why a request was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NeverSentReason {
    /// An earlier request of the session failed and `cancel_session_on_failure` is on.
    SessionCancelled,
    /// The run ended (timeout, grace or Ctrl-C) before it was due.
    RunEnded,
    /// Its session's plugin failed.
    PluginFailed,
    /// It was due, and a limit on sessions or requests kept it back until the run ended.
    Held,
    /// It was due, nothing kept it back, and the run ended before the host came to send it.
    Missed,
}

impl NeverSentReason {
    /// The snake-case name, as it stands in files.
    pub fn name(self) -> &'static str {
        match self {
            NeverSentReason::SessionCancelled => "session_cancelled",
            NeverSentReason::RunEnded => "run_ended",
            NeverSentReason::PluginFailed => "plugin_failed",
            NeverSentReason::Held => "held",
            NeverSentReason::Missed => "missed",
        }
    }
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SessionEnd {
    /// All its requests were answered.
    Completed,
    /// At least one request failed, and all were tried.
    Errored,
    /// A failure withdrew the requests that had not been sent.
    Cancelled,
    /// The run ended first.
    Incomplete,
}

impl SessionEnd {
    /// The snake-case name, as it stands in files.
    pub fn name(self) -> &'static str {
        match self {
            SessionEnd::Completed => "completed",
            SessionEnd::Errored => "errored",
            SessionEnd::Cancelled => "cancelled",
            SessionEnd::Incomplete => "incomplete",
        }
    }
}
