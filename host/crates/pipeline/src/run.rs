//! A run with the real clock: starts the threads, keeps the look-ahead filled, and brings
//! everything down in order.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded, select, unbounded};
use veeksha_clock::RunClock;
use veeksha_events::{Event, PluginCall, RunInfo};
use veeksha_model::{Nanos, Prepared, SessionId};
use veeksha_ports::{PluginFailure, Returned, Sinks, Transport, WorkloadFactory};
use veeksha_prompt::{Materializer, Tokenizer};
use veeksha_scheduler::{Action, Input, Scheduler, SchedulerConfig};

use crate::completion::{Completion, TargetWatch, complete};
use crate::control::Control;
use crate::dispatcher::{Lines, Notice, dispatch};
use crate::entry::Entry;
use crate::first_chunks::FirstChunks;
use crate::inbox::{Inbox, Line};
use crate::lookahead::Lookahead;
use crate::part::Part;
use crate::plan::spawn;
use crate::plan::{PipelineError, Plan, RunEnd};
use crate::prefetch::{Command, Made, Maker, Workers};
use crate::prepare::Preparer;
use crate::schedule::Timing;
use crate::warm_transport::WarmUp;
use crate::warmup::Warmth;
use crate::watch::Watching;

/// The clock's zero lies this far ahead of the moment at which the threads are started, so that the
/// first arrival finds them waiting.
const START_LEAD_NANOS: Nanos = 3_000_000;

/// Minimum remainder of that lead when the threads are started: they are up in a fraction of it.
const THREADS_LEAD_NANOS: Nanos = 1_000_000;

/// Failures kept for the report; a plugin that fails on every session would fill memory with equal
/// messages.
const KEPT_FAILURES: usize = 20;

