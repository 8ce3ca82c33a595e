//! The look-ahead: keeps enough sessions ready that dispatchers never wait for a plugin, and not
//! more.

use std::collections::BTreeMap;
use std::time::Duration;

use crossbeam_channel::Receiver;
use veeksha_clock::RunClock;
use veeksha_events::PluginCall;
use veeksha_model::{Nanos, Prepared, SessionId};
use veeksha_ports::PluginFailure;
use veeksha_scheduler::{SchedulerInput, SessionKind, TrafficRule};

use crate::arrivals::ArrivalQueue;
use crate::control::Control;
use crate::made::{EmptySessions, MadeSession, SessionStart};
use crate::partition::Partition;
use crate::plan::{Plan, UnstartedSessions};
use crate::prefetch::{MAX_BATCH, WorkerCommand, WorkerMessage, Workers};

/// Sessions kept ready beyond those that may start at once. A plugin call of a whole batch takes
/// well under a millisecond in a compiled language and tens in an interpreted one; 64 sessions
/// bridge that at a thousand sessions a second.
const LOOKAHEAD: u64 = 64;

/// The same for traffic whose arrivals are given: many recordings have a resolution of one second,
/// and all sessions of a second start at once.
const GIVEN_LOOKAHEAD: u64 = 256;

/// Arrivals requested of a process in one call, at most.
const MAX_ARRIVALS: u64 = 256;

/// Maximum time that the start waits for the whole look-ahead once the first session is there.
const FILL_PATIENCE: Duration = Duration::from_millis(200);

/// Keeps enough sessions made, in order, and no more than that. Sessions are counted by their
/// position in the part.
pub(crate) struct Lookahead {
    part: Partition,
    window: u64,
    pregenerate: bool,
    kind: Option<SessionKind>,
    asked: u64,
    batches: u64,
    batch: u32,
    /// The first position without a session, once known.
    end: u64,
    /// The same, if the plugin had not failed.
    wanted_end: u64,
    empty_sessions: EmptySessions,
    /// Set if the failure of the plugin is the end: why.
    ended_by: Option<String>,
    /// Number of sessions of the workload, if it is finite.
    length: Option<u64>,
    made: BTreeMap<u64, MadeSession<Prepared>>,
    /// The arrivals of the next sessions, if a process decides them.
    arrivals: Option<ArrivalQueue>,
    delivered: u64,
    /// Sessions that have begun.
    pub(crate) started: u64,
    source_ended: bool,
    /// Failures before the clock started, each with the position of its first session.
    pub(crate) failed_early: Vec<(u64, PluginFailure)>,
    /// The workers' calls before the clock started.
    pub(crate) busy_early: Vec<PluginCall>,
    /// Sessions delivered since the list was last drained, with their digests.
    pub(crate) planned: Vec<(SessionId, u64)>,
    /// Sessions delivered since the list was last drained whose agents failed at their start.
    pub(crate) failed: Vec<(SessionId, PluginFailure)>,
}

