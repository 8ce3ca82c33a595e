//! The state machine that turns events into results.

use std::collections::{HashMap, HashSet};

use veeksha_events::{Event, FailedPlugin, PluginRole, RequestRecord};
use veeksha_model::{Nanos, RequestId};
use veeksha_ports::SloVerdict;

use crate::counts::Counts;
use crate::custom_samples::CustomSamples;
use crate::evaluation::{Evaluation, RunEnd};
use crate::host_figures::HostSamples;
use crate::live::Live;
use crate::live::LiveState;
use crate::objectives::Judgements;
use crate::requests::Requests;
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
pub struct Evaluator {
    pub(crate) setup: Setup,
    pub(crate) counts: Counts,
    pub(crate) requests: Requests,
    pub(crate) custom: CustomSamples,
    pub(crate) judgements: Judgements,
    /// Plugins' verdicts on the run, each with the plugin's name.
    pub(crate) verdicts: Vec<(String, SloVerdict)>,
    /// Plugins that failed while they measured or judged.
    pub(crate) failed: Vec<FailedPlugin>,
    /// Failures of workload plugins.
    pub(crate) workload_failures: Vec<WorkloadFailures>,
    pub(crate) planned: PlannedSessions,
    pub(crate) sent: SentDigests,
    pub(crate) tokens: TokenBins,
    pub(crate) host: HostSamples,
    pub(crate) totals: Totals,
    pub(crate) sessions: Sessions,
    pub(crate) open: OpenRequests,
    pub(crate) end: RunEnd,
    pub(crate) timeout_at: Option<Nanos>,
    /// The instant at which the timeout or the user stopped the schedule.
    pub(crate) stopped_at: Option<Nanos>,
    /// The latest instant of any event.
    pub(crate) latest: Nanos,
    /// The state behind [`Evaluator::live`]; `None` if a record is only read to its end.
    live: Option<LiveState>,
}

/// Requests between dispatch and completion.
#[derive(Debug, Default)]
pub(crate) struct OpenRequests {
    pub(crate) dispatched: u64,
    /// Dispatched and not finished.
    pub(crate) in_flight: HashMap<RequestId, Dispatch>,
    /// Requests that finished before their dispatch event.
    early: HashSet<RequestId>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Dispatch {
    pub(crate) intended: Nanos,
    pub(crate) at: Nanos,
}

impl Evaluator {
    /// Creates an evaluator without events.
    pub fn new(setup: impl Into<Setup>) -> Self {
        let setup = setup.into();
        Evaluator {
            counts: Counts::default(),
            requests: Requests::new(setup.deadlines),
            custom: CustomSamples::default(),
            judgements: Judgements::default(),
            verdicts: Vec::new(),
            failed: Vec::new(),
            workload_failures: Vec::new(),
            planned: PlannedSessions::default(),
            sent: SentDigests::default(),
            tokens: TokenBins::default(),
            host: HostSamples::default(),
            totals: Totals::default(),
            sessions: Sessions::default(),
            open: OpenRequests::default(),
            end: RunEnd::default(),
            timeout_at: None,
            stopped_at: None,
            latest: 0,
            live: Some(LiveState::default()),
            setup,
        }
    }

    /// Disables live statistics, for a record that is read to its end: [`Evaluator::live`] then has
    /// counts only. This saves a tenth of the time.
    pub fn without_live(self) -> Self {
        Evaluator { live: None, ..self }
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
            Event::NeverSent { reason, at, .. } => {
                self.saw(*at);
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

    /// Returns the statistics so far. Cheap enough for a progress line and a dashboard.
    pub fn live(&self) -> Live {
        let open = self.open.in_flight.values().map(|dispatch| dispatch.at);
        Live {
            dispatched: self.open.dispatched,
            in_flight: self.open.in_flight.len() as u64,
            sessions_started: self.sessions.started(),
            sessions_finished: self.sessions.finished(),
            client_lag_p99: self.host.live_lag_p99(),
            ..self
                .live
                .as_ref()
                .map_or_else(Live::default, |live| live.show(self.latest, open))
        }
    }

    /// Returns the exact results of all events.
    pub fn finish(self) -> Evaluation {
        Evaluation::of(self)
    }
}

impl OpenRequests {
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
