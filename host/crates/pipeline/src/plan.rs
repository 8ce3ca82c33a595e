//! The plan of a run, and its end.

use std::fmt;
use std::sync::{Arc, Mutex};

use veeksha_events::{Event, FailedPlugin, PluginRole};
use veeksha_model::{Nanos, Session, SessionId};
use veeksha_ports::{ArrivalFactory, PluginFailure};
use veeksha_scheduler::{SchedulerConfig, Shard};

use crate::clients::ClientSpecs;
use crate::schedule::{ReplaySchedule, Timing};
use crate::tool_runs::ToolSpecs;

/// Prepares a dispatcher's thread.
pub type OnDispatcherStart = Arc<dyn Fn(u32) + Send + Sync>;

/// Samples threads and clocks of the machine: called with the time on the run's clock, on a
/// dedicated thread; returns the events to record ([`veeksha_events::Event::ThreadSampled`],
/// [`veeksha_events::Event::ClockStepped`]).
pub type ThreadSampler = Arc<Mutex<dyn FnMut(Nanos) -> Vec<Event> + Send>>;

/// The resolved shape of a run.
#[derive(Clone)]
pub struct Plan {
    /// Traffic, limits and seed; its shard is set by the pipeline, from `shard` below and the
    /// number of dispatchers.
    pub scheduler: SchedulerConfig,
    /// The last stretch before a deadline that a dispatcher spins through instead of sleeping, in
    /// nanoseconds; 0: it sleeps to the deadline. Costs up to a core for each dispatcher, and wakes
    /// up closer to the deadline.
    pub spin: Nanos,
    /// Called on each dispatcher's thread, with its number, before the run's clock starts: the
    /// place for priorities and pinning.
    pub on_dispatcher_start: Option<OnDispatcherStart>,
    /// Called about once a second and at the end, for what is to be known of the machine while the
    /// run goes on.
    pub thread_watch: Option<ThreadSampler>,
    /// This process's part of the run: the sessions whose id is `index` modulo `count`. All parts
    /// together send exactly what one process alone would: `max_sessions` counts over all of them,
    /// arrivals are those of the session's id, and a concurrency target is split over them.
    pub shard: Shard,
    /// The clients, in the order of the transport's or the simulation's.
    pub clients: ClientSpecs,
    /// The classes of tools, which `scheduler.tools` is taken from.
    pub tools: ToolSpecs,
    /// Mapping of recorded instants to the run's clock.
    pub schedule: ReplaySchedule,
    /// The process that decides the arrivals of sessions, for traffic of the rule
    /// [`veeksha_scheduler::TrafficRule::Scheduled`]. Without one, sessions state their own.
    pub arrivals: Option<Arc<dyn ArrivalFactory>>,
    /// Sent before the clock starts, one request after the other, and not recorded.
    pub warmup: Vec<Session>,
    /// Id of the run, if it has one; part of the events and of each `x-request-id`.
    pub run_id: Option<String>,
    /// Dispatcher threads: sessions are dealt out over them by index. At least 1.
    pub dispatchers: u32,
    /// Threads that turn outcomes into records. At least 1.
    pub completion_threads: u32,
    /// Plugin threads, each with a separate plugin instance. At least 1.
    pub plugin_threads: u32,
    /// Generate every session before the clock starts.
    pub pregenerate: bool,
    /// True if the event channel carries the text sent and received.
    pub include_content: bool,
    /// True if the entry of each [`veeksha_events::Event::Dispatched`] can return the pieces of its
    /// prompt ([`crate::EventEntry::pieces`]).
    pub track_prefixes: bool,
}

impl Plan {
    /// Returns the use of the workload's recorded instants.
    pub(crate) fn timing(&self) -> Timing {
        Timing::new(self.schedule, self.scheduler.traffic.replays())
    }
}

/// The end of a run. Everything that happened went through the event channel.
#[derive(Clone, Debug, Default)]
pub struct RunEnd {
    /// The instant at which nothing more could happen, on the run's clock.
    pub at: Nanos,
    /// True if the user stopped it.
    pub interrupted: bool,
    /// The failure of the last request, if the run was stopped because one request after another
    /// could not connect.
    pub target_lost: Option<String>,
    /// Failures of the workload's plugin, in the order in which they came to light, each with the
    /// number of equal ones of other sessions (at most 20 different ones are kept).
    pub plugin_failures: Vec<PluginFailure>,
    /// Failures of the workload's plugin that equal none in `plugin_failures`.
    pub unlisted_plugin_failures: u64,
    /// The sessions that never started because the workload's plugin failed.
    pub unstarted: Option<UnstartedSessions>,
    /// Requests of the warm-up that were not answered. The run went on without them.
    pub warmup_failures: u32,
    /// The first of them, and the reason.
    pub first_warmup_failure: Option<String>,
}

