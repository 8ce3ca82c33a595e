//! A run with the real clock: starts the threads, keeps the look-ahead filled, and brings everything down in order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, select, unbounded};
use veeksha_clock::RunClock;
use veeksha_events::{Event, RunInfo};
use veeksha_model::{Prepared, SessionId};
use veeksha_ports::{Outcome, OutcomeSink, PluginFailure, Transport, WorkloadFactory};
use veeksha_prompt::{Materialiser, Tokenizer};
use veeksha_scheduler::{Input, Scheduler, SessionKind, Shard, Traffic};

use crate::completion::{TargetWatch, complete};
use crate::dispatcher::{Lines, Notice, dispatch};
use crate::plan::spawn;
use crate::prefetch::{Command, MAX_BATCH, Made, MadeSession, Preparer, Workers};
use crate::{Control, Entry, PipelineError, Plan, RunEnd};

/// Sessions kept ready beyond those that may start at once. A plugin call of a whole batch takes well under a millisecond
/// in a compiled language and tens in an interpreted one; 64 sessions bridge that at a thousand sessions a second.
const LOOKAHEAD: u64 = 64;

/// How long the start waits for the whole look-ahead once the first session is there.
const FILL_PATIENCE: Duration = Duration::from_millis(200);

/// The clock's zero lies this far ahead of the moment at which the threads are started, so that the first arrival finds
/// them waiting.
const START_LEAD_NANOS: u64 = 3_000_000;

/// Failures kept for the report; a plugin that fails on every session would fill memory with the same words.
const KEPT_FAILURES: usize = 20;

/// Runs a workload against a transport until it ends, and returns how.
///
/// `start_transport` is given the run's clock and the place to put outcomes. `events` receives everything that happens;
/// its receiver must be drained by another thread.
///
/// # Errors
/// If the plugin fails before the first request is due, or a thread or the transport cannot be started. What happens later
/// is in [`RunEnd`].
pub fn run(
    plan: &Plan,
    factory: &Arc<dyn WorkloadFactory>,
    tokenizer: &Tokenizer,
    materialiser: Arc<Materialiser>,
    start_transport: impl FnOnce(RunClock, OutcomeSink) -> Result<Arc<dyn Transport>, PipelineError>,
    events: &Sender<Entry>,
    control: &Control,
) -> Result<RunEnd, PipelineError> {
    let preparer = Preparer {
        plugin: factory.info().name.clone(),
        materialiser,
        tokenizer: tokenizer.clone(),
        min_tokens_prompt: plan.min_tokens_prompt.clone(),
    };
    let (workers, made) = Workers::start(plan.plugin_threads, factory, &preparer)?;
    let mut lookahead = Lookahead::new(plan);
    if let Err(failure) = lookahead.fill(&workers, &made, control) {
        workers.stop();
        return Err(failure.into());
    }

    let clock = RunClock::with_origin(RunClock::starting_now().origin() + START_LEAD_NANOS);
    let (outcomes, outcome_inbox) = unbounded::<Option<Outcome>>();
    let sink: OutcomeSink = {
        let outcomes = outcomes.clone();
        // The completion threads outlive the transport's last outcome.
        Arc::new(move |outcome| drop(outcomes.send(Some(outcome))))
    };
    let transport = start_transport(clock, sink)?;
    let _ = events.send(
        Event::RunStarted(RunInfo {
            epoch_wall_nanos: veeksha_clock::wall_nanos() - clock.now() + wall_lead(clock),
            epoch_monotonic_nanos: clock.origin(),
        })
        .into(),
    );

    let (notices, notice_inbox) = unbounded();
    let mut inboxes = Vec::new();
    let mut dispatchers = Vec::new();
    for index in 0..dispatchers_of(plan) {
        let (inbox, receiver) = unbounded();
        let shard = Shard {
            index,
            count: dispatchers_of(plan),
        };
        let scheduler = Scheduler::new(veeksha_scheduler::SchedulerConfig {
            shard,
            ..plan.scheduler.clone()
        });
        let lines = Lines {
            clock,
            inbox: receiver,
            transport: transport.clone(),
            events: events.clone(),
            notices: notices.clone(),
            include_content: plan.include_content,
            speaks_for_all: index == 0,
        };
        dispatchers.push((scheduler, lines));
        inboxes.push(inbox);
    }
    lookahead.deliver(&inboxes);
    let mut threads = Vec::new();
    for (index, (scheduler, lines)) in dispatchers.into_iter().enumerate() {
        threads.push(spawn(format!("dispatcher-{index}"), move || {
            dispatch(scheduler, &lines)
        })?);
    }
    let mut completions = Vec::new();
    let watch = Arc::new(TargetWatch::new(control.clone()));
    for index in 0..plan.completion_threads.max(1) {
        let (tokenizer, inbox) = (tokenizer.clone(), outcome_inbox.clone());
        let (dispatchers, events, include_content) = (inboxes.clone(), events.clone(), plan.include_content);
        let watch = watch.clone();
        let body = move || {
            complete(
                clock,
                &tokenizer,
                &inbox,
                &dispatchers,
                &events,
                include_content,
                &watch,
            )
        };
        completions.push(spawn(format!("completion-{index}"), body)?);
    }

    let coordinator = Coordinator {
        workers: &workers,
        transport: &*transport,
        inboxes: &inboxes,
        events,
        control,
        clock,
    };
    let mut end = coordinator.drive(&mut lookahead, &made, &notice_inbox);

    for thread in threads {
        let _ = thread.join();
    }
    // Each completion thread takes one end mark, after every outcome that was put before it.
    for _ in &completions {
        let _ = outcomes.send(None);
    }
    for thread in completions {
        let _ = thread.join();
    }
    drop(transport);
    workers.stop();
    end.at = clock.now();
    let _ = events.send(Event::RunEnded { at: end.at }.into());
    Ok(end)
}

