//! A run with the real clock: starts the threads, keeps the look-ahead filled, and brings
//! everything down in order.

use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded, select, unbounded};
use veeksha_clock::RunClock;
use veeksha_events::{Event, PluginCall, RunInfo};
use veeksha_model::{Nanos, Prepared, SessionId};
use veeksha_ports::{PendingOutcome, PluginFailure, Sinks, Transport, WorkloadFactory};
use veeksha_prompt::{Materializer, Tokenizer};
use veeksha_scheduler::{Action, Scheduler, SchedulerConfig, SchedulerInput};

use crate::completion::{CompletionContext, TargetWatch, complete};
use crate::control::Control;
use crate::dispatcher::{CoordinatorMessage, DispatcherContext, dispatch};
use crate::entry::EventEntry;
use crate::first_chunks::FirstChunkRouter;
use crate::inbox::{Inbox, InputSender};
use crate::lookahead::Lookahead;
use crate::partition::Partition;
use crate::plan::{PipelineError, Plan, RunEnd, failed_start_events, session_failed, spawn};
use crate::prefetch::{SessionMaker, WorkerCommand, WorkerMessage, Workers};
use crate::prepare::Preparer;
use crate::warm_transport::TransportWarmup;
use crate::watch::WatchThread;

/// The clock's zero lies this far ahead of the moment at which the threads are started, so that the
/// first arrival finds them waiting.
const START_LEAD_NANOS: Nanos = 3_000_000;

/// Minimum remainder of that lead when the threads are started: they are up in a fraction of it.
const THREADS_LEAD_NANOS: Nanos = 1_000_000;

/// Runs a workload against a transport until it ends, and returns how it ended.
///
/// `start_transport` is given a clock and the callbacks for outcomes. Without a warm-up, and if the
/// transport starts quickly, this is the clock of the run. Otherwise the clock of the run starts
/// later, and the timestamps of the transport are converted to it as outcomes arrive. `events`
/// receives all events; another thread must drain its receiver.
///
/// # Errors
/// If the shard does not exist, the plugin fails before the first request is due (or a prompt of
/// the warm-up cannot be made), or a thread or the transport cannot be started. Later failures are
/// in [`RunEnd`]. Each failure of the plugin is an event too.
pub fn run(
    plan: &Plan,
    factory: &Arc<dyn WorkloadFactory>,
    tokenizer: &Tokenizer,
    materializer: Arc<Materializer>,
    start_transport: impl FnOnce(RunClock, Sinks) -> Result<Arc<dyn Transport>, PipelineError>,
    events: &Sender<EventEntry>,
    control: &Control,
) -> Result<RunEnd, PipelineError> {
    let part = Partition::of(plan)?;
    let maker = SessionMaker {
        preparer: Preparer {
            plugin: factory.info().name.clone(),
            materializer,
            tokenizer: tokenizer.clone(),
            clients: plan.clients.clone(),
            timing: plan.timing(),
            tools: plan.tools.clone(),
        },
        part,
        max_sessions: plan.scheduler.max_sessions,
    };
    let (workers, made) = Workers::start(plan.plugin_threads, factory, &maker, plan.arrivals.as_ref())?;
    let mut lookahead = Lookahead::new(plan, part);
    if let Err((first, failure)) = lookahead.fill(&workers, &made, control) {
        let session = part.session(first);
        record_failed_start(plan, &lookahead, Some(session), &failure, events);
        return Err((*failure).into());
    }

    let outcomes = OutcomeChannels::new();
    let transport_clock = if plan.warmup.is_empty() {
        clock_starting_soon()
    } else {
        RunClock::starting_now()
    };
    let transport = start_transport(transport_clock, outcomes.sinks())?;
    let warm_up = TransportWarmup {
        preparer: &maker.preparer,
        transport: &*transport,
        outcomes: &outcomes.receiver,
        control,
        clock: transport_clock,
    };
    let report = match warm_up.run(&plan.warmup) {
        Ok(report) => report,
        Err(failure) => {
            record_failed_start(plan, &lookahead, None, &failure, events);
            return Err(failure.into());
        }
    };

    // Actions due at zero are decided before the clock is started, however many sessions there are.
    let mut starts = starts(plan, part, lookahead.length());
    lookahead.catch_up(&workers, &made);
    if !control.is_stopped() {
        lookahead.deliver(|dispatcher, input| {
            let DispatcherStart { scheduler, due } = &mut starts[dispatcher];
            scheduler.on(0, input, due);
        });
    }
    let clock = run_clock(plan, transport_clock);
    let _ = events.send(run_started(plan, clock).into());

    let shared = Shared {
        plan,
        part,
        clock,
        transport_lead: clock.origin() - transport_clock.origin(),
        tokenizer,
        transport: &transport,
        events,
        control,
    };
    let threads = shared.start_threads(starts, outcomes)?;
    let coordinator = Coordinator {
        workers: &workers,
        transport: &*transport,
        inboxes: &threads.inboxes,
        events,
        control,
        clock,
        part,
    };
    let mut end = coordinator.drive(&mut lookahead, &made, &threads.messages);
    coordinator.record_missed(&lookahead, plan.scheduler.benchmark_timeout);
    threads.join(&mut end);
    drop(transport);
    drop(workers);
    end.at = clock.now();
    end.unstarted = lookahead.unstarted();
    end.warmup_failures = report.failures;
    end.first_warmup_failure = report.first_failure;
    let _ = events.send(Event::RunEnded { at: end.at }.into());
    Ok(end)
}

