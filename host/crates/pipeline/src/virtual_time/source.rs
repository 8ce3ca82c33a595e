//! Where a simulation's sessions come from: the plugin, called in the loop itself.

use std::sync::Arc;

use veeksha_model::{Request, SessionId};
use veeksha_ports::{PluginFailure, Workload};
use veeksha_scheduler::{NodePlan, SessionKind, SessionPlan};

use crate::prefetch::MAX_BATCH;

/// Where sessions come from, and how far it has been read.
pub(super) struct Source {
    pub(super) workload: Workload,
    pub(super) next: u64,
    pub(super) end: u64,
    pub(super) told: bool,
    /// Agents that were done with their first step.
    pub(super) done: Vec<SessionId>,
}

impl Source {
    pub(super) fn make(&mut self, count: u32) -> Result<Vec<SessionPlan<Request>>, PluginFailure> {
        let first = self.next;
        let count = u64::from(count.min(MAX_BATCH)).min(self.end - first) as u32;
        let plans: Vec<_> = match &mut self.workload {
            Workload::Planned(source) => {
                let sessions = source.sessions(first, count)?.into_iter().zip(first..);
                sessions
                    .map(|(session, id)| plan_of(id, SessionKind::Planned, session.requests, &session.labels))
                    .collect()
            }
            Workload::Reactive(agents) => {
                let mut plans = Vec::new();
                for id in first..first + u64::from(count) {
                    let step = agents.start(SessionId(id))?;
                    if step.done {
                        self.done.push(SessionId(id));
                    }
                    plans.push(plan_of(id, SessionKind::Reactive, step.requests, &[]));
                }
                plans
            }
        };
        if (plans.len() as u64) < u64::from(count) {
            self.end = first + plans.len() as u64;
        }
        self.next = first + plans.len() as u64;
        Ok(plans)
    }
}

fn plan_of(
    id: u64,
    kind: SessionKind,
    requests: Vec<Request>,
    labels: &[(String, String)],
) -> SessionPlan<Request> {
    SessionPlan {
        arrives_at: None,
        id: SessionId(id),
        nodes: nodes_of(requests, labels),
        kind,
    }
}

pub(super) fn nodes_of(requests: Vec<Request>, labels: &[(String, String)]) -> Vec<NodePlan<Request>> {
    let node = |mut request: Request| {
        request.labels.extend_from_slice(labels);
        NodePlan {
            not_before: None,
            history_mode: veeksha_model::HistoryMode::Live,
            recorded_answer: None,
            node: request.node,
            parents: request.parents.clone(),
            history_parent: request.history_parent,
            wait_after_ready: request.wait_after_ready,
            payload: Arc::new(request),
        }
    };
    requests.into_iter().map(node).collect()
}