/// Sessions that never started because the workload's plugin failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnstartedSessions {
    /// The first of them.
    pub first: SessionId,
    /// Their number; `None` for an endless workload.
    pub count: Option<u64>,
    /// Sessions of this part of the run, with them.
    pub total: Option<u64>,
    /// Why the workload ended there, as a clause.
    pub reason: String,
}

/// One line for the user.
impl fmt::Display for UnstartedSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnstartedSessions { first, reason, .. } = self;
        write!(f, "the workload ended before session {first}, because {reason}: ")?;
        match (self.count, self.total) {
            (Some(count), Some(total)) => write!(f, "{count} of {total} sessions never started"),
            _ => write!(f, "no further session started"),
        }
    }
}

/// The reason for which a run could not start.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// The plugin failed before the first request was due.
    #[error(transparent)]
    Plugin(Box<PluginFailure>),
    /// The part of the run that was asked for does not exist.
    #[error("there is no shard {index} of {count}: shards are counted from 0")]
    NoSuchShard {
        /// The shard.
        index: u32,
        /// Number of shards.
        count: u32,
    },
    /// Sessions of some shards would never be sent.
    #[error(
        "{count} shards cannot share {most} {what}, because each needs at least one: use no more than {most} shards, or raise \
         that number"
    )]
    TooManyShards {
        /// Number of shards.
        count: u32,
        /// The concurrency target or the limit of the whole run.
        most: u32,
        /// The limited resource.
        what: &'static str,
    },
    /// A thread could not be made.
    #[error("cannot start the thread `{name}`: {source}")]
    Thread {
        /// Name of the thread.
        name: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The transport could not be started.
    #[error("{0}")]
    Transport(Box<dyn std::error::Error + Send + Sync>),
}

impl From<PluginFailure> for PipelineError {
    fn from(failure: PluginFailure) -> Self {
        PipelineError::Plugin(Box::new(failure))
    }
}

/// Failures kept for the report; a plugin that fails on every session would fill memory with equal
/// messages. Each failure is also an event.
const KEPT_FAILURES: usize = 20;

impl RunEnd {
    /// Keeps a failure for the report.
    pub(crate) fn keep_failure(&mut self, failure: PluginFailure) {
        let mut known = self.plugin_failures.iter_mut();
        if let Some(known) = known.find(|known| known.is_like(&failure)) {
            known.repeated += 1;
        } else if self.plugin_failures.len() < KEPT_FAILURES {
            self.plugin_failures.push(failure);
        } else {
            self.unlisted_plugin_failures += 1;
        }
    }
}

/// Returns the event for a failure of the workload's plugin. `session` is the session that it could
/// not make or continue; `None` if it failed on a prompt of the warm-up.
pub(crate) fn session_failed(failure: &PluginFailure, session: Option<SessionId>, at: Nanos) -> Event {
    let cause = failure.message.lines().next().unwrap_or_default();
    Event::PluginFailed(FailedPlugin {
        plugin: failure.plugin.clone(),
        part: PluginRole::Workload,
        message: format!("in `{}`: {cause}", failure.function),
        session,
        at: Some(at),
    })
}

/// Returns the events of a run that ended before its first request, because the workload's plugin
/// failed: `started`, the failures with their sessions, and the end of the run.
pub(crate) fn failed_start_events<'a>(
    started: Event,
    failures: impl IntoIterator<Item = (Option<SessionId>, &'a PluginFailure)>,
) -> Vec<Event> {
    let failures = failures.into_iter();
    let failed = failures.map(|(session, failure)| session_failed(failure, session, 0));
    [started]
        .into_iter()
        .chain(failed)
        .chain([Event::RunEnded { at: 0 }])
        .collect()
}

/// Starts a named thread.
pub(crate) fn spawn<T: Send + 'static>(
    name: String,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<std::thread::JoinHandle<T>, PipelineError> {
    let builder = std::thread::Builder::new().name(name.clone());
    builder
        .spawn(body)
        .map_err(|source| PipelineError::Thread { name, source })
}
