//! The critical path of a session: the chain of requests that determined its makespan.

use veeksha_model::{Edge, Nanos, Trigger};

use crate::session_graph::{RequestPhases, SessionGraph};
use crate::table::Metric;

/// A kind of time on a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathPart {
    /// From the scheduled instant of a request until its last byte was sent, including the time for
    /// which limits held it back.
    ClientQueueing,
    /// Until its first generated chunk.
    Prefill,
    /// Until its end.
    Decode,
    /// From an event to the scheduled instant of the request that waited for it: think times,
    /// delays of edges, and waits for the instants of a recording.
    Think,
}

impl PathPart {
    /// All parts, in the order of files and tables.
    pub const ALL: [PathPart; 4] = [
        PathPart::ClientQueueing,
        PathPart::Prefill,
        PathPart::Decode,
        PathPart::Think,
    ];

    /// Returns the name in files and options.
    pub fn name(self) -> &'static str {
        match self {
            PathPart::ClientQueueing => "client_queueing",
            PathPart::Prefill => "prefill",
            PathPart::Decode => "decode",
            PathPart::Think => "think",
        }
    }

    /// Returns the metric with the sum of this part on the critical path of each session.
    pub fn metric(self) -> Metric {
        match self {
            PathPart::ClientQueueing => Metric::PathClientQueueing,
            PathPart::Prefill => Metric::PathPrefill,
            PathPart::Decode => Metric::PathDecode,
            PathPart::Think => Metric::PathThink,
        }
    }
}

/// A value for each part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathParts<T>([T; PathPart::ALL.len()]);

impl<T: Copy> PathParts<T> {
    /// Returns the same value for all parts.
    pub fn all(value: T) -> Self {
        PathParts([value; PathPart::ALL.len()])
    }

    /// Returns the value of a part.
    pub fn of(&self, part: PathPart) -> T {
        self.0[part as usize]
    }

    /// Returns the value of a part for changes.
    pub fn of_mut(&mut self, part: PathPart) -> &mut T {
        &mut self.0[part as usize]
    }
}

/// A request on a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// The index of the request.
    pub place: usize,
    /// The event of the request for which the next one waited; for the last request, its end.
    pub event: Trigger,
}

/// The critical path of a session: from its start to its last completion.
#[derive(Clone, Debug, PartialEq)]
pub struct CriticalPath {
    /// The requests in the order of time.
    pub steps: Vec<PathStep>,
    /// The time of each part. The sum is the makespan of the session.
    pub times: PathParts<Nanos>,
}

impl SessionGraph {
    /// Returns the critical path: from the request that ended last back over the edge that was met
    /// last, to a request without edges.
    pub fn critical_path(&self) -> CriticalPath {
        let mut walk = PathWalk {
            start: self.start(),
            at: self
                .requests()
                .iter()
                .map(|phases| phases.completed)
                .max()
                .unwrap_or(self.start()),
            times: PathParts::default(),
        };
        let ended_last = self
            .requests()
            .iter()
            .position(|phases| phases.completed == walk.at);
        let mut next = ended_last.map(|place| PathStep {
            place,
            event: Trigger::Completed,
        });
        let mut steps = Vec::new();
        while let Some(step) = next {
            steps.push(step);
            walk.take_request(&self.requests()[step.place]);
            next = self.edge_met_last(step.place).map(|(place, edge)| {
                walk.take(PathPart::Think, self.requests()[place].events().of(edge.trigger));
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

    /// Returns the edge of a request that was met last, with the index of the parent.
    fn edge_met_last(&self, place: usize) -> Option<(usize, Edge)> {
        let met_at = |(parent, edge): &&(usize, Edge)| {
            let event = self.requests()[*parent].events().of(edge.trigger);
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
    /// Distributes the time of a request before the event at which the walk entered it.
    fn take_request(&mut self, phases: &RequestPhases) {
        self.take(PathPart::Decode, phases.first_chunk);
        self.take(PathPart::Prefill, phases.sent);
        self.take(PathPart::ClientQueueing, phases.intended);
    }

    /// Adds the time since an instant to a part. Stamps of several threads can be out of order by
    /// microseconds: no instant counts twice.
    fn take(&mut self, part: PathPart, since: Nanos) {
        let since = since.clamp(self.start, self.at);
        *self.times.of_mut(part) += self.at - since;
        self.at = since;
    }
}
