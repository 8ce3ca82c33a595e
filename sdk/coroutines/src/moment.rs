//! Moments: instants of a session, relative to its events.

use std::collections::BTreeMap;
use std::rc::Rc;

/// The number of a request or tool run within its session.
pub type Node = u32;

/// A duration in nanoseconds.
pub type Nanos = u64;

/// The event of a node that another one waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It was sent; a tool run: a server took it.
    Dispatched,
    /// It ended.
    Completed,
}

/// A dependency of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartEdge {
    /// The other node.
    pub node: Node,
    /// Its event.
    pub event: Event,
    /// The time after the event.
    pub delay: Nanos,
}

/// The start of a node: `wait` after its last edge is met or, without edges, after the start of
/// the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// Distinct nodes, in the order in which they were awaited.
    pub edges: Vec<StartEdge>,
    /// Think time.
    pub wait: Nanos,
}

/// A node without edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// A timer of no time.
    Timer,
    /// A request that is sent this long after the session's start.
    Request(Nanos),
    /// A tool run. A server takes it at the session's start or, if all are busy, later.
    ToolRun,
}

impl Root {
    fn wait(self) -> Nanos {
        match self {
            Root::Request(wait) => wait,
            Root::Timer | Root::ToolRun => 0,
        }
    }

    /// Returns a key that is smaller for roots that represent the session's start better.
    ///
    /// The shortest wait comes first: no node ends before the dispatch of that root.
    pub(crate) fn rank(self) -> (Nanos, u8) {
        let kind = match self {
            Root::Timer => 0,
            Root::Request(_) => 1,
            Root::ToolRun => 2,
        };
        (self.wait(), kind)
    }
}

/// The latest of several instants: the session's start and the ends of nodes, each with a delay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// The delay after the session's start, unless a node implies it.
    start: Option<Nanos>,
    nodes: Vec<(Node, Nanos)>,
}

impl Moment {
    /// Returns the start of the session.
    pub(crate) fn session_start() -> Self {
        Moment {
            start: Some(0),
            nodes: Vec::new(),
        }
    }

    /// Returns the end of a node.
    pub(crate) fn completion(node: Node) -> Self {
        Moment {
            start: None,
            nodes: vec![(node, 0)],
        }
    }

    /// Returns the moment `time` after this one.
    pub(crate) fn after(&self, time: Nanos) -> Self {
        let nodes = self.nodes.iter();
        Moment {
            start: self.start.map(|delay| delay.saturating_add(time)),
            nodes: nodes
                .map(|&(node, delay)| (node, delay.saturating_add(time)))
                .collect(),
        }
    }

    /// Returns the latest of several moments.
    pub(crate) fn latest(moments: Vec<Rc<Moment>>) -> Rc<Self> {
        if let [moment] = &moments[..] {
            return Rc::clone(moment);
        }
        let start = moments.iter().filter_map(|moment| moment.start).max();
        let mut nodes: Vec<(Node, Nanos)> = Vec::new();
        let mut places = BTreeMap::new();
        for &(node, delay) in moments.iter().flat_map(|moment| &moment.nodes) {
            let place = *places.entry(node).or_insert(nodes.len());
            match nodes.get_mut(place) {
                Some((_, known)) => *known = delay.max(*known),
                None => nodes.push((node, delay)),
            }
        }
        let mut latest = Moment { start, nodes };
        // A node ends after the session's start.
        let longest = latest.longest_delay();
        latest.start = start.filter(|start| longest.is_none_or(|longest| *start > longest));
        Rc::new(latest)
    }

    fn longest_delay(&self) -> Option<Nanos> {
        self.nodes.iter().map(|(_, delay)| *delay).max()
    }

