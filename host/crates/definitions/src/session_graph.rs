//! The nodes of a session as a graph, with the instants between their phases.

use veeksha_model::{Edge, EventInstants, Nanos, NodeId};

use crate::observation::Observation;
use crate::path_part::PathPart;
use crate::tool_times::ToolTimes;

/// The instants between the phases of a request or a tool run. None is earlier than the one before
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodePhases {
    /// The scheduled instant; of a tool run, the instant of the call.
    pub intended: Nanos,
    /// The instant at which it was handed to a client; of a tool run, its start.
    pub dispatched: Nanos,
    /// The instant at which its last byte was sent; of a tool run, its start.
    pub sent: Nanos,
    /// The arrival of its first generated chunk; of a tool run, its end.
    pub first_chunk: Nanos,
    /// Its end.
    pub completed: Nanos,
    /// True for a tool run.
    pub is_tool_run: bool,
}

impl NodePhases {
    /// Returns the phases of a request that ended at `completed`. The time to the end of a request
    /// without a first chunk belongs to the last phase that it reached.
    pub fn of(observation: &Observation, completed: Nanos) -> Self {
        let Observation {
            intended,
            dispatched,
            sent,
            first,
            ..
        } = *observation;
        NodePhases::new(intended, dispatched, sent.get(), first.get(), completed)
    }

    /// Returns the phases of a tool run.
    pub fn of_tool_run(times: &ToolTimes) -> Self {
        let completed = times.completed.max(times.ready);
        let started = times.started.clamp(times.ready, completed);
        NodePhases {
            intended: times.ready,
            dispatched: started,
            sent: started,
            first_chunk: completed,
            completed,
            is_tool_run: true,
        }
    }

    /// Returns the phases of a node that was cancelled before it was sent and ended at this
    /// instant.
    pub fn of_unsent(at: Nanos) -> Self {
        NodePhases::new(at, at, Some(at), Some(at), at)
    }

    /// Returns the phases of a request between these instants; `sent` and `first_chunk` are `None`
    /// if they are not known.
    pub fn new(
        intended: Nanos,
        dispatched: Nanos,
        sent: Option<Nanos>,
        first_chunk: Option<Nanos>,
        completed: Nanos,
    ) -> Self {
        let completed = completed.max(intended);
        let dispatched = dispatched.clamp(intended, completed);
        let sent = sent.or(first_chunk.map(|_| dispatched)).unwrap_or(completed);
        let sent = sent.clamp(dispatched, completed);
        NodePhases {
            intended,
            dispatched,
            sent,
            first_chunk: first_chunk.unwrap_or(completed).clamp(sent, completed),
            completed,
            is_tool_run: false,
        }
    }

    /// Returns the parts of a path to which its time belongs: until `sent`, until `first_chunk`,
    /// and until its end.
    pub fn parts(&self) -> [PathPart; 3] {
        if self.is_tool_run {
            [
                PathPart::ToolWaiting,
                PathPart::ToolService,
                PathPart::ToolService,
            ]
        } else {
            [PathPart::ClientQueueing, PathPart::Prefill, PathPart::Decode]
        }
    }

    /// Returns the instants of the events that other nodes can wait for.
    pub fn events(&self) -> EventInstants {
        EventInstants {
            dispatched: self.dispatched,
            first_chunk: self.first_chunk,
            completed: self.completed,
        }
    }
}

/// A request or a tool run of a session, or a node that was cancelled before it was sent and for
/// which another one waited.
#[derive(Clone, Copy, Debug)]
pub struct GraphNode<'a> {
    /// Its node.
    pub node: NodeId,
    /// Its instants.
    pub phases: NodePhases,
    /// The think time after its edges.
    pub wait: Nanos,
    /// The events that it waited for.
    pub edges: &'a [Edge],
}

impl GraphNode<'_> {
    /// Returns the instant at which a node without edges was added to its session, if that was
    /// after the start.
    fn added_at(&self, start: Nanos) -> Option<Nanos> {
        let at = self.phases.intended.checked_sub(self.wait)?;
        (self.edges.is_empty() && at > start).then_some(at)
    }
}