/// Runs a workload against a transport until it ends, and returns how.
///
/// `start_transport` is given a clock and the place to put outcomes. The clock is the run's, unless
/// there is a warm-up or the transport and the first sessions take more than a moment to be set up:
/// then the transport's begins earlier, and its stamps are put on the run's clock when its outcomes
/// come in. `events` receives everything that happens; its receiver must be drained by another
/// thread.
///
/// # Errors
/// If the shard does not exist, the plugin fails before the first request is due (or a prompt of
/// the warm-up cannot be made), or a thread or the transport cannot be started. What happens later
/// is in [`RunEnd`].
pub fn run(
    plan: &Plan,
    factory: &Arc<dyn WorkloadFactory>,
    tokenizer: &Tokenizer,
    materializer: Arc<Materializer>,
    start_transport: impl FnOnce(RunClock, Sinks) -> Result<Arc<dyn Transport>, PipelineError>,
    events: &Sender<Entry>,
    control: &Control,
) -> Result<RunEnd, PipelineError> {
    let part = Part::of(plan)?;
    let preparer = Preparer {
        plugin: factory.info().name.clone(),
        materializer,
        tokenizer: tokenizer.clone(),
        min_tokens_prompt: plan.min_tokens_prompt.clone(),
        timing: Timing::of(plan),
    };
    let maker = Maker { preparer, part };
    let (workers, made) = Workers::start(plan.plugin_threads, factory, &maker)?;
    let mut lookahead = Lookahead::new(plan, part);
    if let Err(failure) = lookahead.fill(&workers, &made, control) {
        workers.stop();
        return Err(failure.into());
    }

    let (outcomes, outcome_inbox) = unbounded::<Option<Box<dyn Returned>>>();
    let first_chunks = FirstChunks::default();
    let sinks = {
        let outcomes = outcomes.clone();
        Sinks {
            // The completion threads outlive the transport's last outcome.
            returned: Arc::new(move |returned| drop(outcomes.send(Some(returned)))),
            first_chunk: plan.scheduler.limits.in_prefill.map(|_| {
                let first_chunks = first_chunks.clone();
                Arc::new(move |request, at| first_chunks.came(request, at)) as Arc<_>
            }),
        }
    };
    let transport_clock = if plan.warmup.is_empty() {
        soon()
    } else {
        RunClock::starting_now()
    };
    let transport = start_transport(transport_clock, sinks)?;
    let warmth = if plan.warmup.is_empty() {
        Warmth::default()
    } else {
        let warm_up = WarmUp {
            preparer: &maker.preparer,
            transport: &*transport,
            outcomes: &outcome_inbox,
            control,
            clock: transport_clock,
        };
        match warm_up.run(&plan.warmup) {
            Ok(warmth) => warmth,
            Err(failure) => {
                workers.stop();
                return Err(failure.into());
            }
        }
    };

    // Actions due at zero are decided before the clock is started, however many sessions there are.
    let mut starts = starts(plan, part, lookahead.length());
    lookahead.catch_up(&workers, &made);
    if !control.is_stopped() {
        lookahead.deliver(|dispatcher, input| {
            let Start { scheduler, due } = &mut starts[dispatcher];
            scheduler.on(0, input, due);
        });
    }
    let clock = match plan.warmup.is_empty() && until_zero(transport_clock) >= THREADS_LEAD_NANOS {
        true => transport_clock,
        false => soon(),
    };
    let transport_lead = clock.origin() - transport_clock.origin();
    let _ = events.send(
        Event::RunStarted(RunInfo {
            epoch_wall_nanos: veeksha_clock::wall_nanos() - clock.now() + until_zero(clock),
            epoch_monotonic_nanos: clock.origin(),
        })
        .into(),
    );

    let (notices, notice_inbox) = unbounded();
    let (hold, release) = bounded(0);
    let mut inboxes = Vec::new();
    let mut threads = Vec::new();
    for (index, Start { scheduler, due }) in (0..).zip(starts) {
        let (slot, inbox) = Inbox::new(clock, plan.spin);
        let lines = Lines {
            index,
            clock,
            inbox,
            transport: transport.clone(),
            events: events.clone(),
            notices: notices.clone(),
            tell_after: Lookahead::tell_after(part),
            include_content: plan.include_content,
            track_prefixes: plan.track_prefixes,
            on_start: plan.on_dispatcher_start.clone(),
            release: release.clone(),
        };
        let thread = spawn(format!("dispatcher-{index}"), move || {
            dispatch(scheduler, due, &lines);
        })?;
        inboxes.push(slot.of(thread.thread()));
        threads.push(thread);
    }
    first_chunks.begin(part, &inboxes, transport_lead);
    let mut completions = Vec::new();
    let target = Arc::new(TargetWatch::new(control.clone()));
    for index in 0..plan.completion_threads.max(1) {
        let lines = Completion {
            clock,
            transport_lead,
            tokenizer: tokenizer.clone(),
            part,
            dispatchers: inboxes.clone(),
            notices: notices.clone(),
            events: events.clone(),
            include_content: plan.include_content,
            target: target.clone(),
        };
        let inbox = outcome_inbox.clone();
        let body = move || complete(&lines, &inbox);
        completions.push(spawn(format!("completion-{index}"), body)?);
    }
    let watching = Watching::start(plan.thread_watch.as_ref(), clock, events)?;

    let coordinator = Coordinator {
        workers: &workers,
        transport: &*transport,
        inboxes: &inboxes,
        events,
        control,
        clock,
        part,
    };
    let mut end = coordinator.drive(&mut lookahead, &made, &notice_inbox);

    // The last look, while the threads are still there.
    watching.end();
    drop(hold);
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
    for notice in notice_inbox.try_iter() {
        if let Notice::CodecFailed(failure) = notice {
            keep(&mut end, *failure);
        }
    }
    drop(transport);
    workers.stop();
    end.at = clock.now();
    end.warmup_failures = warmth.failures;
    end.first_warmup_failure = warmth.first_failure;
    let _ = events.send(Event::RunEnded { at: end.at }.into());
    Ok(end)
}

/// A clock whose zero lies a little ahead.
fn soon() -> RunClock {
    RunClock::with_origin(RunClock::starting_now().origin() + START_LEAD_NANOS)
}

/// A dispatcher's scheduler, and what it has decided before the clock starts.
struct Start {
    scheduler: Scheduler<Prepared>,
    due: Vec<Action<Prepared>>,
}