/// The channel from client threads to completion threads (`None` ends one of them), and the route
/// of first chunks.
struct OutcomeChannels {
    sender: Sender<Option<Box<dyn PendingOutcome>>>,
    receiver: Receiver<Option<Box<dyn PendingOutcome>>>,
    first_chunks: FirstChunkRouter,
}

impl OutcomeChannels {
    fn new() -> Self {
        let (sender, receiver) = unbounded();
        OutcomeChannels {
            sender,
            receiver,
            first_chunks: FirstChunkRouter::default(),
        }
    }

    /// Returns the transport's callbacks.
    fn sinks(&self) -> Sinks {
        let (outcomes, first_chunks) = (self.sender.clone(), self.first_chunks.clone());
        Sinks {
            // The completion threads outlive the transport's last outcome.
            returned: Arc::new(move |returned| drop(outcomes.send(Some(returned)))),
            first_chunk: Arc::new(move |request, at| first_chunks.on_first_chunk(request, at)),
        }
    }
}

/// The settings and channels that the threads of a run share.
struct Shared<'a> {
    plan: &'a Plan,
    part: Partition,
    clock: RunClock,
    /// Time between the start of the transport's clock and the run's.
    transport_lead: Nanos,
    tokenizer: &'a Tokenizer,
    transport: &'a Arc<dyn Transport>,
    events: &'a Sender<EventEntry>,
    control: &'a Control,
}

/// The threads of a run, apart from the plugin workers and the transport's.
struct RunThreads {
    inboxes: Vec<InputSender<SchedulerInput<Prepared>>>,
    messages: Receiver<CoordinatorMessage>,
    dispatchers: Vec<JoinHandle<()>>,
    /// Dropped to let the dispatchers end, which stay until the watch has sampled them.
    hold: Sender<()>,
    completions: Vec<JoinHandle<()>>,
    outcomes: Sender<Option<Box<dyn PendingOutcome>>>,
    watch: WatchThread,
}

