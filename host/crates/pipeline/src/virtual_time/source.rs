//! The source of a simulation's sessions: the plugin, called from the loop itself.

use std::sync::Arc;

use veeksha_model::{Request, Session, SessionId};
use veeksha_ports::{AgentStep, PluginFailure, PluginFailureKind, ToolRunKeys};
use veeksha_prompt::Materializer;
use veeksha_scheduler::{NodePlan, SessionKind, SessionPlan};

use crate::arrivals::ArrivalReader;
use crate::clients::ClientSpecs;
use crate::live_agents::{LiveAgents, OpenWorkload};
use crate::made::{EmptySessions, FirstStep, MadeSession, SessionStart};
use crate::partition::Partition;
use crate::prefetch::MAX_BATCH;
use crate::schedule::{Timing, drop_unsent};
use crate::tool_runs::ToolSpecs;
use crate::work_digest::session_digest;

use super::prompt::PromptWriter;

/// The plugin, and how far it has been read, by position in the part of the run.
pub(super) struct SimulatedSource<'a> {
    pub(super) workload: OpenWorkload,
    /// The arrivals of the sessions, if a process decides them.
    pub(super) arrivals: Option<ArrivalReader>,
    pub(super) part: Partition,
    pub(super) preparer: SimulatedPreparer<'a>,
    pub(super) next: u64,
    pub(super) end: u64,
    pub(super) end_sent: bool,
    pub(super) empty_sessions: EmptySessions,
}

/// Makes the nodes of sessions and steps.
pub(super) struct SimulatedPreparer<'a> {
    pub(super) plugin: String,
    pub(super) timing: Timing,
    pub(super) writer: &'a PromptWriter<'a>,
    pub(super) materializer: &'a Materializer,
    pub(super) clients: ClientSpecs,
    pub(super) tools: ToolSpecs,
}

impl SimulatedSource<'_> {
    /// The next sessions, `count` at most. A failed batch is asked for again one by one: sessions
    /// do not depend on one another, so those before the one that fails are good. The failure of
    /// an agent costs only its session.
    pub(super) fn make(&mut self, count: u32) -> Result<Vec<MadeSession<Request>>, PluginFailure> {
        let first = self.next;
        let most = match self.workload {
            OpenWorkload::Planned(_) => MAX_BATCH,
            // A started agent cannot be started again.
            OpenWorkload::Reactive(_) => 1,
        };
        let count = u64::from(count.min(most)).min(self.end - first) as u32;
        let (count, mut made) = match self.batch(first, count) {
            Err(_) if count > 1 => (1, self.batch(first, 1)?),
            made => (count, made?),
        };
        if let Some(arrivals) = &mut self.arrivals {
            let arrivals = arrivals.read(first, made.len() as u32)?;
            made.truncate(arrivals.len());
            for (session, at) in made.iter_mut().zip(arrivals) {
                session.plan.arrives_at = Some(at);
            }
        }
        if (made.len() as u64) < u64::from(count) {
            self.end = first + made.len() as u64;
        }
        self.next = first + made.len() as u64;
        Ok(made)
    }

    fn batch(&mut self, first: u64, count: u32) -> Result<Vec<MadeSession<Request>>, PluginFailure> {
        let preparer = &self.preparer;
        match &mut self.workload {
            OpenWorkload::Planned(source) => {
                let sessions = self.part.sessions(&mut **source, first, count)?;
                sessions
                    .into_iter()
                    .map(|(id, session)| preparer.planned(id, session))
                    .collect()
            }
            OpenWorkload::Reactive(agents) => {
                let positions = first..first + u64::from(count);
                let ids = positions.map(|position| self.part.session(position));
                ids.map(|id| preparer.agent(agents, id)).collect()
            }
        }
    }
}

impl SimulatedPreparer<'_> {
    fn planned(&self, id: SessionId, mut session: Session) -> Result<MadeSession<Request>, PluginFailure> {
        let digest = session_digest(&session);
        drop_unsent(&mut session.requests);
        ToolRunKeys::default().assign(&mut session);
        let plan = SessionPlan {
            arrives_at: self.timing.arrival(&self.plugin, id, &session)?,
            id,
            nodes: self.nodes(id, session)?,
            kind: SessionKind::Planned,
            cancel: Vec::new(),
        };
        Ok(MadeSession {
            plan,
            start: SessionStart::Made { digest, done: false },
        })
    }

    fn agent(&self, agents: &mut LiveAgents, id: SessionId) -> Result<MadeSession<Request>, PluginFailure> {
        self.timing.allows_agent(&self.plugin, id)?;
        let first = agents.start(id, |AgentStep { added, cancel, done }| {
            Ok(FirstStep {
                digest: session_digest(&added),
                nodes: self.nodes(id, added)?,
                cancel,
                done,
            })
        });
        match first {
            Err(failure) if failure.ends_workload => Err(failure),
            first => Ok(MadeSession::of_agent(id, first)),
        }
    }

    /// The nodes of a session, or of an agent's step.
    pub(super) fn nodes(
        &self,
        id: SessionId,
        mut added: Session,
    ) -> Result<Vec<NodePlan<Request>>, PluginFailure> {
        let refused =
            |why: String| PluginFailure::new(&self.plugin, "prepare", PluginFailureKind::Result, why);
        let of_session = |why: String| refused(format!("session {id}: {why}"));
        self.clients.take(&mut added).map_err(of_session)?;
        for request in &added.requests {
            self.materializer.check_form(request).map_err(|error| {
                let node = request.node;
                refused(format!(
                    "the prompt of session {id}, node {node} cannot be made: {error}"
                ))
            })?;
        }
        added.distribute();
        let mut nodes = self.tools.take(id, &mut added).map_err(of_session)?;
        nodes.extend(nodes_of(added.requests, self.timing, self.writer, &self.clients));
        Ok(nodes)
    }
}

pub(super) fn nodes_of(
    requests: Vec<Request>,
    timing: Timing,
    writer: &PromptWriter<'_>,
    clients: &ClientSpecs,
) -> Vec<NodePlan<Request>> {
    let node = |mut request: Request| {
        if let Some(sentence) = clients.min_tokens_prompt(&request) {
            sentence.apply(&mut request, writer.tokenizer);
        }
        let recorded = writer.recorded(&request);
        let request = Arc::new(request);
        timing.node(&request, recorded, request.clone())
    };
    requests.into_iter().map(node).collect()
}
