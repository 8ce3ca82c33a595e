//! Sessions put together from the events of their requests.

use std::collections::HashMap;

use veeksha_events::{RequestRecord, SessionEnd};
use veeksha_model::{Nanos, NodeId, SessionId};

use crate::Metric;
use crate::latencies::seconds_between;
use crate::samples::Samples;

/// One request of an open session.
#[derive(Debug)]
struct Turn {
    node: NodeId,
    parents: Vec<NodeId>,
    intended: Nanos,
    dispatched_at: Nanos,
    completed_at: Nanos,
    measured: bool,
}

#[derive(Debug, Default)]
struct OpenSession {
    started: bool,
    /// How it ended, and how many requests it had.
    end: Option<(SessionEnd, u32)>,
    turns: Vec<Turn>,
    never_sent: u32,
}

impl OpenSession {
    /// Completion threads may report a session's end before its last request: it is closed when both are known.
    fn is_closed(&self) -> bool {
        self.started
            && self
                .end
                .is_some_and(|(_, requests)| self.turns.len() as u32 + self.never_sent >= requests)
    }
}

/// The sessions that are still open; a closed one leaves its samples behind and is forgotten.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    open: HashMap<SessionId, OpenSession>,
    starts: Option<(Nanos, Nanos)>,
    /// Sessions that began.
    pub(crate) started: u64,
    /// Sessions that ended.
    pub(crate) finished: u64,
}

impl Sessions {
    pub(crate) fn on_started(&mut self, session: SessionId, at: Nanos, samples: &mut Samples) {
        self.started += 1;
        let (first, last) = self.starts.unwrap_or((at, at));
        self.starts = Some((first.min(at), last.max(at)));
        self.update(session, samples, |open| open.started = true);
    }

    pub(crate) fn on_request(&mut self, record: &RequestRecord, samples: &mut Samples) {
        let turn = Turn {
            node: record.id.node,
            parents: record.parents.clone(),
            intended: record.intended,
            dispatched_at: record.dispatched_at,
            completed_at: record.completed_at,
            measured: record.measured,
        };
        self.update(record.id.session, samples, |open| open.turns.push(turn));
    }

    pub(crate) fn on_never_sent(&mut self, session: SessionId, samples: &mut Samples) {
        self.update(session, samples, |open| open.never_sent += 1);
    }

    pub(crate) fn on_finished(
        &mut self,
        session: SessionId,
        end: SessionEnd,
        requests: u32,
        samples: &mut Samples,
    ) {
        self.finished += 1;
        self.update(session, samples, |open| open.end = Some((end, requests)));
    }

    /// Sessions begun per second, (sessions − 1) / (last start − first start); `None` for fewer than two.
    pub(crate) fn dispatch_rate(&self) -> Option<f64> {
        let (first, last) = self.starts?;
        (self.started >= 2 && last > first).then(|| (self.started - 1) as f64 / seconds_between(first, last))
    }

    /// Closes what the record leaves open, and says how many of those sessions never ended.
    pub(crate) fn close_all(&mut self, samples: &mut Samples) -> u64 {
        let mut without_end = 0;
        for (_, open) in self.open.drain() {
            without_end += u64::from(open.end.is_none() && open.started);
            take_samples(&open, samples);
        }
        without_end
    }

    fn update(&mut self, session: SessionId, samples: &mut Samples, change: impl FnOnce(&mut OpenSession)) {
        let open = self.open.entry(session).or_default();
        change(open);
        if open.is_closed() {
            take_samples(open, samples);
            self.open.remove(&session);
        }
    }
}

/// Size and duration of a session that was tried to its end and measured throughout; think times of measured requests.
fn take_samples(session: &OpenSession, samples: &mut Samples) {
    let turns = &session.turns;
    let tried = matches!(
        session.end,
        Some((SessionEnd::Completed | SessionEnd::Errored, _))
    );
    if tried && turns.iter().all(|turn| turn.measured) {
        let first = turns.iter().map(|turn| turn.dispatched_at).min();
        let last = turns.iter().map(|turn| turn.completed_at).max();
        if let (Some(first), Some(last)) = (first, last) {
            samples.push(Metric::SessionSize, turns.len() as f64);
            samples.push(Metric::SessionDuration, seconds_between(first, last));
        }
    }
    let completions: HashMap<NodeId, Nanos> =
        turns.iter().map(|turn| (turn.node, turn.completed_at)).collect();
    for turn in turns
        .iter()
        .filter(|turn| turn.measured && !turn.parents.is_empty())
    {
        // A parent that the record does not show leaves the think time unknown.
        let parents: Option<Vec<Nanos>> = turn
            .parents
            .iter()
            .map(|parent| completions.get(parent).copied())
            .collect();
        if let Some(ready) = parents.and_then(|parents| parents.into_iter().max()) {
            samples.push(Metric::SessionThinkTime, seconds_between(ready, turn.intended));
        }
    }
}
