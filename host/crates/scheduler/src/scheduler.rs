//! The state machine that joins sessions, admission, readiness and the end of the run.

use std::collections::HashMap;
use std::sync::Arc;

use veeksha_events::NeverSentReason;
use veeksha_model::{FailureReason, Nanos, RequestId, Response, SessionId};

use crate::admission::Admission;
use crate::contract::{Action, Input, NodePlan, SessionKind, SessionPlan};
use crate::deadline::{Deadline, Phase};
use crate::intake::Intake;
use crate::ready::ReadyQueue;
use crate::session::SessionState;
use crate::{SchedulerConfig, Traffic};

/// Sessions that should lie ready beyond those that could start now.
///
/// It must bridge the time in which a plugin makes a batch and its prompts are materialised: some milliseconds. 512
/// sessions last 10 ms at 50,000 sessions per second, and hold a few megabytes of prompts at a thousand tokens each.
pub const LOOKAHEAD: u32 = 512;

/// Decides what is sent when. See the crate's documentation.
///
/// Call [`Scheduler::on`] for everything that happens, and with [`Input::Tick`] at [`Scheduler::next_wake`]. The time must
/// not go backwards. Sessions are dropped when they are over, so memory follows the live ones.
#[derive(Debug)]
pub struct Scheduler<P> {
    config: SchedulerConfig,
    intake: Intake,
    admission: Admission,
    /// Held and live sessions.
    sessions: HashMap<SessionId, SessionState<P>>,
    ready: ReadyQueue,
    deadline: Deadline,
    phase: Phase,
    in_flight: usize,
    measured_in_flight: usize,
}

impl<P> Scheduler<P> {
    /// A scheduler at the start of a run.
    pub fn new(config: SchedulerConfig) -> Self {
        let max_sessions = if config.shard.index < config.traffic.most_shards() {
            config.max_sessions
        } else {
            Some(0)
        };
        Scheduler {
            intake: Intake::new(config.shard, max_sessions),
            admission: Admission::new(&config),
            sessions: HashMap::new(),
            ready: ReadyQueue::default(),
            deadline: Deadline::new(config.benchmark_timeout, config.grace),
            phase: Phase::Measuring,
            in_flight: 0,
            measured_in_flight: 0,
            config,
        }
    }

    /// Takes an input and appends what follows from it to `actions`.
    pub fn on(&mut self, now: Nanos, input: Input<P>, actions: &mut Vec<Action<P>>) {
        if self.phase == Phase::Done {
            return;
        }
        // A result counts before the clock does: it came before this call, whatever deadline the call is late for.
        self.take(now, input, actions);
        if let Some(timeout) = self.deadline.passed(self.phase, now) {
            actions.push(Action::TimeoutReached { at: timeout });
            self.phase = self.deadline.drain(timeout);
        }
        if self.deadline.drained(self.phase, now, self.measured_in_flight) {
            self.stop(now, actions);
        }
        if self.phase != Phase::Stopping {
            self.start_sessions(now, actions);
            self.dispatch_ready(now, actions);
        }
        if self.is_over() {
            self.phase = Phase::Done;
            actions.push(Action::Done);
        }
    }

    /// The next instant at which [`Input::Tick`] is due; `None`: only results or sessions move the run on.
    pub fn next_wake(&self) -> Option<Nanos> {
        let deadline = self.deadline.next(self.phase);
        match self.phase {
            Phase::Stopping | Phase::Done => None,
            _ => [self.ready.first(), self.admission.next(), deadline]
                .into_iter()
                .flatten()
                .min(),
        }
    }

    /// How many more sessions the source should deliver now, from [`Scheduler::next_wanted`] on.
    pub fn wanted(&self) -> u32 {
        if matches!(self.phase, Phase::Stopping | Phase::Done) {
            return 0;
        }
        let goal = LOOKAHEAD as usize + self.admission.vacant();
        let missing = goal.saturating_sub(self.admission.held()) as u64;
        missing.min(self.intake.remaining()).min(u64::from(u32::MAX)) as u32
    }

    /// The lowest session of this shard that was not delivered; the next is `shard.count` higher. `None`: no more are wanted.
    pub fn next_wanted(&self) -> Option<SessionId> {
        match self.phase {
            Phase::Stopping | Phase::Done => None,
            _ => self.intake.next_wanted(),
        }
    }

    /// Whether [`Action::Done`] was given.
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Requests dispatched that have no result yet.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Sessions whose state is kept: delivered and not over.
    pub fn live_sessions(&self) -> usize {
        self.sessions.len()
    }

    fn take(&mut self, now: Nanos, input: Input<P>, actions: &mut Vec<Action<P>>) {
        match input {
            Input::Session(plan) => self.deliver(now, plan),
            Input::SourceEnded => self.intake.source_ended(),
            Input::Step { session, nodes, done } => self.step(now, session, nodes, done, actions),
            Input::AgentFailed { session } => self.agent_failed(now, session, actions),
            Input::Answered {
                request,
                response,
                at,
            } => self.complete(now, request, at, Ok(response), actions),
            Input::Failed { request, reason, at } => self.complete(now, request, at, Err(reason), actions),
            Input::FirstChunk { .. } | Input::Tick => {}
            Input::Stop => self.stop(now, actions),
        }
    }