/// As many as asked for, but no more than have something to do: a concurrency target of 2 keeps two busy.
fn dispatchers_of(plan: &Plan) -> u32 {
    plan.dispatchers
        .clamp(1, plan.scheduler.traffic.most_shards().max(1))
}

/// What is still to pass until the clock's zero.
fn wall_lead(clock: RunClock) -> u64 {
    clock.origin().saturating_sub(RunClock::with_origin(0).now())
}

/// Keeps enough sessions made, in order, and no more than that.
struct Lookahead {
    dispatchers: u64,
    window: u64,
    pregenerate: bool,
    max_sessions: u64,
    kind: Option<SessionKind>,
    asked: u64,
    batches: u64,
    batch: u32,
    /// The first session index that does not exist, once known.
    end: u64,
    made: BTreeMap<u64, MadeSession>,
    delivered: u64,
    started: u64,
    source_ended: bool,
    /// Failures that came to light before the clock started.
    failed_early: Vec<PluginFailure>,
}

impl Lookahead {
    fn new(plan: &Plan) -> Self {
        let at_once = match &plan.scheduler.traffic {
            Traffic::Concurrent { target, .. } => u64::from(*target),
            Traffic::Rate(_) | Traffic::Scheduled => 0,
        };
        let max_sessions = plan.scheduler.max_sessions.unwrap_or(u64::MAX);
        Lookahead {
            dispatchers: u64::from(dispatchers_of(plan)),
            window: if plan.pregenerate {
                max_sessions
            } else {
                LOOKAHEAD + at_once
            },
            pregenerate: plan.pregenerate,
            max_sessions,
            kind: None,
            asked: 0,
            batches: 0,
            batch: 1,
            end: max_sessions,
            made: BTreeMap::new(),
            delivered: 0,
            started: 0,
            source_ended: false,
            failed_early: Vec::new(),
        }
    }

    /// Waits until the workers are open and enough sessions are there to begin.
    fn fill(
        &mut self,
        workers: &Workers,
        made: &Receiver<Made>,
        control: &Control,
    ) -> Result<(), PluginFailure> {
        let patience = RunClock::starting_now();
        loop {
            let ready = self.made.len() as u64;
            let whole = ready >= self.window.min(self.end);
            let tired = !self.pregenerate && ready > 0 && patience.now() > FILL_PATIENCE.as_nanos() as u64;
            if self.kind.is_some() && (whole || tired) || control.is_stopped() {
                return Ok(());
            }
            match made.recv_timeout(Duration::from_millis(20)) {
                Ok(Made::SourceFailed { first, failure }) if first == 0 || self.pregenerate => {
                    return Err(failure);
                }
                Ok(message) => {
                    if let Some(Made::SourceFailed { failure, .. }) = self.take(message) {
                        self.failed_early.push(failure);
                    }
                }
                Err(_) => {}
            }
            self.ask(workers);
        }
    }

    /// Takes in what a worker made; gives back what is for a live session or the report.
    fn take(&mut self, message: Made) -> Option<Made> {
        match message {
            Made::Open { kind, length } => {
                self.kind = Some(kind);
                self.end = self.end.min(length.unwrap_or(u64::MAX)).min(self.max_sessions);
                None
            }
            Made::Sessions {
                first,
                asked,
                sessions,
            } => {
                if (sessions.len() as u64) < u64::from(asked) {
                    self.end = self.end.min(first + sessions.len() as u64);
                }
                self.made
                    .extend(sessions.into_iter().map(|session| (session.plan.id.0, session)));
                None
            }
            Made::SourceFailed { first, failure } => {
                // The sessions before it are made, or being made by other workers.
                self.end = self.end.min(first);
                Some(Made::SourceFailed { first, failure })
            }
            other => Some(other),
        }
    }

