//! A workload that sends recorded decisions again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use veeksha_model::{
    FailureReason, HeaderField, Message, Nanos, NodeId, REDACTED, Response, SessionId, ToolRunRecord,
};
use veeksha_ports::{
    AgentSource, AgentStep, PluginFailure, PluginFailureKind, ToolRunKeys, Workload, WorkloadFactory,
    WorkloadInfo,
};

use crate::error::DecisionsError;
use crate::file::{DecisionsFile, FILE, SessionSteps, StepPlace};
use crate::recorded_step::RecordedStep;

/// The name of the workload in messages and files.
const NAME: &str = "replay";

/// A workload that sends the recorded steps of a run, without its agent.
pub struct ReplayFactory {
    info: WorkloadInfo,
    file: Arc<DecisionsFile>,
}

impl ReplayFactory {
    /// A workload of the sessions of a file.
    pub fn new(file: Arc<DecisionsFile>) -> Self {
        let origin = file.origin();
        ReplayFactory {
            info: WorkloadInfo {
                name: NAME.to_owned(),
                version: origin.plugin_version.clone(),
                summary: format!("The recorded decisions of `{}`", origin.plugin),
                engine: "replay",
                digest: file.digest().to_owned(),
                granted: Vec::new(),
            },
            file,
        }
    }
}

impl WorkloadFactory for ReplayFactory {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn open(&self) -> Result<Workload, PluginFailure> {
        Ok(Workload::Reactive(Box::new(ReplayedAgents {
            file: self.file.clone(),
            live: HashMap::new(),
        })))
    }
}

/// Returns true if no part of a header was redacted. The others cannot be sent.
fn is_whole((_, value): &HeaderField) -> bool {
    !value.contains(REDACTED)
}

struct ReplayedAgents {
    file: Arc<DecisionsFile>,
    live: HashMap<SessionId, LiveReplay>,
}

/// A session that is sent again.
struct LiveReplay {
    /// The session of the recorded run.
    recorded: SessionId,
    /// Steps whose node has not ended.
    waiting: HashMap<NodeId, StepPlace>,
    /// Steps whose node has ended, and that name a node which is not known yet.
    held: Vec<RecordedStep>,
    known: HashSet<NodeId>,
    /// Ids of tool calls: recorded, and those of this run's answers.
    call_ids: HashMap<String, String>,
    keys: ToolRunKeys,
}

impl LiveReplay {
    /// Returns all steps whose nodes are known, as one.
    fn release(&mut self) -> AgentStep {
        let mut released = AgentStep::default();
        loop {
            let is_known = |step: &RecordedStep| {
                let named = step.named_nodes();
                named.iter().all(|node| self.known.contains(node))
            };
            let Some(next) = self.held.iter().position(is_known) else {
                break;
            };
            let RecordedStep { step, .. } = self.held.remove(next);
            let mut added = step.added;
            self.known.extend(added.nodes());
            for request in &mut added.requests {
                request.headers.retain(is_whole);
                request
                    .messages
                    .iter_mut()
                    .for_each(|message| self.rename_calls(message));
            }
            added.headers.retain(is_whole);
            let session = &mut released.added;
            session.requests.append(&mut added.requests);
            session.tool_runs.append(&mut added.tool_runs);
            session.headers = added.headers;
            session.labels = added.labels;
            released.cancel.extend(step.cancel);
        }
        self.keys.assign(&mut released.added);
        released.done = self.waiting.is_empty() && self.held.is_empty();
        released
    }

    /// Replaces the recorded ids of tool calls by those of this run's answers.
    fn rename_calls(&self, message: &mut Message) {
        let calls = message.tool_calls.iter_mut().map(|call| &mut call.id);
        for id in calls.chain(&mut message.tool_call_id) {
            if let Some(now) = self.call_ids.get(id) {
                id.clone_from(now);
            }
        }
    }
}

impl ReplayedAgents {
    fn failure(&self, function: &str, session: SessionId, error: &DecisionsError) -> PluginFailure {
        let message = format!("session {session}: {FILE}: {error}");
        PluginFailure::new(NAME, function, PluginFailureKind::Result, message)
    }

    /// Returns the steps that the end of a node releases.
    fn ended(
        &mut self,
        session: SessionId,
        node: NodeId,
        answer: Option<&Response>,
    ) -> Result<AgentStep, PluginFailure> {
        let Some(live) = self.live.get_mut(&session) else {
            // The end of the node was on its way when the last step was released.
            return Ok(AgentStep {
                done: true,
                ..AgentStep::default()
            });
        };
        let Some(place) = live.waiting.remove(&node) else {
            return Ok(AgentStep::default());
        };
        let recorded = live.recorded;
        let step = self.file.read(recorded, place);
        let step = step.map_err(|error| self.failure("agent.answered", session, &error))?;
        let Some(live) = self.live.get_mut(&session) else {
            return Ok(AgentStep::default());
        };
        let calls = answer.map_or(&[][..], |answer| &answer.tool_calls);
        let now = calls.iter().map(|call| call.id.clone());
        live.call_ids.extend(step.tool_call_ids.iter().cloned().zip(now));
        live.held.push(step);
        let released = live.release();
        if released.done {
            self.live.remove(&session);
        }
        Ok(released)
    }
}

impl AgentSource for ReplayedAgents {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        Ok(Some(self.file.session_count()))
    }

    fn start(&mut self, session: SessionId) -> Result<AgentStep, PluginFailure> {
        let Some(SessionSteps { id, steps }) = self.file.session_at(session.0) else {
            let message = format!("session {session} was not recorded");
            return Err(PluginFailure::new(
                NAME,
                "generator.start",
                PluginFailureKind::Result,
                message,
            ));
        };
        let mut live = LiveReplay {
            recorded: *id,
            waiting: HashMap::new(),
            held: Vec::new(),
            known: HashSet::new(),
            call_ids: HashMap::new(),
            keys: ToolRunKeys::default(),
        };
        for place in steps {
            match place.after {
                Some(node) => {
                    live.waiting.insert(node, *place);
                }
                None => {
                    let step = self.file.read(*id, *place);
                    live.held
                        .push(step.map_err(|error| self.failure("generator.start", session, &error))?);
                }
            }
        }
        let step = live.release();
        if !step.done {
            self.live.insert(session, live);
        }
        Ok(step)
    }

    fn answered(
        &mut self,
        session: SessionId,
        node: NodeId,
        response: &Response,
        _completed_at: Nanos,
    ) -> Result<AgentStep, PluginFailure> {
        self.ended(session, node, Some(response))
    }

    fn failed(&mut self, session: SessionId, reason: &FailureReason) -> Result<AgentStep, PluginFailure> {
        self.ended(session, reason.request.node, None)
    }

    fn tool_ended(&mut self, session: SessionId, run: &ToolRunRecord) -> Result<AgentStep, PluginFailure> {
        self.ended(session, run.id.node, None)
    }

    fn finish(&mut self, session: SessionId) {
        self.live.remove(&session);
    }
}
