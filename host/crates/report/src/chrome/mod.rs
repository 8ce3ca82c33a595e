//! `metrics/chrome_trace.json`: the run as a trace that Perfetto (<https://ui.perfetto.dev>) and
//! `chrome://tracing` show.
//!
//! An array of events in Chrome's trace event format, times in microseconds since the start of the
//! run. Process 1 has a thread per request, named like Veeksha's `tid`:
//! `R<i> / <session> / <prompt tokens>-><output tokens>`, with the slices `Prefill` (dispatch to
//! first generated chunk, so that its length is the metric), `T1`, `T2`, ... (chunk to chunk) or
//! one `Decode`, and `Finish` (last chunk to finish event, where the end-to-end latency ends with
//! that). An answer that was not streamed has one slice, `Answer`. Process 2 has a thread per
//! session, process 3 one per plugin thread, process 4 the instants of the whole run. Process 5 has
//! tool runs, with a thread for each that a class of tools has at once (`sandbox 1`, `sandbox 2`,
//! ...): a slice from the call to the end, with the slices `Waiting` and `Service`.

mod write;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use veeksha_definitions::{Metric, Observation};
use veeksha_events::{Event, NeverSentReason, PluginCall, RequestRecord, SessionEnd, Status};
use veeksha_model::{Nanos, RequestId, SessionId, ToolRunRecord};

/// Limits of the kept part of a run. Omitted entries are counted in the file's metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChromeTraceLimits {
    /// Maximum number of requests, and likewise of sessions, tool runs, plugin calls and marks: the
    /// first ones received.
    pub entries: usize,
    /// Maximum number of slices between chunks, over all requests; further requests have one
    /// `Decode` slice.
    pub chunks: usize,
}

/// About 20 MB, which a browser opens without trouble.
impl Default for ChromeTraceLimits {
    fn default() -> Self {
        ChromeTraceLimits {
            entries: 20_000,
            chunks: 100_000,
        }
    }
}

/// Takes the events of a run in any order; memory is bounded by its limits, the open entries, and 8
/// bytes per kept chunk.
#[derive(Clone, Debug, Default)]
pub struct ChromeTrace {
    limits: ChromeTraceLimits,
    requests: Vec<Lane>,
    chunks: usize,
    open: HashMap<RequestId, Nanos>,
    early: HashSet<RequestId>,
    sessions: Vec<SessionLane>,
    open_sessions: HashMap<SessionId, HalfSession>,
    plugins: Vec<PluginCall>,
    tool_runs: Vec<ToolSlice>,
    marks: Vec<RunMark>,
    last: Nanos,
    omitted: Omitted,
}

/// Number of omitted entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Omitted {
    requests: u64,
    requests_without_chunks: u64,
    sessions: u64,
    plugin_calls: u64,
    tool_runs: u64,
    marks: u64,
}

