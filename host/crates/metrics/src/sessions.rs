//! Start and end of sessions, and the statistics kept for each.

use std::collections::HashMap;

use veeksha_events::{RequestRecord, SessionEnd};
use veeksha_model::{Nanos, SessionId, seconds};

use crate::cache_accounting::ClassifiedPrompts;
use crate::label_sets::LabelSet;
use veeksha_definitions::{Metric, PathPart, PathParts, seconds_between};

/// Start and end of sessions.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    starts: Vec<(SessionId, Nanos)>,
    pub(crate) ends: Vec<(SessionId, Nanos, SessionEnd)>,
    /// The instant at which a session got its slot, for sessions that a limit held back after their
    /// arrival.
    admitted: HashMap<SessionId, Nanos>,
}

impl Sessions {
    pub(crate) fn on_started(&mut self, session: SessionId, at: Nanos) {
        self.starts.push((session, at));
    }

    /// Records how long the session limit held a request back, from which the instant of its
    /// session's slot follows.
    pub(crate) fn on_record(&mut self, record: &RequestRecord) {
        if record.held.sessions > 0 {
            let slot_since = record.intended.saturating_add(record.held.sessions);
            let admitted = self.admitted.entry(record.id.session).or_default();
            *admitted = slot_since.max(*admitted);
        }
    }

    pub(crate) fn on_finished(&mut self, session: SessionId, at: Nanos, end: SessionEnd) {
        self.ends.push((session, at, end));
    }

    /// Returns the number of sessions that began.
    pub(crate) fn started(&self) -> u64 {
        self.starts.len() as u64
    }

    /// Returns the start of a session; the sessions must be sorted.
    pub(crate) fn start(&self, session: SessionId) -> Option<Nanos> {
        let place = self.starts.binary_search_by_key(&session, |(id, _)| *id).ok()?;
        Some(self.starts[place].1)
    }

    /// Returns the number of sessions that ended.
    pub(crate) fn finished(&self) -> u64 {
        self.ends.len() as u64
    }

    pub(crate) fn sort(&mut self) {
        self.starts.sort_unstable();
        self.ends.sort_unstable();
    }

    /// Returns the sessions started per second, (sessions − 1) / (last start − first start); `None`
    /// for fewer than two.
    pub(crate) fn dispatch_rate(&self) -> Option<f64> {
        let instants = || self.starts.iter().map(|(_, at)| *at);
        let (first, last) = (instants().min()?, instants().max()?);
        let others = self.started().checked_sub(1).filter(|others| *others > 0)?;
        (last > first).then(|| others as f64 / seconds_between(first, last))
    }

    /// Returns the end of a session; the sessions must be sorted.
    pub(crate) fn end(&self, session: SessionId) -> Option<(Nanos, SessionEnd)> {
        let place = self.ends.binary_search_by_key(&session, |(id, _, _)| *id).ok()?;
        let (_, at, end) = self.ends[place];
        Some((at, end))
    }

    /// Returns the number of sessions that began and never ended; the sessions must be sorted.
    pub(crate) fn without_end(&self) -> u64 {
        let open = |(session, _): &&(SessionId, Nanos)| self.end(*session).is_none();
        self.starts.iter().filter(open).count() as u64
    }

    /// Returns the interval in which each session was active: from its start, or from the instant
    /// at which a limit admitted it, until its end, or `end`. The sessions must be sorted.
    pub(crate) fn active(&self, end: Nanos) -> impl Iterator<Item = (Nanos, Nanos)> + '_ {
        self.starts.iter().map(move |(session, at)| {
            let from = self
                .admitted
                .get(session)
                .map_or(*at, |admitted| *admitted.max(at));
            (from, self.end(*session).map_or(end, |(at, _)| at))
        })
    }
}

/// The statistics of one session of which every request was attempted and measured. Times are in
/// seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionMetrics {
    /// The id of the session.
    pub session: SessionId,
    /// The earliest scheduled instant.
    pub intended: Nanos,
    /// `session_size`
    pub requests: u32,
    /// `session_duration`
    pub duration: f64,
    /// `session_makespan`
    pub makespan: f64,
    /// `session_critical_path_llm_time`; `None` where the record lacks a parent.
    pub critical_path_llm_time: Option<f64>,
    /// `session_tool_time`; `None` where no tool was called.
    pub tool_time: Option<f64>,
    /// `session_slowdown`; `None` if a request had no answer or an empty one.
    pub slowdown: Option<f64>,
    /// The prompt tokens of its requests by class; `None` if none of them is classified.
    pub cache: Option<ClassifiedPrompts>,
    /// The split of the makespan along the critical path; `None` where the record lacks a parent.
    pub critical_path: Option<PathTimes>,
}

/// The split of a session's makespan along its critical path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathTimes {
    /// `critical_path_requests`
    pub requests: u32,
    /// The time of each part, in nanoseconds.
    pub times: PathParts<Nanos>,
}

impl PathTimes {
    /// Returns the time of a part in seconds.
    pub fn seconds(&self, part: PathPart) -> f64 {
        seconds(self.times.of(part))
    }
}

/// The compact form of [`SessionMetrics`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SessionRow {
    pub(crate) session: SessionId,
    pub(crate) intended: Nanos,
    /// Labels that all its requests share.
    pub(crate) labels: LabelSet,
    pub(crate) requests: u32,
    pub(crate) duration: f64,
    pub(crate) makespan: f64,
    pub(crate) critical_path: Known,
    pub(crate) tool_time: Known,
    pub(crate) slowdown: Known,
    pub(crate) cache: Option<ClassifiedPrompts>,
    pub(crate) path: Option<PathTimes>,
}

/// An optional number in eight bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known(f64);

impl Known {
    pub(crate) fn of(value: Option<f64>) -> Self {
        Known(value.unwrap_or(f64::NAN))
    }

    fn get(self) -> Option<f64> {
        (!self.0.is_nan()).then_some(self.0)
    }
}

impl PartialEq for Known {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl SessionRow {
    pub(crate) fn value(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::SessionSize => Some(f64::from(self.requests)),
            Metric::SessionDuration => Some(self.duration),
            Metric::SessionMakespan => Some(self.makespan),
            Metric::SessionCriticalPath => self.critical_path.get(),
            Metric::SessionToolTime => self.tool_time.get(),
            Metric::SessionSlowdown => self.slowdown.get(),
            Metric::PathRequests => Some(f64::from(self.path?.requests)),
            metric => {
                let part = PathPart::ALL.into_iter().find(|part| part.metric() == metric)?;
                Some(self.path?.seconds(part))
            }
        }
    }

    pub(crate) fn metrics(&self) -> SessionMetrics {
        SessionMetrics {
            session: self.session,
            intended: self.intended,
            requests: self.requests,
            duration: self.duration,
            makespan: self.makespan,
            critical_path_llm_time: self.critical_path.get(),
            tool_time: self.tool_time.get(),
            slowdown: self.slowdown.get(),
            cache: self.cache,
            critical_path: self.path,
        }
    }
}
