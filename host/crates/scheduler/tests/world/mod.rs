//! A random world around a scheduler: a source that delivers late, a server that answers in any
//! order, agents that fail. Everything is drawn from one seed, and what the scheduler does is
//! checked while it happens.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::sync::Arc;

use veeksha_events::{DroppedToolRun, NeverSentReason, SessionEnd, ToolDropReason};
use veeksha_model::{
    Edge, ErrorClass, FailureReason, Held, History, HistoryMode, Nanos, NodeId, RequestId, Response,
    SessionId, TIMER, ToolRunRecord, Trigger,
};
use veeksha_scheduler::{
    Action, ConcurrencyLimits, GracePeriod, NodeOutcome, NodePlan, NodeWork, Scheduler, SchedulerConfig,
    SchedulerInput, SessionKind, SessionPlan, Shard, ToolRunPlan, TrafficRule,
};
use veeksha_stats::{Draws, RandomStream};

mod tool_servers;
use tool_servers::{ServedCall, check_servers};

/// Parameters of a simulated world.
#[derive(Clone, Debug)]
pub(crate) struct Weather {
    pub(crate) seed: u64,
    /// Sessions that the source has.
    pub(crate) sessions: u64,
    /// In percent: requests that fail, agents' steps that fail, sessions that are reactive.
    pub(crate) failures: u32,
    pub(crate) agent_failures: u32,
    pub(crate) reactive: u32,
    /// The longest latency of an answer, of an agent's step, of a delivery.
    pub(crate) latency: u32,
    pub(crate) step_latency: u32,
    pub(crate) delivery: u32,
    /// Instant of Ctrl-C.
    pub(crate) stop: Option<Nanos>,
    /// Percentage of requests whose first chunk is reported, if a result does not come before it.
    pub(crate) first_chunks: u32,
    /// In percent: nodes that events cancel, and agents' steps that cancel nodes.
    pub(crate) cancellations: u32,
    /// In percent: nodes that are tool runs, if the configuration has classes of tools.
    pub(crate) tools: u32,
}

/// The observed actions.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// (session, start), in the order of the starts.
    pub(crate) started: Vec<(u64, Nanos)>,
    pub(crate) finished: BTreeMap<u64, (Nanos, SessionEnd)>,
    pub(crate) dispatched: BTreeMap<(u64, u32), (Nanos, bool)>,
    pub(crate) never_sent: BTreeMap<(u64, u32), NeverSentReason>,
    /// (call, start, end) of the tool runs that ended.
    pub(crate) tool_runs: BTreeMap<(u64, u32), [Nanos; 3]>,
    pub(crate) dropped: BTreeMap<(u64, u32), ToolDropReason>,
    pub(crate) timeout_at: Option<Nanos>,
    pub(crate) most_live: usize,
    pub(crate) done_at: Nanos,
}

type Payload = (u64, u32);

#[derive(Debug)]
struct Known {
    parents: Vec<Edge>,
    /// Parents of which an awaited event other than the end had happened before.
    reacted: Vec<NodeId>,
    history_parent: Option<u32>,
    wait: Nanos,
    not_before: Option<Nanos>,
    mode: HistoryMode,
    recorded: Option<String>,
    cancel_when: Vec<Edge>,
    /// Of a tool run.
    tool: Option<ToolRunPlan>,
    /// Instant at which the scheduler learned of it.
    known: Nanos,
    /// If its agent added it later: the last completion before that.
    base: Option<Nanos>,
}

/// The end of a request: of one that was cancelled before it was sent, too.
#[derive(Debug)]
struct Ended {
    at: Nanos,
    ok: bool,
    /// The answer, or its part.
    text: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Result {
    Answer,
    Failure,
    /// The part that had arrived, or nothing.
    Cancelled {
        text: bool,
    },
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Deliver(u64),
    SourceEnds,
    Answer { session: u64, node: u32, result: Result },
    FirstChunk { session: u64, node: u32 },
    Step { session: u64 },
    Stop,
}

struct World {
    weather: Weather,
    config: SchedulerConfig,
    events: BinaryHeap<Reverse<(Nanos, u64, Happening)>>,
    count: u64,
    draws: Draws,
    known: HashMap<(u64, u32), Known>,
    dispatches: HashMap<(u64, u32), Nanos>,
    first_chunks: HashMap<(u64, u32), Nanos>,
    results: HashMap<(u64, u32), Ended>,
    /// Requests that agents have cancelled, and when.
    unwanted: HashMap<(u64, u32), Nanos>,
    /// Nodes that the first steps of agents cancel.
    cancelled_at_start: HashMap<u64, Vec<NodeId>>,
    /// Requests whose cancellation in flight was decided.
    cancelled: BTreeSet<(u64, u32)>,
    /// Of running sessions and of others: what was neither sent nor given up.
    unsent: BTreeSet<(u64, u32)>,
    in_flight: BTreeSet<(u64, u32)>,
    /// Those of them whose first chunk was not reported.
    in_prefill: BTreeSet<(u64, u32)>,
    starts: HashMap<u64, Nanos>,
    /// When the scheduler reported the start of a session, and the end of a node.
    start_seen: HashMap<u64, Nanos>,
    end_seen: HashMap<(u64, u32), Nanos>,
    plans: HashMap<u64, SessionKind>,
    /// Delivery instant of each accepted session.
    delivered: HashMap<u64, Nanos>,
    /// Reactive sessions whose agent may still be asked; the number of nodes it has made.
    agents: HashMap<u64, u32>,
    forgotten: BTreeSet<u64>,
    stopped: bool,
    log: Log,
}

/// Runs a scheduler to its end.
pub(crate) fn run(config: &SchedulerConfig, weather: &Weather) -> Log {
    let world = World {
        weather: weather.clone(),
        config: config.clone(),
        events: BinaryHeap::new(),
        count: 0,
        draws: RandomStream::new(weather.seed, 0, "world").draws(),
        known: HashMap::new(),
        dispatches: HashMap::new(),
        first_chunks: HashMap::new(),
        results: HashMap::new(),
        unwanted: HashMap::new(),
        cancelled_at_start: HashMap::new(),
        cancelled: BTreeSet::new(),
        unsent: BTreeSet::new(),
        in_flight: BTreeSet::new(),
        in_prefill: BTreeSet::new(),
        starts: HashMap::new(),
        start_seen: HashMap::new(),
        end_seen: HashMap::new(),
        plans: HashMap::new(),
        delivered: HashMap::new(),
        agents: HashMap::new(),
        forgotten: BTreeSet::new(),
        stopped: false,
        log: Log::default(),
    };
    world.run()
}

/// The whole target of concurrent traffic at an instant, from its definition.
pub(crate) fn target_at(target: u32, ramp: Nanos, now: Nanos) -> u64 {
    if now >= ramp {
        u64::from(target)
    } else {
        (u128::from(target) * u128::from(now) / u128::from(ramp)) as u64
    }
}

/// Returns true if only the end of a run has such an action.
fn ends_the_run(action: &Action<Payload>) -> bool {
    use NeverSentReason::{Held, Missed, RunEnded};
    match action {
        Action::CancelInFlight | Action::ArrivalsMissed { .. } | Action::Done => true,
        Action::NeverSent { reason, .. } => matches!(reason, Held | Missed | RunEnded),
        Action::ToolDropped(run) => match run.reason {
            ToolDropReason::NotServed(reason) => matches!(reason, Held | Missed | RunEnded),
            ToolDropReason::InService => true,
        },
        _ => false,
    }
}

/// The text of a result; `None` of a failure.
fn text_of((session, node): (u64, u32), result: Result) -> Option<String> {
    match result {
        Result::Answer => Some(format!("{session}/{node}")),
        Result::Failure => None,
        Result::Cancelled { text: true } => Some(format!("part of {session}/{node}")),
        Result::Cancelled { text: false } => Some(String::new()),
    }
}

/// The recorded arrival of a session; some have none.
pub(crate) fn arrival_of(seed: u64, id: u64) -> Option<Nanos> {
    let mut draws = RandomStream::new(seed, id, "arrival").draws();
    (draws.below(8) > 0).then(|| u64::from(draws.below(600)))
}

impl World {
    fn later(&mut self, at: Nanos, happening: Happening) {
        self.count += 1;
        self.events.push(Reverse((at, self.count, happening)));
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.draws.below(bound)
    }