/// The kept values of a request.
#[derive(Clone, Debug)]
struct Lane {
    id: RequestId,
    intended: Nanos,
    dispatched: Nanos,
    picked_up: Option<Nanos>,
    sent: Option<Nanos>,
    first: Option<Nanos>,
    /// The end of generation, as [`Observation::last`].
    last: Option<Nanos>,
    ttfc: Option<f64>,
    end_to_end: Option<f64>,
    completed: Nanos,
    prompt_tokens: u32,
    output_tokens: u32,
    cached_tokens: Option<u32>,
    measured: bool,
    server: u16,
    /// Class and message of the error.
    failure: Option<(&'static str, String)>,
    /// Arrivals of the generated chunks after the first; `None` if they are not kept.
    chunks: Option<Vec<Nanos>>,
}

/// The kept values of a tool run.
#[derive(Clone, Debug)]
struct ToolSlice {
    id: RequestId,
    class: Arc<str>,
    ready: Nanos,
    started: Nanos,
    completed: Nanos,
    is_cold: bool,
    failed: bool,
    result_tokens: u32,
    measured: bool,
}

impl ToolSlice {
    fn of(run: &ToolRunRecord) -> Self {
        ToolSlice {
            id: run.id,
            class: Arc::clone(&run.class),
            ready: run.ready_at,
            started: run.started_at,
            completed: run.completed_at,
            is_cold: run.is_cold,
            failed: run.failed,
            result_tokens: run.result_tokens,
            measured: run.measured,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct SessionLane {
    id: SessionId,
    start: Nanos,
    end: Nanos,
    how: Option<SessionEnd>,
    requests: u32,
}

/// A session with only one known end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HalfSession {
    Started {
        at: Nanos,
        requests: u32,
    },
    Finished {
        at: Nanos,
        how: SessionEnd,
        requests: u32,
    },
}

/// An instant of the run, or of a session.
#[derive(Clone, Debug)]
struct RunMark {
    at: Nanos,
    what: String,
    session: Option<SessionId>,
}

impl ChromeTrace {
    /// Creates an empty trace.
    pub fn new(limits: ChromeTraceLimits) -> Self {
        ChromeTrace {
            limits,
            ..ChromeTrace::default()
        }
    }

    /// Takes the next event.
    pub fn on(&mut self, event: &Event) {
        match event {
            Event::RunStarted(_)
            | Event::SessionPlanned { .. }
            | Event::MetricDefined(_)
            | Event::Sampled(_)
            | Event::Judged { .. }
            | Event::RunJudged { .. }
            | Event::PluginFailed(_)
            | Event::ThreadSampled(_) => {}
            Event::ToolRan(run) => {
                self.see(run.completed_at);
                if self.tool_runs.len() < self.limits.entries {
                    self.tool_runs.push(ToolSlice::of(run));
                } else {
                    self.omitted.tool_runs += 1;
                }
            }
            Event::Dispatched { request, at, .. } => {
                self.see(*at);
                if !self.early.remove(request) {
                    self.open.insert(*request, *at);
                }
            }
            Event::Finished(record) => {
                self.see(record.completed_at);
                if self.open.remove(&record.id).is_none() {
                    self.early.insert(record.id);
                }
                self.keep_request(record);
            }
            Event::SessionStarted {
                session,
                at,
                requests,
            } => {
                self.see(*at);
                let half = HalfSession::Started {
                    at: *at,
                    requests: *requests,
                };
                self.join_session(*session, half);
            }
            Event::SessionFinished {
                session,
                at,
                end,
                requests,
            } => {
                self.see(*at);
                let half = HalfSession::Finished {
                    at: *at,
                    how: *end,
                    requests: *requests,
                };
                self.join_session(*session, half);
            }
            Event::PluginCalled(call) => {
                self.see(call.end);
                if self.plugins.len() < self.limits.entries {
                    self.plugins.push(call.clone());
                } else {
                    self.omitted.plugin_calls += 1;
                }
            }
            Event::ToolDropped(run) => {
                let text = format!("{} of {} did not end: {}", run.id, run.class, run.reason.name());
                self.mark(run.at, text, Some(run.id.session));
            }
            Event::NeverSent { request, reason, at } => {
                self.mark(*at, never_sent(*request, *reason), Some(request.session));
            }
            Event::Starved { due, at } => {
                let late = veeksha_stats::duration(at.saturating_sub(*due) as f64 / 1e9);
                self.mark(*at, format!("the plugin delivered a session {late} late"), None);
            }
            Event::ClockStepped { at, by } => {
                let by = veeksha_stats::duration(*by as f64 / 1e9);
                self.mark(*at, format!("the wall clock was set by {by}"), None);
            }
            Event::ArrivalsMissed { sessions, at } => {
                self.mark(*at, format!("{sessions} arrivals missed"), None);
            }
            Event::TimeoutReached { at } => self.mark(*at, "benchmark_timeout reached".into(), None),
            Event::Interrupted { at } => self.mark(*at, "interrupted".into(), None),
            Event::RunEnded { at } => self.mark(*at, "run ended".into(), None),
        }
    }

    /// Returns the lanes of sessions by their start, including those that are still open.
    fn all_sessions(&self) -> Vec<SessionLane> {
        let room = self.limits.entries.saturating_sub(self.sessions.len());
        let mut open: Vec<_> = self.open_sessions.iter().collect();
        open.sort_by_key(|(id, _)| **id);
        let open = open.into_iter().take(room).map(|(id, half)| match *half {
            HalfSession::Started { at, requests } => SessionLane {
                id: *id,
                start: at,
                end: self.last.max(at),
                how: None,
                requests,
            },
            // The start is unknown.
            HalfSession::Finished { at, how, requests } => SessionLane {
                id: *id,
                start: at,
                end: at,
                how: Some(how),
                requests,
            },
        });
        let mut lanes: Vec<SessionLane> = self.sessions.iter().copied().chain(open).collect();
        lanes.sort_by_key(|lane| (lane.start, lane.id));
        lanes
    }

    fn see(&mut self, at: Nanos) {
        self.last = self.last.max(at);
    }

    fn mark(&mut self, at: Nanos, what: String, session: Option<SessionId>) {
        self.see(at);
        if self.marks.len() < self.limits.entries {
            self.marks.push(RunMark { at, what, session });
        } else {
            self.omitted.marks += 1;
        }
    }

    fn keep_request(&mut self, record: &RequestRecord) {
        if self.requests.len() >= self.limits.entries {
            self.omitted.requests += 1;
            return;
        }
        let gaps = record.generated_at().count().saturating_sub(1);
        let kept = self.chunks + gaps <= self.limits.chunks;
        let chunks = if kept {
            self.chunks += gaps;
            Some(record.generated_at().skip(1).collect())
        } else {
            self.omitted.requests_without_chunks += 1;
            None
        };
        let observed = Observation::of(record);
        self.requests.push(Lane {
            id: record.id,
            intended: record.intended,
            dispatched: record.dispatched_at,
            picked_up: record.picked_up_at,
            sent: record.sent_at,
            first: observed.first.get(),
            last: observed.last.get(),
            ttfc: Metric::Ttfc.sample(&observed),
            end_to_end: Metric::EndToEnd.sample(&observed),
            completed: record.completed_at,
            prompt_tokens: record.total_prompt_tokens,
            output_tokens: record.output_tokens,
            cached_tokens: record.usage.and_then(|usage| usage.cached),
            measured: record.measured,
            server: record.server,
            failure: match &record.status {
                Status::Ok { .. } | Status::CancelledByClient => None,
                Status::Failed { class, message } => Some((class.name(), message.clone())),
            },
            chunks,
        });
    }

    fn join_session(&mut self, id: SessionId, half: HalfSession) {
        let Some(other) = self.open_sessions.remove(&id) else {
            self.open_sessions.insert(id, half);
            return;
        };
        match (other, half) {
            (HalfSession::Started { at: start, .. }, HalfSession::Finished { at, how, requests })
            | (HalfSession::Finished { at, how, requests }, HalfSession::Started { at: start, .. }) => {
                self.keep_session(SessionLane {
                    id,
                    start,
                    end: at.max(start),
                    how: Some(how),
                    requests,
                });
            }
            // Received twice: the later one counts.
            (_, again) => {
                self.open_sessions.insert(id, again);
            }
        }
    }

    fn keep_session(&mut self, lane: SessionLane) {
        if self.sessions.len() < self.limits.entries {
            self.sessions.push(lane);
        } else {
            self.omitted.sessions += 1;
        }
    }
}

fn never_sent(request: RequestId, reason: NeverSentReason) -> String {
    format!("{request} never sent: {}", reason.name())
}
