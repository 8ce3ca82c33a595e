//! Accounting of every session and request: duplicates and losses.
//!
//! A session is kept while any of its requests is open and then becomes one number in a set of
//! ranges, so memory follows the work in progress, not the length of the run.

use std::collections::{BTreeMap, HashMap};

use veeksha_events::{Event, NeverSentReason};
use veeksha_model::{EventInstants, Nanos, RequestId, RequestRecord, SessionId};

use crate::arrival::ArrivalCheck;
use crate::cancellation::{CancellableRequest, CancellationCheck};
use crate::concurrency::Concurrency;
use crate::expected::Expected;
use crate::rate::RateCheck;
use crate::report::{HealthCheck, REPORT_DEFECT, ValueUnit, Violations};
use crate::session::{DispatchTimes, SessionProgress, WaitingRequest};

pub(crate) const NAME: &str = "Request Accounting";

/// All sessions of a run, with the checks that need whole sessions.
pub(crate) struct SessionChecks {
    open: HashMap<SessionId, SessionProgress>,
    closed: Ranges,
    ended: Option<Nanos>,
    last: Nanos,
    finished_twice: Violations,
    dispatched_twice: Violations,
    both: Violations,
    requests: u64,
    pub(crate) arrival: ArrivalCheck,
    cancellation: CancellationCheck,
    pub(crate) rate: RateCheck,
    pub(crate) concurrency: Concurrency,
}

/// Returns the events of a node that ended at this instant without having been sent.
fn ended_at(at: Nanos) -> EventInstants {
    EventInstants {
        dispatched: at,
        first_chunk: at,
        completed: at,
    }
}

impl SessionChecks {
    pub(crate) fn new(expected: &Expected) -> Self {
        SessionChecks {
            open: HashMap::new(),
            closed: Ranges::default(),
            ended: None,
            last: 0,
            finished_twice: Violations::default(),
            dispatched_twice: Violations::default(),
            both: Violations::default(),
            requests: 0,
            arrival: ArrivalCheck::new(expected),
            cancellation: CancellationCheck::new(expected),
            rate: RateCheck::new(expected),
            concurrency: Concurrency::new(expected),
        }
    }

    pub(crate) fn on(&mut self, event: &Event) {
        match event {
            Event::SessionStarted {
                session,
                at,
                requests,
            } => {
                let known = self.session(*session, *at);
                if let Some(known) = known {
                    known.started_at = Some(*at);
                    known.known = known.known.max(*requests);
                }
                self.settle(*session);
            }
            Event::Dispatched {
                request,
                intended,
                at,
            } => self.on_dispatch(*request, *intended, *at),
            Event::Finished(record) => self.on_record(record),
            Event::ToolRan(run) => {
                if let Some(session) = self.session(run.id.session, run.completed_at) {
                    session.tool_runs.insert(run.id.node, run.events());
                    self.check_arrivals(run.id.session);
                }
                self.settle(run.id.session);
            }
            Event::ToolDropped(run) if run.reason.is_cancelled() => {
                if let Some(session) = self.session(run.id.session, run.at) {
                    session.tool_runs.insert(run.id.node, ended_at(run.at));
                    self.check_arrivals(run.id.session);
                }
                self.settle(run.id.session);
            }
            Event::NeverSent { request, reason, at } => {
                let Some(session) = self.session(request.session, *at) else {
                    self.both.add(|| request.to_string());
                    return;
                };
                let node = session.nodes.entry(request.node).or_default();
                node.never_sent = true;
                if *reason == NeverSentReason::CancelledByClient {
                    node.cancelled = true;
                    node.events = ended_at(*at);
                    node.events_from = node.events;
                }
                if node.dispatched || node.finished {
                    self.both.add(|| request.to_string());
                }
                self.check_arrivals(request.session);
                self.settle(request.session);
            }
            Event::SessionFinished {
                session,
                at,
                requests,
                ..
            } => {
                if let Some(known) = self.session(*session, *at) {
                    known.finished_at = Some(*at);
                    known.all = Some(*requests);
                }
                self.settle(*session);
            }
            Event::TimeoutReached { at } => self.concurrency.measured_until(*at),
            Event::ArrivalsMissed { sessions, .. } => self.rate.on_missed(*sessions),
            Event::RunEnded { at } => self.ended = Some(*at),
            _ => {}
        }
    }

