//! The player: starts a session and ends its nodes as the script states.

use std::sync::Arc;

use veeksha_decisions::RecordedStep;
use veeksha_model::{Nanos, NodeId, RequestId, Session, SessionId, ToolRunRecord};
use veeksha_ports::{AgentSource, AgentStep, PluginFailure, ToolRunEnd};

use super::nodes::{PlayedKind, PlayedNodes};
use super::script::{AnswerScript, Remaining, ScriptedEnd, ScriptedTool};

/// Maximum number of ends in a session, so that an agent without an end ends here.
const MAX_ENDS: usize = 10_000;
/// The time between two ends.
const END_EVERY: Nanos = 1_000_000_000;
/// The tokens of the result of a tool run that states none.
const RESULT_TOKENS: u32 = 100;

/// A session that was played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayedSession {
    /// The session.
    pub session: SessionId,
    /// True if an agent made it.
    pub is_agent: bool,
    /// The steps, in order. A planned session is one step.
    pub steps: Vec<RecordedStep>,
    /// Nodes that did not end.
    pub open: Vec<NodeId>,
}

/// The reason why a session could not be played.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlayError {
    /// The plugin failed.
    #[error("{0}")]
    Plugin(Box<PluginFailure>),
    /// The script does not fit the session.
    #[error("session {session}: answers[{index}]: {why}")]
    Script {
        /// The session.
        session: SessionId,
        /// The index of the scripted end.
        index: usize,
        /// The problem.
        why: String,
    },
    /// The agent has no end.
    #[error(
        "session {session}: the agent has not ended after {MAX_ENDS} answers; end the script with `then = \"stop\"`"
    )]
    Endless {
        /// The session.
        session: SessionId,
    },
}

impl From<PluginFailure> for PlayError {
    fn from(failure: PluginFailure) -> Self {
        PlayError::Plugin(Box::new(failure))
    }
}

/// Returns a planned session in the form of a played one.
pub fn play_planned(session: SessionId, planned: Session) -> PlayedSession {
    let step = AgentStep {
        added: planned,
        ..AgentStep::default()
    };
    PlayedSession {
        session,
        is_agent: false,
        steps: vec![recorded(session, None, Vec::new(), step)],
        open: Vec::new(),
    }
}

fn recorded(
    session: SessionId,
    after: Option<NodeId>,
    tool_call_ids: Vec<String>,
    step: AgentStep,
) -> RecordedStep {
    RecordedStep {
        session,
        after,
        tool_call_ids,
        step,
        redacted: Vec::new(),
    }
}

/// Plays a session of an agent. `count` counts the tokens of answers.
///
/// # Errors
/// If the agent fails, the script does not fit, or the agent does not end.
pub fn play_agent(
    agents: &mut dyn AgentSource,
    session: SessionId,
    script: &AnswerScript,
    count: &dyn Fn(&str) -> u32,
) -> Result<PlayedSession, PlayError> {
    let mut player = Player {
        agents,
        session,
        script: &script.ends,
        used: 0,
        nodes: PlayedNodes::default(),
        steps: Vec::new(),
        ends: 0,
        is_done: false,
        count,
    };
    let played = player.play(script.remaining);
    player.agents.finish(session);
    played?;
    Ok(PlayedSession {
        session,
        is_agent: true,
        open: player.nodes.open().to_vec(),
        steps: player.steps,
    })
}

struct Player<'p> {
    agents: &'p mut dyn AgentSource,
    session: SessionId,
    script: &'p [ScriptedEnd],
    /// Scripted ends that were used.
    used: usize,
    nodes: PlayedNodes,
    steps: Vec<RecordedStep>,
    /// Nodes that have ended.
    ends: usize,
    is_done: bool,
    count: &'p dyn Fn(&str) -> u32,
}

