//! Bounds on the edges of long sessions.

#![expect(clippy::expect_used, reason = "helpers of tests may fail as tests do")]

use std::collections::BTreeSet;

use veeksha_coroutines::{
    CoroutineId, Coroutines, IssuedNode, MAX_ENDS, Mode, NewNode, Node, Resumption, Target,
};

#[derive(Clone, Copy)]
struct Request;

impl NewNode for Request {
    fn is_tool_run(&self) -> bool {
        false
    }

    fn root_wait(&self) -> Option<u64> {
        Some(0)
    }
}

const MAIN: CoroutineId = CoroutineId::MAIN;

/// A session whose subagents send one request each, unless the code of the test runs them.
struct Session {
    coroutines: Coroutines<(), Request>,
    issued: Vec<IssuedNode<Request>>,
    /// Nodes without an answer.
    open: BTreeSet<Node>,
    /// True if the newest node is answered first.
    newest_first: bool,
}

impl Session {
    fn new(newest_first: bool) -> Self {
        let mut session = Session {
            coroutines: Coroutines::new(),
            issued: Vec::new(),
            open: BTreeSet::new(),
            newest_first,
        };
        assert!(session.coroutines.take_ready().is_some());
        session
    }

    fn worker(&mut self, parent: CoroutineId) -> CoroutineId {
        self.coroutines.spawn(parent).expect("few live subagents")
    }

    /// Lets a coroutine wait, and runs the others until it continues.
    fn wait(&mut self, id: CoroutineId, targets: Vec<Target<Request>>) {
        self.coroutines.wait(id, Mode::All, targets);
        self.run_until(id);
    }

    fn join(&mut self, id: CoroutineId, subagent: CoroutineId) {
        self.wait(id, vec![Target::Coroutine(subagent)]);
    }

    fn run_until(&mut self, id: CoroutineId) {
        loop {
            while let Some((next, resumption)) = self.coroutines.take_ready() {
                if next == id {
                    return;
                }
                if resumption == Resumption::Started {
                    let request = vec![Target::Node(Request)];
                    self.coroutines.wait(next, Mode::All, request);
                } else {
                    self.coroutines.end(next, ());
                }
            }
            let step = self.coroutines.take_step();
            self.open.extend(step.nodes.iter().map(|issued| issued.node));
            self.issued.extend(step.nodes);
            let answered = if self.newest_first {
                self.open.pop_last()
            } else {
                self.open.pop_first()
            };
            let answered = answered.expect("a node in flight");
            self.coroutines.answer(answered, ()).expect("a node in flight");
        }
    }

    fn requests(&self) -> impl Iterator<Item = &IssuedNode<Request>> {
        self.issued.iter().filter(|issued| issued.written.is_some())
    }

    /// Returns the largest number of edges of a request, the sum over all nodes, and the number of
    /// timers.
    fn edges(&self) -> (usize, usize, usize) {
        let largest = self.requests().map(|issued| issued.start.edges.len()).max();
        let all = self.issued.iter().map(|issued| issued.start.edges.len()).sum();
        let timers = self.issued.len() - self.requests().count();
        (largest.unwrap_or(0), all, timers)
    }

    /// The place of each request, with its wait and the places and delays of its edges.
    fn graph(&self) -> BTreeSet<String> {
        let path = |node: Node| {
            let of = self.issued.iter().find(|issued| issued.node == node);
            of.map_or_else(String::new, |of| self.coroutines.path(of.coroutine))
        };
        let requests = self.requests();
        requests
            .map(|issued| {
                let edges = issued.start.edges.iter();
                let edges: BTreeSet<_> = edges.map(|edge| (path(edge.node), edge.delay)).collect();
                format!("{} {} {edges:?}", path(issued.node), issued.start.wait)
            })
            .collect()
    }
}

const SUBAGENTS: usize = 2_000;
const NODES: usize = SUBAGENTS;

