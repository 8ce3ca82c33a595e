//! Plugin workers: threads that make sessions ahead of time and answer agents.
//!
//! Each worker opens a separate plugin instance. Batch *b* of a planned workload and the session at
//! position *i* of a reactive one always belong to the same worker, so an agent's state never
//! moves. Prompts are materialized here too. An arrival process keeps its state from one arrival to
//! the next, so one more thread owns it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::{Receiver, Sender, unbounded};
use veeksha_clock::RunClock;
use veeksha_events::PluginCall;
use veeksha_model::{Nanos, NodeId, Prepared, SessionId};
use veeksha_ports::{AgentStep, ArrivalFactory, PluginFailure, SessionSource, WorkloadFactory};
use veeksha_scheduler::{NodeOutcome, NodePlan, SessionKind, SessionPlan};

use crate::arrivals::ArrivalReader;
use crate::live_agents::{LiveAgents, OpenWorkload};
use crate::made::{FirstStep, MadeSession, SessionStart};
use crate::partition::Partition;
use crate::plan::{PipelineError, spawn};
use crate::prepare::Preparer;
use crate::work_digest::session_digest;

/// Sessions asked for in one call of a plugin, at most: large enough that the crossing costs
/// little, small enough that the first session of a batch is not kept waiting for the last.
pub(crate) const MAX_BATCH: u32 = 64;

/// The name of the thread that owns the arrival process.
const ARRIVALS: &str = "arrivals";

/// A command to a worker. Sessions are counted by their position in the process's part of the run.
pub(crate) enum WorkerCommand {
    /// Make the sessions at the positions `first .. first + count`.
    Make { first: u64, count: u32 },
    /// A node of an agent's session ended.
    Answer {
        session: SessionId,
        node: NodeId,
        outcome: NodeOutcome,
        at: Nanos,
    },
    /// A reactive session is over.
    Forget { session: SessionId },
}

impl WorkerCommand {
    fn describe(&self) -> String {
        match self {
            WorkerCommand::Make { first, count } => {
                format!("sessions {first}..{}", first + u64::from(*count))
            }
            WorkerCommand::Answer { session, node, .. } => format!("answer {session}/{node}"),
            WorkerCommand::Forget { session } => format!("end of {session}"),
        }
    }
}

/// A result of a worker.
pub(crate) enum WorkerMessage {
    /// The instance is open: the kind of workload, and how many sessions there are.
    Open { kind: SessionKind, length: Option<u64> },
    /// Sessions of one command, in order, from a position on; fewer than asked for where the
    /// workload ends.
    Sessions {
        first: u64,
        asked: u32,
        sessions: Vec<MadeSession<Prepared>>,
    },
    /// An agent's next step.
    Step {
        session: SessionId,
        nodes: Vec<NodePlan<Prepared>>,
        cancel: Vec<NodeId>,
        done: bool,
    },
    /// The plugin failed on the sessions, or on the arrivals, from position `first` on (0 where it
    /// could not be opened): they will not come.
    SourceFailed { first: u64, failure: PluginFailure },
    /// Arrivals of the next sessions of the part; fewer than asked for where the process ends.
    Arrivals { asked: u32, arrivals: Vec<Nanos> },
    /// The worker was busy: from when to when by the machine's monotonic clock, because the run's
    /// may not have begun.
    Busy(PluginCall),
    /// The plugin failed on one live session.
    AgentFailed {
        session: SessionId,
        failure: PluginFailure,
    },
}

/// A request for the arrivals of the sessions at the positions `first .. first + count`.
struct ArrivalCommand {
    first: u64,
    count: u32,
}

/// Makes the sessions of a part of the run.
#[derive(Clone)]
pub(crate) struct SessionMaker {
    pub(crate) preparer: Preparer,
    pub(crate) part: Partition,
    /// Maximum number of sessions of the whole run.
    pub(crate) max_sessions: Option<u64>,
}

