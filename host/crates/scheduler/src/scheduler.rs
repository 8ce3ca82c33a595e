//! The state machine that joins sessions, admission, readiness and the end of the run.

mod beginning;
mod cancellation;
mod tool_events;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use veeksha_events::NeverSentReason;
use veeksha_model::{FailureReason, Held, Nanos, NodeId, RequestId, Response, SessionId, Trigger};

use crate::admission::Admission;
use crate::config::SchedulerConfig;
use crate::contract::{Action, NodeOutcome, NodePlan, SchedulerInput, SessionKind, SessionPlan};
use crate::deadline::{Deadline, RunPhase};
use crate::intake::Intake;
use crate::ready::ReadyQueue;
use crate::request_limits::RequestLimits;
use crate::session::{SessionState, Withdrawal};
use crate::tools::Tools;

/// Sessions that [`Scheduler::wanted`] requests beyond those that could start now. Only virtual
/// time uses it, where waiting for a plugin costs no measured time: large batches need fewer plugin
/// calls. The pipeline has a separate look-ahead for real time.
pub const LOOKAHEAD: u32 = 512;

/// Decides what is sent when. See the crate's documentation.
///
/// Call [`Scheduler::on`] for everything that happens, and with [`SchedulerInput::Tick`] at
/// [`Scheduler::next_wake`]. The time must not go backwards. Sessions are dropped when they are
/// over, so memory follows the live ones.
#[derive(Debug)]
pub struct Scheduler<P> {
    config: SchedulerConfig,
    intake: Intake,
    admission: Admission,
    /// Held and live sessions.
    sessions: HashMap<SessionId, SessionState<P>>,
    ready: ReadyQueue,
    /// The known instants of cancellations, one for each node.
    cancellations: BTreeSet<(Nanos, SessionId, NodeId)>,
    requests: RequestLimits,
    tools: Tools,
    /// The limits that were reached when the present call began.
    reached: Reached,
    deadline: Deadline,
    phase: RunPhase,
    /// Dispatched requests without a result.
    in_flight: usize,
    /// Those of them that are measured, and measured tool runs, without timers, that were called
    /// and have not ended.
    measured_in_flight: usize,
}

/// The limits that keep something back.
#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    sessions: bool,
    requests: bool,
}

impl<P> Scheduler<P> {
    /// Creates a scheduler at the start of a run.
    pub fn new(config: SchedulerConfig) -> Self {
        let max_sessions = if config.shard.index < config.most_shards() {
            config.max_sessions
        } else {
            Some(0)
        };
        Scheduler {
            intake: Intake::new(config.shard, max_sessions),
            admission: Admission::new(&config),
            sessions: HashMap::new(),
            ready: ReadyQueue::default(),
            cancellations: BTreeSet::new(),
            requests: RequestLimits::new(config.limits, config.shard),
            reached: Reached::default(),
            tools: Tools::new(&config.tools),
            deadline: Deadline::new(config.benchmark_timeout, config.grace),
            phase: RunPhase::Measuring,
            in_flight: 0,
            measured_in_flight: 0,
            config,
        }
    }

    /// Takes an input and appends what follows from it to `actions`.
    pub fn on(&mut self, now: Nanos, input: SchedulerInput<P>, actions: &mut Vec<Action<P>>) {
        if self.phase == RunPhase::Done {
            return;
        }
        self.requests.begin_call();
        self.reached = Reached {
            sessions: self.admission.is_full(),
            requests: self.requests.is_full(),
        };
        let is_stopped = matches!(input, SchedulerInput::Stop);
        // A result counts before the clock does: it came before this call, whatever deadline the
        // call is late for.
        self.take(now, input, actions);
        self.pass_deadlines(now, is_stopped, actions);
        if self.phase != RunPhase::Stopping {
            self.start_sessions(now, actions);
            self.advance(now, actions);
        }
        if self.phase != RunPhase::Stopping {
            self.dispatch_ready(now, actions);
        }
        if self.is_over() {
            self.phase = RunPhase::Done;
            actions.push(Action::Done);
        }
    }