    fn deliver(&mut self, now: Nanos, plan: SessionPlan<P>) {
        if self.phase == Phase::Stopping || !self.intake.accept(plan.id) {
            return;
        }
        let nodes = self.timed(plan.nodes);
        let mut session = SessionState::new(plan.id, plan.kind);
        session.add(nodes, &mut self.ready);
        self.sessions.insert(plan.id, session);
        self.admission.hold(plan.id, now, plan.arrives_at);
    }

    /// Nodes with the recorded instants that count: only traffic that replays arrivals looks at them.
    fn timed(&self, mut nodes: Vec<NodePlan<P>>) -> Vec<NodePlan<P>> {
        if self.config.traffic != Traffic::Scheduled {
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
        nodes: Vec<NodePlan<P>>,
        done: bool,
        actions: &mut Vec<Action<P>>,
    ) {
        let nodes = self.timed(nodes);
        let Some(session) = self.sessions.get_mut(&id).filter(|session| session.agent_open()) else {
            return;
        };
        session.add(nodes, &mut self.ready);
        session.answered(done);
        session.give_up_if_stuck();
        self.settle(id, now, actions);
    }

    fn agent_failed(&mut self, now: Nanos, id: SessionId, actions: &mut Vec<Action<P>>) {
        if !self.sessions.contains_key(&id) {
            // The agent failed before its first step: the session still takes its turn, and ends when it has started.
            self.deliver(
                now,
                SessionPlan {
                    arrives_at: None,
                    id,
                    nodes: Vec::new(),
                    kind: SessionKind::Reactive,
                },
            );
        }
        if let Some(session) = self.sessions.get_mut(&id).filter(|session| session.agent_open()) {
            session.agent_failed();
            if session.has_started() {
                self.withdraw(id, NeverSentReason::PluginFailed, now, actions);
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
        let Some(measured) = session.complete(node, at, answer.as_ref().ok().cloned()) else {
            return;
        };
        self.in_flight -= 1;
        self.measured_in_flight -= usize::from(measured);
        if self.phase == Phase::Stopping {
            if answer.is_err() {
                session.lost();
            }
        } else if session.kind == SessionKind::Planned
            && self.config.cancel_session_on_failure
            && answer.is_err()
        {
            self.withdraw(id, NeverSentReason::SessionCancelled, now, actions);
        } else {
            session.release_children(node, &mut self.ready);
            if session.agent_open() {
                session.asked();
                actions.push(Action::AskAgent {
                    session: id,
                    node,
                    answer,
                    at,
                });
            }
        }
        self.settle_at_latest(id, actions);
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
            session.begin(admitted.due, &mut self.ready);
            session.give_up_if_stuck();
            let requests = session.requests();
            actions.push(Action::SessionStarted {
                session: admitted.id,
                at: admitted.due,
                requests,
            });
            if session.has_failed_agent() {
                self.withdraw(admitted.id, NeverSentReason::PluginFailed, now, actions);
            }
            self.settle_at_latest(admitted.id, actions);
        }
    }

    fn dispatch_ready(&mut self, now: Nanos, actions: &mut Vec<Action<P>>) {
        let measured = self.phase == Phase::Measuring;
        loop {
            let sessions = &self.sessions;
            let Some((intended, id)) = self.ready.pop_due(now, |id| is_queued(sessions, id)) else {
                return;
            };
            let Some(session) = self.sessions.get_mut(&id.session) else {
                continue;
            };
            let Some(departure) = session.depart(id.node, measured) else {
                continue;
            };
            self.in_flight += 1;
            self.measured_in_flight += usize::from(measured);
            actions.push(Action::Dispatch {
                id,
                intended,
                held: Default::default(),
                payload: departure.payload,
                history: departure.history,
                measured,
                session_requests: departure.session_requests,
            });
        }
    }

    /// Gives up what a session has not sent.
    fn withdraw(&mut self, id: SessionId, reason: NeverSentReason, now: Nanos, actions: &mut Vec<Action<P>>) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let queued = session.withdraw(reason, now, actions);
        let sessions = &self.sessions;
        self.ready.withdraw(queued, |id| is_queued(sessions, id));
    }

    /// Ends the run: nothing more is sent, what is in flight is called back.
    ///
    /// Sessions that were delivered ahead of their time and never started leave no trace: whether they were known depends
    /// on the look-ahead, not on the workload.
    fn stop(&mut self, now: Nanos, actions: &mut Vec<Action<P>>) {
        if matches!(self.phase, Phase::Stopping | Phase::Done) {
            return;
        }
        self.phase = Phase::Stopping;
        if self.in_flight > 0 {
            actions.push(Action::CancelInFlight);
        }
        for id in self.admission.clear() {
            if let Some(session) = self.sessions.remove(&id) {
                forget(&session, actions);
            }
        }
        let mut live: Vec<SessionId> = self.sessions.keys().copied().collect();
        live.sort_unstable();
        for id in live {
            self.withdraw(id, NeverSentReason::RunEnded, now, actions);
            if let Some(session) = self.sessions.get_mut(&id) {
                session.cut();
            }
            self.settle(id, now, actions);
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
            self.admission.release(at);
        }
    }

    fn is_over(&self) -> bool {
        match self.phase {
            Phase::Stopping => self.in_flight == 0,
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