/// The workers of a run.
pub(crate) struct Workers {
    commands: Vec<Sender<WorkerCommand>>,
    /// Requests to the thread of the arrival process, if there is one.
    arrivals: Option<Sender<ArrivalCommand>>,
    ended: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Workers {
    /// Starts `count` workers, and a thread for the arrival process if there is one; what they make
    /// comes through the receiver, first one [`WorkerMessage::Open`] of each worker.
    pub(crate) fn start(
        count: u32,
        factory: &Arc<dyn WorkloadFactory>,
        maker: &SessionMaker,
        arrivals: Option<&Arc<dyn ArrivalFactory>>,
    ) -> Result<(Workers, Receiver<WorkerMessage>), PipelineError> {
        let (made, receiver) = unbounded();
        let ended = Arc::new(AtomicBool::new(false));
        let mut workers = Workers {
            commands: Vec::new(),
            arrivals: None,
            ended: ended.clone(),
            threads: Vec::new(),
        };
        for index in 0..count.max(1) {
            let (commands, inbox) = unbounded();
            let (factory, maker, made) = (factory.clone(), maker.clone(), made.clone());
            let ended = ended.clone();
            let name = format!("plugin-{index}");
            let of = name.clone();
            let body = move || work(&of, &*factory, &maker, &inbox, &made, &ended);
            workers.threads.push(spawn(name, body)?);
            workers.commands.push(commands);
        }
        if let Some(process) = arrivals {
            let (commands, inbox) = unbounded();
            let (process, part, most) = (process.clone(), maker.part, maker.max_sessions);
            let body = move || {
                let reader = ArrivalReader::open(&*process, part, most);
                read_arrivals(reader, &inbox, &made, &ended);
            };
            workers.threads.push(spawn(ARRIVALS.to_owned(), body)?);
            workers.arrivals = Some(commands);
        }
        Ok((workers, receiver))
    }

    /// Returns the number of workers.
    pub(crate) fn count(&self) -> u64 {
        self.commands.len() as u64
    }

    /// Sends a command to worker `index % count`: batches by their number, agents by the position
    /// of their session. A worker that has stopped has already reported why.
    pub(crate) fn send(&self, index: u64, command: WorkerCommand) {
        let _ = self.commands[(index % self.count()) as usize].send(command);
    }

    /// Requests the arrivals of the sessions at the positions `first .. first + count`.
    pub(crate) fn ask_arrivals(&self, first: u64, count: u32) {
        if let Some(arrivals) = &self.arrivals {
            let _ = arrivals.send(ArrivalCommand { first, count });
        }
    }
}

impl Drop for Workers {
    /// Ends the workers after the call they are in, and waits for them.
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.commands.clear();
        self.arrivals = None;
        for thread in self.threads.drain(..) {
            // A worker that panicked has no result to lose; its commands went unanswered, which the
            // run has reported.
            let _ = thread.join();
        }
    }
}

fn work(
    name: &str,
    factory: &dyn WorkloadFactory,
    maker: &SessionMaker,
    inbox: &Receiver<WorkerCommand>,
    made: &Sender<WorkerMessage>,
    ended: &AtomicBool,
) {
    let opened = factory.open().and_then(|workload| {
        let mut workload = OpenWorkload::from(workload);
        let length = workload.length()?;
        Ok((workload, length))
    });
    let (mut workload, length) = match opened {
        Ok(opened) => opened,
        Err(failure) => {
            let _ = made.send(WorkerMessage::SourceFailed { first: 0, failure });
            return;
        }
    };
    let machine_clock = RunClock::with_origin(0);
    let kind = match workload {
        OpenWorkload::Planned(_) => SessionKind::Planned,
        OpenWorkload::Reactive(_) => SessionKind::Reactive,
    };
    let _ = made.send(WorkerMessage::Open { kind, length });
    for command in inbox {
        // Commands that are still queued when the run has ended are dropped.
        if ended.load(Ordering::Relaxed) {
            return;
        }
        let begin = machine_clock.now();
        let what = command.describe();
        let answers = carry_out(&mut workload, maker, command, ended);
        let busy = WorkerMessage::Busy(PluginCall {
            thread: name.to_owned(),
            what,
            begin,
            end: machine_clock.now(),
        });
        for answer in answers.into_iter().chain([busy]) {
            // The receiver is dropped when the run has ended.
            if made.send(answer).is_err() {
                return;
            }
        }
    }
}

/// The work of the thread that owns the arrival process. After a failure there are no further
/// arrivals.
fn read_arrivals(
    opened: Result<ArrivalReader, PluginFailure>,
    inbox: &Receiver<ArrivalCommand>,
    made: &Sender<WorkerMessage>,
    ended: &AtomicBool,
) {
    let mut reader = match opened {
        Ok(reader) => reader,
        Err(failure) => {
            let _ = made.send(WorkerMessage::SourceFailed { first: 0, failure });
            return;
        }
    };
    let machine_clock = RunClock::with_origin(0);
    for ArrivalCommand { first, count } in inbox {
        if ended.load(Ordering::Relaxed) {
            return;
        }
        let begin = machine_clock.now();
        let read = reader.read(first, count);
        let has_failed = read.is_err();
        let answer = match read {
            Ok(arrivals) => WorkerMessage::Arrivals {
                asked: count,
                arrivals,
            },
            Err(failure) => WorkerMessage::SourceFailed { first, failure },
        };
        let busy = WorkerMessage::Busy(PluginCall {
            thread: ARRIVALS.to_owned(),
            what: format!("arrivals {first}..{}", first + u64::from(count)),
            begin,
            end: machine_clock.now(),
        });
        // The receiver is dropped when the run has ended.
        if made.send(answer).is_err() || made.send(busy).is_err() || has_failed {
            return;
        }
    }
}

