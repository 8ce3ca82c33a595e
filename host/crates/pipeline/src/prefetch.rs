//! Plugin workers: threads that make sessions ahead of time and answer agents.
//!
//! Each worker opens a plugin instance of its own. Batch *b* of a planned workload and session *i* of a reactive one always
//! belong to the same worker, so an agent's state never moves. Materialising prompts happens here too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::{Receiver, Sender, unbounded};
use veeksha_model::{FailureReason, Nanos, NodeId, Prepared, Request, Response, Segment, SessionId};
use veeksha_ports::{AgentStep, PluginFailure, PluginFailureKind, Workload, WorkloadFactory};
use veeksha_prompt::{Materialiser, Tokenizer};
use veeksha_scheduler::{NodePlan, SessionKind, SessionPlan};

use crate::MinTokensPrompt;
use crate::plan::{PipelineError, spawn};

/// Sessions asked for in one call of a plugin, at most: large enough that the crossing costs little, small enough that the
/// first session of a batch is not kept waiting for the last.
pub(crate) const MAX_BATCH: u32 = 64;

/// Text of a plugin's own in one request, at most. No model's context holds as much, and counting its tokens takes seconds in which
/// nothing else is made.
const MAX_TEXT_BYTES: usize = 16 << 20;

/// What a worker is told to do.
pub(crate) enum Command {
    /// Make sessions `first .. first + count`.
    Make { first: u64, count: u32 },
    /// An agent's request was answered or failed.
    Answer {
        session: SessionId,
        node: NodeId,
        answer: Result<Arc<Response>, Arc<FailureReason>>,
        at: Nanos,
    },
    /// A reactive session is over.
    Forget { session: SessionId },
}

/// A session that is ready to be scheduled.
pub(crate) struct MadeSession {
    /// Its nodes.
    pub(crate) plan: SessionPlan<Prepared>,
    /// Whether its agent was done with the first step already.
    pub(crate) done: bool,
}

/// What comes back.
pub(crate) enum Made {
    /// The instance is open: the kind of workload, and how many sessions there are.
    Open { kind: SessionKind, length: Option<u64> },
    /// Sessions of one command, in order; fewer than asked for where the workload ends.
    Sessions {
        first: u64,
        asked: u32,
        sessions: Vec<MadeSession>,
    },
    /// An agent's next step.
    Step {
        session: SessionId,
        nodes: Vec<NodePlan<Prepared>>,
        done: bool,
    },
    /// The plugin failed on the sessions from `first` on (0 where it could not be opened): they will not come.
    SourceFailed { first: u64, failure: PluginFailure },
    /// The plugin failed on one live session.
    AgentFailed {
        session: SessionId,
        failure: PluginFailure,
    },
}

/// Turns what the plugin returned into what the scheduler and the transport take.
#[derive(Clone)]
pub(crate) struct Preparer {
    pub(crate) plugin: String,
    pub(crate) materialiser: Arc<Materialiser>,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) min_tokens_prompt: Option<MinTokensPrompt>,
}

impl Preparer {
    fn node(
        &self,
        session: SessionId,
        mut request: Request,
        labels: &[(String, String)],
    ) -> Result<NodePlan<Prepared>, PluginFailure> {
        if let Some(sentence) = &self.min_tokens_prompt {
            sentence.apply(&mut request, &self.tokenizer);
        }
        request.labels.extend_from_slice(labels);
        let bytes = text_bytes(&request);
        if bytes > MAX_TEXT_BYTES {
            let message = format!(
                "session {session}, node {}: {bytes} bytes of text in one request; {MAX_TEXT_BYTES} are allowed \
                 (synthetic segments are not counted)",
                request.node
            );
            return Err(PluginFailure::new(
                &self.plugin,
                "prepare",
                PluginFailureKind::Result,
                message,
            ));
        }
        let (node, wait_after_ready) = (request.node, request.wait_after_ready);
        let (parents, history_parent) = (request.parents.clone(), request.history_parent);
        let prepared = self.materialiser.prepare(request).map_err(|error| {
            let message = format!("the prompt of session {session}, node {node} cannot be made: {error}");
            PluginFailure::new(&self.plugin, "prepare", PluginFailureKind::Result, message)
        })?;
        Ok(NodePlan {
            not_before: None,
            history_mode: veeksha_model::HistoryMode::Live,
            recorded_answer: None,
            node,
            parents,
            history_parent,
            wait_after_ready,
            payload: Arc::new(prepared),
        })
    }