    fn run(mut self) -> Log {
        let mut scheduler = Scheduler::new(self.config.clone());
        let mut at = 0;
        for id in 0..self.weather.sessions {
            // Some come out of order, some late, some twice, some belong to other shards.
            let delay = self.below(self.weather.delivery + 1);
            self.later(at + u64::from(delay), Happening::Deliver(id));
            if self.below(10) == 0 {
                self.later(at + 2 * u64::from(delay), Happening::Deliver(id));
            }
            at += u64::from(self.draws.below(self.weather.delivery / 4 + 1));
        }
        self.later(at + 2 * u64::from(self.weather.delivery), Happening::SourceEnds);
        if let Some(stop) = self.weather.stop {
            self.later(stop, Happening::Stop);
        }
        let mut actions = Vec::new();
        let mut rounds = 0;
        while !scheduler.is_done() {
            rounds += 1;
            assert!(
                rounds < 200_000,
                "the run does not end: {:?} {:?}",
                self.config,
                self.weather
            );
            let event = self.events.peek().map(|Reverse((at, ..))| *at);
            let wake = scheduler.next_wake();
            let now = match (event, wake) {
                (Some(event), Some(wake)) => event.min(wake),
                (Some(at), None) | (None, Some(at)) => at,
                (None, None) => panic!("nothing will ever happen: {:?} {:?}", self.config, self.weather),
            };
            let now = now.max(self.log.done_at);
            self.log.done_at = now;
            let input = match event {
                Some(at) if at <= now => self.next_input(now),
                _ => Some(SchedulerInput::Tick),
            };
            let Some(input) = input else { continue };
            scheduler.on(now, input, &mut actions);
            let mut last = None;
            let batch = std::mem::take(&mut actions);
            // Due nodes without capacity are reported when the run ends, and their sessions begin
            // and end there.
            let ends = batch.iter().any(ends_the_run);
            for (index, action) in batch.iter().enumerate() {
                if matches!(action, Action::Done) {
                    assert_eq!(index + 1, batch.len(), "something after Done");
                }
                self.check(now, action, &mut last, ends);
            }
            if !ends && !self.stopped {
                self.check_work(now);
                self.check_cancellations(now);
            }
            if !scheduler.is_done() {
                let wake = scheduler.next_wake();
                assert!(
                    wake.is_none_or(|wake| wake > now),
                    "would spin: {wake:?} at {now}"
                );
            }
            assert_eq!(scheduler.in_flight(), self.in_flight.len());
            self.check_pending(&scheduler);
            self.log.most_live = self.log.most_live.max(scheduler.live_sessions());
        }
        self.finish(&mut scheduler)
    }

    fn finish(mut self, scheduler: &mut Scheduler<Payload>) -> Log {
        // Inputs after the end change nothing.
        let mut actions = Vec::new();
        while !self.events.is_empty() {
            let now = self.log.done_at;
            if let Some(input) = self.next_input(now) {
                scheduler.on(now, input, &mut actions);
            }
        }
        scheduler.on(self.log.done_at, SchedulerInput::Stop, &mut actions);
        assert!(actions.is_empty(), "after Done: {actions:?}");
        assert_eq!(
            (
                scheduler.live_sessions(),
                scheduler.in_flight(),
                scheduler.wanted()
            ),
            (0, 0, 0)
        );
        assert_eq!((scheduler.next_wake(), scheduler.next_wanted()), (None, None));
        assert_eq!(scheduler.pending_cancellations(), 0);
        // Every started session has ended, and each of its known nodes was sent or named as never
        // sent.
        let started: BTreeSet<u64> = self.log.started.iter().map(|(id, _)| *id).collect();
        assert_eq!(started, self.log.finished.keys().copied().collect());
        for (key, known) in self.known.iter().filter(|(key, _)| started.contains(&key.0)) {
            if known.tool.is_some() {
                let ran = self.log.tool_runs.contains_key(key);
                let dropped = self.log.dropped.contains_key(key);
                assert!(ran != dropped, "{key:?}: ran {ran}, dropped {dropped}");
                continue;
            }
            let sent = self.log.dispatched.contains_key(key);
            let withdrawn = self.log.never_sent.contains_key(key);
            assert!(sent != withdrawn, "{key:?}: sent {sent}, withdrawn {withdrawn}");
        }
        for id in started
            .iter()
            .filter(|id| self.plans[*id] == SessionKind::Reactive)
        {
            assert!(self.forgotten.contains(id), "agent {id} was not forgotten");
        }
        self.check_classes();
        self.log
    }