    /// Returns the state of a session; `None` if it is closed.
    fn session(&mut self, id: SessionId, at: Nanos) -> Option<&mut SessionProgress> {
        self.last = self.last.max(at);
        if self.closed.contains(id.0) {
            return None;
        }
        let session = self.open.entry(id).or_default();
        session.last = session.last.max(at);
        Some(session)
    }

    fn on_dispatch(&mut self, request: RequestId, intended: Nanos, at: Nanos) {
        let Some(session) = self.session(request.session, at) else {
            self.dispatched_twice.add(|| request.to_string());
            return;
        };
        let dispatch = DispatchTimes { intended, at };
        let first = session.first_dispatch.get_or_insert(dispatch);
        if at < first.at {
            *first = dispatch;
        }
        let node = session.nodes.entry(request.node).or_default();
        let (twice, never_sent) = (std::mem::replace(&mut node.dispatched, true), node.never_sent);
        if twice {
            self.dispatched_twice.add(|| request.to_string());
        }
        if never_sent {
            self.both.add(|| request.to_string());
        }
        self.settle(request.session);
    }

    fn on_record(&mut self, record: &RequestRecord) {
        self.requests += 1;
        let Some(session) = self.session(record.id.session, record.completed_at) else {
            self.finished_twice.add(|| record.id.to_string());
            return;
        };
        let node = session.nodes.entry(record.id.node).or_default();
        if node.finished {
            self.finished_twice.add(|| record.id.to_string());
            return;
        }
        node.finished = true;
        node.events = record.events();
        node.events_from = EventInstants {
            dispatched: record.intended.saturating_add(record.held.total()),
            first_chunk: record
                .chunks
                .first()
                .map_or(record.completed_at, |chunk| chunk.at),
            completed: record.completed_at,
        };
        let never_sent = node.never_sent;
        if record.measured && !record.parents.is_empty() {
            session.waiting.push(WaitingRequest {
                node: record.id.node,
                parents: record.parents.clone(),
                wait_after_ready: record.wait_after_ready,
                intended: record.intended,
                dispatched_at: record.dispatched_at,
                held: record.held.total(),
            });
        }
        session.cancellable.extend(CancellableRequest::of(record));
        if never_sent {
            self.both.add(|| record.id.to_string());
        }
        self.check_arrivals(record.id.session);
        self.settle(record.id.session);
    }

    /// Checks the requests of a session whose parents have all ended.
    fn check_arrivals(&mut self, id: SessionId) {
        let Some(session) = self.open.get_mut(&id) else {
            return;
        };
        // Nearly always the parents finished before, and nothing waits.
        let waiting = std::mem::take(&mut session.waiting);
        let (ready, waiting): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .map(|child| (session.met(&child.parents), child))
            .partition(|(done, _)| done.is_some());
        session.waiting = waiting.into_iter().map(|(_, child)| child).collect();
        for (done, child) in ready {
            self.arrival.add(id, &child, done.unwrap_or_default());
        }
    }

    /// Closes a session if no further event is expected.
    fn settle(&mut self, id: SessionId) {
        if self.open.get(&id).is_some_and(SessionProgress::is_accounted_for)
            && let Some(session) = self.open.remove(&id)
        {
            self.closed.insert(id.0);
            self.pass_on(id, &session);
        }
    }

    fn pass_on(&mut self, id: SessionId, session: &SessionProgress) {
        for request in &session.cancellable {
            self.cancellation.add(id, request, |node| session.events(node));
        }
        if let Some(first) = session.first_dispatch {
            self.rate.add(first);
        }
        if let Some(begin) = session.began() {
            self.concurrency.add(begin, session.finished_at);
        }
    }

    /// Returns the checks of sessions: dispatch rate, intra-session arrival, cancellation,
    /// concurrency, accounting.
    pub(crate) fn finish(mut self) -> [HealthCheck; 5] {
        let mut left: Vec<(SessionId, SessionProgress)> = self.open.drain().collect();
        left.sort_unstable_by_key(|(id, _)| *id);
        for (id, session) in &left {
            self.pass_on(*id, session);
        }
        let accounting = self.accounting(&left);
        let end = self.ended.unwrap_or(self.last);
        [
            self.rate.finish(),
            self.arrival.finish(),
            self.cancellation.finish(),
            self.concurrency.finish(end),
            accounting,
        ]
    }

