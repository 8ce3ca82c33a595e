//! The decisions of a session as a graph.

use std::collections::{BTreeMap, HashMap};

use veeksha_model::{NodeId, Request, ToolRun};

use crate::recorded_step::RecordedStep;

/// What a node does.
#[derive(Clone, Copy)]
pub(super) enum NodeDecision<'a> {
    Request(&'a Request),
    ToolRun(&'a ToolRun),
}

/// A node with its place in the session.
#[derive(Clone)]
pub(super) struct DecisionNode<'a> {
    pub(super) id: NodeId,
    /// The number of the step that added it, from 1.
    pub(super) turn: u32,
    /// The longest chain of nodes that ends with it.
    pub(super) depth: u32,
    /// The node whose end the step answered.
    pub(super) after: Option<NodeId>,
    pub(super) work: NodeDecision<'a>,
}

/// The decisions of a session.
#[derive(Default)]
pub(super) struct DecisionGraph<'a> {
    pub(super) nodes: HashMap<NodeId, DecisionNode<'a>>,
    /// Nodes by the nodes that they wait for, in the order in which they were added.
    pub(super) children: BTreeMap<Vec<NodeId>, Vec<NodeId>>,
    /// Cancelled nodes with the step that cancelled them and the node that it answered.
    pub(super) cancelled: Vec<(NodeId, u32, Option<NodeId>)>,
    /// The step after each node, by its position in the list.
    steps: HashMap<Option<NodeId>, &'a RecordedStep>,
    /// The answer and the position in it of each tool call.
    calls: HashMap<&'a str, (NodeId, usize)>,
    /// True if the agent reported its end.
    pub(super) is_complete: bool,
}

impl<'a> DecisionGraph<'a> {
    pub(super) fn of(steps: &'a [RecordedStep]) -> Self {
        let mut graph = DecisionGraph::default();
        let mut turn = 0;
        for step in steps {
            let decided = &step.step;
            let decides =
                decided.added.nodes().next().is_some() || !decided.cancel.is_empty() || decided.done;
            turn += u32::from(decides);
            graph.is_complete |= decided.done;
            graph.steps.insert(step.after, step);
            if let Some(node) = step.after {
                let ids = step.tool_call_ids.iter().map(String::as_str);
                graph
                    .calls
                    .extend(ids.enumerate().map(|(place, id)| (id, (node, place))));
            }
            graph.add(step, turn);
            let cancelled = decided.cancel.iter();
            graph
                .cancelled
                .extend(cancelled.map(|node| (*node, turn, step.after)));
        }
        graph
    }

    /// Adds the nodes of a step, parents first.
    fn add(&mut self, step: &'a RecordedStep, turn: u32) {
        let added = &step.step.added;
        let requests = added.requests.iter();
        let requests =
            requests.map(|request| (request.node, &request.parents, NodeDecision::Request(request)));
        let runs = added.tool_runs.iter();
        let runs = runs.map(|run| (run.node, &run.parents, NodeDecision::ToolRun(run)));
        let mut left: Vec<_> = requests.chain(runs).collect();
        left.sort_by_key(|(id, ..)| *id);
        while !left.is_empty() {
            let before = left.len();
            let nodes = std::mem::take(&mut left);
            for (id, edges, work) in nodes {
                let mut parents: Vec<NodeId> = edges.iter().map(|edge| edge.parent).collect();
                if parents.is_empty() {
                    // A root of a later step belongs to the answer that caused it.
                    parents.extend(step.after);
                }
                parents.sort_unstable();
                parents.dedup();
                let depths = parents.iter().map(|parent| Some(self.nodes.get(parent)?.depth));
                let Some(depths) = depths.collect::<Option<Vec<u32>>>() else {
                    left.push((id, edges, work));
                    continue;
                };
                let node = DecisionNode {
                    id,
                    turn,
                    depth: 1 + depths.into_iter().max().unwrap_or(0),
                    after: step.after,
                    work,
                };
                self.nodes.insert(id, node);
                self.children.entry(parents).or_default().push(id);
            }
            // Steps were checked when the file was opened; nodes of a cycle are left out.
            if left.len() == before {
                return;
            }
        }
    }

    /// Returns the step that answered the end of a node.
    pub(super) fn step_after(&self, node: Option<NodeId>) -> Option<&'a RecordedStep> {
        self.steps.get(&node).copied()
    }

    /// Returns the answer that asked for a tool call, and the position of the call in it.
    pub(super) fn call(&self, id: &str) -> Option<(NodeId, usize)> {
        self.calls.get(id).copied()
    }

    /// Returns the id of a tool call of an answer.
    pub(super) fn call_id(&self, node: NodeId, place: usize) -> Option<&'a str> {
        let step = self.step_after(Some(node))?;
        step.tool_call_ids.get(place).map(String::as_str)
    }
}