    /// Ends the measurement and the run when it is time. Events with exact instants, of tools and
    /// cancellations, count up to the deadline, however late the call is.
    fn pass_deadlines(&mut self, now: Nanos, is_stopped: bool, actions: &mut Vec<Action<P>>) {
        if let Some(timeout) = self.deadline.passed(self.phase, now) {
            if let Some(before) = timeout.checked_sub(1) {
                self.advance(before, actions);
            }
            actions.push(Action::TimeoutReached { at: timeout });
            self.phase = self.deadline.drain(timeout);
        }
        let end = self.deadline.end(self.phase).filter(|end| *end <= now);
        if self.is_drained() {
            self.stop(now, actions);
        } else if let Some(end) = end.or(is_stopped.then_some(now)) {
            // No session starts any more.
            while self.carry_out_next(end, actions) {}
            self.stop(now, actions);
        }
    }

    /// Returns true if nothing that is measured is left after the timeout.
    fn is_drained(&self) -> bool {
        matches!(self.phase, RunPhase::Draining { .. }) && self.measured_in_flight == 0
    }

    /// Returns the next instant at which [`SchedulerInput::Tick`] is due; `None`: only results or
    /// sessions move the run on.
    pub fn next_wake(&self) -> Option<Nanos> {
        let deadline = self.deadline.next(self.phase);
        // A node that becomes due while a limit is reached waits for a result, not for its instant.
        let ready = self.ready.first().filter(|_| !self.requests.is_full());
        match self.phase {
            RunPhase::Stopping | RunPhase::Done => None,
            _ => [
                ready,
                self.next_tool_event(),
                self.next_cancellation(),
                self.admission.next(),
                deadline,
            ]
            .into_iter()
            .flatten()
            .min(),
        }
    }

    /// Returns the number of sessions that the source should deliver now, from
    /// [`Scheduler::next_wanted`] on.
    pub fn wanted(&self) -> u32 {
        if matches!(self.phase, RunPhase::Stopping | RunPhase::Done) {
            return 0;
        }
        let goal = LOOKAHEAD as usize + self.admission.vacant();
        let missing = goal.saturating_sub(self.admission.held()) as u64;
        missing.min(self.intake.remaining()).min(u64::from(u32::MAX)) as u32
    }

    /// Returns the lowest session of this shard that was not delivered; the next is `shard.count`
    /// higher. `None`: no more are wanted.
    pub fn next_wanted(&self) -> Option<SessionId> {
        match self.phase {
            RunPhase::Stopping | RunPhase::Done => None,
            _ => self.intake.next_wanted(),
        }
    }

    /// Returns true if [`Action::Done`] was given.
    pub fn is_done(&self) -> bool {
        self.phase == RunPhase::Done
    }

    /// Returns the number of dispatched requests that have no result yet.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Returns the number of sessions whose state is kept: delivered and not over.
    pub fn live_sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Returns the number of cancellations whose instants are known and that have not been carried
    /// out: at most one for each node of a session whose state is kept.
    pub fn pending_cancellations(&self) -> usize {
        self.cancellations.len()
    }

    fn take(&mut self, now: Nanos, input: SchedulerInput<P>, actions: &mut Vec<Action<P>>) {
        match input {
            SchedulerInput::Session(plan) => self.deliver(now, plan),
            SchedulerInput::SourceEnded => self.intake.source_ended(),
            SchedulerInput::Step {
                session,
                nodes,
                cancel,
                done,
            } => self.step(now, session, (nodes, cancel, done), actions),
            SchedulerInput::AgentFailed { session } => self.agent_failed(now, session, actions),
            SchedulerInput::Answered {
                request,
                response,
                at,
            } => self.complete(now, request, at, Ok(response), actions),
            SchedulerInput::Failed { request, reason, at } => {
                self.complete(now, request, at, Err(reason), actions)
            }
            SchedulerInput::FirstChunk { request, at } => self.first_chunk(now, request, at),
            SchedulerInput::Tick | SchedulerInput::Stop => {}
        }
    }