    /// Asks for as many sessions as the window has room for.
    fn ask(&mut self, workers: &Workers) {
        let Some(kind) = self.kind else { return };
        let wanted = self
            .started
            .saturating_mul(self.dispatchers)
            .saturating_add(self.window)
            .min(self.end);
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
            workers.tell(
                worker,
                Command::Make {
                    first: self.asked,
                    count,
                },
            );
            self.asked += u64::from(count);
            self.batches += 1;
            self.batch = (self.batch * 2).min(MAX_BATCH);
        }
    }

    /// Hands the sessions that are next in order to their dispatchers.
    fn deliver(&mut self, inboxes: &[Sender<Input<Prepared>>]) {
        while let Some(session) = self.made.remove(&self.delivered) {
            let MadeSession { plan, done } = session;
            let (session, inbox) = (plan.id, &inboxes[(plan.id.0 % self.dispatchers) as usize]);
            let _ = inbox.send(Input::Session(plan));
            if done {
                let _ = inbox.send(Input::Step {
                    session,
                    nodes: Vec::new(),
                    done,
                });
            }
            self.delivered += 1;
        }
        if self.delivered >= self.end && !self.source_ended {
            self.source_ended = true;
            for inbox in inboxes {
                let _ = inbox.send(Input::SourceEnded);
            }
        }
    }
}

/// Moves messages between workers, dispatchers and the transport while the run goes on.
struct Coordinator<'a> {
    workers: &'a Workers,
    transport: &'a dyn Transport,
    inboxes: &'a [Sender<Input<Prepared>>],
    events: &'a Sender<Entry>,
    control: &'a Control,
    clock: RunClock,
}

impl Coordinator<'_> {
    fn drive(&self, lookahead: &mut Lookahead, made: &Receiver<Made>, notices: &Receiver<Notice>) -> RunEnd {
        let mut end = RunEnd::default();
        for failure in lookahead.failed_early.drain(..) {
            keep(&mut end, failure);
        }
        let mut running = self.inboxes.len();
        let mut unwilling = 0;
        while running > 0 {
            select! {
                recv(made) -> message => if let Ok(message) = message {
                    if let Some(message) = lookahead.take(message) {
                        self.pass_on(message, &mut end);
                    }
                    lookahead.deliver(self.inboxes);
                },
                recv(notices) -> notice => match notice {
                    Ok(Notice::SessionStarted) => lookahead.started += 1,
                    Ok(Notice::Ask { session, node, answer, at }) => {
                        self.workers.tell(session.0, Command::Answer { session, node, answer, at });
                    }
                    Ok(Notice::Forget { session }) => {
                        self.workers.tell(session.0, Command::Forget { session });
                    }
                    // One dispatcher may be done measuring before another: only when all are is nothing wanted any more.
                    Ok(Notice::CancelInFlight) => unwilling += 1,
                    Ok(Notice::Done) => running -= 1,
                    Err(_) => break,
                },
                recv(self.control.woken()) -> _ => if !(end.interrupted || end.target_lost) {
                    end.target_lost = self.control.is_target_lost();
                    end.interrupted = !end.target_lost;
                    if end.interrupted {
                        let _ = self.events.send(Event::Interrupted { at: self.clock.now() }.into());
                    }
                    for inbox in self.inboxes {
                        let _ = inbox.send(Input::Stop);
                    }
                },
            }
            if unwilling > 0 && unwilling >= running {
                self.transport.cancel_all();
            }
            lookahead.ask(self.workers);
        }
        end
    }

    fn pass_on(&self, message: Made, end: &mut RunEnd) {
        match message {
            Made::Step { session, nodes, done } => self.tell(session, Input::Step { session, nodes, done }),
            Made::AgentFailed { session, failure } => {
                keep(end, failure);
                self.tell(session, Input::AgentFailed { session });
            }
            Made::SourceFailed { failure, .. } => keep(end, failure),
            Made::Open { .. } | Made::Sessions { .. } => {}
        }
    }

    fn tell(&self, session: SessionId, input: Input<Prepared>) {
        let shard = (session.0 % self.inboxes.len() as u64) as usize;
        let _ = self.inboxes[shard].send(input);
    }
}

fn keep(end: &mut RunEnd, failure: PluginFailure) {
    if end.plugin_failures.len() < KEPT_FAILURES {
        end.plugin_failures.push(failure);
    }
}