    fn check_classes(&self) {
        let class_of = |key: &(u64, u32)| self.known[key].tool.as_ref().map(|run| run.class);
        for (index, class) in self.config.tools.iter().enumerate() {
            let of_class = self
                .log
                .tool_runs
                .iter()
                .filter(|(key, _)| class_of(key) == Some(index));
            let served: Vec<ServedCall> = of_class
                .map(|(key, [ready, start, end])| ServedCall {
                    id: *key,
                    ready: *ready,
                    entered: self.entered(*key).max(*ready),
                    start: *start,
                    end: *end,
                })
                .collect();
            let dropped = self.log.dropped.keys().filter(|key| class_of(key) == Some(index));
            check_servers(class, &served, dropped.count());
        }
    }

    /// The instant at which the scheduler had learned of a tool run, of the start of its session
    /// and of the events of its edges. Those of requests are reported at their instants.
    fn entered(&self, key: (u64, u32)) -> Nanos {
        let known = &self.known[&key];
        let seen = known.parents.iter().filter_map(|edge| {
            let parent = (key.0, edge.parent.0);
            let is_end = edge.trigger == Trigger::Completed || self.log.never_sent.contains_key(&parent);
            self.end_seen.get(&parent).copied().filter(|_| is_end)
        });
        seen.fold(known.known.max(self.start_seen[&key.0]), Nanos::max)
    }

    fn next_input(&mut self, now: Nanos) -> Option<SchedulerInput<Payload>> {
        let Reverse((at, _, happening)) = self.events.pop()?;
        Some(match happening {
            Happening::Deliver(id) => SchedulerInput::Session(self.plan(id, now)),
            Happening::SourceEnds => SchedulerInput::SourceEnded,
            Happening::Stop => {
                self.stopped = true;
                SchedulerInput::Stop
            }
            Happening::FirstChunk { session, node } => {
                self.in_prefill.remove(&(session, node));
                if self.in_flight.contains(&(session, node)) {
                    self.first_chunks.entry((session, node)).or_insert(at);
                }
                let request = RequestId {
                    session: SessionId(session),
                    node: NodeId(node),
                };
                SchedulerInput::FirstChunk { request, at }
            }
            Happening::Step { session } => self.step(session, now)?,
            Happening::Answer {
                session,
                node,
                result,
            } => {
                let key = (session, node);
                if !self.in_flight.remove(&key) {
                    // A second result of the same request: to be ignored.
                    return Some(self.result(key, at.min(now), result));
                }
                self.in_prefill.remove(&key);
                let ended = Ended {
                    at,
                    ok: result != Result::Failure,
                    text: text_of(key, result).filter(|text| !text.is_empty()),
                };
                self.results.insert(key, ended);
                self.end_seen.insert(key, now);
                if self.below(8) == 0 {
                    self.later(
                        now,
                        Happening::Answer {
                            session,
                            node,
                            result: Result::Failure,
                        },
                    );
                }
                self.result(key, at, result)
            }
        })
    }

    fn result(&self, key: (u64, u32), at: Nanos, result: Result) -> SchedulerInput<Payload> {
        let request = RequestId {
            session: SessionId(key.0),
            node: NodeId(key.1),
        };
        let Some(text) = text_of(key, result) else {
            return SchedulerInput::Failed {
                request,
                reason: Arc::new(FailureReason {
                    retry_after: None,
                    request,
                    class: ErrorClass::Status,
                    status: Some(503),
                    message: "overloaded".into(),
                    at,
                }),
                at,
            };
        };
        SchedulerInput::Answered {
            request,
            response: Arc::new(Response {
                output_tokens: u32::from(!text.is_empty()),
                text,
                cancelled: result != Result::Answer,
                ..Response::default()
            }),
            at,
        }
    }

    /// Session `id` is a function of the seed and the id, as a source's is.
    fn plan(&mut self, id: u64, now: Nanos) -> SessionPlan<Payload> {
        let mut draws = RandomStream::new(self.weather.seed, id, "plan").draws();
        let reactive = draws.below(100) < self.weather.reactive;
        let kind = if reactive {
            SessionKind::Reactive
        } else {
            SessionKind::Planned
        };
        let count = if reactive {
            1 + draws.below(2)
        } else {
            draws.below(7)
        };
        let nodes = (0..count)
            .map(|node| {
                let plan = self.random_node(&mut draws, id, node, node);
                self.with_cancellation(&mut draws, id, plan, count)
            })
            .collect::<Vec<_>>();
        let mut cancel = Vec::new();
        while kind == SessionKind::Reactive && self.below(100) < self.weather.cancellations {
            cancel.push(NodeId(self.below(nodes.len() as u32 + 1)));
        }
        let accepted = self.config.shard.owns(id) && self.config.max_sessions.is_none_or(|max| id < max);
        if accepted && !self.plans.contains_key(&id) {
            self.plans.insert(id, kind);
            self.delivered.insert(id, now);
            self.cancelled_at_start.insert(id, cancel.clone());
            for plan in &nodes {
                self.learn(id, plan, now);
            }
            if reactive {
                self.agents.insert(id, count);
            }
        }
        SessionPlan {
            arrives_at: arrival_of(self.weather.seed, id),
            id: SessionId(id),
            nodes,
            kind,
            cancel,
        }
    }