    /// Returns true if the moment is after the session's start alone.
    pub(crate) fn is_since_start(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the start of a node at this moment. `first` is the node without edges that best
    /// represents the session's start.
    ///
    /// A delay that all edges share is the request's wait. An edge cannot name the session's start,
    /// so the dispatch of `first` represents it.
    pub(crate) fn start(&self, first: Option<(Node, Root)>) -> Start {
        let Some(longest) = self.longest_delay() else {
            return Start {
                edges: Vec::new(),
                wait: self.start.unwrap_or(0),
            };
        };
        let of_start = self.start.zip(first).and_then(|(start, (node, root))| {
            // Each node ends after the dispatch of `first`.
            let delay = start.checked_sub(root.wait()).filter(|delay| *delay > longest)?;
            Some((node, Event::Dispatched, delay))
        });
        let ends = self
            .nodes
            .iter()
            .map(|&(node, delay)| (node, Event::Completed, delay));
        let edges = ends
            .chain(of_start)
            .map(|(node, event, delay)| StartEdge { node, event, delay });
        let mut start = Start {
            edges: edges.collect(),
            wait: 0,
        };
        start.wait = start.edges.iter().map(|edge| edge.delay).min().unwrap_or(0);
        for edge in &mut start.edges {
            edge.delay -= start.wait;
        }
        start
    }

    /// Returns the edges of a node at this moment that has no wait: delays are on its edges. `None`
    /// if the moment is after the session's start alone, and `first` does not represent it.
    pub(crate) fn edges(&self, first: Option<(Node, Root)>) -> Option<Vec<StartEdge>> {
        let Start { mut edges, wait } = self.start(first);
        if edges.is_empty() && wait > 0 {
            let (node, root) = first?;
            let delay = wait.checked_sub(root.wait())?;
            edges.push(StartEdge {
                node,
                event: Event::Dispatched,
                delay,
            });
            return Some(edges);
        }
        for edge in &mut edges {
            edge.delay = edge.delay.saturating_add(wait);
        }
        Some(edges)
    }

    /// Returns true if this moment is not after `now`, and not after the present: it has no delay
    /// that `now` does not have.
    pub(crate) fn has_passed(&self, now: &Moment) -> bool {
        let of_node = |node: Node| now.nodes.iter().find(|(known, _)| *known == node);
        let mut nodes = self.nodes.iter();
        let nodes_passed =
            nodes.all(|&(node, delay)| delay == 0 || of_node(node).is_some_and(|(_, known)| *known >= delay));
        // A node ends after the session's start.
        let since_start = now.start.max(now.longest_delay()).unwrap_or(0);
        nodes_passed && self.start.is_none_or(|delay| delay <= since_start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(node: Node, event: Event, delay: Nanos) -> StartEdge {
        StartEdge { node, event, delay }
    }

    #[test]
    fn a_request_at_the_start_of_the_session_has_no_edges() {
        let start = Moment::session_start()
            .after(5)
            .after(2)
            .start(Some((1, Root::Request(0))));
        assert_eq!((start.edges.len(), start.wait), (0, 7));
    }

    fn latest(moments: impl IntoIterator<Item = Moment>) -> Rc<Moment> {
        Moment::latest(moments.into_iter().map(Rc::new).collect())
    }

    #[test]
    fn a_delay_that_all_edges_share_is_the_wait() {
        let [one, two] = [1, 2].map(Moment::completion);
        let moment = latest([one.after(5), two.after(7), one]);
        let start = moment.after(10).start(Some((1, Root::Request(0))));
        assert_eq!(start.wait, 15);
        assert_eq!(
            start.edges,
            [edge(1, Event::Completed, 0), edge(2, Event::Completed, 2)]
        );
    }

    #[test]
    fn the_dispatch_of_the_first_request_represents_the_start() {
        let slept = Moment::session_start().after(100);
        let moment = latest([slept.clone(), Moment::completion(1)]);
        let edges = [edge(1, Event::Completed, 0), edge(1, Event::Dispatched, 70)];
        assert_eq!(moment.start(Some((1, Root::Request(30)))).edges, edges);
        // The end of a request that waited for longer implies the delay.
        assert_eq!(moment.start(Some((1, Root::Request(100)))).edges, edges[..1]);
        assert_eq!(latest([slept, Moment::completion(2).after(100)]).start, None);
    }

    #[test]
    fn a_sleep_before_a_tool_run_is_on_its_edges() {
        let [one, two] = [1, 2].map(Moment::completion);
        let edges = latest([one.after(5), two.after(7)]).after(10).edges(None);
        let expected = [edge(1, Event::Completed, 15), edge(2, Event::Completed, 17)];
        assert_eq!(edges.unwrap(), expected);
        assert_eq!(Moment::session_start().edges(None), Some(Vec::new()));
    }

    #[test]
    fn a_sleep_since_the_start_needs_a_root_before_a_tool_run() {
        let slept = Moment::session_start().after(100);
        assert_eq!(slept.edges(None), None);
        assert_eq!(slept.edges(Some((1, Root::Request(101)))), None);
        let after = |delay| Some(vec![edge(1, Event::Dispatched, delay)]);
        assert_eq!(slept.edges(Some((1, Root::Request(30)))), after(70));
        assert_eq!(slept.edges(Some((1, Root::ToolRun))), after(100));
        assert_eq!(slept.edges(Some((1, Root::Timer))), after(100));
    }

    #[test]
    fn a_moment_without_delays_has_passed() {
        let start = Moment::session_start();
        let [one, two] = [1, 2].map(Moment::completion);
        assert!(
            start.has_passed(&start)
                && one.has_passed(&start)
                && latest([one.clone(), two.clone()]).has_passed(&start)
        );
        let later = latest([one.after(5), two.clone()]);
        assert!(!later.has_passed(&start) && !later.has_passed(&one.after(4)));
        assert!(later.has_passed(&one.after(5)));
        assert!(!start.after(5).has_passed(&one.after(4)));
        assert!(start.after(5).has_passed(&one.after(5)) && start.after(5).has_passed(&start.after(6)));
    }
}