impl Player<'_> {
    fn play(&mut self, remaining: Remaining) -> Result<(), PlayError> {
        let first = self.agents.start(self.session)?;
        self.take(None, Vec::new(), first)?;
        while let Some(end) = self.script.get(self.used) {
            let index = self.used;
            self.used += 1;
            let node = self.scripted_node(end).map_err(|why| self.misfit(index, why))?;
            self.end(node, end, index)?;
        }
        let unscripted = ScriptedEnd::default();
        while remaining == Remaining::Answer
            && let Some(node) = self.nodes.open().first().copied()
        {
            self.end(node, &unscripted, self.used)?;
        }
        Ok(())
    }

    fn misfit(&self, index: usize, why: String) -> PlayError {
        PlayError::Script {
            session: self.session,
            index,
            why,
        }
    }

    /// Returns the node of a scripted end.
    fn scripted_node(&self, end: &ScriptedEnd) -> Result<NodeId, String> {
        let fits = |kind: PlayedKind| match kind {
            PlayedKind::Request => !end.is_of_tool(),
            PlayedKind::ToolRun { .. } => !end.is_of_request(),
        };
        if let Some(node) = end.node.map(NodeId) {
            return match self.nodes.open_kind(node)? {
                kind if fits(kind) => Ok(node),
                PlayedKind::Request => Err(format!("node {node} is a request, which has no `tool` outcome")),
                PlayedKind::ToolRun { .. } => Err(format!(
                    "node {node} is a tool run: state its outcome with `tool`"
                )),
            };
        }
        let open = self.nodes.open().iter();
        let mut fitting = open.filter(|node| self.nodes.unended(**node).is_some_and(fits));
        fitting.next().copied().ok_or_else(|| {
            let what = if end.is_of_tool() {
                "tool run"
            } else if end.is_of_request() {
                "request"
            } else {
                "node"
            };
            format!("no {what} is open; the agent made {} steps", self.steps.len())
        })
    }

    /// Ends a node and takes the step that answers it.
    fn end(&mut self, node: NodeId, end: &ScriptedEnd, index: usize) -> Result<(), PlayError> {
        self.ends += 1;
        if self.ends > MAX_ENDS {
            return Err(PlayError::Endless {
                session: self.session,
            });
        }
        let at = self.ends as Nanos * END_EVERY;
        let kind = self.nodes.unended(node);
        self.nodes.end(node);
        let (step, calls) = match kind {
            Some(PlayedKind::ToolRun { result_tokens, fails }) => {
                let tokens = end.result_tokens.or(result_tokens).unwrap_or(RESULT_TOKENS);
                let outcome = end.tool.unwrap_or(if fails {
                    ScriptedTool::Failed
                } else {
                    ScriptedTool::Ok
                });
                (self.tool_ended(node, outcome, tokens, at), Vec::new())
            }
            _ => match end.failure(self.session, node, at) {
                Some(Ok(failure)) => (self.agents.failed(self.session, &failure), Vec::new()),
                Some(Err(why)) => return Err(self.misfit(index, why)),
                None => {
                    let response = end.response(self.count);
                    let calls = response.tool_calls.iter().map(|call| call.id.clone()).collect();
                    (self.agents.answered(self.session, node, &response, at), calls)
                }
            },
        };
        self.take(Some(node), calls, step?)
    }

    fn tool_ended(
        &mut self,
        node: NodeId,
        outcome: ScriptedTool,
        result_tokens: u32,
        at: Nanos,
    ) -> Result<AgentStep, PluginFailure> {
        if outcome == ScriptedTool::Cancelled {
            let end = ToolRunEnd::Cancelled {
                node,
                waiting_time: 0,
                at,
            };
            return self.agents.tool_ended(self.session, end);
        }
        let run = ToolRunRecord {
            id: RequestId {
                session: self.session,
                node,
            },
            class: Arc::from("tool"),
            parents: Vec::new(),
            ready_at: at.saturating_sub(END_EVERY),
            started_at: at.saturating_sub(END_EVERY),
            completed_at: at,
            is_cold: false,
            failed: outcome == ScriptedTool::Failed,
            result_tokens,
            measured: true,
            labels: Arc::from([]),
        };
        self.agents.tool_ended(self.session, ToolRunEnd::Served(&run))
    }

    /// Takes a step: adds its nodes, and ends those that it cancels.
    fn take(&mut self, after: Option<NodeId>, calls: Vec<String>, step: AgentStep) -> Result<(), PlayError> {
        self.nodes.add(&step.added);
        let cancelled = step.cancel.clone();
        let adds =
            step.added.nodes().next().is_some() || !step.cancel.is_empty() || (step.done && !self.is_done);
        self.is_done |= step.done;
        if after.is_none() || adds || !calls.is_empty() {
            self.steps.push(recorded(self.session, after, calls, step));
        }
        for node in cancelled {
            self.cancel(node)?;
        }
        Ok(())
    }

    /// Ends a node that the agent cancelled: with the next scripted end, if that is of this node,
    /// else without any output. A tool run that a server has taken runs to its end.
    fn cancel(&mut self, node: NodeId) -> Result<(), PlayError> {
        let is_open = self.nodes.open().contains(&node);
        let Some(kind) = self.nodes.unended(node) else {
            return Ok(());
        };
        if is_open && kind != PlayedKind::Request {
            return Ok(());
        }
        let scripted = self
            .script
            .get(self.used)
            .filter(|end| end.node == Some(node.0) && end.cancelled);
        let end = scripted.cloned().unwrap_or_else(|| ScriptedEnd {
            cancelled: true,
            tool: (kind != PlayedKind::Request).then_some(ScriptedTool::Cancelled),
            ..ScriptedEnd::default()
        });
        let index = self.used;
        self.used += usize::from(scripted.is_some());
        self.end(node, &end, index)
    }
}