fn starts(plan: &Plan, part: Part, length: Option<u64>) -> Vec<Start> {
    let ends = [plan.scheduler.max_sessions, length];
    let scheduler = |dispatcher| {
        Scheduler::new(SchedulerConfig {
            shard: part.shard(dispatcher),
            // Sessions that do not exist are not missed.
            max_sessions: ends.into_iter().flatten().min(),
            ..plan.scheduler.clone()
        })
    };
    let start = |dispatcher| Start {
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
    inboxes: &'a [Line<Input<Prepared>>],
    events: &'a Sender<Entry>,
    control: &'a Control,
    clock: RunClock,
    part: Part,
}

impl Coordinator<'_> {
    fn drive(&self, lookahead: &mut Lookahead, made: &Receiver<Made>, notices: &Receiver<Notice>) -> RunEnd {
        let mut end = RunEnd::default();
        for failure in lookahead.failed_early.drain(..) {
            keep(&mut end, failure);
        }
        for call in lookahead.busy_early.drain(..) {
            self.worked(call);
        }
        self.planned(lookahead);
        // A stop during the warm-up has consumed the wake-up there.
        if self.control.is_stopped() {
            self.interrupt(&mut end);
        }
        let mut running = self.inboxes.len();
        let mut unwilling = 0;
        while running > 0 {
            select! {
                recv(made) -> message => if let Ok(message) = message {
                    if let Some(message) = lookahead.take(message) {
                        self.pass_on(message, &mut end);
                    }
                    lookahead.deliver(|dispatcher, input| self.inboxes[dispatcher].send(input));
                    self.planned(lookahead);
                },
                recv(notices) -> notice => match notice {
                    Ok(Notice::SessionsStarted(count)) => lookahead.started += count,
                    Ok(Notice::Ask { session, node, answer, at }) => {
                        let worker = self.part.position(session);
                        self.workers.tell(worker, Command::Answer { session, node, answer, at });
                    }
                    Ok(Notice::Forget { session }) => {
                        self.workers.tell(self.part.position(session), Command::Forget { session });
                    }
                    Ok(Notice::CodecFailed(failure)) => keep(&mut end, *failure),
                    // One dispatcher may be done measuring before another: only when all are is
                    // nothing wanted any more.
                    Ok(Notice::CancelInFlight) => unwilling += 1,
                    Ok(Notice::Done) => running -= 1,
                    Err(_) => break,
                },
                recv(self.control.woken()) -> _ => self.interrupt(&mut end),
            }
            if unwilling > 0 && unwilling >= running {
                self.transport.cancel_all();
            }
            lookahead.ask(self.workers);
        }
        end
    }

    fn interrupt(&self, end: &mut RunEnd) {
        if end.interrupted || end.target_lost {
            return;
        }
        end.target_lost = self.control.is_target_lost();
        end.interrupted = !end.target_lost;
        if end.interrupted {
            let at = self.clock.now();
            let _ = self.events.send(Event::Interrupted { at }.into());
        }
        for inbox in self.inboxes {
            inbox.send(Input::Stop);
        }
    }

    fn pass_on(&self, message: Made, end: &mut RunEnd) {
        match message {
            Made::Step { session, nodes, done } => self.tell(session, Input::Step { session, nodes, done }),
            Made::AgentFailed { session, failure } => {
                keep(end, failure);
                self.tell(session, Input::AgentFailed { session });
            }
            Made::SourceFailed { failure, .. } => keep(end, failure),
            Made::Busy(call) => self.worked(call),
            Made::Open { .. } | Made::Sessions { .. } => {}
        }
    }

    /// Puts a worker's stretch on the run's clock; what ended before its zero is not of the run.
    fn worked(&self, call: PluginCall) {
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

    fn planned(&self, lookahead: &mut Lookahead) {
        for (session, digest) in lookahead.planned.drain(..) {
            let _ = self.events.send(Event::SessionPlanned { session, digest }.into());
        }
    }

    fn tell(&self, session: SessionId, input: Input<Prepared>) {
        self.inboxes[self.part.dispatcher(session)].send(input);
    }
}

fn keep(end: &mut RunEnd, failure: PluginFailure) {
    if end.plugin_failures.len() < KEPT_FAILURES {
        end.plugin_failures.push(failure);
    }
}