impl Shared<'_> {
    fn start_threads(
        &self,
        starts: Vec<DispatcherStart>,
        outcomes: OutcomeChannels,
    ) -> Result<RunThreads, PipelineError> {
        let (notices, messages) = unbounded();
        let (hold, release) = bounded(0);
        let mut inboxes = Vec::new();
        let mut dispatchers = Vec::new();
        for (index, start) in (0..).zip(starts) {
            let (thread, inbox) = self.start_dispatcher(index, start, &notices, &release)?;
            dispatchers.push(thread);
            inboxes.push(inbox);
        }
        outcomes
            .first_chunks
            .begin(self.part, &inboxes, self.transport_lead);
        let target = Arc::new(TargetWatch::new(self.plan.clients.clone(), self.control.clone()));
        let mut completions = Vec::new();
        for index in 0..self.plan.completion_threads.max(1) {
            let context = CompletionContext {
                clock: self.clock,
                transport_lead: self.transport_lead,
                tokenizer: self.tokenizer.clone(),
                part: self.part,
                dispatchers: inboxes.clone(),
                notices: notices.clone(),
                events: self.events.clone(),
                include_content: self.plan.include_content,
                track_prefixes: self.plan.track_prefixes,
                target: target.clone(),
            };
            let receiver = outcomes.receiver.clone();
            let body = move || {
                // Decoding an answer takes up to milliseconds, in which a dispatcher or a client
                // thread on the same core would be late.
                veeksha_machine::lower_priority();
                complete(&context, &receiver);
            };
            completions.push(spawn(format!("completion-{index}"), body)?);
        }
        Ok(RunThreads {
            inboxes,
            messages,
            dispatchers,
            hold,
            completions,
            outcomes: outcomes.sender,
            watch: WatchThread::start(self.plan.thread_watch.as_ref(), self.clock, self.events)?,
        })
    }

    fn start_dispatcher(
        &self,
        index: u32,
        start: DispatcherStart,
        notices: &Sender<CoordinatorMessage>,
        release: &Receiver<()>,
    ) -> Result<(JoinHandle<()>, InputSender<SchedulerInput<Prepared>>), PipelineError> {
        let (unbound, inbox) = Inbox::new(self.clock, self.plan.spin);
        let context = DispatcherContext {
            index,
            clock: self.clock,
            inbox,
            transport: self.transport.clone(),
            events: self.events.clone(),
            notices: notices.clone(),
            notify_after: Lookahead::notify_after(self.part),
            include_content: self.plan.include_content,
            track_prefixes: self.plan.track_prefixes,
            on_start: self.plan.on_dispatcher_start.clone(),
            release: release.clone(),
        };
        let DispatcherStart { scheduler, due } = start;
        let thread = spawn(format!("dispatcher-{index}"), move || {
            dispatch(scheduler, due, &context);
        })?;
        let sender = unbound.bind(thread.thread());
        Ok((thread, sender))
    }
}

impl RunThreads {
    /// Ends the threads in order, and keeps the failures that were reported meanwhile.
    fn join(self, end: &mut RunEnd) {
        // The last sample, while the threads still exist.
        self.watch.end();
        drop(self.hold);
        for thread in self.dispatchers {
            let _ = thread.join();
        }
        // Each completion thread takes one end mark, after every outcome that was put before it.
        for _ in &self.completions {
            let _ = self.outcomes.send(None);
        }
        for thread in self.completions {
            let _ = thread.join();
        }
        for message in self.messages.try_iter() {
            if let CoordinatorMessage::CodecFailed(failure) = message {
                end.keep_failure(*failure);
            }
        }
    }
}

/// Returns the transport's clock if it still leaves time to start the threads, otherwise a later
/// one.
fn run_clock(plan: &Plan, transport_clock: RunClock) -> RunClock {
    if plan.warmup.is_empty() && until_zero(transport_clock) >= THREADS_LEAD_NANOS {
        transport_clock
    } else {
        clock_starting_soon()
    }
}

