//! The state machine that turns events into results.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use veeksha_events::{DroppedToolRun, Event, FailedPlugin, NeverSentReason, PluginRole, RequestRecord};
use veeksha_model::{Nanos, RequestId, SessionId, TIMER, ToolRunRecord};
use veeksha_ports::SloVerdict;

use crate::counts::RunCounts;
use crate::custom_samples::CustomSamples;
use crate::evaluation::RecordEnd;
use crate::host_metrics::HostSamples;
use crate::live::LiveState;
use crate::live::LiveStats;
use crate::objectives::Judgements;
use crate::requests::RequestTable;
use crate::sent_requests::SentDigests;
use crate::sessions::Sessions;
use crate::setup::Setup;
use crate::throughput::Totals;
use crate::token_bins::TokenBins;
use crate::workload::PlannedSessions;
use crate::workload_failures::WorkloadFailures;

/// Processes the events of a run. Events may arrive in any order that threads can produce (a
/// request may finish before its dispatch event, a session may end before its last request), and
/// the sequence may stop at any point.
#[derive(Debug)]
pub struct RunEvaluator {
    pub(crate) setup: Setup,
    pub(crate) counts: RunCounts,
    pub(crate) requests: RequestTable,
    pub(crate) custom: CustomSamples,
    pub(crate) judgements: Judgements,
    /// Plugins' verdicts on the run, each with the plugin's name.
    pub(crate) verdicts: Vec<(String, SloVerdict)>,
    /// Plugins that failed while they measured or judged.
    pub(crate) failed: Vec<FailedPlugin>,
    /// Failures of workload plugins.
    pub(crate) workload_failures: Vec<WorkloadFailures>,
    /// The sessions that a workload plugin could not create or continue, with the instant.
    pub(crate) failed_sessions: BTreeMap<SessionId, Option<Nanos>>,
    pub(crate) planned: PlannedSessions,
    pub(crate) sent: SentDigests,
    pub(crate) tokens: TokenBins,
    pub(crate) host: HostSamples,
    pub(crate) totals: Totals,
    pub(crate) sessions: Sessions,
    pub(crate) open: OpenRequests,
    pub(crate) end: RecordEnd,
    pub(crate) timeout_at: Option<Nanos>,
    /// The instant at which the timeout or the user stopped the schedule.
    pub(crate) stopped_at: Option<Nanos>,
    /// The latest instant of any event.
    pub(crate) latest: Nanos,
    /// The state behind [`RunEvaluator::live`]; `None` if a record is only read to its end.
    live: Option<LiveState>,
}

/// Requests between dispatch and completion.
#[derive(Debug, Default)]
pub(crate) struct OpenRequests {
    dispatched: u64,
    /// Dispatched and not finished.
    in_flight: HashMap<RequestId, Dispatch>,
    /// Requests that finished before their dispatch event.
    early: HashSet<RequestId>,
}

#[derive(Clone, Copy, Debug)]
struct Dispatch {
    intended: Nanos,
    at: Nanos,
}

impl RunEvaluator {
    /// Creates an evaluator without events.
    pub fn new(setup: impl Into<Setup>) -> Self {
        let setup = setup.into();
        RunEvaluator {
            counts: RunCounts::default(),
            requests: RequestTable::new(setup.deadlines),
            custom: CustomSamples::default(),
            judgements: Judgements::default(),
            verdicts: Vec::new(),
            failed: Vec::new(),
            workload_failures: Vec::new(),
            failed_sessions: BTreeMap::new(),
            planned: PlannedSessions::default(),
            sent: SentDigests::default(),
            tokens: TokenBins::default(),
            host: HostSamples::default(),
            totals: Totals::default(),
            sessions: Sessions::default(),
            open: OpenRequests::default(),
            end: RecordEnd::default(),
            timeout_at: None,
            stopped_at: None,
            latest: 0,
            live: Some(LiveState::default()),
            setup,
        }
    }

    /// Disables live statistics, for a record that is read to its end: [`RunEvaluator::live`] then
    /// has counts only. This saves a tenth of the time.
    pub fn without_live(self) -> Self {
        RunEvaluator { live: None, ..self }
    }

