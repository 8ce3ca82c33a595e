//! The warm-up: sent before the run begins, one request after the other.

use std::sync::Arc;

use veeksha_model::{History, NodeId, RequestId, Response, SessionId};
use veeksha_scheduler::{ConversationHistory, NodePlan, NodeWork};

/// The first id of a warm-up session: none of the run's sessions has one as high, so that what the
/// target learns of them cannot be taken for the run's.
const FIRST_ID: u64 = 1 << 52;

/// The id of warm-up session `index`.
pub(crate) fn session_id(index: usize) -> SessionId {
    SessionId(FIRST_ID + index as u64)
}

/// The result of a warm-up.
#[derive(Clone, Debug, Default)]
pub(crate) struct WarmupReport {
    /// Requests that were not answered.
    pub(crate) failures: u32,
    /// The first of these failures.
    pub(crate) first_failure: Option<String>,
}

impl WarmupReport {
    pub(crate) fn failed(&mut self, index: usize, node: NodeId, message: &str) {
        self.failures = self.failures.saturating_add(1);
        self.first_failure
            .get_or_insert_with(|| format!("warm-up session {index}, node {node}: {message}"));
    }
}

/// A request of a warm-up session whose turn it is.
pub(crate) struct WarmupTurn<P> {
    pub(crate) id: RequestId,
    pub(crate) payload: Arc<P>,
    pub(crate) history: Option<Arc<History<P>>>,
}

/// One session, walked through in the order of its graph: of the requests whose parents are
/// through, the first in the list. Nothing is waited for but the answer: a request that failed
/// counts as answered with nothing, and tools are not run.
pub(crate) struct WarmupWalk<P> {
    id: SessionId,
    /// Not sent yet.
    left: Vec<(Arc<P>, NodePlan<P>)>,
    /// Sent, with the conversation up to and with it.
    through: Vec<(NodeId, ConversationHistory<P>)>,
}

impl<P> WarmupWalk<P> {
    pub(crate) fn new(id: SessionId, nodes: Vec<NodePlan<P>>) -> Self {
        let request = |node: NodePlan<P>| match &node.work {
            NodeWork::Request(payload) => Some((payload.clone(), node)),
            NodeWork::ToolRun(_) => None,
        };
        WarmupWalk {
            id,
            left: nodes.into_iter().filter_map(request).collect(),
            through: Vec::new(),
        }
    }

    /// Sends every request by `send`, which gives back the answer if there is one, or `None` to go
    /// no further.
    pub(crate) fn go(&mut self, mut send: impl FnMut(WarmupTurn<P>) -> Option<Option<Arc<Response>>>) {
        while let Some(next) = self.next() {
            let (payload, node) = self.left.remove(next);
            let before = self
                .through
                .iter()
                .find(|(through, _)| Some(*through) == node.history_parent)
                .map(|(_, talk)| talk.before(node.history_mode))
                .unwrap_or_default();
            let turn = WarmupTurn {
                id: RequestId {
                    session: self.id,
                    node: node.node,
                },
                payload: payload.clone(),
                history: before.history_for(node.history_mode),
            };
            let Some(response) = send(turn) else { return };
            let talk = before.with(payload, response, node.recorded_answer);
            self.through.push((node.node, talk));
        }
    }

    /// A session without cycles, as all are that were checked, always has one until all are
    /// through.
    fn next(&self) -> Option<usize> {
        let is_left = |id: &NodeId| self.left.iter().any(|(_, node)| node.node == *id);
        self.left
            .iter()
            .position(|(_, node)| !node.parents.iter().any(|edge| is_left(&edge.parent)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use veeksha_model::HistoryMode;

    fn node(node: u32, parents: &[u32]) -> NodePlan<u32> {
        NodePlan {
            node: NodeId(node),
            parents: parents.iter().map(|parent| NodeId(*parent).into()).collect(),
            history_parent: parents.first().copied().map(NodeId),
            wait_after_ready: 7,
            not_before: Some(9),
            history_mode: HistoryMode::Live,
            recorded_answer: None,
            cancel_when: Vec::new(),
            work: NodeWork::Request(Arc::new(node)),
        }
    }

    fn walk(nodes: Vec<NodePlan<u32>>, stop_after: usize) -> Vec<(u32, usize)> {
        let mut sent = Vec::new();
        WarmupWalk::new(session_id(0), nodes).go(|turn| {
            sent.push((*turn.payload, History::turns(&turn.history).len()));
            (sent.len() < stop_after).then_some(None)
        });
        sent
    }

    #[test]
    fn warm_up_follows_graph_order() {
        let graph = || vec![node(3, &[1, 2]), node(1, &[0]), node(2, &[0]), node(0, &[])];
        assert_eq!(walk(graph(), 9), [(0, 0), (1, 1), (2, 1), (3, 2)]);
        assert_eq!(walk(graph(), 2), [(0, 0), (1, 1)]);
    }

    #[test]
    fn warm_up_ends_at_a_cycle() {
        assert_eq!(
            walk(vec![node(0, &[]), node(1, &[2]), node(2, &[1])], 9),
            [(0, 0)]
        );
    }
}