    fn learn(&mut self, session: u64, plan: &NodePlan<Payload>, known: Nanos) {
        let known = Known {
            parents: plan.parents.clone(),
            reacted: self.happened(session, &plan.parents),
            history_parent: plan.history_parent.map(|parent| parent.0),
            wait: plan.wait_after_ready,
            not_before: plan.not_before,
            mode: plan.history_mode,
            cancel_when: plan.cancel_when.clone(),
            recorded: plan.recorded_answer.as_ref().map(|answer| answer.text.clone()),
            tool: match &plan.work {
                NodeWork::Request(_) => None,
                NodeWork::ToolRun(run) => Some(run.clone()),
            },
            known,
            base: self.latest(session),
        };
        if known.tool.is_none() {
            self.unsent.insert((session, plan.node.0));
        }
        self.known.insert((session, plan.node.0), known);
    }

    /// The last completion of a session so far, or its start; `None` before that.
    fn latest(&self, session: u64) -> Option<Nanos> {
        let start = self.starts.get(&session)?;
        let ended = self.results.iter().filter(|(key, _)| key.0 == session);
        Some(ended.map(|(_, ended)| ended.at).fold(*start, Nanos::max))
    }

    /// Adds events that cancel the node: its own, or those of the first `others` nodes.
    fn with_cancellation(
        &self,
        draws: &mut Draws,
        session: u64,
        plan: NodePlan<Payload>,
        others: u32,
    ) -> NodePlan<Payload> {
        if draws.below(100) >= self.weather.cancellations
            || (others == 0 && self.is_tool(session, plan.node.0))
        {
            return plan;
        }
        let edge = |draws: &mut Draws| {
            let parent = NodeId(draws.below(others + 1));
            // No node of this number: its own, which a tool run does not wait for.
            let own = parent.0 == others;
            let parent = match own && self.is_tool(session, plan.node.0) {
                true => NodeId(0),
                false if own => plan.node,
                false => parent,
            };
            let (trigger, delay) = (draws.below(3), u64::from(draws.below(80)));
            Edge {
                parent,
                trigger: match trigger {
                    _ if self.is_tool(session, parent.0) => Trigger::Completed,
                    0 => Trigger::Dispatched,
                    1 if parent != plan.node => Trigger::Completed,
                    _ => Trigger::FirstChunk,
                },
                delay: delay.saturating_sub(20),
            }
        };
        let count = 1 + draws.below(2);
        NodePlan {
            cancel_when: (0..count).map(|_| edge(draws)).collect(),
            ..plan
        }
    }

    fn step(&mut self, id: u64, now: Nanos) -> Option<SchedulerInput<Payload>> {
        let session = SessionId(id);
        let live = !self.stopped && !self.log.finished.contains_key(&id);
        let made = *self.agents.get(&id)?;
        if self.below(100) < self.weather.agent_failures {
            self.agents.remove(&id);
            return Some(SchedulerInput::AgentFailed { session });
        }
        let count = if made > 8 { 0 } else { self.below(3) };
        let done = made > 8 || self.below(4) == 0;
        let nodes: Vec<_> = (0..count)
            .map(|new| {
                let mut draws = self.draws.clone();
                let plan = self.random_node(&mut draws, id, made + new, made);
                let plan = self.with_cancellation(&mut draws, id, plan, made);
                self.draws = draws;
                plan
            })
            .collect();
        let mut cancel = Vec::new();
        while self.below(100) < self.weather.cancellations {
            cancel.push(NodeId(self.below(made + count + 1)));
        }
        if live {
            for plan in &nodes {
                self.learn(id, plan, now);
            }
            for node in &cancel {
                let key = (id, node.0);
                if self.known.contains_key(&key) && !self.results.contains_key(&key) {
                    self.unwanted.entry(key).or_insert(now);
                }
            }
        }
        if done {
            self.agents.remove(&id);
        } else {
            self.agents.insert(id, made + count);
        }
        Some(SchedulerInput::Step {
            session,
            nodes,
            cancel,
            done,
        })
    }