    /// Processes the next event.
    pub fn on(&mut self, event: &Event) {
        match event {
            Event::RunStarted(_) | Event::PluginCalled(_) => {}
            Event::SessionPlanned { session, digest } => self.planned.add(*session, *digest),
            Event::MetricDefined(definition) => {
                // A name that cannot be defined was rejected before the run; samples under it are
                // kept regardless.
                self.end.refused_metrics +=
                    u64::from(self.setup.catalogue.define(definition.clone()).is_err());
            }
            Event::Sampled(sample) => self.custom.add(sample),
            Event::Judged {
                plugin,
                request,
                good,
            } => self.judgements.add(plugin, *request, *good),
            Event::PluginFailed(failed) if failed.part == PluginRole::Workload => {
                WorkloadFailures::add(&mut self.workload_failures, failed);
                self.failed_sessions
                    .extend(failed.session.map(|session| (session, failed.at)));
            }
            Event::PluginFailed(failed) => self.failed.push(failed.clone()),
            Event::RunJudged {
                plugin,
                name,
                met,
                observed,
                threshold,
                detail,
            } => {
                let verdict = SloVerdict {
                    name: name.clone(),
                    met: *met,
                    observed: *observed,
                    threshold: *threshold,
                    detail: detail.clone(),
                };
                self.verdicts.push((plugin.clone(), verdict));
            }
            Event::ArrivalsMissed { sessions, at } => {
                self.saw(*at);
                self.counts.arrivals_missed += sessions;
            }
            Event::Starved { .. } | Event::ThreadSampled(_) | Event::ClockStepped { .. } => {
                self.host.on(event)
            }
            Event::SessionStarted { session, at, .. } => {
                self.saw(*at);
                self.sessions.on_started(*session, *at);
            }
            Event::Dispatched {
                request,
                intended,
                at,
            } => {
                self.saw(*at);
                if let Some(live) = &mut self.live {
                    live.on_dispatched(*at);
                }
                let dispatch = Dispatch {
                    intended: *intended,
                    at: *at,
                };
                self.open.on_dispatched(*request, dispatch);
            }
            Event::Finished(record) => self.on_record(record),
            Event::ToolRan(run) => self.on_tool_run(run),
            Event::ToolDropped(run) => self.on_dropped_tool_run(run),
            Event::NeverSent { request, reason, at } => {
                self.saw(*at);
                if *reason == NeverSentReason::CancelledByClient {
                    self.requests.unsent.push((*request, *at));
                }
                if let Some(live) = &mut self.live {
                    live.on_never_sent();
                }
                *self.counts.never_sent.entry(*reason).or_default() += 1;
            }
            Event::SessionFinished { session, at, end, .. } => {
                self.saw(*at);
                self.counts.add_session_end(*end);
                self.sessions.on_finished(*session, *at, *end);
            }
            Event::TimeoutReached { at } => {
                self.saw(*at);
                self.timeout_at = Some(*at);
                self.stopped(*at);
            }
            Event::Interrupted { at } => {
                self.saw(*at);
                self.end.interrupted = true;
                self.stopped(*at);
            }
            Event::RunEnded { at } => {
                self.saw(*at);
                self.end.complete = true;
            }
        }
    }

    fn saw(&mut self, at: Nanos) {
        self.latest = self.latest.max(at);
    }

    fn stopped(&mut self, at: Nanos) {
        self.stopped_at = Some(self.stopped_at.map_or(at, |before| before.min(at)));
    }

    fn on_record(&mut self, record: &RequestRecord) {
        self.saw(record.completed_at);
        self.open.on_finished(record.id);
        self.sent.add(record);
        self.tokens.add(record);
        self.sessions.on_record(record);
        let row = self.requests.add(record);
        if let Some(live) = &mut self.live {
            live.on_finished(record, row);
        }
        if !record.measured {
            self.counts.drained += 1;
            return;
        }
        self.counts.add_measured(record);
        self.totals.add_measured(record);
        self.host.add_measured(record, row);
    }

    fn on_dropped_tool_run(&mut self, run: &DroppedToolRun) {
        self.saw(run.at);
        if &*run.class != TIMER {
            let counts = self.counts.tools.entry(Arc::clone(&run.class)).or_default();
            *counts.dropped.entry(run.reason).or_default() += 1;
        }
        if run.reason.is_cancelled() {
            self.requests.unsent.push((run.id, run.at));
        }
    }

    fn on_tool_run(&mut self, record: &ToolRunRecord) {
        self.saw(record.completed_at);
        self.requests.add_tool_run(record);
        if record.measured && &*record.class != TIMER {
            let counts = self.counts.tools.entry(Arc::clone(&record.class));
            counts.or_default().add(record);
        }
    }

    /// Returns the statistics so far. Cheap enough for a progress line and a dashboard.
    pub fn live(&self) -> LiveStats {
        let open = self.open.dispatched_at();
        LiveStats {
            dispatched: self.open.dispatched,
            in_flight: self.open.in_flight.len() as u64,
            sessions_started: self.sessions.started(),
            sessions_finished: self.sessions.finished(),
            client_lag_p99: self.host.live_lag_p99(),
            ..self
                .live
                .as_ref()
                .map_or_else(LiveStats::default, |live| live.show(self.latest, open))
        }
    }
}

impl OpenRequests {
    /// Returns the intended instants of the requests that were dispatched before the timeout, in
    /// order.
    pub(crate) fn intended_before(&self, timeout_at: Option<Nanos>) -> Vec<Nanos> {
        let mut intended: Vec<Nanos> = self
            .in_flight
            .values()
            .filter(|dispatch| timeout_at.is_none_or(|timeout| dispatch.at < timeout))
            .map(|dispatch| dispatch.intended)
            .collect();
        intended.sort_unstable();
        intended
    }

    /// Returns the instants of dispatch.
    pub(crate) fn dispatched_at(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.in_flight.values().map(|dispatch| dispatch.at)
    }

    fn on_dispatched(&mut self, request: RequestId, dispatch: Dispatch) {
        if !self.early.remove(&request) {
            self.dispatched += 1;
            self.in_flight.insert(request, dispatch);
        }
    }

    fn on_finished(&mut self, request: RequestId) {
        if self.in_flight.remove(&request).is_none() {
            self.dispatched += 1;
            self.early.insert(request);
        }
    }
}