    fn nodes(
        &self,
        session: SessionId,
        requests: Vec<Request>,
        labels: &[(String, String)],
    ) -> Result<Vec<NodePlan<Prepared>>, PluginFailure> {
        requests
            .into_iter()
            .map(|request| self.node(session, request, labels))
            .collect()
    }
}

fn text_bytes(request: &Request) -> usize {
    let segments = request.messages.iter().flat_map(|message| &message.content);
    segments
        .map(|segment| {
            if let Segment::Text(text) = segment {
                text.len()
            } else {
                0
            }
        })
        .sum()
}

/// The workers of a run.
pub(crate) struct Workers {
    commands: Vec<Sender<Command>>,
    ended: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Workers {
    /// Starts `count` workers; what they make comes through the receiver, first one [`Made::Open`] each.
    pub(crate) fn start(
        count: u32,
        factory: &Arc<dyn WorkloadFactory>,
        preparer: &Preparer,
    ) -> Result<(Workers, Receiver<Made>), PipelineError> {
        let (made, receiver) = unbounded();
        let ended = Arc::new(AtomicBool::new(false));
        let mut workers = Workers {
            commands: Vec::new(),
            ended: ended.clone(),
            threads: Vec::new(),
        };
        for index in 0..count.max(1) {
            let (commands, inbox) = unbounded();
            let (factory, preparer, made) = (factory.clone(), preparer.clone(), made.clone());
            let ended = ended.clone();
            let body = move || work(&*factory, &preparer, &inbox, &made, &ended);
            workers.threads.push(spawn(format!("plugin-{index}"), body)?);
            workers.commands.push(commands);
        }
        Ok((workers, receiver))
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.commands.len() as u64
    }

    /// Tells worker `index % count`. A worker that has stopped has said why already.
    pub(crate) fn tell(&self, index: u64, command: Command) {
        let _ = self.commands[(index % self.count()) as usize].send(command);
    }

    /// Ends the workers after the call they are in.
    pub(crate) fn stop(self) {
        self.ended.store(true, Ordering::Relaxed);
        drop(self.commands);
        for thread in self.threads {
            // A worker that panicked has no result to lose; its commands went unanswered, which the run has reported.
            let _ = thread.join();
        }
    }
}

fn work(
    factory: &dyn WorkloadFactory,
    preparer: &Preparer,
    inbox: &Receiver<Command>,
    made: &Sender<Made>,
    ended: &AtomicBool,
) {
    let opened = factory.open().and_then(|mut workload| {
        let length = match &mut workload {
            Workload::Planned(source) => source.length()?,
            Workload::Reactive(agents) => agents.length()?,
        };
        Ok((workload, length))
    });
    let (mut workload, length) = match opened {
        Ok(opened) => opened,
        Err(failure) => {
            let _ = made.send(Made::SourceFailed { first: 0, failure });
            return;
        }
    };
    let kind = match workload {
        Workload::Planned(_) => SessionKind::Planned,
        Workload::Reactive(_) => SessionKind::Reactive,
    };
    let _ = made.send(Made::Open { kind, length });
    for command in inbox {
        // What is still queued when the run has ended is wanted by nobody.
        if ended.load(Ordering::Relaxed) {
            return;
        }
        for answer in carry_out(&mut workload, preparer, command) {
            // The run has ended when nobody listens any more.
            if made.send(answer).is_err() {
                return;
            }
        }
    }
}

fn carry_out(workload: &mut Workload, preparer: &Preparer, command: Command) -> Vec<Made> {
    match (command, workload) {
        (Command::Make { first, count }, workload) => make(workload, preparer, first, count),
        (
            Command::Answer {
                session,
                node,
                answer,
                at,
            },
            Workload::Reactive(agents),
        ) => {
            let step = match &answer {
                Ok(response) => agents.answered(session, node, response, at),
                Err(reason) => agents.failed(session, reason),
            };
            vec![
                match step.and_then(|step| prepare_step(preparer, session, step)) {
                    Ok((nodes, done)) => Made::Step { session, nodes, done },
                    Err(failure) => Made::AgentFailed { session, failure },
                },
            ]
        }
        (Command::Forget { session }, Workload::Reactive(agents)) => {
            agents.finish(session);
            Vec::new()
        }
        // A planned session has no agent.
        (Command::Answer { .. } | Command::Forget { .. }, Workload::Planned(_)) => Vec::new(),
    }
}

/// A failed batch is asked for again one by one: sessions do not depend on one another, so those before the one that fails are
/// good, and the failure has a session to its name.
fn make(workload: &mut Workload, preparer: &Preparer, first: u64, count: u32) -> Vec<Made> {
    let mut cause = match sessions(workload, preparer, first, count) {
        Ok(sessions) => {
            return vec![Made::Sessions {
                first,
                asked: count,
                sessions,
            }];
        }
        Err(failure) => failure,
    };
    let mut good = Vec::new();
    if count > 1 {
        for index in first..first + u64::from(count) {
            match sessions(workload, preparer, index, 1) {
                Ok(one) => good.extend(one),
                Err(failure) => {
                    cause = failure;
                    break;
                }
            }
        }
    }
    let asked = good.len() as u32;
    vec![
        Made::Sessions {
            first,
            asked,
            sessions: good,
        },
        Made::SourceFailed {
            first: first + u64::from(asked),
            failure: cause,
        },
    ]
}

fn sessions(
    workload: &mut Workload,
    preparer: &Preparer,
    first: u64,
    count: u32,
) -> Result<Vec<MadeSession>, PluginFailure> {
    match workload {
        Workload::Planned(source) => planned(&mut **source, preparer, first, count),
        // Agents are begun one at a time: what has begun cannot be begun again.
        Workload::Reactive(agents) => reactive(&mut **agents, preparer, first, count),
    }
}

fn planned(
    source: &mut dyn veeksha_ports::SessionSource,
    preparer: &Preparer,
    first: u64,
    count: u32,
) -> Result<Vec<MadeSession>, PluginFailure> {
    let sessions = source.sessions(first, count)?;
    let plans = sessions.into_iter().zip(first..).map(|(session, index)| {
        let id = SessionId(index);
        let nodes = preparer.nodes(id, session.requests, &session.labels)?;
        let plan = SessionPlan {
            arrives_at: None,
            id,
            nodes,
            kind: SessionKind::Planned,
        };
        Ok(MadeSession { plan, done: false })
    });
    plans.collect()
}

fn reactive(
    agents: &mut dyn veeksha_ports::AgentSource,
    preparer: &Preparer,
    first: u64,
    count: u32,
) -> Result<Vec<MadeSession>, PluginFailure> {
    (first..first + u64::from(count))
        .map(|index| {
            let id = SessionId(index);
            let step = agents.start(id)?;
            let (nodes, done) = prepare_step(preparer, id, step)?;
            Ok(MadeSession {
                plan: SessionPlan {
                    arrives_at: None,
                    id,
                    nodes,
                    kind: SessionKind::Reactive,
                },
                done,
            })
        })
        .collect()
}

fn prepare_step(
    preparer: &Preparer,
    session: SessionId,
    step: AgentStep,
) -> Result<(Vec<NodePlan<Prepared>>, bool), PluginFailure> {
    Ok((preparer.nodes(session, step.requests, &[])?, step.done))
}
