//! The tool runs of a session: made, served, ended.

use std::sync::Arc;

use veeksha_events::{DroppedToolRun, NeverSentReason, ToolDropReason};
use veeksha_model::{Nanos, NodeId, RequestId, ToolRunRecord};

use super::SessionState;
use super::node::NodeState;
use crate::contract::{Action, NodeWork, ToolRunPlan};
use crate::conversation::ConversationHistory;
use crate::tools::ToolCallEntry;

impl<P> SessionState<P> {
    /// Makes the call of a queued tool run, which was due at `ready_at`. Returns its class, the
    /// call, and true if the end of the run waits for it.
    pub(crate) fn enter_tool(
        &mut self,
        node: NodeId,
        measured: bool,
        ready_at: Nanos,
    ) -> Option<(usize, ToolCallEntry, bool)> {
        if !self.is_queued(node) {
            return None;
        }
        let id = RequestId {
            session: self.id,
            node,
        };
        let node = self.nodes.get_mut(&node)?;
        let NodeWork::ToolRun(run) = &node.work else {
            return None;
        };
        node.state = NodeState::InTool {
            measured,
            ready_at,
            started: None,
        };
        self.unsent -= 1;
        self.in_flight += 1;
        let call = ToolCallEntry {
            id,
            ready: ready_at,
            service: run.service_time,
        };
        Some((run.class, call, measured && run.is_drained()))
    }

    /// Notes that a server took a tool run.
    pub(crate) fn start_tool(&mut self, node: NodeId, at: Nanos, is_cold: bool) {
        if let Some(NodeState::InTool { started, .. }) = self.nodes.get_mut(&node).map(|node| &mut node.state)
        {
            *started = Some((at, is_cold));
        }
    }

    /// Notes the end of a tool run; `None` if it was not running.
    /// The second value is true if the end of the run waited for it.
    pub(crate) fn complete_tool(&mut self, node: NodeId, at: Nanos) -> Option<(ToolRunRecord, bool)> {
        let id = RequestId {
            session: self.id,
            node,
        };
        let node = self.nodes.get_mut(&id.node)?;
        let (
            NodeState::InTool {
                measured,
                ready_at,
                started: Some((started_at, is_cold)),
            },
            NodeWork::ToolRun(run),
        ) = (&node.state, &node.work)
        else {
            return None;
        };
        let record = ToolRunRecord {
            id,
            class: run.name.clone(),
            parents: std::mem::take(&mut node.parents),
            ready_at: *ready_at,
            started_at: *started_at,
            completed_at: at,
            is_cold: *is_cold,
            failed: run.fails,
            result_tokens: run.result_tokens,
            measured: *measured,
            labels: run.labels.clone(),
        };
        node.state = NodeState::Complete {
            events: record.events(),
            conversation: ConversationHistory::new(),
        };
        self.obsolete
            .extend(node.cancel_at.take().map(|at| (at, id.node)));
        self.in_flight -= 1;
        self.latest = self.latest.max(at);
        let was_awaited = record.measured && run.is_drained();
        Some((record, was_awaited))
    }

    /// Drops the tool runs that a server has taken, because the run ended.
    pub(crate) fn drop_served(&mut self, at: Nanos, actions: &mut Vec<Action<P>>) {
        if self.tool_runs == 0 {
            return;
        }
        let mut lost = false;
        for (id, node) in &mut self.nodes {
            let (
                NodeState::InTool {
                    measured, ready_at, ..
                },
                NodeWork::ToolRun(run),
            ) = (&node.state, &node.work)
            else {
                continue;
            };
            let reason = if *measured && run.is_drained() {
                ToolDropReason::InService
            } else {
                ToolDropReason::NotServed(NeverSentReason::RunEnded)
            };
            let id = RequestId {
                session: self.id,
                node: *id,
            };
            actions.push(dropped(id, run, Some(*ready_at), reason, at));
            node.state = NodeState::Withdrawn;
            self.in_flight -= 1;
            lost = true;
        }
        if lost {
            self.lost();
        }
    }
}

/// Returns the action that reports a tool run that will not end.
pub(super) fn dropped<P>(
    id: RequestId,
    run: &ToolRunPlan,
    ready_at: Option<Nanos>,
    reason: ToolDropReason,
    at: Nanos,
) -> Action<P> {
    Action::ToolDropped(Box::new(DroppedToolRun {
        id,
        class: Arc::clone(&run.name),
        ready_at,
        reason,
        at,
    }))
}
