//! A step of an agent, with the event that it answers.

use std::collections::HashSet;

use veeksha_model::{NodeId, Segment, SessionId};
use veeksha_ports::AgentStep;

/// A step of an agent, with the end of the node that it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedStep {
    /// The session.
    pub session: SessionId,
    /// The node whose end the step answers; `None` for the start of the session.
    pub after: Option<NodeId>,
    /// The ids of the tool calls that the node's answer asked for, which the server made up.
    pub tool_call_ids: Vec<String>,
    /// The step. Only the first step of a session has the session that it replays.
    pub step: AgentStep,
    /// The requests in whose content a secret was replaced by `***`.
    pub redacted: Vec<NodeId>,
}

impl RecordedStep {
    /// Returns the nodes that the step names without adding them: parents, histories, tool results,
    /// cancellations.
    pub fn named_nodes(&self) -> HashSet<NodeId> {
        let added = &self.step.added;
        let mut named: HashSet<NodeId> = self.step.cancel.iter().copied().collect();
        for request in &added.requests {
            named.extend(request.parents.iter().map(|edge| edge.parent));
            named.extend(request.history_parent);
            let cancellation = request.cancellation.iter();
            named.extend(
                cancellation.flat_map(|cancellation| cancellation.when.iter().map(|edge| edge.parent)),
            );
            let contents = request.messages.iter().flat_map(|message| &message.content);
            named.extend(contents.filter_map(|segment| match segment {
                Segment::ToolResult(run) => Some(*run),
                _ => None,
            }));
        }
        let runs = added.tool_runs.iter();
        named.extend(runs.flat_map(|run| run.parents.iter().map(|edge| edge.parent)));
        for own in added.nodes() {
            named.remove(&own);
        }
        named
    }
}