    #[expect(
        clippy::too_many_lines,
        reason = "one arm for each event of the simulated world"
    )]
    fn check(
        &mut self,
        now: Nanos,
        action: &Action<Payload>,
        last: &mut Option<(Nanos, RequestId)>,
        ends: bool,
    ) {
        match action {
            Action::SessionStarted {
                session,
                at,
                requests,
            } => {
                assert!(*at <= now && (!self.stopped || *at < now));
                let of_session = self.known.iter().filter(|(key, _)| key.0 == session.0);
                let known = of_session.filter(|(_, known)| known.tool.is_none()).count();
                assert_eq!(*requests as usize, known);
                assert!(self.starts.insert(session.0, *at).is_none(), "started twice");
                for node in self.cancelled_at_start.remove(&session.0).into_iter().flatten() {
                    let key = (session.0, node.0);
                    if self.known.contains_key(&key) {
                        self.unwanted.entry(key).or_insert(*at);
                    }
                }
                self.start_seen.insert(session.0, now);
                self.check_start(session.0, *at);
                self.log.started.push((session.0, *at));
                if !ends {
                    let running = self.starts.len() - self.log.finished.len();
                    assert!(
                        running as u64 <= self.part(self.config.limits.sessions),
                        "{running} run"
                    );
                }
                if let TrafficRule::Concurrent { target, ramp } = self.config.traffic {
                    let active = self.starts.len() - self.log.finished.len();
                    assert!(
                        active as u64 <= target_at(target, ramp, now),
                        "{active} active at {now}"
                    );
                }
            }
            Action::Dispatch {
                id,
                intended,
                payload,
                history,
                measured,
                session_requests,
                held,
                reports_first_chunk,
            } => {
                assert!(!self.stopped, "dispatched after the end");
                // What a dispatch releases is due now, after what was due before.
                let waits = |edge: &Edge| edge.trigger == Trigger::Dispatched;
                let parents = &self.known[&(id.session.0, id.node.0)].parents;
                let unsent = |edge: &Edge| self.log.never_sent.contains_key(&(id.session.0, edge.parent.0));
                let tool = |edge: &Edge| self.is_tool(id.session.0, edge.parent.0);
                let released = parents
                    .iter()
                    .any(|edge| waits(edge) || unsent(edge) || tool(edge));
                assert!(
                    *last < Some((*intended, *id)) || (released && *intended == now),
                    "order"
                );
                *last = Some((*intended, *id));
                let key = (id.session.0, id.node.0);
                assert_eq!(**payload, key);
                assert_eq!(
                    *measured,
                    self.config.benchmark_timeout.is_none_or(|timeout| now < timeout)
                );
                assert!(!self.log.dispatched.contains_key(&key), "{key:?} twice");
                assert!(self.in_flight.insert(key));
                assert!(*session_requests >= 1);
                self.check_instant(key, *intended, now);
                self.check_history(key, history);
                self.check_held(key, *intended, *held, now);
                if self.config.limits != ConcurrencyLimits::default() {
                    let first = self.due(now).first().copied();
                    assert_eq!(first, Some((*intended, key)), "another was due before");
                }
                self.unsent.remove(&key);
                self.log.dispatched.insert(key, (*intended, *measured));
                self.dispatches.insert(key, now);
                self.in_prefill.insert(key);
                if *reports_first_chunk && self.below(100) < self.weather.first_chunks {
                    let (session, node) = key;
                    let at = now + u64::from(self.below(self.weather.latency + 1));
                    self.later(at, Happening::FirstChunk { session, node });
                }
                let latency = u64::from(self.below(self.weather.latency + 1));
                let fails = self.below(100) < self.weather.failures;
                self.later(
                    now + latency,
                    Happening::Answer {
                        session: key.0,
                        node: key.1,
                        result: if fails { Result::Failure } else { Result::Answer },
                    },
                );
            }
            Action::AskAgent {
                session,
                node,
                outcome,
                at,
            } => {
                let (ok, answer) = match outcome {
                    NodeOutcome::Answered(answer) => (true, Some(answer.text.clone())),
                    NodeOutcome::Failed(_) => (false, None),
                    NodeOutcome::ToolRan(run) => (run.id.node == *node, None),
                    NodeOutcome::ToolCancelled(run) => (run.id.node == *node, None),
                };
                let ended = &self.results[&(session.0, node.0)];
                assert_eq!((ended.at, ended.ok), (*at, ok));
                assert_eq!(ended.text, answer.filter(|text| !text.is_empty()));
                let latency = u64::from(self.below(self.weather.step_latency + 1));
                self.later(now + latency, Happening::Step { session: session.0 });
            }
            Action::ToolRan(run) => self.check_tool_run(run, now),
            Action::ToolDropped(run) => self.check_dropped(run, now),
            Action::ForgetAgent { session } => assert!(self.forgotten.insert(session.0), "forgotten twice"),
            Action::Cancel { request } => {
                let (session, node) = (request.session.0, request.node.0);
                assert!(self.in_flight.contains(&(session, node)), "not in flight");
                assert!(self.cancelled.insert((session, node)), "cancelled twice");
                let due = self.cancelled_at((session, node));
                assert!(due.is_some_and(|at| at <= now), "not to be cancelled by {now}");
                // What happens before the client comes to it stays.
                let at = now + u64::from(self.below(10));
                let text = self.below(2) == 0;
                let result = Result::Cancelled { text };
                self.later(
                    at,
                    Happening::Answer {
                        session,
                        node,
                        result,
                    },
                );
            }
            Action::NeverSent {
                request,
                reason: reason @ NeverSentReason::CancelledByClient,
                at,
            } => {
                let key = (request.session.0, request.node.0);
                assert!(self.unsent.remove(&key));
                assert!(*at <= now && self.log.never_sent.insert(key, *reason).is_none());
                // If the session ends first, its edges are never met.
                match self.unsent_end(key) {
                    Some(end) => assert_eq!(end, *at, "{key:?} at {now}"),
                    None => assert!(self.cancelled_at(key).is_some_and(|at| at <= now)),
                }
                let ended = Ended {
                    at: *at,
                    ok: true,
                    text: None,
                };
                self.dispatches.insert(key, *at);
                self.results.insert(key, ended);
                self.end_seen.insert(key, now);
            }
            Action::NeverSent { request, reason, at } => {
                assert_eq!(*at, now);
                let key = (request.session.0, request.node.0);
                assert!(self.known.contains_key(&key) && !self.log.dispatched.contains_key(&key));
                assert!(
                    self.log.never_sent.insert(key, *reason).is_none(),
                    "{key:?} twice"
                );
                self.unsent.remove(&key);
                self.check_reason(key.0, *reason);
            }
            Action::SessionFinished {
                session,
                at,
                end,
                requests,
            } => {
                assert!(*at <= now && *at >= self.starts[&session.0]);
                let of_session = |key: &&(u64, u32)| key.0 == session.0;
                assert!(
                    !self.in_flight.iter().any(|key| key.0 == session.0),
                    "still in flight"
                );
                let sent = self.log.dispatched.keys().filter(of_session).count();
                let withdrawn = self.log.never_sent.keys().filter(of_session).count();
                assert_eq!(*requests as usize, sent + withdrawn);
                let failed = self
                    .results
                    .iter()
                    .any(|(key, ended)| key.0 == session.0 && !ended.ok);
                let lost = self.log.never_sent.iter().filter(|(key, reason)| {
                    key.0 == session.0 && **reason != NeverSentReason::CancelledByClient
                });
                let dropped = self.log.dropped.iter();
                let dropped = dropped.filter(|(key, reason)| key.0 == session.0 && !reason.is_cancelled());
                let lost = lost.count() + dropped.count();
                let resolved = |key: &(u64, u32)| {
                    self.log.tool_runs.contains_key(key) || self.log.dropped.contains_key(key)
                };
                let mut known = self.known.iter().filter(|(key, _)| key.0 == session.0);
                assert!(known.all(|(key, known)| known.tool.is_none() || resolved(key)));
                match end {
                    SessionEnd::Completed => assert!(!failed && lost == 0),
                    SessionEnd::Cancelled => {
                        assert!(failed && lost > 0 && self.config.cancel_session_on_failure)
                    }
                    SessionEnd::Errored => assert!(failed || self.plans[&session.0] == SessionKind::Reactive),
                    SessionEnd::Incomplete => {
                        assert!(self.stopped || self.config.benchmark_timeout.is_some())
                    }
                }
                assert!(
                    self.log.finished.insert(session.0, (*at, *end)).is_none(),
                    "finished twice"
                );
            }
            Action::Starved { due, at } => {
                assert!(due < at && *at <= now);
                if self.has_given_arrivals() {
                    let late = |(id, came): (&u64, &Nanos)| {
                        arrival_of(self.weather.seed, *id) == Some(*due) && came == at
                    };
                    assert!(
                        self.delivered.iter().any(late),
                        "no session was due at {due} and delivered at {at}"
                    );
                }
            }
            Action::ArrivalsMissed { sessions, at } => {
                assert!(matches!(self.config.traffic, TrafficRule::Rate(_)));
                assert!(*sessions > 0 && *at <= now);
            }
            Action::TimeoutReached { at } => {
                assert_eq!(Some(*at), self.config.benchmark_timeout);
                assert!(self.log.timeout_at.replace(now).is_none(), "twice");
            }
            Action::CancelInFlight => {
                self.stopped = true;
                assert!(!self.in_flight.is_empty());
            }
            Action::Done => assert!(self.in_flight.is_empty()),
        }
    }

    /// A tool run takes its time after its call, which comes when its edges are met, and it was not
    /// cancelled before a server took it.
    fn check_tool_run(&mut self, run: &ToolRunRecord, now: Nanos) {
        let key = (run.id.session.0, run.id.node.0);
        let plan = self.known[&key].tool.clone().expect("a tool run");
        let class = &self.config.tools[plan.class];
        assert!(run.ready_at <= run.started_at && run.completed_at <= now);
        let start_up = if run.is_cold { class.cold_start } else { 0 };
        assert_eq!(run.completed_at, run.started_at + start_up + plan.service_time);
        if self.config.limits.sessions.is_none() {
            self.check_instant(key, run.ready_at, now);
        }
        let measured = self
            .config
            .benchmark_timeout
            .is_none_or(|timeout| run.ready_at < timeout);
        // What an agent adds late is called at once.
        let late = self
            .config
            .benchmark_timeout
            .is_some_and(|timeout| self.known[&key].known >= timeout);
        assert!(run.measured == measured || (late && !run.measured), "{run:?}");
        assert!(
            self.unsent_end(key).is_none_or(|end| end >= run.started_at),
            "{run:?}"
        );
        let times = [run.ready_at, run.started_at, run.completed_at];
        assert!(self.log.tool_runs.insert(key, times).is_none(), "{key:?} twice");
        assert!(!self.log.dropped.contains_key(&key));
        self.dispatches.insert(key, run.started_at);
        let ended = Ended {
            at: run.completed_at,
            ok: true,
            text: None,
        };
        self.results.insert(key, ended);
        self.end_seen.insert(key, now);
    }

    /// A tool run that does not end is named once, with its reason.
    fn check_dropped(&mut self, run: &DroppedToolRun, now: Nanos) {
        let key = (run.id.session.0, run.id.node.0);
        assert!(self.known[&key].tool.is_some() && !self.log.tool_runs.contains_key(&key));
        assert!(
            self.log.dropped.insert(key, run.reason).is_none(),
            "{key:?} twice"
        );
        match run.reason {
            ToolDropReason::NotServed(NeverSentReason::CancelledByClient) => {
                assert!(run.at <= now);
                match self.unsent_end(key) {
                    Some(end) => assert_eq!(end, run.at, "{run:?} at {now}"),
                    None => assert!(self.cancelled_at(key).is_some_and(|at| at <= now)),
                }
                let ended = Ended {
                    at: run.at,
                    ok: true,
                    text: None,
                };
                self.dispatches.insert(key, run.at);
                self.results.insert(key, ended);
                self.end_seen.insert(key, now);
            }
            ToolDropReason::NotServed(NeverSentReason::Held) => {
                assert!(run.ready_at.is_some_and(|at| at < now));
                self.stopped = true;
            }
            ToolDropReason::NotServed(reason) => {
                assert_eq!(run.at, now);
                self.check_reason(key.0, reason);
            }
            ToolDropReason::InService => {
                let is_cut = self.weather.stop.is_some() || self.config.grace != GracePeriod::Unbounded;
                assert!(is_cut, "measured tool runs are drained: {run:?}");
                self.stopped = true;
            }
        }
    }

    fn check_reason(&mut self, session: u64, reason: NeverSentReason) {
        match reason {
            NeverSentReason::Held => {
                assert!(self.config.limits != ConcurrencyLimits::default());
                self.stopped = true;
            }
            NeverSentReason::RunEnded | NeverSentReason::Missed => {
                assert!(self.stopped || self.log.timeout_at.is_some());
                self.stopped = true;
            }
            NeverSentReason::SessionCancelled => {
                assert!(
                    self.config.cancel_session_on_failure && self.plans[&session] == SessionKind::Planned
                );
            }
            NeverSentReason::PluginFailed => assert_eq!(self.plans[&session], SessionKind::Reactive),
            NeverSentReason::CancelledByClient => {}
        }
    }

    /// The instant at which a request is to be cancelled, if that is known.
    fn cancelled_at(&self, key: (u64, u32)) -> Option<Nanos> {
        let known = &self.known[&key];
        let met = |edge: &Edge| {
            let met = self.event_at(key.0, edge)? + edge.delay;
            Some(met.max(known.known))
        };
        let by_events = known.cancel_when.iter().filter_map(met);
        by_events.chain(self.unwanted.get(&key).copied()).min()
    }

    /// The instant at which a request ends that is cancelled before it is sent: the last event of
    /// its edges, or the cancellation.
    fn unsent_end(&self, key: (u64, u32)) -> Option<Nanos> {
        let start = *self.starts.get(&key.0)?;
        let end = self.cancelled_at(key)?.max(start);
        let edges = self.known[&key].parents.iter();
        edges
            .map(|edge| self.event_at(key.0, edge))
            .try_fold(end, |end, event| Some(end.max(event?)))
    }

    /// What is to be cancelled by now is.
    fn check_cancellations(&self, now: Nanos) {
        if self.weather.cancellations == 0 {
            return;
        }
        let running = self.unsent.iter().filter(|key| self.starts.contains_key(&key.0));
        for key in running {
            let at = self.unsent_end(*key);
            assert!(
                at.is_none_or(|at| at > now),
                "{key:?} is to be cancelled at {at:?}, now {now}"
            );
        }
        for key in &self.in_flight {
            let at = self.cancelled_at(*key);
            let due = at.is_some_and(|at| at <= now);
            assert_eq!(
                self.cancelled.contains(key),
                due,
                "{key:?} at {at:?}, now {now}, {:?}, unwanted {:?}",
                self.known[key],
                self.unwanted.get(key)
            );
        }
    }

    /// Known cancellations are those of nodes that can still be cancelled.
    fn check_pending(&self, scheduler: &Scheduler<Payload>) {
        let pending = scheduler.pending_cancellations();
        if pending == 0 {
            return;
        }
        let is_live = |key: &&(u64, u32)| {
            let (sent, ended) = (self.dispatches.contains_key(key), self.results.contains_key(key));
            let is_over = self.log.finished.contains_key(&key.0);
            let is_dropped = self.log.never_sent.contains_key(key) || self.log.dropped.contains_key(key);
            !is_over && !ended && !is_dropped && (!sent || self.in_flight.contains(key))
        };
        let live = self.known.keys().filter(is_live).count();
        assert!(pending <= live, "{pending} cancellations of {live} nodes");
        assert!(scheduler.live_sessions() > 0, "no session lives");
    }

    /// This shard's part of a limit.
    fn part(&self, limit: Option<u32>) -> u64 {
        let Shard { index, count } = self.config.shard;
        limit.map_or(u64::MAX, |most| u64::from((most + count - 1 - index) / count))
    }

    fn has_room(&self) -> bool {
        let ConcurrencyLimits {
            in_flight,
            in_prefill,
            ..
        } = self.config.limits;
        (self.in_flight.len() as u64) < self.part(in_flight)
            && (self.in_prefill.len() as u64) < self.part(in_prefill)
    }

    /// The nodes that could be sent now, in order: those of running sessions whose instant has
    /// come.
    fn due(&self, now: Nanos) -> Vec<(Nanos, (u64, u32))> {
        let due = |key: &(u64, u32)| {
            let start = self.starts.get(&key.0)?;
            let known = &self.known[key];
            let mut at = if known.parents.is_empty() {
                known.base.unwrap_or(*start)
            } else {
                0
            };
            for edge in &known.parents {
                at = at.max(self.met_at(key.0, known, edge)?);
            }
            let mut at = at + known.wait;
            if self.config.traffic.replays() {
                at = at.max(known.not_before.unwrap_or(0));
            }
            (at <= now).then_some((at, *key))
        };
        let mut due: Vec<_> = self.unsent.iter().filter_map(due).collect();
        due.sort_unstable();
        due
    }

    /// No limit is exceeded, and nothing waits that could go.
    fn check_work(&self, now: Nanos) {
        let ConcurrencyLimits {
            sessions,
            in_flight,
            in_prefill,
        } = self.config.limits;
        assert!(self.in_flight.len() as u64 <= self.part(in_flight));
        assert!(self.in_prefill.len() as u64 <= self.part(in_prefill));
        if self.config.limits != ConcurrencyLimits::default() && self.has_room() {
            assert_eq!(self.due(now), [], "could go at {now}");
        }
        let running = (self.starts.len() - self.log.finished.len()) as u64;
        if self.has_given_arrivals() && running < self.part(sessions) {
            let waiting = self.delivered.iter().find(|(id, delivered)| {
                let arrival = arrival_of(self.weather.seed, **id).unwrap_or(**delivered);
                arrival <= now && !self.starts.contains_key(id)
            });
            assert_eq!(waiting, None, "has a place at {now}");
        }
    }

    /// The parts are the whole time for which it was due and known, and none belongs to a limit
    /// that is not there.
    fn check_held(&self, key: (u64, u32), intended: Nanos, held: Held, now: Nanos) {
        let ConcurrencyLimits {
            sessions,
            in_flight,
            in_prefill,
        } = self.config.limits;
        let known = self.known[&key].known;
        assert_eq!(
            held.total(),
            now - intended.max(known),
            "{key:?} {held:?} at {now}"
        );
        assert!(sessions.is_some() || held.sessions == 0);
        assert!(in_flight.is_some() || held.in_flight == 0);
        assert!(in_prefill.is_some() || held.in_prefill == 0);
    }

    /// Replayed sessions start when they were recorded to; without a recording, when they come.
    fn check_start(&self, id: u64, at: Nanos) {
        if self.has_given_arrivals() {
            let due = arrival_of(self.weather.seed, id).unwrap_or(self.delivered[&id]);
            assert_eq!(at, due, "session {id}");
        }
    }

    /// `intended` is the last parent's completion (or the session's start) plus the think time; of
    /// replayed traffic it is no earlier than recorded.
    fn check_instant(&self, key: (u64, u32), intended: Nanos, now: Nanos) {
        let known = &self.known[&key];
        assert!(intended <= now);
        let met: Option<Vec<Nanos>> = known
            .parents
            .iter()
            .map(|edge| self.met_at(key.0, known, edge))
            .collect();
        assert!(met.is_some(), "dispatched before an edge was met");
        let parents = met.unwrap_or_default();
        let start = self.starts[&key.0];
        let earliest = match self.config.traffic {
            TrafficRule::Scheduled { replays: true } => known.not_before.unwrap_or(0),
            TrafficRule::Scheduled { replays: false }
            | TrafficRule::Rate(_)
            | TrafficRule::Concurrent { .. } => 0,
        };
        let planned = self.plans[&key.0] == SessionKind::Planned;
        match parents.iter().max() {
            Some(last) => assert_eq!(intended, (last + known.wait).max(earliest)),
            None if planned => assert_eq!(intended, (start + known.wait).max(earliest)),
            None => assert!(intended >= (start + known.wait).max(earliest)),
        }
    }

    /// Returns true if sessions start at arrivals that they carry.
    fn has_given_arrivals(&self) -> bool {
        matches!(self.config.traffic, TrafficRule::Scheduled { .. })
    }

    /// The parents of which an awaited event other than the end has happened.
    fn happened(&self, session: u64, edges: &[Edge]) -> Vec<NodeId> {
        let happened =
            |edge: &&Edge| edge.trigger != Trigger::Completed && self.event_at(session, edge).is_some();
        edges.iter().filter(happened).map(|edge| edge.parent).collect()
    }

    /// The instant of the event that an edge waits for, if it has happened.
    fn event_at(&self, session: u64, edge: &Edge) -> Option<Nanos> {
        let key = (session, edge.parent.0);
        let ended = self.results.get(&key).map(|ended| ended.at);
        match edge.trigger {
            Trigger::Dispatched => self.dispatches.get(&key).copied(),
            Trigger::FirstChunk => self.first_chunks.get(&key).copied().or(ended),
            Trigger::Completed => ended,
        }
    }

    /// The instant at which an edge of a node was met, if it was. An agent that adds the node after
    /// the event has known of it since the last completion.
    fn met_at(&self, session: u64, known: &Known, edge: &Edge) -> Option<Nanos> {
        let met = self.event_at(session, edge)? + edge.delay;
        let reacted = known.reacted.contains(&edge.parent);
        Some(met.max(known.base.filter(|_| reacted).unwrap_or(0)))
    }

    fn check_history(&self, key: (u64, u32), history: &Option<Arc<History<Payload>>>) {
        // The node's mode decides how every answer is given; a fresh turn is the first of its
        // conversation.
        let mode = self.known[&key].mode;
        let behind = |key: (u64, u32)| {
            let node = &self.known[&key];
            node.history_parent.filter(|_| node.mode != HistoryMode::Fresh)
        };
        let mut expected = Vec::new();
        let mut next = behind(key);
        while let Some(node) = next {
            let turn = &self.known[&(key.0, node)];
            let real = self.results[&(key.0, node)].text.clone();
            let answer = match mode {
                HistoryMode::Recorded => turn.recorded.clone().or(real),
                HistoryMode::Live | HistoryMode::Fresh => real,
            };
            expected.insert(0, ((key.0, node), answer));
            next = behind((key.0, node));
        }
        let turns = History::turns(history);
        let turn =
            |turn: &Arc<History<Payload>>| (*turn.request, turn.response.as_ref().map(|r| r.text.clone()));
        assert_eq!(turns.iter().map(turn).collect::<Vec<_>>(), expected);
    }
}