fn carry_out(
    workload: &mut OpenWorkload,
    maker: &SessionMaker,
    command: WorkerCommand,
    ended: &AtomicBool,
) -> Vec<WorkerMessage> {
    match (command, workload) {
        (WorkerCommand::Make { first, count }, workload) => make(workload, maker, first, count, ended),
        (
            WorkerCommand::Answer {
                session,
                node,
                outcome,
                at,
            },
            OpenWorkload::Reactive(agents),
        ) => {
            let prepare =
                |AgentStep { added, cancel, done }| Ok((maker.preparer.step(session, added)?, cancel, done));
            let step = agents.ended(session, node, &outcome, at, prepare);
            let message = step.map(|step| match step {
                Ok((nodes, cancel, done)) => WorkerMessage::Step {
                    session,
                    nodes,
                    cancel,
                    done,
                },
                Err(failure) => WorkerMessage::AgentFailed { session, failure },
            });
            message.into_iter().collect()
        }
        (WorkerCommand::Forget { session }, OpenWorkload::Reactive(agents)) => {
            agents.finish(session);
            Vec::new()
        }
        // A planned session has no agent.
        (WorkerCommand::Answer { .. } | WorkerCommand::Forget { .. }, OpenWorkload::Planned(_)) => Vec::new(),
    }
}

/// Makes a batch of sessions. A failed batch is requested again one by one: sessions do not depend
/// on one another, so those before the one that fails are good, and the failure is attributed to
/// its session. After the end of the run the batch is given up instead, because each further call
/// can take as long as the plugin's deadline.
fn make(
    workload: &mut OpenWorkload,
    maker: &SessionMaker,
    first: u64,
    count: u32,
    ended: &AtomicBool,
) -> Vec<WorkerMessage> {
    let (good, cause) = match workload {
        OpenWorkload::Planned(source) => planned_or_rest(&mut **source, maker, first, count, ended),
        // Agents are begun one at a time: what has begun cannot be begun again.
        OpenWorkload::Reactive(agents) => reactive(agents, maker, first, count),
    };
    let Some(cause) = cause else {
        return vec![WorkerMessage::Sessions {
            first,
            asked: count,
            sessions: good,
        }];
    };
    let asked = good.len() as u32;
    vec![
        WorkerMessage::Sessions {
            first,
            asked,
            sessions: good,
        },
        WorkerMessage::SourceFailed {
            first: first + u64::from(asked),
            failure: cause,
        },
    ]
}

/// Makes planned sessions. After a failure, returns those before it, and the failure.
fn planned_or_rest(
    source: &mut dyn SessionSource,
    maker: &SessionMaker,
    first: u64,
    count: u32,
    ended: &AtomicBool,
) -> (Vec<MadeSession<Prepared>>, Option<PluginFailure>) {
    let mut cause = match planned(source, maker, first, count) {
        Ok(sessions) => return (sessions, None),
        Err(failure) => failure,
    };
    let mut good = Vec::new();
    if count > 1 && !ended.load(Ordering::Relaxed) {
        for index in first..first + u64::from(count) {
            match planned(source, maker, index, 1) {
                Ok(one) => good.extend(one),
                Err(failure) => {
                    cause = failure;
                    break;
                }
            }
        }
    }
    (good, Some(cause))
}

fn planned(
    source: &mut dyn SessionSource,
    maker: &SessionMaker,
    first: u64,
    count: u32,
) -> Result<Vec<MadeSession<Prepared>>, PluginFailure> {
    let SessionMaker { preparer, part, .. } = maker;
    let sessions = part.sessions(source, first, count)?;
    let plans = sessions.into_iter().map(|(id, session)| {
        let arrives_at = preparer.timing.arrival(&preparer.plugin, id, &session)?;
        let digest = session_digest(&session);
        let nodes = preparer.planned(id, &format!("session {id}"), session)?;
        let plan = SessionPlan {
            arrives_at,
            id,
            nodes,
            kind: SessionKind::Planned,
            cancel: Vec::new(),
        };
        Ok(MadeSession {
            plan,
            start: SessionStart::Made { digest, done: false },
        })
    });
    plans.collect()
}

/// Starts agents. The failure of one costs only its session, unless its plugin was disabled: then
/// the workload is at its end.
fn reactive(
    agents: &mut LiveAgents,
    maker: &SessionMaker,
    first: u64,
    count: u32,
) -> (Vec<MadeSession<Prepared>>, Option<PluginFailure>) {
    let SessionMaker { preparer, part, .. } = maker;
    let mut begun = Vec::new();
    for position in first..first + u64::from(count) {
        let id = part.session(position);
        if let Err(failure) = preparer.timing.allows_agent(&preparer.plugin, id) {
            return (begun, Some(failure));
        }
        let first_step = agents.start(id, |AgentStep { added, cancel, done }| {
            Ok(FirstStep {
                digest: session_digest(&added),
                nodes: preparer.step(id, added)?,
                cancel,
                done,
            })
        });
        match first_step {
            Err(failure) if failure.ends_workload => return (begun, Some(failure)),
            first_step => begun.push(MadeSession::of_agent(id, first_step)),
        }
    }
    (begun, None)
}
