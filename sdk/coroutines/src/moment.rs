//! Moments: instants of a session, relative to its events.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

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
    /// Distinct nodes, in the order of their numbers.
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
    pub(crate) fn wait(self) -> Nanos {
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moment {
    /// The delay after the session's start, unless a node implies it.
    start: Option<Nanos>,
    nodes: BTreeMap<Node, Nanos>,
}

impl Moment {
    /// Returns the start of the session.
    pub(crate) fn session_start() -> Self {
        Moment {
            start: Some(0),
            nodes: BTreeMap::new(),
        }
    }

    /// Returns the end of a node.
    pub(crate) fn completion(node: Node) -> Self {
        Moment {
            start: None,
            nodes: BTreeMap::from([(node, 0)]),
        }
    }

    /// Returns the number of ends that the moment has.
    pub(crate) fn ends(&self) -> usize {
        self.nodes.len()
    }

    /// Moves the moment by `time`.
    pub(crate) fn delay(&mut self, time: Nanos) {
        for delay in self.start.iter_mut().chain(self.nodes.values_mut()) {
            *delay = delay.saturating_add(time);
        }
    }

    /// Returns the moment `time` after this one.
    pub(crate) fn after(&self, time: Nanos) -> Self {
        let mut moment = self.clone();
        moment.delay(time);
        moment
    }

    /// Removes the instants that are not after another moment. The caller adds a moment that is not
    /// before that one.
    pub(crate) fn remove_implied(&mut self, by: &Moment) {
        for (&node, &known) in &by.nodes {
            if let Entry::Occupied(delay) = self.nodes.entry(node)
                && *delay.get() <= known
            {
                delay.remove();
            }
        }
        if self.start.is_some() {
            let since_start = by.since_start();
            self.start = self.start.filter(|start| *start > since_start);
        }
    }

    /// Adds the instants of another moment: the later of both is meant.
    pub(crate) fn add(&mut self, other: &Moment) {
        for (&node, &delay) in &other.nodes {
            let known = self.nodes.entry(node).or_insert(delay);
            *known = delay.max(*known);
        }
        self.start = self.start.max(other.start);
        if let Some(start) = self.start
            && self.longest_delay().is_some_and(|longest| longest >= start)
        {
            // A node ends after the session's start.
            self.start = None;
        }
    }

    fn longest_delay(&self) -> Option<Nanos> {
        self.nodes.values().copied().max()
    }

    /// Returns the time since the session's start that the moment implies.
    fn since_start(&self) -> Nanos {
        self.start.max(self.longest_delay()).unwrap_or(0)
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
            .map(|(&node, &delay)| (node, Event::Completed, delay));
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
    /// that `now` does not have, and only nodes that have ended. `is_open` returns true for others.
    pub(crate) fn has_passed(&self, now: &Moment, is_open: impl Fn(Node) -> bool) -> bool {
        let is_in_now = |node: &Node, delay: Nanos| now.nodes.get(node).is_some_and(|known| *known >= delay);
        let mut nodes = self.nodes.iter();
        let nodes_passed =
            nodes.all(|(node, &delay)| delay == 0 && !is_open(*node) || is_in_now(node, delay));
        // A node ends after the session's start.
        nodes_passed && self.start.is_none_or(|delay| delay <= now.since_start())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_passed(moment: &Moment, now: &Moment) -> bool {
        moment.has_passed(now, |_| false)
    }

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

    fn latest(moments: impl IntoIterator<Item = Moment>) -> Moment {
        let mut latest = Moment::default();
        for moment in moments {
            latest.add(&moment);
        }
        latest
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
            has_passed(&start, &start)
                && has_passed(&one, &start)
                && has_passed(&latest([one.clone(), two.clone()]), &start)
        );
        let later = latest([one.after(5), two.clone()]);
        assert!(!has_passed(&later, &start) && !has_passed(&later, &one.after(4)));
        assert!(has_passed(&later, &one.after(5)));
        assert!(!has_passed(&start.after(5), &one.after(4)));
        assert!(has_passed(&start.after(5), &one.after(5)) && has_passed(&start.after(5), &start.after(6)));
    }
}