    fn accounting(&self, left: &[(SessionId, SessionProgress)]) -> HealthCheck {
        let mut check = HealthCheck::new(NAME);
        let twice = [
            (&self.finished_twice, "finished more than once"),
            (&self.dispatched_twice, "dispatched more than once"),
            (&self.both, "reported both as sent and as never sent"),
        ];
        for (violations, what) in twice {
            if violations.count > 0 {
                check.fail(
                    format!(
                        "{} {what}: {}",
                        veeksha_stats::counted(violations.count, "request"),
                        violations.names()
                    ),
                    REPORT_DEFECT,
                );
            }
        }
        check.value("requests finished", ValueUnit::Count, self.requests as f64);
        check.value(
            "requests finished again",
            ValueUnit::Count,
            self.finished_twice.count as f64,
        );
        if self.ended.is_none() {
            check.note("the record is truncated: requests in progress at its end look like lost ones".into());
            return check;
        }
        let (mut unanswered, mut unresolved, mut unsent) = (
            Violations::default(),
            Violations::default(),
            Violations::default(),
        );
        let mut lost = 0;
        for (id, session) in left {
            let mut missing = session
                .all
                .unwrap_or(session.known)
                .saturating_sub(session.resolved());
            for (node, state) in &session.nodes {
                let request = RequestId {
                    session: *id,
                    node: *node,
                };
                if state.dispatched && !state.finished && !state.never_sent {
                    unanswered.add(|| request.to_string());
                    missing = missing.saturating_sub(1);
                }
                if state.finished && !state.dispatched {
                    unsent.add(|| request.to_string());
                }
            }
            if missing > 0 {
                unresolved.add(|| format!("session {id} ({missing})"));
                lost += u64::from(missing);
            }
        }
        if unanswered.count > 0 {
            let what = "dispatched and neither answered nor failed when the run ended";
            check.fail(
                format!(
                    "{} {what}: {}",
                    veeksha_stats::counted(unanswered.count, "request"),
                    unanswered.names()
                ),
                REPORT_DEFECT,
            );
        }
        if lost > 0 {
            let what = "planned but reported neither as sent nor as never sent";
            check.fail(
                format!(
                    "{} {what}: {}",
                    veeksha_stats::counted(lost, "request"),
                    unresolved.names()
                ),
                REPORT_DEFECT,
            );
        }
        if unsent.count > 0 {
            let what = "finished without having been dispatched";
            check.fail(
                format!(
                    "{} {what}: {}",
                    veeksha_stats::counted(unsent.count, "request"),
                    unsent.names()
                ),
                REPORT_DEFECT,
            );
        }
        check.value(
            "requests lost",
            ValueUnit::Count,
            (unanswered.count + lost) as f64,
        );
        check
    }
}

/// A set of nearly consecutive numbers.
#[derive(Clone, Debug, Default)]
struct Ranges {
    /// First and last number of each range.
    ranges: BTreeMap<u64, u64>,
}

impl Ranges {
    fn contains(&self, number: u64) -> bool {
        self.ranges
            .range(..=number)
            .next_back()
            .is_some_and(|(_, last)| number <= *last)
    }

    fn insert(&mut self, number: u64) {
        if self.contains(number) {
            return;
        }
        let before = self
            .ranges
            .range(..number)
            .next_back()
            .map(|(first, last)| (*first, *last));
        let first = match before {
            Some((first, last)) if last.checked_add(1) == Some(number) => first,
            _ => number,
        };
        let after = number.checked_add(1).and_then(|next| self.ranges.remove(&next));
        self.ranges.insert(first, after.unwrap_or(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_ranges_merge() {
        let mut ranges = Ranges::default();
        for number in [3, 1, 5, 4, u64::MAX, 0, 2, 4] {
            assert!(number == 4 || !ranges.contains(number));
            ranges.insert(number);
        }
        assert_eq!(ranges.ranges, BTreeMap::from([(0, 5), (u64::MAX, u64::MAX)]));
        assert!((0..=5).all(|number| ranges.contains(number)) && !ranges.contains(6));
    }
}
