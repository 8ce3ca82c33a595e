//! The nodes of a played session: sent once their edges are met, in the order in which that
//! happens.

use std::collections::BTreeMap;

use veeksha_model::{Edge, NodeId, Session, Trigger};

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlayedKind {
    /// A request.
    Request,
    /// A tool run, with the tokens of its result if it states them.
    ToolRun { result_tokens: Option<u32>, fails: bool },
}

/// The progress of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    /// Its edges are not met.
    Waiting,
    Sent,
    Ended,
}

struct PlayedNode {
    kind: PlayedKind,
    parents: Vec<Edge>,
    progress: Progress,
}

/// The nodes of a session.
#[derive(Default)]
pub(super) struct PlayedNodes {
    nodes: BTreeMap<NodeId, PlayedNode>,
    /// Nodes that were sent and have not ended, in the order of sending.
    open: Vec<NodeId>,
}

impl PlayedNodes {
    /// Adds the nodes of a step, and sends those whose edges are met.
    pub(super) fn add(&mut self, added: &Session) {
        for request in &added.requests {
            self.insert(request.node, PlayedKind::Request, &request.parents);
        }
        for run in &added.tool_runs {
            let kind = PlayedKind::ToolRun {
                result_tokens: run.result_tokens,
                fails: run.fails.unwrap_or(false),
            };
            self.insert(run.node, kind, &run.parents);
        }
        self.send();
    }

    fn insert(&mut self, id: NodeId, kind: PlayedKind, parents: &[Edge]) {
        let node = PlayedNode {
            kind,
            parents: parents.to_vec(),
            progress: Progress::Waiting,
        };
        self.nodes.insert(id, node);
    }

    /// Ends a node, and sends those that waited for it.
    pub(super) fn end(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.progress = Progress::Ended;
        }
        self.open.retain(|open| *open != id);
        self.send();
    }

    fn send(&mut self) {
        // A node that is sent may meet the edges of another one.
        loop {
            let ready: Vec<NodeId> = self
                .nodes
                .iter()
                .filter(|(_, node)| self.is_ready(node))
                .map(|(id, _)| *id)
                .collect();
            if ready.is_empty() {
                return;
            }
            for id in ready {
                if let Some(node) = self.nodes.get_mut(&id) {
                    node.progress = Progress::Sent;
                }
                self.open.push(id);
            }
        }
    }

    fn is_ready(&self, node: &PlayedNode) -> bool {
        let is_met = |edge: &Edge| {
            let progress = self.nodes.get(&edge.parent).map(|parent| parent.progress);
            let needed = match edge.trigger {
                Trigger::Dispatched | Trigger::FirstChunk => Progress::Sent,
                Trigger::Completed => Progress::Ended,
            };
            progress.is_some_and(|progress| progress >= needed)
        };
        node.progress == Progress::Waiting && node.parents.iter().all(is_met)
    }

    /// Returns the open nodes, in the order in which they were sent.
    pub(super) fn open(&self) -> &[NodeId] {
        &self.open
    }

    /// Returns the kind of a node that has not ended.
    pub(super) fn unended(&self, id: NodeId) -> Option<PlayedKind> {
        let node = self.nodes.get(&id)?;
        (node.progress != Progress::Ended).then_some(node.kind)
    }

    /// Returns the kind of an open node, or the reason why it cannot end now.
    pub(super) fn open_kind(&self, id: NodeId) -> Result<PlayedKind, String> {
        let Some(node) = self.nodes.get(&id) else {
            let names: Vec<String> = self.nodes.keys().map(NodeId::to_string).collect();
            return Err(format!(
                "the session has no node {id}; it has {}",
                names.join(", ")
            ));
        };
        match node.progress {
            Progress::Sent => Ok(node.kind),
            Progress::Ended => Err(format!("node {id} has ended already")),
            Progress::Waiting => {
                let waits = node.parents.iter().map(|edge| edge.parent.to_string());
                let waits = waits.collect::<Vec<_>>().join(", ");
                Err(format!("node {id} was not sent: it waits for node {waits}"))
            }
        }
    }
}