/// An edge to a parent; the end of the parent if its history is continued.
fn random_edge(draws: &mut Draws, parent: NodeId, history: Option<NodeId>) -> Edge {
    let trigger = match draws.below(5) {
        0 if history != Some(parent) => Trigger::Dispatched,
        1 if history != Some(parent) => Trigger::FirstChunk,
        _ => Trigger::Completed,
    };
    let delay = if draws.below(3) == 0 {
        u64::from(draws.below(40))
    } else {
        0
    };
    Edge {
        parent,
        trigger,
        delay,
    }
}

impl World {
    /// Returns true if a node is a tool run: a function of the seed and its id.
    fn is_tool(&self, session: u64, node: u32) -> bool {
        let share = if self.config.tools.is_empty() {
            0
        } else {
            self.weather.tools
        };
        let mut draws = RandomStream::new(self.weather.seed, session, &format!("tool {node}")).draws();
        draws.below(100) < share
    }

    /// Draws a tool run. The last class is that of timers.
    fn random_tool_run(&self, draws: &mut Draws) -> ToolRunPlan {
        let class = draws.below(self.config.tools.len() as u32) as usize;
        let is_timer = class + 1 == self.config.tools.len();
        ToolRunPlan {
            class,
            service_time: u64::from(draws.below(3) * draws.below(60)),
            fails: draws.below(4) == 0,
            result_tokens: 1,
            name: if is_timer { TIMER.into() } else { "sandbox".into() },
            labels: Arc::new([]),
        }
    }