    fn deliver(&mut self, now: Nanos, plan: SessionPlan<P>) {
        if self.phase == RunPhase::Stopping || !self.intake.accept(plan.id) {
            return;
        }
        let nodes = self.timed(plan.nodes);
        let mut session = SessionState::new(plan.id, plan.kind);
        session.cancelled_at_start = plan.cancel;
        session.add(nodes, now, &mut self.ready);
        self.sessions.insert(plan.id, session);
        self.admission.hold(plan.id, now, plan.arrives_at);
    }

    /// Removes the recorded instants unless the traffic replays arrivals.
    fn timed(&self, mut nodes: Vec<NodePlan<P>>) -> Vec<NodePlan<P>> {
        if !self.config.traffic.replays() {
            for node in &mut nodes {
                node.not_before = None;
            }
        }
        nodes
    }

    fn step(
        &mut self,
        now: Nanos,
        id: SessionId,
        (nodes, cancel, done): (Vec<NodePlan<P>>, Vec<NodeId>, bool),
        actions: &mut Vec<Action<P>>,
    ) {
        let nodes = self.timed(nodes);
        let Some(session) = self.sessions.get_mut(&id).filter(|session| session.agent_open()) else {
            return;
        };
        session.add(nodes, now, &mut self.ready);
        session.answered(done, now);
        for node in cancel {
            self.cancel(RequestId { session: id, node }, now, actions);
        }
        self.arm(id);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.give_up_if_stuck();
        }
        self.settle(id, now, actions);
    }

    /// Ends the session of an agent. One that failed at its start was delivered without nodes: it
    /// takes its turn, and ends when it has started.
    fn agent_failed(&mut self, now: Nanos, id: SessionId, actions: &mut Vec<Action<P>>) {
        if let Some(session) = self.sessions.get_mut(&id).filter(|session| session.agent_open()) {
            session.agent_failed();
            if session.has_started() {
                self.withdraw(id, NeverSentReason::PluginFailed.into(), now, actions);
                self.settle(id, now, actions);
            }
        }
    }

    fn complete(
        &mut self,
        now: Nanos,
        request: RequestId,
        at: Nanos,
        answer: Result<Arc<Response>, Arc<FailureReason>>,
        actions: &mut Vec<Action<P>>,
    ) {
        let RequestId { session: id, node } = request;
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let at = at.min(now);
        let Some(ended) = session.complete(node, at, answer.as_ref().ok().cloned()) else {
            return;
        };
        self.in_flight -= 1;
        self.measured_in_flight -= usize::from(ended.measured);
        self.requests.ended(at, ended.prefilling);
        if self.phase == RunPhase::Stopping {
            if answer.is_err() {
                session.lost();
            }
        } else if session.kind == SessionKind::Planned
            && self.config.cancel_session_on_failure
            && answer.is_err()
        {
            self.withdraw(id, NeverSentReason::SessionCancelled.into(), now, actions);
            // Its end may cancel what is in flight.
            if let Some(session) = self.sessions.get_mut(&id) {
                session.release_children(node, Trigger::Completed, at, &mut self.ready);
            }
            self.arm(id);
        } else {
            session.release_children(node, Trigger::Completed, at, &mut self.ready);
            if session.agent_open() {
                session.asked();
                let outcome = match answer {
                    Ok(response) => NodeOutcome::Answered(response),
                    Err(reason) => NodeOutcome::Failed(reason),
                };
                actions.push(Action::AskAgent {
                    session: id,
                    node,
                    outcome,
                    at,
                });
            }
            self.arm(id);
        }
        self.settle_at_latest(id, actions);
    }

    fn first_chunk(&mut self, now: Nanos, request: RequestId, at: Nanos) {
        let at = at.min(now);
        let Some(session) = self.sessions.get_mut(&request.session) else {
            return;
        };
        if session.first_chunk(request.node, at) {
            self.requests.first_chunk(at);
            if self.phase != RunPhase::Stopping {
                session.release_children(request.node, Trigger::FirstChunk, at, &mut self.ready);
                self.arm(request.session);
            }
        }
    }

    fn start_sessions(&mut self, now: Nanos, actions: &mut Vec<Action<P>>) {
        while let Some(admitted) = self.admission.admit(now) {
            let Some(session) = self.sessions.get_mut(&admitted.id) else {
                continue;
            };
            if admitted.delivered > admitted.due {
                actions.push(Action::Starved {
                    due: admitted.due,
                    at: admitted.delivered,
                });
            }
            session.begin(admitted.due, admitted.slot_since, &mut self.ready);
            self.arm(admitted.id);
            self.has_begun(admitted.id, admitted.due, now, actions);
            self.settle_at_latest(admitted.id, actions);
        }
    }

    /// Carries out cancellations and lets tools work up to now, event by event: each may lead to
    /// further ones, and the end of a session to another session. The end of the last tool run
    /// that is measured may be the end of the run.
    fn advance(&mut self, now: Nanos, actions: &mut Vec<Action<P>>) {
        while self.carry_out_next(now, actions) {
            if self.is_drained() {
                return self.stop(now, actions);
            }
            self.start_sessions(now, actions);
        }
    }

    /// Carries out the next cancellation or event of a tool; returns false if none is due.
    fn carry_out_next(&mut self, now: Nanos, actions: &mut Vec<Action<P>>) -> bool {
        let next = [self.next_cancellation(), self.next_tool_event()];
        let Some(at) = next.into_iter().flatten().min().filter(|at| *at <= now) else {
            return false;
        };
        if self.next_cancellation() == Some(at) {
            self.cancel_first(actions);
        } else if self.ready.first_tool_run() == Some(at) {
            self.call_tool();
        } else if let Some(event) = self.tools.step(at) {
            self.on_tool(event, actions);
        }
        true
    }

    fn dispatch_ready(&mut self, now: Nanos, actions: &mut Vec<Action<P>>) {
        let measured = self.phase == RunPhase::Measuring;
        loop {
            let (sessions, requests) = (&self.sessions, &self.requests);
            if requests.is_full() {
                let passed = |intended, id: RequestId| {
                    let session = sessions.get(&id.session);
                    requests.passed(session.map_or(now, |session| session.free(id.node, intended).since))
                };
                return self.ready.hold_due(now, |id| is_queued(sessions, id), passed);
            }
            let Some(due) = self.ready.pop_due(now, |id| is_queued(sessions, id)) else {
                return;
            };
            let (id, intended) = (due.request, due.intended);
            let Some(session) = self.sessions.get_mut(&id.session) else {
                continue;
            };
            let Some(data) = session.dispatch(id.node, measured, now) else {
                continue;
            };
            session.release_children(id.node, Trigger::Dispatched, now, &mut self.ready);
            let free = session.free(id.node, intended);
            let since = due.held_since.unwrap_or_else(|| self.requests.passed(free.since));
            let until = self.requests.passed(now);
            let held = Held {
                sessions: free.held_by_sessions,
                in_flight: until.in_flight.saturating_sub(since.in_flight),
                in_prefill: until.in_prefill.saturating_sub(since.in_prefill),
            };
            self.requests.dispatched(free.since);
            self.in_flight += 1;
            self.measured_in_flight += usize::from(measured);
            actions.push(Action::Dispatch {
                id,
                intended,
                held,
                payload: data.payload,
                history: data.history,
                measured,
                reports_first_chunk: data.first_chunk_matters || self.requests.limits_prefills(),
                session_requests: data.session_requests,
            });
            self.arm(id.session);
            self.advance(now, actions);
            if self.phase == RunPhase::Stopping {
                return;
            }
        }
    }

    /// Gives up what a session has not sent.
    fn withdraw(&mut self, id: SessionId, why: Withdrawal, now: Nanos, actions: &mut Vec<Action<P>>) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let withdrawn = session.withdraw(why, now, actions);
        self.measured_in_flight -= withdrawn.awaited_tool_runs;
        for (class, call) in withdrawn.calls {
            self.tools.drop_call(class, call);
        }
        let sessions = &self.sessions;
        self.ready
            .withdraw(withdrawn.queued, |id| is_queued(sessions, id));
        self.arm(id);
    }

    /// Ends the run: nothing more is sent, requests in flight are called back.
    ///
    /// Nodes that were due by now and before the timeout get the specific reason: held by a limit,
    /// or missed. Sessions that were delivered ahead of their time leave no trace: whether they
    /// were known depends on the look-ahead, not on the workload.
    fn stop(&mut self, now: Nanos, actions: &mut Vec<Action<P>>) {
        if matches!(self.phase, RunPhase::Stopping | RunPhase::Done) {
            return;
        }
        self.phase = RunPhase::Stopping;
        if self.in_flight > 0 {
            actions.push(Action::CancelInFlight);
        }
        let end = self
            .config
            .benchmark_timeout
            .map_or(now, |timeout| timeout.min(now));
        let missed = self.admission.arrived_before(end, self.intake.missing());
        let reason = |is_held| {
            if is_held {
                NeverSentReason::Held
            } else {
                NeverSentReason::Missed
            }
        };
        let mut never_started = BTreeSet::new();
        for (id, arrival) in self.admission.clear() {
            match arrival.filter(|arrival| *arrival < end) {
                Some(arrival) => {
                    if let Some(session) = self.sessions.get_mut(&id) {
                        session.begin(arrival, 0, &mut self.ready);
                        self.has_begun(id, arrival, now, actions);
                        never_started.insert(id);
                    }
                }
                None => {
                    if let Some(session) = self.sessions.remove(&id) {
                        forget(&session, actions);
                    }
                }
            }
        }
        let mut live: Vec<SessionId> = self.sessions.keys().copied().collect();
        live.sort_unstable();
        for id in live {
            let is_held = if never_started.contains(&id) {
                self.reached.sessions
            } else {
                self.reached.requests
            };
            let why = Withdrawal {
                reason: NeverSentReason::RunEnded,
                due: Some((end, reason(is_held))),
            };
            self.withdraw(id, why, now, actions);
            if let Some(session) = self.sessions.get_mut(&id) {
                session.drop_served(now, actions);
                session.cut();
            }
            self.settle(id, now, actions);
        }
        self.tools.clear();
        self.cancellations.clear();
        if missed > 0 {
            actions.push(Action::ArrivalsMissed {
                sessions: missed,
                at: end,
            });
        }
    }

    fn settle_at_latest(&mut self, id: SessionId, actions: &mut Vec<Action<P>>) {
        if let Some(latest) = self.sessions.get(&id).map(SessionState::latest) {
            self.settle(id, latest, actions);
        }
    }

    /// Ends a session if it is over.
    fn settle(&mut self, id: SessionId, at: Nanos, actions: &mut Vec<Action<P>>) {
        let Some(end) = self.sessions.get(&id).and_then(SessionState::end) else {
            return;
        };
        if let Some(session) = self.sessions.remove(&id) {
            actions.push(Action::SessionFinished {
                session: id,
                at,
                end,
                requests: session.requests(),
            });
            forget(&session, actions);
            // One without requests ends at its start, which may lie before the instant at which it
            // got its place.
            self.admission.release(at.max(session.slot_since()));
        }
    }

    fn is_over(&self) -> bool {
        match self.phase {
            RunPhase::Stopping => self.in_flight == 0,
            _ => self.sessions.is_empty() && self.intake.next_wanted().is_none(),
        }
    }
}

fn is_queued<P>(sessions: &HashMap<SessionId, SessionState<P>>, id: RequestId) -> bool {
    sessions
        .get(&id.session)
        .is_some_and(|session| session.is_queued(id.node))
}

fn forget<P>(session: &SessionState<P>, actions: &mut Vec<Action<P>>) {
    if session.kind == SessionKind::Reactive {
        actions.push(Action::ForgetAgent { session: session.id });
    }
}
