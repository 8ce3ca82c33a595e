//! The search for the first decision that differs.

use std::collections::{BTreeSet, HashSet};

use veeksha_model::NodeId;

use super::correspondence::Correspondence;
use super::difference::{Difference, difference, excerpts};
use super::field::DecisionField;
use super::graph::{DecisionGraph, DecisionNode, NodeDecision};
use crate::recorded_step::RecordedStep;

/// The first decision in which a session differs from its recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The number of the agent's step in the session, from 1 for its start. It is that of the
    /// recording, unless only the other session has the decision.
    pub turn: u32,
    /// The number of nodes in the longest chain that ends with the differing node.
    pub depth: u32,
    /// The part that differs.
    pub field: DecisionField,
    /// Excerpts of both values, that of the recording first.
    pub values: [String; 2],
}

/// The comparison of two sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionComparison {
    /// All decisions are the same.
    Identical,
    /// A run ended before the agent did. The decisions of both are the same as far as they were
    /// recorded.
    IdenticalSoFar,
    /// The sessions differ from this decision on.
    Diverged(Divergence),
}

/// Compares the steps of a session with those of its recording, each list in the order of the
/// recorded file.
///
/// The result does not depend on the numbers of nodes, on the order of answers that come
/// concurrently, or on the ids that servers gave to tool calls. Of several first differences, that
/// with the smallest turn is returned.
pub fn divergence(recorded: &[RecordedStep], other: &[RecordedStep]) -> SessionComparison {
    let graphs = (DecisionGraph::of(recorded), DecisionGraph::of(other));
    let mut matching = NodeMatching {
        same: Correspondence::new(&graphs.0, &graphs.1),
        found: Vec::new(),
    };
    matching.compare_sessions();
    matching.match_nodes();
    matching.compare_unmatched();
    matching.compare_cancelled();
    let found = matching.found.into_iter();
    match found.min_by_key(|divergence| (divergence.turn, divergence.field)) {
        Some(divergence) => SessionComparison::Diverged(divergence),
        None if graphs.0.is_complete && graphs.1.is_complete => SessionComparison::Identical,
        None => SessionComparison::IdenticalSoFar,
    }
}

struct NodeMatching<'g, 'a> {
    same: Correspondence<'g, 'a>,
    found: Vec<Divergence>,
}

