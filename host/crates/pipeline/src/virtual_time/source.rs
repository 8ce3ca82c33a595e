//! The source of a simulation's sessions: the plugin, called from the loop itself.

use std::sync::Arc;

use veeksha_model::{Request, Session, SessionId};
use veeksha_ports::{PluginFailure, PluginFailureKind, ToolRunKeys, Workload};
use veeksha_prompt::Materializer;
use veeksha_scheduler::{NodePlan, SessionKind, SessionPlan};

use crate::arrivals::ArrivalReader;
use crate::clients::ClientSpecs;
use crate::partition::Partition;
use crate::prefetch::MAX_BATCH;
use crate::schedule::{Timing, drop_unsent};
use crate::tool_runs::ToolSpecs;
use crate::work_digest::session_digest;

use super::prompt::PromptWriter;

/// The plugin, and how far it has been read, by position in the part of the run.
pub(super) struct SimulatedSource<'a> {
    pub(super) workload: Workload,
    /// The arrivals of the sessions, if a process decides them.
    pub(super) arrivals: Option<ArrivalReader>,
    pub(super) plugin: String,
    pub(super) part: Partition,
    pub(super) timing: Timing,
    pub(super) writer: &'a PromptWriter<'a>,
    pub(super) materializer: &'a Materializer,
    pub(super) clients: ClientSpecs,
    pub(super) tools: ToolSpecs,
    pub(super) next: u64,
    pub(super) end: u64,
    pub(super) end_sent: bool,
    /// Agents that were done with their first step.
    pub(super) done: Vec<SessionId>,
    /// Sessions made since the list was last drained, with their digests.
    pub(super) planned: Vec<(SessionId, u64)>,
}

impl SimulatedSource<'_> {
    /// The next sessions, `count` at most. A failed batch is asked for again one by one: sessions
    /// do not depend on one another, so those before the one that fails are good.
    pub(super) fn make(&mut self, count: u32) -> Result<Vec<SessionPlan<Request>>, PluginFailure> {
        let first = self.next;
        let most = match self.workload {
            Workload::Planned(_) => MAX_BATCH,
            // A started agent cannot be started again.
            Workload::Reactive(_) => 1,
        };
        let count = u64::from(count.min(most)).min(self.end - first) as u32;
        let (count, mut plans) = match self.batch(first, count) {
            Err(_) if count > 1 => (1, self.batch(first, 1)?),
            plans => (count, plans?),
        };
        if let Some(arrivals) = &mut self.arrivals {
            let arrivals = arrivals.read(first, plans.len() as u32)?;
            plans.truncate(arrivals.len());
            self.planned.truncate(arrivals.len());
            for (plan, at) in plans.iter_mut().zip(arrivals) {
                plan.arrives_at = Some(at);
            }
        }
        if (plans.len() as u64) < u64::from(count) {
            self.end = first + plans.len() as u64;
        }
        self.next = first + plans.len() as u64;
        Ok(plans)
    }

    fn batch(&mut self, first: u64, count: u32) -> Result<Vec<SessionPlan<Request>>, PluginFailure> {
        let begun = match &mut self.workload {
            Workload::Planned(source) => {
                let sessions = self.part.sessions(&mut **source, first, count)?;
                let begun = sessions.into_iter();
                begun.map(|(id, session)| (id, session, Vec::new())).collect()
            }
            Workload::Reactive(agents) => {
                let mut begun = Vec::new();
                for position in first..first + u64::from(count) {
                    let id = self.part.session(position);
                    self.timing.allows_agent(&self.plugin, id)?;
                    let step = agents.start(id)?;
                    if step.done {
                        self.done.push(id);
                    }
                    begun.push((id, step.added, step.cancel));
                }
                begun
            }
        };
        let kind = match self.workload {
            Workload::Planned(_) => SessionKind::Planned,
            Workload::Reactive(_) => SessionKind::Reactive,
        };
        let (mut plans, mut planned) = (Vec::new(), Vec::new());
        for (id, mut session, cancel) in begun {
            planned.push((id, session_digest(&session)));
            let arrives_at = match kind {
                SessionKind::Planned => {
                    drop_unsent(&mut session.requests);
                    ToolRunKeys::default().assign(&mut session);
                    self.timing.arrival(&self.plugin, id, &session)?
                }
                SessionKind::Reactive => None,
            };
            plans.push(SessionPlan {
                arrives_at,
                id,
                nodes: self.nodes(id, session)?,
                kind,
                cancel,
            });
        }
        self.planned.append(&mut planned);
        Ok(plans)
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