impl Lookahead {
    pub(crate) fn new(plan: &Plan, part: Partition) -> Self {
        let reserve = match &plan.scheduler.traffic {
            TrafficRule::Concurrent { target, .. } => LOOKAHEAD + part.places(*target),
            TrafficRule::Rate(_) => LOOKAHEAD,
            TrafficRule::Scheduled { .. } => GIVEN_LOOKAHEAD,
        };
        let end = part.below(plan.scheduler.max_sessions.unwrap_or(u64::MAX));
        Lookahead {
            part,
            window: if plan.pregenerate { end } else { reserve },
            pregenerate: plan.pregenerate,
            kind: None,
            asked: 0,
            batches: 0,
            batch: 1,
            end,
            wanted_end: end,
            empty_sessions: EmptySessions::default(),
            ended_by: None,
            length: None,
            made: BTreeMap::new(),
            arrivals: plan.arrivals.as_ref().map(|_| ArrivalQueue::default()),
            delivered: 0,
            started: 0,
            source_ended: false,
            failed_early: Vec::new(),
            busy_early: Vec::new(),
            planned: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// Returns the number of sessions that a dispatcher may begin before it notifies the
    /// coordinator. All dispatchers together keep back less than half of the look-ahead, so that it
    /// never runs out because of late notifications.
    pub(crate) fn notify_after(part: Partition) -> u64 {
        (LOOKAHEAD / 2 / u64::from(part.dispatchers())).clamp(1, 8)
    }

    /// Waits until the workers are open and enough sessions are there to begin. The error is the
    /// position of the first session that cannot be made, and the reason.
    pub(crate) fn fill(
        &mut self,
        workers: &Workers,
        made: &Receiver<WorkerMessage>,
        control: &Control,
    ) -> Result<(), (u64, Box<PluginFailure>)> {
        let patience = RunClock::starting_now();
        loop {
            let ready = self.ready();
            let complete = ready >= self.window.min(self.end);
            let timed_out =
                !self.pregenerate && ready > 0 && patience.now() > FILL_PATIENCE.as_nanos() as u64;
            if self.kind.is_some() && (complete || timed_out) || control.is_stopped() {
                return Ok(());
            }
            match made.recv_timeout(Duration::from_millis(20)) {
                Ok(WorkerMessage::SourceFailed { first, failure }) if first == 0 || self.pregenerate => {
                    return Err((first, Box::new(failure)));
                }
                Ok(message) => self.take_early(message),
                Err(_) => {}
            }
            self.ask(workers);
        }
    }

    /// Returns the number of sessions that can be delivered, if all before them are made.
    fn ready(&self) -> u64 {
        let made = self.made.len() as u64;
        let arrivals = self.arrivals.as_ref().map_or(u64::MAX, ArrivalQueue::len);
        made.min(arrivals)
    }

    /// Returns the number of sessions that had arrived before `end`, by an arrival process, and
    /// were not made in time.
    pub(crate) fn missed(&self, end: Nanos) -> u64 {
        let arrivals = self.arrivals.as_ref();
        arrivals.map_or(0, |arrivals| arrivals.arrived_before(end))
    }

    /// Returns the number of sessions in the whole run, if the workload is finite.
    pub(crate) fn length(&self) -> Option<u64> {
        self.length
    }

    /// Takes in what has been made in the meantime, before the clock starts.
    pub(crate) fn catch_up(&mut self, workers: &Workers, made: &Receiver<WorkerMessage>) {
        while let Ok(message) = made.try_recv() {
            self.take_early(message);
        }
        self.ask(workers);
    }

    /// Returns the failures before the clock started, each with its first session.
    pub(crate) fn early_failures(&self) -> impl Iterator<Item = (Option<SessionId>, &PluginFailure)> {
        let failures = self.failed_early.iter();
        failures.map(|(first, failure)| (Some(self.part.session(*first)), failure))
    }

    fn take_early(&mut self, message: WorkerMessage) {
        match self.take(message) {
            Some(WorkerMessage::SourceFailed { first, failure }) => {
                self.failed_early.push((first, failure));
            }
            Some(WorkerMessage::Busy(call)) => self.busy_early.push(call),
            _ => {}
        }
    }

    /// Takes in what a worker made; gives back what is for a live session or the report.
    pub(crate) fn take(&mut self, message: WorkerMessage) -> Option<WorkerMessage> {
        match message {
            WorkerMessage::Open { kind, length } => {
                self.kind = Some(kind);
                self.length = length;
                self.ends_at(self.part.below(length.unwrap_or(u64::MAX)));
                None
            }
            WorkerMessage::Sessions {
                first,
                asked,
                sessions,
            } => {
                if (sessions.len() as u64) < u64::from(asked) {
                    self.ends_at(first + sessions.len() as u64);
                }
                self.made.extend((first..).zip(sessions));
                None
            }
            WorkerMessage::Arrivals { asked, arrivals } => {
                let is_end = arrivals.len() < asked as usize;
                if let Some(queue) = &mut self.arrivals {
                    let received = queue.extend(arrivals);
                    if is_end {
                        self.ends_at(received);
                    }
                }
                None
            }
            WorkerMessage::SourceFailed { first, failure } => {
                // The sessions before it are made, or being made by other workers.
                if first < self.end {
                    self.end = first;
                    self.ended_by = Some("its plugin failed".to_owned());
                }
                Some(WorkerMessage::SourceFailed { first, failure })
            }
            other => Some(other),
        }
    }

    /// Notes that the workload has no session from a position on.
    fn ends_at(&mut self, position: u64) {
        self.end = self.end.min(position);
        self.wanted_end = self.wanted_end.min(position);
    }

    /// Returns the sessions that will not start because the plugin failed, if there are any.
    pub(crate) fn unstarted(&self) -> Option<UnstartedSessions> {
        let reason = self.ended_by.clone()?;
        self.part.unstarted(reason, self.end, self.wanted_end)
    }

    /// Requests sessions until the window is full.
    pub(crate) fn ask(&mut self, workers: &Workers) {
        let Some(kind) = self.kind else { return };
        let wanted = self
            .started
            .saturating_mul(u64::from(self.part.dispatchers()))
            .saturating_add(self.window)
            .min(self.end);
        if let Some(arrivals) = &mut self.arrivals {
            while arrivals.asked < wanted {
                let count = (wanted - arrivals.asked).min(MAX_ARRIVALS) as u32;
                workers.ask_arrivals(arrivals.asked, count);
                arrivals.asked += u64::from(count);
            }
        }
        while self.asked < wanted {
            let batch = if kind == SessionKind::Reactive {
                1
            } else {
                self.batch
            };
            let count = u64::from(batch).min(self.end - self.asked) as u32;
            let worker = if kind == SessionKind::Reactive {
                self.asked
            } else {
                self.batches
            };
            workers.send(
                worker,
                WorkerCommand::Make {
                    first: self.asked,
                    count,
                },
            );
            self.asked += u64::from(count);
            self.batches += 1;
            self.batch = (self.batch * 2).min(MAX_BATCH);
        }
    }

    /// Passes the sessions that are next in order to their dispatchers; `put` takes the
    /// dispatcher's number.
    pub(crate) fn deliver(&mut self, mut put: impl FnMut(usize, SchedulerInput<Prepared>)) {
        while self.delivered < self.end
            && self.ready() > 0
            && let Some(session) = self.made.remove(&self.delivered)
        {
            let MadeSession { mut plan, start } = session;
            if let Some(arrivals) = &mut self.arrivals {
                plan.arrives_at = arrivals.pop();
            }
            let (session, dispatcher) = (plan.id, self.part.dispatcher(plan.id));
            let goes_on = self.empty_sessions.count(&plan);
            put(dispatcher, SchedulerInput::Session(plan));
            if let Some(input) = start.input(session) {
                put(dispatcher, input);
            }
            self.delivered += 1;
            if !goes_on && self.delivered < self.end {
                self.end = self.delivered;
                self.ended_by = Some(EmptySessions::reason());
            }
            match start {
                SessionStart::Made { digest, .. } => self.planned.push((session, digest)),
                SessionStart::Failed(failure) => self.failed.push((session, *failure)),
            }
        }
        if self.delivered >= self.end && !self.source_ended {
            self.source_ended = true;
            for dispatcher in 0..self.part.dispatchers() as usize {
                put(dispatcher, SchedulerInput::SourceEnded);
            }
        }
    }
}