/// Spawns subagents and keeps some of them live: it joins the oldest one.
fn pool(window: usize, newest_first: bool) -> Session {
    let mut session = Session::new(newest_first);
    let mut live = std::collections::VecDeque::new();
    for _ in 0..SUBAGENTS {
        live.push_back(session.worker(MAIN));
        if live.len() > window {
            let oldest = live.pop_front().expect("a live subagent");
            session.join(MAIN, oldest);
        }
    }
    session
}

#[test]
fn a_pool_of_subagents_has_edges_to_its_last_ends() {
    // A subagent begins after the joins before its spawn. All but the last five had ended before
    // the last joined one was spawned.
    let (largest, all, timers) = pool(4, false).edges();
    assert!(largest <= 5, "{largest}");
    assert!(all <= 5 * NODES);
    assert_eq!(timers, 0);
}

#[test]
fn a_pool_does_not_depend_on_the_order_of_the_answers() {
    assert_eq!(pool(4, false).graph(), pool(4, true).graph());
}

#[test]
fn a_wide_pool_has_timers() {
    let (largest, all, timers) = pool(64, false).edges();
    assert!(largest <= MAX_ENDS, "{largest}");
    assert!(all <= (MAX_ENDS + 2) * NODES, "{all}");
    assert!(timers <= NODES / MAX_ENDS, "{timers}");
}

#[test]
fn a_heartbeat_has_timers() {
    let mut session = Session::new(false);
    for _ in 0..SUBAGENTS {
        let beat = session.worker(MAIN);
        session.coroutines.sleep(MAIN, 10);
        session.join(MAIN, beat);
    }
    let (largest, all, timers) = session.edges();
    // One more edge represents the session's start.
    assert!(largest <= MAX_ENDS + 1, "{largest}");
    assert!(all <= (MAX_ENDS + 2) * NODES, "{all}");
    assert!(timers <= NODES / MAX_ENDS, "{timers}");
}

#[test]
fn rounds_of_parallel_subagents_have_few_edges() {
    const WIDTH: usize = 50;
    let mut session = Session::new(true);
    for _ in 0..SUBAGENTS / WIDTH {
        let round: Vec<_> = (0..WIDTH).map(|_| session.worker(MAIN)).collect();
        session.wait(MAIN, round.into_iter().map(Target::Coroutine).collect());
    }
    let (largest, all, timers) = session.edges();
    assert!(largest <= 1, "{largest}");
    // Each end is an edge of a timer, and each request has one to it.
    assert!(all <= 2 * NODES, "{all}");
    assert_eq!(timers, SUBAGENTS / WIDTH - 1);
}

#[test]
fn a_request_after_many_subagents_has_all_their_ends() {
    let mut session = Session::new(false);
    let round: Vec<_> = (0..100).map(|_| session.worker(MAIN)).collect();
    session.wait(MAIN, round.into_iter().map(Target::Coroutine).collect());
    session.wait(MAIN, vec![Target::Node(Request)]);
    let last = session.issued.last().expect("a request");
    assert_eq!((last.start.edges.len(), session.edges().2), (100, 0));
}

#[test]
fn nested_pools_have_few_edges() {
    let mut session = Session::new(false);
    let mut teams = std::collections::VecDeque::new();
    for _ in 0..SUBAGENTS / 20 {
        let team = session.worker(MAIN);
        session.run_until(team);
        let mut live = std::collections::VecDeque::new();
        for _ in 0..20 {
            live.push_back(session.worker(team));
            if live.len() > 2 {
                let oldest = live.pop_front().expect("a live subagent");
                session.join(team, oldest);
            }
        }
        for worker in live {
            session.join(team, worker);
        }
        session.coroutines.end(team, ());
        teams.push_back(team);
        if teams.len() > 4 {
            let oldest = teams.pop_front().expect("a team");
            session.join(MAIN, oldest);
        }
    }
    let (largest, all, _) = session.edges();
    assert!(largest <= MAX_ENDS, "{largest}");
    assert!(all <= 2 * MAX_ENDS * NODES, "{all}");
}
