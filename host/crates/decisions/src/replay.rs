//! A workload that sends recorded decisions again.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use veeksha_model::{FailureReason, Nanos, NodeId, ReplayedSession, Request, Response, SessionId};
use veeksha_ports::{
    AgentSource, AgentStep, PluginFailure, PluginFailureKind, ToolRunEnd, ToolRunKeys, Workload,
    WorkloadFactory, WorkloadInfo,
};

use crate::error::DecisionsError;
use crate::file::{DecisionsFile, FILE, SessionSteps, StepPlace};
use crate::recorded_step::RecordedStep;
use crate::redact::is_whole;
use crate::tool_calls::{CallPlace, ToolCallIndex};

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

struct ReplayedAgents {
    file: Arc<DecisionsFile>,
    live: HashMap<SessionId, LiveReplay>,
}

/// A session that is sent again.
struct LiveReplay {
    /// The session of the recorded run.
    recorded: SessionId,
    origin: ReplayedSession,
    /// Steps whose node has not ended.
    waiting: HashMap<NodeId, StepPlace>,
    /// Steps whose node has ended.
    held: HeldSteps,
    calls: ToolCallIndex,
    /// Ids of the tool calls of this run's answers.
    call_ids: HashMap<NodeId, Vec<String>>,
    keys: ToolRunKeys,
}

/// Steps that name nodes which are not known yet, in the order in which they came.
#[derive(Default)]
struct HeldSteps {
    known: HashSet<NodeId>,
    /// Each step with the number of nodes that it lacks.
    steps: BTreeMap<u64, (RecordedStep, usize)>,
    /// The steps that lack a node.
    lacking: HashMap<NodeId, Vec<u64>>,
    /// Steps that lack none.
    ready: BTreeSet<u64>,
    next: u64,
}

impl HeldSteps {
    fn add(&mut self, step: RecordedStep) {
        let number = self.next;
        self.next += 1;
        let mut lacks = 0;
        for node in step.named_nodes() {
            if !self.known.contains(&node) {
                self.lacking.entry(node).or_default().push(number);
                lacks += 1;
            }
        }
        self.steps.insert(number, (step, lacks));
        if lacks == 0 {
            self.ready.insert(number);
        }
    }

    /// Removes the first step whose nodes are known; its own are known from now on.
    fn release(&mut self) -> Option<RecordedStep> {
        let (step, _) = self.steps.remove(&self.ready.pop_first()?)?;
        for node in step.step.added.nodes() {
            self.known.insert(node);
            for number in self.lacking.remove(&node).unwrap_or_default() {
                if let Some((_, lacks)) = self.steps.get_mut(&number) {
                    *lacks -= 1;
                    if *lacks == 0 {
                        self.ready.insert(number);
                    }
                }
            }
        }
        Some(step)
    }
}

impl LiveReplay {
    /// Returns all steps whose nodes are known, as one.
    fn release(&mut self) -> AgentStep {
        let mut released = AgentStep::default();
        while let Some(recorded) = self.held.release() {
            self.calls.add_nodes(&recorded);
            let RecordedStep { step, .. } = recorded;
            let mut added = step.added;
            for request in &mut added.requests {
                request.headers.retain(is_whole);
                self.rename_calls(request);
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
        if released.added.nodes().next().is_some() {
            released.added.replays = Some(self.origin);
        }
        released.done = self.waiting.is_empty() && self.held.steps.is_empty();
        released
    }

    /// Replaces the recorded ids of tool calls by those of this run's answers.
    fn rename_calls(&self, request: &mut Request) {
        let now = |call: Option<CallPlace>| {
            let (node, place) = call?;
            self.call_ids.get(&node)?.get(place)
        };
        let named = self.calls.named(request.node, &request.messages);
        for (message, named) in request.messages.iter_mut().zip(named) {
            if let (Some(id), Some(now)) = (&mut message.tool_call_id, now(named.answered)) {
                id.clone_from(now);
            }
            for (call, named) in message.tool_calls.iter_mut().zip(named.calls) {
                if let Some(now) = now(named) {
                    call.id.clone_from(now);
                }
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
        if !step.tool_call_ids.is_empty() {
            live.call_ids.insert(node, now.collect());
            live.calls.add_answer(node, &step.tool_call_ids);
        }
        live.held.add(step);
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
        let Some(SessionSteps { id, origin, steps }) = self.file.session_at(session.0) else {
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
            origin: *origin,
            waiting: HashMap::new(),
            held: HeldSteps::default(),
            calls: ToolCallIndex::default(),
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
                        .add(step.map_err(|error| self.failure("generator.start", session, &error))?);
                }
            }
        }
        let mut step = live.release();
        step.added.replays = Some(*origin);
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

    fn tool_ended(&mut self, session: SessionId, end: ToolRunEnd<'_>) -> Result<AgentStep, PluginFailure> {
        self.ended(session, end.node(), None)
    }

    fn finish(&mut self, session: SessionId) {
        self.live.remove(&session);
    }
}