/// Sends the events of a run that ended before its first request, because the plugin failed on
/// `session`, or on a prompt of the warm-up. Failures on later sessions that the look-ahead has
/// received come first.
fn record_failed_start(
    plan: &Plan,
    lookahead: &Lookahead,
    session: Option<SessionId>,
    failure: &PluginFailure,
    events: &Sender<EventEntry>,
) {
    let started = run_started(plan, RunClock::starting_now());
    let failures = lookahead.early_failures().chain([(session, failure)]);
    for event in failed_start_events(started, failures) {
        let _ = events.send(event.into());
    }
}

fn run_started(plan: &Plan, clock: RunClock) -> Event {
    Event::RunStarted(RunInfo {
        epoch_wall_nanos: veeksha_clock::wall_nanos() - clock.now() + until_zero(clock),
        epoch_monotonic_nanos: clock.origin(),
        run_id: plan.run_id.clone(),
    })
}

/// A clock whose zero lies a little ahead.
fn clock_starting_soon() -> RunClock {
    RunClock::with_origin(RunClock::starting_now().origin() + START_LEAD_NANOS)
}

/// A dispatcher's scheduler, and what it has decided before the clock starts.
struct DispatcherStart {
    scheduler: Scheduler<Prepared>,
    due: Vec<Action<Prepared>>,
}

fn starts(plan: &Plan, part: Partition, length: Option<u64>) -> Vec<DispatcherStart> {
    let ends = [plan.scheduler.max_sessions, length];
    let scheduler = |dispatcher| {
        Scheduler::new(SchedulerConfig {
            shard: part.shard(dispatcher),
            // Sessions that do not exist are not missed.
            max_sessions: ends.into_iter().flatten().min(),
            ..plan.scheduler.clone()
        })
    };
    let start = |dispatcher| DispatcherStart {
        scheduler: scheduler(dispatcher),
        due: Vec::new(),
    };
    (0..part.dispatchers()).map(start).collect()
}

/// Returns the time until the clock's zero.
fn until_zero(clock: RunClock) -> u64 {
    clock.origin().saturating_sub(RunClock::with_origin(0).now())
}

/// Moves messages between workers, dispatchers and the transport while the run goes on.
struct Coordinator<'a> {
    workers: &'a Workers,
    transport: &'a dyn Transport,
    inboxes: &'a [InputSender<SchedulerInput<Prepared>>],
    events: &'a Sender<EventEntry>,
    control: &'a Control,
    clock: RunClock,
    part: Partition,
}

