//! The critical path of a session: the chain of nodes that determined its makespan.

use veeksha_model::{Edge, Nanos, Trigger};

use crate::path_part::{PathPart, PathParts};
use crate::session_graph::{NodePhases, SessionGraph};

/// A node on a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// The index of the node.
    pub place: usize,
    /// The event of the node for which the next one waited; for the last node, its end.
    pub event: Trigger,
}

/// The critical path of a session: from its start to its last completion.
#[derive(Clone, Debug, PartialEq)]
pub struct CriticalPath {
    /// The nodes in the order of time.
    pub steps: Vec<PathStep>,
    /// The time of each part. The sum is the makespan of the session.
    pub times: PathParts<Nanos>,
}

impl SessionGraph {
    /// Returns the critical path: from the node that ended last back over the edge that was met
    /// last, to a node without edges.
    pub fn critical_path(&self) -> CriticalPath {
        let mut walk = PathWalk {
            start: self.start(),
            at: self
                .nodes()
                .iter()
                .map(|phases| phases.completed)
                .max()
                .unwrap_or(self.start()),
            times: PathParts::default(),
        };
        let ended_last = self.nodes().iter().position(|phases| phases.completed == walk.at);
        let mut next = ended_last.map(|place| PathStep {
            place,
            event: Trigger::Completed,
        });
        let mut steps = Vec::new();
        while let Some(step) = next {
            steps.push(step);
            walk.take_node(&self.nodes()[step.place]);
            next = self.edge_met_last(step.place).map(|(place, edge)| {
                walk.take(PathPart::Think, self.nodes()[place].events().of(edge.trigger));
                PathStep {
                    place,
                    event: edge.trigger,
                }
            });
        }
        walk.take(PathPart::Think, walk.start);
        steps.reverse();
        CriticalPath {
            steps,
            times: walk.times,
        }
    }

    /// Returns the edge of a node that was met last, with the index of the parent.
    fn edge_met_last(&self, place: usize) -> Option<(usize, Edge)> {
        let met_at = |(parent, edge): &&(usize, Edge)| {
            let event = self.nodes()[*parent].events().of(edge.trigger);
            event.saturating_add(edge.delay)
        };
        self.edges(place).iter().max_by_key(met_at).copied()
    }
}

/// A walk along a path, back in time.
struct PathWalk {
    start: Nanos,
    /// The time from here to the end is distributed.
    at: Nanos,
    times: PathParts<Nanos>,
}

impl PathWalk {
    /// Distributes the time of a node before the event at which the walk entered it.
    fn take_node(&mut self, phases: &NodePhases) {
        let [until_sent, until_first_chunk, until_end] = phases.parts();
        self.take(until_end, phases.first_chunk);
        self.take(until_first_chunk, phases.sent);
        self.take(until_sent, phases.intended);
    }

    /// Adds the time since an instant to a part. Stamps of several threads can be out of order by
    /// microseconds: no instant counts twice.
    fn take(&mut self, part: PathPart, since: Nanos) {
        let since = since.clamp(self.start, self.at);
        *self.times.of_mut(part) += self.at - since;
        self.at = since;
    }
}