    /// A node with parents among the first `others`, at most one request of them continued.
    fn random_node(&self, draws: &mut Draws, session: u64, node: u32, others: u32) -> NodePlan<Payload> {
        let mut parents: Vec<u32> = (0..others).filter(|_| draws.below(3) == 0).collect();
        if others > 0 && parents.is_empty() && draws.below(4) > 0 {
            parents.push(draws.below(others));
        }
        let is_tool = self.is_tool(session, node);
        let history = (!parents.is_empty() && draws.below(2) == 0)
            .then(|| NodeId(parents[draws.below(parents.len() as u32) as usize]))
            .filter(|parent| !is_tool && !self.is_tool(session, parent.0));
        let parents = parents.into_iter().map(|parent| {
            let edge = random_edge(draws, NodeId(parent), history);
            // The start of a tool run is known only when it has ended.
            let trigger = if self.is_tool(session, parent) {
                Trigger::Completed
            } else {
                edge.trigger
            };
            Edge { trigger, ..edge }
        });
        let parents = parents.collect();
        if is_tool {
            return NodePlan {
                not_before: None,
                history_mode: HistoryMode::Fresh,
                recorded_answer: None,
                node: NodeId(node),
                parents,
                history_parent: None,
                wait_after_ready: 0,
                cancel_when: Vec::new(),
                work: NodeWork::ToolRun(self.random_tool_run(draws)),
            };
        }
        let not_before = (draws.below(3) == 0).then(|| u64::from(draws.below(900)));
        let history_mode = match draws.below(4) {
            0 => HistoryMode::Recorded,
            1 => HistoryMode::Fresh,
            _ => HistoryMode::Live,
        };
        let recorded_answer = (draws.below(2) == 0).then(|| {
            Arc::new(Response {
                text: format!("recorded {session}/{node}"),
                ..Response::default()
            })
        });
        NodePlan {
            not_before,
            history_mode,
            recorded_answer,
            node: NodeId(node),
            parents,
            history_parent: history,
            wait_after_ready: if draws.below(2) == 0 {
                0
            } else {
                u64::from(draws.below(60))
            },
            cancel_when: Vec::new(),
            work: NodeWork::Request(Arc::new((session, node))),
        }
    }
}