impl NodeMatching<'_, '_> {
    /// Compares the headers and labels of the sessions.
    fn compare_sessions(&mut self) {
        let step = |graph: &DecisionGraph<'_>| {
            let added = &graph.step_after(None)?.step.added;
            Some((added.headers.clone(), added.labels.clone()))
        };
        let (Some(one), Some(other)) = (step(self.same.recorded), step(self.same.other)) else {
            return;
        };
        for (field, one, other) in [
            (DecisionField::Headers, one.0, other.0),
            (DecisionField::Labels, one.1, other.1),
        ] {
            if one != other {
                self.found.push(Divergence {
                    turn: 1,
                    depth: 1,
                    field,
                    values: excerpts(&format!("{one:?}"), &format!("{other:?}")),
                });
            }
        }
    }

    /// Finds the nodes that correspond, from the roots on.
    fn match_nodes(&mut self) {
        let mut left: BTreeSet<&Vec<NodeId>> = self.same.recorded.children.keys().collect();
        loop {
            let is_matched = |parents: &&&Vec<NodeId>| {
                let mut parents = parents.iter();
                parents.all(|parent| self.same.to_other.contains_key(parent))
            };
            let ready: Vec<&Vec<NodeId>> = left.iter().filter(is_matched).copied().collect();
            if ready.is_empty() {
                return;
            }
            for parents in ready {
                left.remove(parents);
                self.match_children(parents);
            }
        }
    }

    /// Pairs the nodes that wait for the same nodes: first those that are equal, then the others
    /// in their order, which differ.
    fn match_children(&mut self, parents: &[NodeId]) {
        let mut mapped: Vec<NodeId> = parents
            .iter()
            .filter_map(|parent| self.same.to_other.get(parent).copied())
            .collect();
        mapped.sort_unstable();
        let (recorded, other) = (self.same.recorded, self.same.other);
        let nodes = |graph: &DecisionGraph<'_>, parents: &[NodeId]| -> Vec<NodeId> {
            graph.children.get(parents).cloned().unwrap_or_default()
        };
        let mut others = nodes(other, &mapped);
        let mut unlike = Vec::new();
        for one in nodes(recorded, parents) {
            let Some(node) = recorded.nodes.get(&one) else {
                continue;
            };
            let is_same = |candidate: &NodeId| {
                let candidate = other.nodes.get(candidate);
                candidate.is_some_and(|candidate| difference(node, candidate, &self.same).is_none())
            };
            match others.iter().position(is_same) {
                Some(place) => self.same.add(one, others.remove(place)),
                None => unlike.push(node),
            }
        }
        for (one, candidate) in unlike.into_iter().zip(others) {
            let differs = other.nodes.get(&candidate);
            let differs = differs.and_then(|candidate| difference(one, candidate, &self.same));
            if let Some(Difference { field, values }) = differs {
                self.found.push(Divergence {
                    turn: one.turn,
                    depth: one.depth,
                    field,
                    values,
                });
            }
        }
    }

    /// Finds nodes whose parents correspond and that only one session has. A session that was cut
    /// may have had them later.
    fn compare_unmatched(&mut self) {
        let (recorded, other) = (self.same.recorded, self.same.other);
        let to_other = |node: NodeId| self.same.to_other.get(&node).copied();
        let to_recorded = |node: NodeId| self.same.to_recorded.get(&node).copied();
        let mut ones = unmatched(recorded, other, &to_other);
        let mut others = unmatched(other, recorded, &to_recorded);
        let mut found = Vec::new();
        // The same node with other edges.
        ones.retain(|one| {
            let moved = others.iter().position(|candidate| {
                let found = difference(one, candidate, &self.same);
                found
                    .is_some_and(|found| matches!(found.field, DecisionField::Edges | DecisionField::History))
            });
            let Some(place) = moved else { return true };
            let candidate = others.remove(place);
            if let Some(Difference { field, values }) = difference(one, candidate, &self.same) {
                found.push(Divergence {
                    turn: one.turn.min(candidate.turn),
                    depth: one.depth,
                    field,
                    values,
                });
            }
            false
        });
        let only =
            |node: &DecisionNode<'_>, lacking: &DecisionGraph<'_>, after: Option<NodeId>, place: usize| {
                let ended = lacking
                    .step_after(after)
                    .is_some_and(|step| step.step.done && node.after.is_some() == after.is_some());
                let (field, what) = match (ended, node.work) {
                    (true, _) => (DecisionField::Done, "goes on"),
                    (false, NodeDecision::Request(_)) => (DecisionField::Requests, "a request"),
                    (false, NodeDecision::ToolRun(_)) => (DecisionField::ToolRuns, "a tool run"),
                };
                let mut values = ["nothing", "nothing"].map(str::to_owned);
                values[place] = what.to_owned();
                Divergence {
                    turn: node.turn,
                    depth: node.depth,
                    field,
                    values,
                }
            };
        if other.is_complete {
            found.extend(
                ones.iter()
                    .map(|node| only(node, other, node.after.and_then(to_other), 0)),
            );
        }
        if recorded.is_complete {
            found.extend(
                others
                    .iter()
                    .map(|node| only(node, recorded, node.after.and_then(to_recorded), 1)),
            );
        }
        self.found.extend(found);
    }

    /// Compares the cancellations of nodes that correspond.
    fn compare_cancelled(&mut self) {
        let (recorded, other) = (self.same.recorded, self.same.other);
        let nodes = |graph: &DecisionGraph<'_>| -> HashSet<NodeId> {
            graph.cancelled.iter().map(|(node, ..)| *node).collect()
        };
        let (ones, others) = (nodes(recorded), nodes(other));
        let mut missing = Vec::new();
        if other.is_complete {
            let mapped = |node: &NodeId| self.same.to_other.get(node);
            missing.extend(recorded.cancelled.iter().filter_map(|(node, turn, _)| {
                let lacks = mapped(node).is_some_and(|node| !others.contains(node));
                lacks.then_some((
                    recorded.nodes.get(node)?.depth,
                    *turn,
                    ["cancelled", "not cancelled"],
                ))
            }));
        }
        if recorded.is_complete {
            let mapped = |node: &NodeId| self.same.to_recorded.get(node);
            missing.extend(other.cancelled.iter().filter_map(|(node, turn, _)| {
                let lacks = mapped(node).is_some_and(|node| !ones.contains(node));
                lacks.then_some((
                    other.nodes.get(node)?.depth,
                    *turn,
                    ["not cancelled", "cancelled"],
                ))
            }));
        }
        self.found
            .extend(missing.into_iter().map(|(depth, turn, values)| Divergence {
                turn,
                depth,
                field: DecisionField::Cancel,
                values: values.map(str::to_owned),
            }));
    }
}

/// Returns the nodes of a graph whose parents correspond to nodes of the other one, and which are
/// more than the nodes that wait for the same nodes there.
fn unmatched<'g, 'a>(
    graph: &'g DecisionGraph<'a>,
    other: &DecisionGraph<'_>,
    mapped: &dyn Fn(NodeId) -> Option<NodeId>,
) -> Vec<&'g DecisionNode<'a>> {
    let mut found = Vec::new();
    for (parents, nodes) in &graph.children {
        let parents: Option<Vec<NodeId>> = parents.iter().map(|parent| mapped(*parent)).collect();
        let Some(mut parents) = parents else { continue };
        parents.sort_unstable();
        let there = other.children.get(&parents).map_or(0, Vec::len);
        let more = nodes.len().saturating_sub(there);
        let unlike = nodes.iter().filter(|node| mapped(**node).is_none());
        // Those that have a counterpart were compared with it, in their order.
        let unlike: Vec<&NodeId> = unlike.collect();
        let extra = &unlike[unlike.len().saturating_sub(more)..];
        found.extend(extra.iter().filter_map(|node| graph.nodes.get(node)));
    }
    found.sort_by_key(|node| (node.turn, node.id));
    found
}
