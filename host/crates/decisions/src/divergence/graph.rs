//! The decisions of a session as a graph.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use veeksha_model::{NodeId, Request, ToolRun};

use crate::recorded_step::RecordedStep;
use crate::tool_calls::ToolCallIndex;

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
    /// The tool calls of the answers.
    pub(super) calls: ToolCallIndex,
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
                graph.calls.add_answer(node, &step.tool_call_ids);
            }
            graph.calls.add_nodes(step);
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
        // Nodes of the step with the number of their parents in it that were not added yet.
        let mut left: HashMap<NodeId, (Vec<NodeId>, NodeDecision<'a>, usize)> = HashMap::new();
        for (id, edges, work) in requests.chain(runs) {
            let mut parents: Vec<NodeId> = edges.iter().map(|edge| edge.parent).collect();
            if parents.is_empty() {
                // A root of a later step belongs to the answer that caused it.
                parents.extend(step.after);
            }
            parents.sort_unstable();
            parents.dedup();
            left.insert(id, (parents, work, 0));
        }
        let mut children: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
        for (id, (parents, _, lacks)) in &mut left {
            for parent in parents.iter().filter(|parent| !self.nodes.contains_key(parent)) {
                children.entry(*parent).or_default().push(*id);
                *lacks += 1;
            }
        }
        // Steps were checked when the file was opened; nodes of a cycle are left out.
        let ready = left.iter().filter(|(_, (.., lacks))| *lacks == 0);
        let mut ready: BTreeSet<NodeId> = ready.map(|(id, _)| *id).collect();
        while let Some(id) = ready.pop_first() {
            let Some((parents, work, _)) = left.remove(&id) else {
                continue;
            };
            let depths = parents.iter().filter_map(|parent| self.nodes.get(parent));
            let depth = 1 + depths.map(|parent| parent.depth).max().unwrap_or(0);
            let node = DecisionNode {
                id,
                turn,
                depth,
                after: step.after,
                work,
            };
            self.nodes.insert(id, node);
            self.children.entry(parents).or_default().push(id);
            for child in children.remove(&id).unwrap_or_default() {
                if let Some((.., lacks)) = left.get_mut(&child) {
                    *lacks -= 1;
                    if *lacks == 0 {
                        ready.insert(child);
                    }
                }
            }
        }
    }

    /// Returns the step that answered the end of a node.
    pub(super) fn step_after(&self, node: Option<NodeId>) -> Option<&'a RecordedStep> {
        self.steps.get(&node).copied()
    }
}
