//! The search for the first decision that differs.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use veeksha_model::NodeId;

use super::correspondence::{Correspondence, GraphSide};
use super::difference::{Difference, difference, excerpts};
use super::field::DecisionField;
use super::graph::{DecisionGraph, DecisionNode, NodeDecision};
use super::node_key::{content_key, key};
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
        let children = &self.same.recorded.children;
        // For each node, the groups that wait for it; for each group, how many of its nodes have no
        // counterpart so far.
        let mut groups: HashMap<NodeId, Vec<&Vec<NodeId>>> = HashMap::new();
        let mut lacks: HashMap<&Vec<NodeId>, usize> = HashMap::new();
        for parents in children.keys() {
            for parent in parents {
                groups.entry(*parent).or_default().push(parents);
            }
            lacks.insert(parents, parents.len());
        }
        let mut ready: BTreeSet<&Vec<NodeId>> =
            children.keys().filter(|parents| parents.is_empty()).collect();
        while !ready.is_empty() {
            let mut next = BTreeSet::new();
            for parents in ready {
                for matched in self.match_children(parents) {
                    for group in groups.remove(&matched).unwrap_or_default() {
                        if let Some(lacks) = lacks.get_mut(group) {
                            *lacks -= 1;
                            if *lacks == 0 {
                                next.insert(group);
                            }
                        }
                    }
                }
            }
            ready = next;
        }
    }

    /// Pairs the nodes that wait for the same nodes: first those that are equal, then the others
    /// in their order, which differ. Returns the recorded nodes that have an equal one.
    fn match_children(&mut self, parents: &[NodeId]) -> Vec<NodeId> {
        let mut mapped: Vec<NodeId> = parents
            .iter()
            .filter_map(|parent| self.same.to_other.get(parent).copied())
            .collect();
        mapped.sort_unstable();
        let (recorded, other) = (self.same.recorded, self.same.other);
        let ones = nodes_of(recorded, parents);
        // The keys are those before any of these nodes has a counterpart, for all of them.
        let keys = ones.iter().map(|one| key(one, GraphSide::Recorded, &self.same));
        let keys: Vec<u64> = keys.collect();
        let mut others = Candidates::new(nodes_of(other, &mapped), |node| {
            key(node, GraphSide::Other, &self.same)
        });
        let (mut matched, mut unlike) = (Vec::new(), Vec::new());
        for (one, key) in ones.into_iter().zip(keys) {
            match others.take(key, |candidate| difference(one, candidate, &self.same).is_none()) {
                Some(candidate) => {
                    self.same.add(one.id, candidate.id);
                    matched.push(one.id);
                }
                None => unlike.push(one),
            }
        }
        for (one, candidate) in unlike.into_iter().zip(others.left()) {
            if let Some(Difference { field, values }) = difference(one, candidate, &self.same) {
                self.found.push(Divergence {
                    turn: one.turn,
                    depth: one.depth,
                    field,
                    values,
                });
            }
        }
        matched
    }

    /// Finds nodes whose parents correspond and that only one session has. A session that was cut
    /// may have had them later.
    fn compare_unmatched(&mut self) {
        let (recorded, other) = (self.same.recorded, self.same.other);
        let to_other = |node: NodeId| self.same.to_other.get(&node).copied();
        let to_recorded = |node: NodeId| self.same.to_recorded.get(&node).copied();
        let mut ones = unmatched(recorded, other, &to_other);
        let mut others = Candidates::new(unmatched(other, recorded, &to_recorded), |node| {
            content_key(node, GraphSide::Other, &self.same)
        });
        let mut found = Vec::new();
        // The same node with other edges.
        ones.retain(|one| {
            let key = content_key(one, GraphSide::Recorded, &self.same);
            let moved = |candidate: &DecisionNode<'_>| {
                let field = difference(one, candidate, &self.same).map(|found| found.field);
                matches!(field, Some(DecisionField::Edges | DecisionField::History))
            };
            let Some(candidate) = others.take(key, moved) else {
                return true;
            };
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
        let others: Vec<_> = others.left().collect();
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

/// Returns the nodes that wait for these nodes, in the order in which they were added.
fn nodes_of<'g, 'a>(graph: &'g DecisionGraph<'a>, parents: &[NodeId]) -> Vec<&'g DecisionNode<'a>> {
    let nodes = graph.children.get(parents).into_iter().flatten();
    nodes.filter_map(|node| graph.nodes.get(node)).collect()
}

/// Nodes of the other session that have no counterpart so far, by their keys.
struct Candidates<'g, 'a> {
    /// In their order; `None` for those that were taken.
    nodes: Vec<Option<&'g DecisionNode<'a>>>,
    by_key: HashMap<u64, VecDeque<usize>>,
}

impl<'g, 'a> Candidates<'g, 'a> {
    fn new(nodes: Vec<&'g DecisionNode<'a>>, key: impl Fn(&DecisionNode<'a>) -> u64) -> Self {
        let mut by_key: HashMap<u64, VecDeque<usize>> = HashMap::new();
        for (place, node) in nodes.iter().enumerate() {
            by_key.entry(key(node)).or_default().push_back(place);
        }
        Candidates {
            nodes: nodes.into_iter().map(Some).collect(),
            by_key,
        }
    }

    /// Takes the first node with a key that is the same.
    fn take(
        &mut self,
        key: u64,
        is_same: impl Fn(&DecisionNode<'a>) -> bool,
    ) -> Option<&'g DecisionNode<'a>> {
        let places = self.by_key.get_mut(&key)?;
        let found = places
            .iter()
            .position(|place| self.nodes[*place].is_some_and(&is_same))?;
        self.nodes[places.remove(found)?].take()
    }

    /// Returns the nodes that were not taken, in their order.
    fn left(self) -> impl Iterator<Item = &'g DecisionNode<'a>> {
        self.nodes.into_iter().flatten()
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
