//! Dependencies between the nodes of a session: its requests and tool runs.

use crate::ids::{Nanos, NodeId};

/// The event of a node that starts another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trigger {
    /// A request was handed over to a client thread; a server took a tool run.
    Dispatched,
    /// The first generated chunk of a request arrived. A request that ends without one, and a tool
    /// run, trigger at their end.
    FirstChunk,
    /// It ended.
    #[default]
    Completed,
}

impl Trigger {
    /// All triggers, in the order of their events.
    pub const ALL: [Trigger; 3] = [Trigger::Dispatched, Trigger::FirstChunk, Trigger::Completed];

    /// The name in scenarios, files and Lua.
    pub fn name(self) -> &'static str {
        match self {
            Trigger::Dispatched => "dispatched",
            Trigger::FirstChunk => "first_chunk",
            Trigger::Completed => "completed",
        }
    }

    /// Returns the trigger with this name.
    pub fn named(name: &str) -> Option<Trigger> {
        Trigger::ALL.into_iter().find(|trigger| trigger.name() == name)
    }
}

/// A dependency of a node on another node of its session. It is met `delay` after the parent's
/// trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    /// The node that is waited for.
    pub parent: NodeId,
    /// The awaited event of the parent.
    pub trigger: Trigger,
    /// Time after that event.
    pub delay: Nanos,
}

/// Waits for the end of a node, without a delay.
impl From<NodeId> for Edge {
    fn from(parent: NodeId) -> Self {
        Edge {
            parent,
            trigger: Trigger::Completed,
            delay: 0,
        }
    }
}

/// The instants of a node's events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventInstants {
    /// The dispatch of a request, the start of a tool run's service.
    pub dispatched: Nanos,
    /// The first generated chunk of a request; the node's end if there was none.
    pub first_chunk: Nanos,
    /// Its end.
    pub completed: Nanos,
}

impl EventInstants {
    /// Returns the instant of an event.
    pub fn of(&self, trigger: Trigger) -> Nanos {
        match trigger {
            Trigger::Dispatched => self.dispatched,
            Trigger::FirstChunk => self.first_chunk,
            Trigger::Completed => self.completed,
        }
    }
}

/// Returns the instant at which the last of some edges is met; 0 without edges. `None` if the
/// events of a parent are unknown.
pub fn edges_met_at(edges: &[Edge], events: impl Fn(NodeId) -> Option<EventInstants>) -> Option<Nanos> {
    edges.iter().try_fold(0, |last: Nanos, edge| {
        let at = events(edge.parent)?.of(edge.trigger);
        Some(last.max(at.saturating_add(edge.delay)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_edge_decides_when_all_are_met() {
        let edge = |parent, trigger, delay| Edge {
            parent: NodeId(parent),
            trigger,
            delay,
        };
        let events = |node: NodeId| {
            (node.0 < 2).then_some(EventInstants {
                dispatched: 10,
                first_chunk: 20 + u64::from(node.0),
                completed: 90,
            })
        };
        assert_eq!(edges_met_at(&[], events), Some(0));
        let early = [edge(0, Trigger::Dispatched, 15), edge(1, Trigger::FirstChunk, 0)];
        assert_eq!(edges_met_at(&early, events), Some(25));
        assert_eq!(edges_met_at(&[early[1], NodeId(0).into()], events), Some(90));
        assert_eq!(edges_met_at(&[early[0], NodeId(7).into()], events), None);
    }

    #[test]
    fn triggers_are_found_by_name() {
        for trigger in Trigger::ALL {
            assert_eq!(Trigger::named(trigger.name()), Some(trigger));
        }
        assert_eq!(Trigger::named("finished"), None);
    }
}