impl Coordinator<'_> {
    fn drive(
        &self,
        lookahead: &mut Lookahead,
        made: &Receiver<WorkerMessage>,
        notices: &Receiver<CoordinatorMessage>,
    ) -> RunEnd {
        let mut end = RunEnd::default();
        for (first, failure) in lookahead.failed_early.drain(..) {
            self.session_failed(self.part.session(first), failure, &mut end);
        }
        for call in lookahead.busy_early.drain(..) {
            self.record_call(call);
        }
        self.record_delivered(lookahead, &mut end);
        // A stop during the warm-up has consumed the wake-up there.
        if self.control.is_stopped() {
            self.interrupt(&mut end);
        }
        let mut running = self.inboxes.len();
        let mut cancel_requests = 0;
        while running > 0 {
            select! {
                recv(made) -> message => if let Ok(message) = message {
                    if let Some(message) = lookahead.take(message) {
                        self.forward(message, &mut end);
                    }
                    lookahead.deliver(|dispatcher, input| self.inboxes[dispatcher].send(input));
                    self.record_delivered(lookahead, &mut end);
                },
                recv(notices) -> notice => match notice {
                    Ok(CoordinatorMessage::SessionsStarted(count)) => lookahead.started += count,
                    Ok(CoordinatorMessage::Ask { session, node, outcome, at }) => {
                        let worker = self.part.position(session);
                        self.workers.send(worker, WorkerCommand::Answer { session, node, outcome, at });
                    }
                    Ok(CoordinatorMessage::Forget { session }) => {
                        self.workers.send(self.part.position(session), WorkerCommand::Forget { session });
                    }
                    Ok(CoordinatorMessage::CodecFailed(failure)) => end.keep_failure(*failure),
                    // One dispatcher may be done measuring before another: only when all are is
                    // nothing wanted any more.
                    Ok(CoordinatorMessage::CancelInFlight) => cancel_requests += 1,
                    Ok(CoordinatorMessage::Done) => running -= 1,
                    Err(_) => break,
                },
                recv(self.control.woken()) -> _ => self.interrupt(&mut end),
            }
            if cancel_requests > 0 && cancel_requests >= running {
                self.transport.cancel_all();
            }
            lookahead.ask(self.workers);
        }
        end
    }

    fn interrupt(&self, end: &mut RunEnd) {
        if end.interrupted || end.target_lost.is_some() {
            return;
        }
        end.target_lost = self.control.target_lost().map(str::to_owned);
        end.interrupted = end.target_lost.is_none();
        if end.interrupted {
            let at = self.clock.now();
            let _ = self.events.send(Event::Interrupted { at }.into());
        }
        for inbox in self.inboxes {
            inbox.send(SchedulerInput::Stop);
        }
    }

    fn forward(&self, message: WorkerMessage, end: &mut RunEnd) {
        match message {
            WorkerMessage::Step {
                session,
                nodes,
                cancel,
                done,
            } => {
                let step = SchedulerInput::Step {
                    session,
                    nodes,
                    cancel,
                    done,
                };
                self.send(session, step)
            }
            WorkerMessage::AgentFailed { session, failure } => {
                self.session_failed(session, failure, end);
                self.send(session, SchedulerInput::AgentFailed { session });
            }
            WorkerMessage::SourceFailed { first, failure } => {
                self.session_failed(self.part.session(first), failure, end);
            }
            WorkerMessage::Busy(call) => self.record_call(call),
            WorkerMessage::Open { .. } | WorkerMessage::Sessions { .. } | WorkerMessage::Arrivals { .. } => {}
        }
    }

    /// Records a failure of the workload's plugin, and keeps it for the report.
    fn session_failed(&self, session: SessionId, failure: PluginFailure, end: &mut RunEnd) {
        let event = session_failed(&failure, Some(session), self.clock.now());
        let _ = self.events.send(event.into());
        end.keep_failure(failure);
    }

    /// Puts a worker's stretch on the run's clock; what ended before its zero is not of the run.
    fn record_call(&self, call: PluginCall) {
        let on_the_runs_clock = |at: Nanos| at.saturating_sub(self.clock.origin());
        if call.end <= self.clock.origin() {
            return;
        }
        let call = PluginCall {
            begin: on_the_runs_clock(call.begin),
            end: on_the_runs_clock(call.end),
            ..call
        };
        let _ = self.events.send(Event::PluginCalled(call).into());
    }

    /// Records the sessions that were not made before the run ended although they had arrived. The
    /// scheduler counts those of other traffic, which it knows the arrivals of.
    fn record_missed(&self, lookahead: &Lookahead, timeout: Option<Nanos>) {
        let at = timeout.unwrap_or(Nanos::MAX).min(self.clock.now());
        let sessions = lookahead.missed(at);
        if sessions > 0 {
            let _ = self.events.send(Event::ArrivalsMissed { sessions, at }.into());
        }
    }

    fn record_delivered(&self, lookahead: &mut Lookahead, end: &mut RunEnd) {
        for (session, digest) in lookahead.planned.drain(..) {
            let _ = self.events.send(Event::SessionPlanned { session, digest }.into());
        }
        for (session, failure) in lookahead.failed.drain(..) {
            self.session_failed(session, failure, end);
        }
    }

    fn send(&self, session: SessionId, input: SchedulerInput<Prepared>) {
        self.inboxes[self.part.dispatcher(session)].send(input);
    }
}
