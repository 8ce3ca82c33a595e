//! What is known of one session while its requests are under way.

use std::collections::BTreeMap;

use veeksha_model::{Nanos, NodeId};

/// A session that is not accounted for yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    pub(crate) started_at: Option<Nanos>,
    pub(crate) finished_at: Option<Nanos>,
    /// Nodes known when it started.
    pub(crate) known: u32,
    /// All nodes, once it is over.
    pub(crate) all: Option<u32>,
    pub(crate) nodes: BTreeMap<NodeId, Node>,
    /// Requests whose parents have not all been told.
    pub(crate) waiting: Vec<Child>,
    pub(crate) first_dispatch: Option<Dispatch>,
    /// The last instant that anything of it is known of.
    pub(crate) last: Nanos,
}

/// What is known of one request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Node {
    pub(crate) dispatched: bool,
    pub(crate) finished: bool,
    pub(crate) never_sent: bool,
    pub(crate) completed_at: Nanos,
}

/// A request that waited for others.
#[derive(Clone, Debug)]
pub(crate) struct Child {
    pub(crate) node: NodeId,
    pub(crate) parents: Vec<NodeId>,
    pub(crate) wait_after_ready: Nanos,
    pub(crate) intended: Nanos,
    pub(crate) dispatched_at: Nanos,
    pub(crate) held: Nanos,
}

/// A dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dispatch {
    pub(crate) intended: Nanos,
    pub(crate) at: Nanos,
}

impl Session {
    /// Requests of which it is known what became of them.
    pub(crate) fn told(&self) -> u32 {
        let told = self
            .nodes
            .values()
            .filter(|node| node.finished || node.never_sent);
        u32::try_from(told.count()).unwrap_or(u32::MAX)
    }

    /// Whether nothing more is to come of it: it is over, all its requests are told of, and so is every dispatch.
    pub(crate) fn is_accounted_for(&self) -> bool {
        self.started_at.is_some()
            && self.all.is_some_and(|all| self.told() >= all)
            && self.nodes.values().all(|node| node.dispatched || !node.finished)
    }

    /// When it began to take a place: the instant that its roots count from, later by as much as its first dispatch was late.
    pub(crate) fn began(&self) -> Option<Nanos> {
        let first = self.first_dispatch?;
        let late = first.at.saturating_sub(first.intended);
        Some(
            self.started_at
                .map_or(first.at, |start| start.saturating_add(late)),
        )
    }

    /// When the last parent of a request was complete; `None` while one of them is not told.
    pub(crate) fn parents_done(&self, parents: &[NodeId]) -> Option<Nanos> {
        let mut done = 0;
        for parent in parents {
            let parent = self.nodes.get(parent).filter(|node| node.finished)?;
            done = done.max(parent.completed_at);
        }
        Some(done)
    }
}
