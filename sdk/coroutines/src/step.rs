//! The nodes that coroutines start between two answers.

use std::collections::BTreeSet;

use crate::coroutine_id::CoroutineId;
use crate::moment::{Moment, Nanos, Node, Root, Start};

/// A request or tool run that a coroutine starts, as its author wrote it.
pub trait NewNode {
    /// Returns true for a tool run. It has no wait, so that a sleep before it is on its edges.
    fn is_tool_run(&self) -> bool;

    /// Returns the wait that the author wrote; `None` if the author named parents.
    fn root_wait(&self) -> Option<Nanos>;
}

/// A node that starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedNode<R> {
    /// Its number.
    pub node: Node,
    /// The coroutine that it belongs to.
    pub coroutine: CoroutineId,
    /// The node as it was written; `None` for a timer of no time: it ends at its start.
    pub written: Option<R>,
    /// Its start, in addition to what the author wrote.
    pub start: Start,
}

/// What an agent does after an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedStep<R> {
    /// The nodes that start, in the order of their numbers. Numbers of nodes that lost a race in
    /// the step that started them are left out.
    pub nodes: Vec<IssuedNode<R>>,
    /// The nodes to cancel, of this step or of earlier ones.
    pub cancelled: Vec<Node>,
    /// True once the main function and all subagents have ended.
    pub done: bool,
}

/// The nodes since the last answer.
pub(crate) struct Outbox<R> {
    next: Node,
    issued: Vec<IssuedNode<R>>,
    /// Those without edges.
    roots: Vec<(Node, Root)>,
    /// The node of earlier steps without edges that best represents the session's start.
    sent_first: Option<(Node, Root)>,
    /// The same, of all steps; of this one only nodes without a wait.
    first: Option<(Node, Root)>,
    /// A timer of no time at the session's start, in this step.
    anchor: Option<Node>,
    /// Nodes in flight whose end resumes nothing.
    ignored: BTreeSet<Node>,
    cancelled: Vec<Node>,
}

impl<R: NewNode> Outbox<R> {
    pub(crate) fn new() -> Self {
        Outbox {
            next: 1,
            issued: Vec::new(),
            roots: Vec::new(),
            sent_first: None,
            first: None,
            anchor: None,
            ignored: BTreeSet::new(),
            cancelled: Vec::new(),
        }
    }

    /// Returns the number of nodes so far, with those that were not sent.
    pub(crate) fn nodes(&self) -> u32 {
        self.next - 1
    }

    /// Returns the start of a request at a moment.
    pub(crate) fn request_start(&self, moment: &Moment) -> Start {
        moment.start(self.first)
    }

    /// Returns the start of a tool run at a moment.
    ///
    /// An edge cannot name the session's start. If no node represents it, a timer of no time does.
    pub(crate) fn run_start(&mut self, moment: &Moment) -> Start {
        let edges = moment.edges(self.first).unwrap_or_else(|| {
            self.add_anchor();
            // In a later step, the moment is before the dispatch of the first node, and has passed.
            moment.edges(self.first).unwrap_or_default()
        });
        Start { edges, wait: 0 }
    }

    /// Adds a timer of no time that starts with the session. Only the first step can.
    fn add_anchor(&mut self) {
        if self.sent_first.is_some() || self.anchor.is_some() {
            return;
        }
        let anchor = self.issue(CoroutineId::MAIN, None, Start::default());
        self.anchor = Some(anchor);
        self.ignored.insert(anchor);
    }

    /// Starts a timer that ends at a moment.
    ///
    /// It counts from the session's start itself, not from the dispatch of a request: limits of the
    /// client may delay that.
    pub(crate) fn timer(&mut self, coroutine: CoroutineId, ends: &Moment) -> Node {
        if ends.is_since_start() {
            self.add_anchor();
        }
        let start = self.run_start(ends);
        self.issue(coroutine, None, start)
    }

    /// Starts a timer whose end resumes nothing.
    pub(crate) fn unawaited_timer(&mut self, coroutine: CoroutineId, ends: &Moment) -> Node {
        let timer = self.timer(coroutine, ends);
        self.ignored.insert(timer);
        timer
    }

    /// Starts a node.
    pub(crate) fn issue(&mut self, coroutine: CoroutineId, written: Option<R>, start: Start) -> Node {
        let node = self.next;
        self.next += 1;
        if let Some(root) = root(written.as_ref(), &start) {
            self.roots.push((node, root));
            // A request with a wait may be cancelled before its dispatch. Then its events come too
            // early.
            if root.wait() == 0 {
                self.first = earliest(self.first, (node, root));
            }
        }
        self.issued.push(IssuedNode {
            node,
            coroutine,
            written,
            start,
        });
        node
    }

    /// Cancels a node in flight.
    pub(crate) fn cancel(&mut self, node: Node) {
        self.ignored.insert(node);
        self.cancelled.push(node);
    }

    /// Returns true if the end of a node in flight resumes nothing, once for each.
    pub(crate) fn ignores(&mut self, node: Node) -> bool {
        self.ignored.remove(&node)
    }

    /// Returns true if a node is in flight whose end resumes nothing.
    pub(crate) fn is_ignored(&self, node: Node) -> bool {
        self.ignored.contains(&node)
    }

    #[cfg(test)]
    pub(crate) fn issued(&self) -> &[IssuedNode<R>] {
        &self.issued
    }

    /// Takes the nodes that start and those to cancel.
    pub(crate) fn take(&mut self, done: bool) -> IssuedStep<R> {
        self.drop_unsent();
        for root in std::mem::take(&mut self.roots) {
            self.sent_first = earliest(self.sent_first, root);
        }
        self.first = self.sent_first;
        self.anchor = None;
        IssuedStep {
            nodes: std::mem::take(&mut self.issued),
            cancelled: std::mem::take(&mut self.cancelled),
            done,
        }
    }

    /// Drops the nodes of this step that were cancelled in it, unless another one has an edge to
    /// them.
    fn drop_unsent(&mut self) {
        let Some(oldest) = self.issued.first().map(|issued| issued.node) else {
            return;
        };
        let mut unsent: BTreeSet<Node> = self.cancelled.iter().copied().collect();
        unsent.extend(self.anchor);
        unsent.retain(|node| *node >= oldest);
        if unsent.is_empty() {
            return;
        }
        let sent = self.issued.iter().filter(|issued| !unsent.contains(&issued.node));
        let named: Vec<Node> = sent
            .flat_map(|issued| &issued.start.edges)
            .map(|edge| edge.node)
            .collect();
        for node in named {
            unsent.remove(&node);
        }
        self.issued.retain(|issued| !unsent.contains(&issued.node));
        self.roots.retain(|(node, _)| !unsent.contains(node));
        self.cancelled.retain(|node| !unsent.contains(node));
        self.ignored.retain(|node| !unsent.contains(node));
    }
}

/// Describes a node that has no edges.
fn root<R: NewNode>(written: Option<&R>, start: &Start) -> Option<Root> {
    if !start.edges.is_empty() {
        return None;
    }
    let Some(written) = written else {
        return Some(Root::Timer);
    };
    let wait = written.root_wait()?;
    Some(if written.is_tool_run() {
        Root::ToolRun
    } else {
        Root::Request(wait.saturating_add(start.wait))
    })
}

fn earliest(known: Option<(Node, Root)>, other: (Node, Root)) -> Option<(Node, Root)> {
    match known {
        Some(known) if known.1.rank() <= other.1.rank() => Some(known),
        _ => Some(other),
    }
}