/// The nodes of a session, with the indices of their parents.
#[derive(Debug)]
pub struct SessionGraph {
    nodes: Vec<NodePhases>,
    /// The edges of each node, each with the index of the parent.
    edges: Vec<Vec<(usize, Edge)>>,
    parents_first: Vec<usize>,
    start: Nanos,
}

impl SessionGraph {
    /// Builds the graph of the nodes, which must be sorted by their ids. `None` without nodes, if a
    /// parent is missing, or if the edges form a cycle.
    ///
    /// A node without edges that was due exactly its think time after the end of another one was
    /// added by an agent at that end (scheduler), so it gets an edge.
    pub fn of(nodes: &[GraphNode]) -> Option<Self> {
        let start = nodes.iter().map(|node| node.phases.intended).min()?;
        let place = |edge: &Edge| {
            let place = nodes.binary_search_by_key(&edge.parent, |node| node.node);
            Some((place.ok()?, *edge))
        };
        let mut by_end = None;
        let edges = nodes.iter().map(|node| match node.added_at(start) {
            Some(at) => {
                let by_end = by_end.get_or_insert_with(|| ByEnd::of(nodes));
                Some(by_end.implied_edge(at).into_iter().collect())
            }
            None => node.edges.iter().map(place).collect::<Option<Vec<_>>>(),
        });
        let edges: Vec<Vec<(usize, Edge)>> = edges.collect::<Option<_>>()?;
        Some(SessionGraph {
            nodes: nodes.iter().map(|node| node.phases).collect(),
            parents_first: parents_first(&edges)?,
            edges,
            start,
        })
    }

    /// Returns the phases of the nodes.
    pub fn nodes(&self) -> &[NodePhases] {
        &self.nodes
    }

    /// Returns the edges of a node, each with the index of the parent.
    pub fn edges(&self, place: usize) -> &[(usize, Edge)] {
        &self.edges[place]
    }

    /// Returns the indices of the nodes in an order in which each comes after its parents.
    /// Instants of dispatch do not give it: in virtual time, a request can be dispatched together
    /// with a parent.
    pub fn parents_first(&self) -> &[usize] {
        &self.parents_first
    }

    /// Returns the earliest scheduled instant.
    pub fn start(&self) -> Nanos {
        self.start
    }
}

/// The nodes in the order of their ends.
struct ByEnd<'a> {
    nodes: &'a [GraphNode<'a>],
    places: Vec<usize>,
}

impl<'a> ByEnd<'a> {
    fn of(nodes: &'a [GraphNode<'a>]) -> Self {
        let mut places: Vec<usize> = (0..nodes.len()).collect();
        places.sort_by_key(|place| nodes[*place].phases.completed);
        ByEnd { nodes, places }
    }

    /// Returns the edge of a node that an agent added, without naming a parent, at the end of
    /// another one.
    fn implied_edge(&self, due: Nanos) -> Option<(usize, Edge)> {
        let phases = |place: &usize| self.nodes[*place].phases;
        let first = self.places.partition_point(|place| phases(place).completed < due);
        let ended_then = self.places[first..]
            .iter()
            .take_while(|place| phases(place).completed == due);
        let parent = ended_then.copied().find(|place| phases(place).intended < due)?;
        Some((parent, self.nodes[parent].node.into()))
    }
}

fn parents_first(edges: &[Vec<(usize, Edge)>]) -> Option<Vec<usize>> {
    if edges.iter().all(Vec::is_empty) {
        return Some((0..edges.len()).collect());
    }
    let mut children = vec![Vec::new(); edges.len()];
    let mut left = Vec::with_capacity(edges.len());
    for (place, parents) in edges.iter().enumerate() {
        left.push(parents.len());
        parents
            .iter()
            .for_each(|(parent, _)| children[*parent].push(place));
    }
    let mut order: Vec<usize> = (0..left.len()).filter(|place| left[*place] == 0).collect();
    let mut next = 0;
    while let Some(&place) = order.get(next) {
        next += 1;
        for &child in &children[place] {
            left[child] -= 1;
            if left[child] == 0 {
                order.push(child);
            }
        }
    }
    (order.len() == left.len()).then_some(order)
}
