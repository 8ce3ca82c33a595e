//! The scheduler of a session's coroutines.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::rc::Rc;

use crate::moment::{Moment, Nanos, NoEdge, Node, Root, Start, StartEdge};

/// Maximum number of subagents of a session that have not ended.
pub const MAX_LIVE: usize = 4_096;
/// Maximum number of subagents of a session.
pub const MAX_SUBAGENTS: usize = 65_536;

/// Maximum length of the chain of spawns from the main function to a subagent.
pub const MAX_DEPTH: usize = 256;

/// A coroutine of a session. Numbers count from 0, the main function, in the order of the spawns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoroutineId(u32);

impl CoroutineId {
    /// The main function.
    pub const MAIN: CoroutineId = CoroutineId(0);

    /// Returns the coroutine with a number.
    pub fn new(number: u32) -> Self {
        CoroutineId(number)
    }

    /// Returns the number.
    pub fn number(self) -> u32 {
        self.0
    }

    /// Returns the number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The condition under which a coroutine continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Everything that it waits for has ended.
    All,
    /// One of the things that it waits for has ended. The others are stopped.
    First,
}

/// A thing that a coroutine waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target<R> {
    /// A new node: a request or a tool run.
    Node(R),
    /// The end of a subagent.
    Coroutine(CoroutineId),
}

/// The end of a node or of a coroutine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<V> {
    /// It ended with this value.
    Value(V),
    /// It lost a race.
    Stopped,
}

/// The reason why a coroutine runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resumption<V> {
    /// It starts.
    Started,
    /// Everything has ended: the outcomes, in the order of the targets.
    All(Vec<Outcome<V>>),
    /// One of the targets has ended: its index and outcome.
    First(usize, Outcome<V>),
}

/// A subagent beyond a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpawnError {
    /// [`MAX_LIVE`] subagents have not ended.
    Live,
    /// The session had [`MAX_SUBAGENTS`] subagents.
    Total,
    /// The subagent would be nested deeper than [`MAX_DEPTH`].
    Depth,
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpawnError::Live => write!(
                f,
                "{MAX_LIVE} subagents of the session are live, which is the maximum; wait for some before the next"
            ),
            SpawnError::Total => write!(f, "a session may have {MAX_SUBAGENTS} subagents"),
            SpawnError::Depth => write!(f, "subagents may be nested {MAX_DEPTH} deep"),
        }
    }
}

impl std::error::Error for SpawnError {}

/// A wait that could never end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitError {
    /// A coroutine would wait for itself, or for the agent that spawned it.
    Ancestor,
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a subagent cannot wait for itself or for an agent that spawned it")
    }
}

impl std::error::Error for WaitError {}

/// The end of a node that no coroutine waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAwaited;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Node(Node),
    Coroutine(CoroutineId),
    /// A node of a race that was decided before it.
    Unsent,
}

struct Slot<V> {
    awaited: Awaited,
    outcome: Option<Outcome<V>>,
}

struct Wait<V> {
    mode: Mode,
    slots: Vec<Slot<V>>,
    /// Slots without an outcome.
    left: usize,
}

enum State<V> {
    /// Running, or in the queue.
    Ready,
    Waiting(Wait<V>),
    Ended(Outcome<V>),
}

struct Coroutine<V> {
    parent: CoroutineId,
    /// Its number within its parent, from 1.
    number: u32,
    children: u32,
    now: Rc<Moment>,
    /// The moment of the parent when it spawned this coroutine.
    spawned_at: Rc<Moment>,
    state: State<V>,
    /// Coroutines that wait for the end of this one.
    joiners: Vec<CoroutineId>,
    /// True once a coroutine has received the outcome.
    received: bool,
}

/// The coroutines of a session. `V` is the value of an answer and of a coroutine that ended.
///
/// The caller takes coroutines from [`Coroutines::take_ready`] and runs each until it calls
/// [`Coroutines::wait`] or [`Coroutines::end`].
pub struct Coroutines<V> {
    all: Vec<Coroutine<V>>,
    ready: VecDeque<(CoroutineId, Resumption<V>)>,
    /// Nodes in flight, with the coroutine that waits for each.
    open: BTreeMap<Node, CoroutineId>,
    /// Nodes in flight that lost a race, or whose coroutine did.
    abandoned: BTreeSet<Node>,
    /// Those that the caller has not taken yet.
    cancelled: Vec<Node>,
    stopped: Vec<CoroutineId>,
    live: usize,
    next_node: Node,
    /// The node without edges that best represents the session's start.
    first: Option<(Node, Root)>,
}

impl<V: Clone> Default for Coroutines<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: Clone> Coroutines<V> {
    /// Creates a session with its main function, which is ready.
    pub fn new() -> Self {
        let mut coroutines = Coroutines {
            all: Vec::new(),
            ready: VecDeque::new(),
            open: BTreeMap::new(),
            abandoned: BTreeSet::new(),
            cancelled: Vec::new(),
            stopped: Vec::new(),
            live: 0,
            next_node: 1,
            first: None,
        };
        let start = Rc::new(Moment::session_start());
        coroutines.add(CoroutineId::MAIN, 0, start);
        coroutines
    }

    fn add(&mut self, parent: CoroutineId, number: u32, now: Rc<Moment>) -> CoroutineId {
        let id = CoroutineId(self.all.len() as u32);
        self.all.push(Coroutine {
            parent,
            number,
            children: 0,
            spawned_at: Rc::clone(&now),
            now,
            state: State::Ready,
            joiners: Vec::new(),
            received: false,
        });
        self.live += 1;
        self.ready.push_back((id, Resumption::Started));
        id
    }

    fn get(&self, id: CoroutineId) -> &Coroutine<V> {
        &self.all[id.index()]
    }

    fn get_mut(&mut self, id: CoroutineId) -> &mut Coroutine<V> {
        &mut self.all[id.index()]
    }

    /// Returns the place of a coroutine in the tree: its number within its parent, counted from 1,
    /// after the path of the parent (`1.2`). The path of the main function is empty.
    pub fn path(&self, id: CoroutineId) -> String {
        let mut numbers: Vec<String> = self.line(id).map(|id| self.get(id).number.to_string()).collect();
        numbers.reverse();
        numbers.join(".")
    }

    /// Returns a subagent and the subagents above it.
    fn line(&self, id: CoroutineId) -> impl Iterator<Item = CoroutineId> {
        let subagent = |id: CoroutineId| (id != CoroutineId::MAIN).then_some(id);
        std::iter::successors(subagent(id), move |id| subagent(self.get(*id).parent))
    }

    /// Returns the number of nodes so far. The next one has the following number.
    pub fn nodes(&self) -> u32 {
        self.next_node - 1
    }

    /// Takes the coroutine that runs next. Coroutines run in the order in which they became ready.
    pub fn take_ready(&mut self) -> Option<(CoroutineId, Resumption<V>)> {
        while let Some((id, resumption)) = self.ready.pop_front() {
            if matches!(self.get(id).state, State::Ready) {
                return Some((id, resumption));
            }
        }
        None
    }

    /// Creates a subagent of `parent` at its moment. It runs after the coroutines that are ready.
    ///
    /// # Errors
    /// If the session has too many subagents.
    pub fn spawn(&mut self, parent: CoroutineId) -> Result<CoroutineId, SpawnError> {
        // The main function is not a subagent.
        if self.all.len() > MAX_SUBAGENTS {
            return Err(SpawnError::Total);
        }
        let is_main_live = !matches!(self.get(CoroutineId::MAIN).state, State::Ended(_));
        if self.live - usize::from(is_main_live) >= MAX_LIVE {
            return Err(SpawnError::Live);
        }
        if self.line(parent).count() >= MAX_DEPTH {
            return Err(SpawnError::Depth);
        }
        let spawner = self.get_mut(parent);
        spawner.children += 1;
        let (number, now) = (spawner.children, Rc::clone(&spawner.now));
        Ok(self.add(parent, number, now))
    }

    /// Delays everything that follows in a coroutine.
    pub fn sleep(&mut self, id: CoroutineId, time: Nanos) {
        let coroutine = self.get_mut(id);
        coroutine.now = Rc::new(coroutine.now.after(time));
    }

    /// Returns an error if `id` cannot wait for `target`.
    ///
    /// # Errors
    /// If it would wait for itself or an ancestor.
    pub fn check_wait(&self, id: CoroutineId, target: CoroutineId) -> Result<(), WaitError> {
        if self.is_within(id, target) {
            return Err(WaitError::Ancestor);
        }
        Ok(())
    }

    /// Returns the edges of a tool run that a running coroutine starts. It has no wait, so that a
    /// sleep before it is on its edges.
    ///
    /// # Errors
    /// If the coroutine has slept since the session's start, and no node represents it.
    pub fn tool_run_edges(&self, id: CoroutineId) -> Result<Vec<StartEdge>, NoEdge> {
        self.get(id).now.edges(self.first)
    }

    /// Lets a running coroutine wait. `send` sends a node with this number and start, and describes
    /// it if it has no edges. No node of a race is sent if the race is decided already.
    ///
    /// The caller has checked the targets with [`Coroutines::check_wait`].
    pub fn wait<R>(
        &mut self,
        id: CoroutineId,
        mode: Mode,
        targets: Vec<Target<R>>,
        mut send: impl FnMut(R, Node, &Start) -> Option<Root>,
    ) {
        let outcomes: Vec<Option<Outcome<V>>> = targets.iter().map(|target| self.outcome(target)).collect();
        let winner = match mode {
            Mode::All => None,
            Mode::First => outcomes.iter().position(Option::is_some),
        };
        let start = self.get(id).now.start(self.first);
        let mut slots = Vec::with_capacity(targets.len());
        for (target, outcome) in targets.into_iter().zip(outcomes) {
            let awaited = match target {
                Target::Coroutine(other) => {
                    self.get_mut(other).joiners.push(id);
                    Awaited::Coroutine(other)
                }
                Target::Node(_) if winner.is_some() => Awaited::Unsent,
                Target::Node(node) => Awaited::Node(self.send(id, node, &start, &mut send)),
            };
            slots.push(Slot { awaited, outcome });
        }
        let left = slots.iter().filter(|slot| slot.outcome.is_none()).count();
        self.get_mut(id).state = State::Waiting(Wait { mode, slots, left });
        self.resume_if_satisfied(id, winner);
    }

    /// Returns the outcome of a target that has ended.
    fn outcome<R>(&self, target: &Target<R>) -> Option<Outcome<V>> {
        match target {
            Target::Node(_) => None,
            Target::Coroutine(other) => match &self.get(*other).state {
                State::Ended(outcome) => Some(outcome.clone()),
                State::Ready | State::Waiting(_) => None,
            },
        }
    }

    fn send<R>(
        &mut self,
        id: CoroutineId,
        made: R,
        start: &Start,
        send: &mut impl FnMut(R, Node, &Start) -> Option<Root>,
    ) -> Node {
        let node = self.next_node;
        self.next_node += 1;
        if let Some(root) = send(made, node, start)
            && self.first.is_none_or(|(_, known)| root < known)
        {
            self.first = Some((node, root));
        }
        self.open.insert(node, id);
        node
    }

    /// Records the end of a node.
    ///
    /// # Errors
    /// If the session has no such node in flight.
    pub fn answer(&mut self, node: Node, value: V) -> Result<(), NotAwaited> {
        if self.abandoned.remove(&node) {
            return Ok(());
        }
        let id = self.open.remove(&node).ok_or(NotAwaited)?;
        self.fill(id, Awaited::Node(node), &Outcome::Value(value));
        Ok(())
    }

    /// Ends a running coroutine.
    pub fn end(&mut self, id: CoroutineId, value: V) {
        let outcome = Outcome::Value(value);
        self.get_mut(id).state = State::Ended(outcome.clone());
        self.live -= 1;
        self.notify(id, &outcome);
    }

    /// Enters an outcome into the wait of a coroutine, and resumes it if it waits for nothing else.
    fn fill(&mut self, id: CoroutineId, awaited: Awaited, outcome: &Outcome<V>) {
        let State::Waiting(wait) = &mut self.get_mut(id).state else {
            return;
        };
        let mut first = None;
        for (index, slot) in wait.slots.iter_mut().enumerate() {
            if slot.awaited == awaited && slot.outcome.is_none() {
                slot.outcome = Some(outcome.clone());
                wait.left -= 1;
                first = first.or(Some(index));
            }
        }
        self.resume_if_satisfied(id, first);
    }

    /// Resumes a waiting coroutine if it can continue. `winner` is the slot that ended first.
    fn resume_if_satisfied(&mut self, id: CoroutineId, winner: Option<usize>) {
        let coroutine = self.get_mut(id);
        let State::Waiting(wait) = &coroutine.state else {
            return;
        };
        let is_satisfied = match wait.mode {
            Mode::All => wait.left == 0,
            Mode::First => winner.is_some(),
        };
        if !is_satisfied {
            return;
        }
        let State::Waiting(mut wait) = std::mem::replace(&mut coroutine.state, State::Ready) else {
            return;
        };
        for slot in &wait.slots {
            if let Awaited::Coroutine(other) = slot.awaited {
                self.get_mut(other).received = true;
            }
        }
        match (wait.mode, winner) {
            (Mode::First, Some(index)) => {
                let slot = wait.slots.swap_remove(index);
                self.advance(id, &[slot.awaited]);
                if let Some(outcome) = slot.outcome {
                    self.ready.push_back((id, Resumption::First(index, outcome)));
                }
                for loser in wait.slots {
                    self.stop(loser.awaited);
                }
            }
            _ => {
                let awaited: Vec<Awaited> = wait.slots.iter().map(|slot| slot.awaited).collect();
                self.advance(id, &awaited);
                let outcomes = wait.slots.into_iter().filter_map(|slot| slot.outcome);
                self.ready.push_back((id, Resumption::All(outcomes.collect())));
            }
        }
    }

    /// Moves a coroutine to the end of what it waited for.
    ///
    /// A node starts at the moment of its coroutine, and a subagent begins at the moment of its
    /// parent. If the coroutine has not moved since, their ends are not before it.
    fn advance(&mut self, id: CoroutineId, awaited: &[Awaited]) {
        let now = &self.get(id).now;
        let mut is_implied = false;
        let mut ends = Vec::with_capacity(awaited.len() + 1);
        for awaited in awaited {
            match awaited {
                Awaited::Node(node) => {
                    is_implied = true;
                    ends.push(Rc::new(Moment::completion(*node)));
                }
                Awaited::Coroutine(other) => {
                    let other = self.get(*other);
                    if let State::Ended(Outcome::Stopped) = other.state {
                        continue;
                    }
                    is_implied |= Rc::ptr_eq(&other.spawned_at, now);
                    ends.push(Rc::clone(&other.now));
                }
                Awaited::Unsent => {}
            }
        }
        if !is_implied {
            ends.insert(0, Rc::clone(now));
        }
        self.get_mut(id).now = Moment::latest(ends);
    }

    /// Stops the loser of a race: a node in flight, or a subagent with those that it spawned.
    fn stop(&mut self, loser: Awaited) {
        match loser {
            Awaited::Node(node) => {
                if self.open.remove(&node).is_some() {
                    self.abandoned.insert(node);
                    self.cancelled.push(node);
                }
            }
            Awaited::Coroutine(root) => self.stop_tree(root),
            Awaited::Unsent => {}
        }
    }

    fn stop_tree(&mut self, root: CoroutineId) {
        let tree: Vec<CoroutineId> = (root.0..self.all.len() as u32)
            .map(CoroutineId)
            .filter(|id| !matches!(self.get(*id).state, State::Ended(_)) && self.is_within(*id, root))
            .collect();
        // All of them end before a coroutine outside learns of it.
        for id in &tree {
            let ended = State::Ended(Outcome::Stopped);
            if let State::Waiting(wait) = std::mem::replace(&mut self.get_mut(*id).state, ended) {
                for slot in wait.slots {
                    if let Awaited::Node(_) = slot.awaited {
                        self.stop(slot.awaited);
                    }
                }
            }
            self.live -= 1;
            self.stopped.push(*id);
        }
        for id in tree {
            self.notify(id, &Outcome::Stopped);
        }
    }

    /// Enters the end of a coroutine into the waits for it.
    fn notify(&mut self, id: CoroutineId, outcome: &Outcome<V>) {
        for joiner in std::mem::take(&mut self.get_mut(id).joiners) {
            self.fill(joiner, Awaited::Coroutine(id), outcome);
        }
    }

    /// Returns true if `root` is `id` or spawned it, directly or indirectly.
    fn is_within(&self, id: CoroutineId, root: CoroutineId) -> bool {
        let mut id = id;
        // A subagent has a larger number than its parent.
        while id > root {
            id = self.get(id).parent;
        }
        id == root
    }

    /// Takes the coroutines that were stopped and must not be resumed.
    pub fn take_stopped(&mut self) -> Vec<CoroutineId> {
        std::mem::take(&mut self.stopped)
    }

    /// Takes the nodes in flight that lost a race and should be cancelled.
    pub fn take_abandoned(&mut self) -> Vec<Node> {
        std::mem::take(&mut self.cancelled)
    }

    /// Returns true once the main function and all subagents have ended.
    pub fn is_over(&self) -> bool {
        self.live == 0
    }

    /// Returns true if the coroutines wait for one another: no answer can resume any of them.
    /// To be called when [`Coroutines::take_ready`] returned `None`.
    pub fn is_stuck(&self) -> bool {
        self.live > 0 && self.ready.is_empty() && self.open.is_empty()
    }

    /// Returns the values of subagents that no coroutine has received, in the order of the spawns.
    pub fn unreceived(&self) -> impl Iterator<Item = &V> {
        self.all
            .iter()
            .filter(|coroutine| !coroutine.received)
            .filter_map(|coroutine| match &coroutine.state {
                State::Ended(Outcome::Value(value)) => Some(value),
                _ => None,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::{Event, StartEdge};

    type Session = Coroutines<&'static str>;

    /// Lets a coroutine wait for requests, written as their names, and returns their starts.
    fn send(session: &mut Session, id: CoroutineId, mode: Mode, targets: Vec<Target<()>>) -> Vec<Start> {
        let mut starts = Vec::new();
        session.wait(id, mode, targets, |(), _, start| {
            starts.push(start.clone());
            start.edges.is_empty().then_some(Root::Request(start.wait))
        });
        starts
    }

    fn request(session: &mut Session, id: CoroutineId) -> Start {
        send(session, id, Mode::All, vec![Target::Node(())]).remove(0)
    }

    fn join(session: &mut Session, id: CoroutineId, other: CoroutineId) {
        assert!(send(session, id, Mode::All, vec![Target::Coroutine(other)]).is_empty());
    }

    /// Takes the coroutine that runs next.
    #[track_caller]
    fn runs(session: &mut Session, id: CoroutineId) -> Resumption<&'static str> {
        let (next, resumption) = session.take_ready().expect("a coroutine is ready");
        assert_eq!(next, id);
        resumption
    }

    fn ends(edges: &[(Node, Nanos)], wait: Nanos) -> Start {
        let edge = |&(node, delay): &(Node, Nanos)| StartEdge {
            node,
            event: Event::Completed,
            delay,
        };
        Start {
            edges: edges.iter().map(edge).collect(),
            wait,
        }
    }

    const MAIN: CoroutineId = CoroutineId::MAIN;

    #[test]
    fn a_sleep_delays_what_follows_the_join() {
        let mut session = Session::new();
        runs(&mut session, MAIN);
        request(&mut session, MAIN);
        session.answer(1, "plan").unwrap();
        assert_eq!(
            runs(&mut session, MAIN),
            Resumption::All(vec![Outcome::Value("plan")])
        );
        let [one, two] = [(); 2].map(|()| session.spawn(MAIN).unwrap());
        session.sleep(MAIN, 3);
        send(
            &mut session,
            MAIN,
            Mode::All,
            vec![Target::Coroutine(one), Target::Coroutine(two)],
        );
        runs(&mut session, one);
        assert_eq!(request(&mut session, one), ends(&[(1, 0)], 0));
        runs(&mut session, two);
        session.sleep(two, 20);
        session.end(two, "asleep");
        session.answer(2, "found").unwrap();
        runs(&mut session, one);
        session.sleep(one, 5);
        session.end(one, "done");
        let outcomes = ["done", "asleep"].map(Outcome::Value);
        assert_eq!(runs(&mut session, MAIN), Resumption::All(outcomes.to_vec()));
        // The later of 3 ns and 20 ns after the plan, and of 5 ns after the second request.
        assert_eq!(request(&mut session, MAIN), ends(&[(1, 15), (2, 0)], 5));
        session.answer(3, "").unwrap();
        runs(&mut session, MAIN);
        session.end(MAIN, "");
        assert!(session.is_over());
    }

    #[test]
    fn a_join_replaces_the_moment_of_a_parent_that_did_nothing() {
        let mut session = Session::new();
        runs(&mut session, MAIN);
        request(&mut session, MAIN);
        session.answer(1, "").unwrap();
        runs(&mut session, MAIN);
        let sub = session.spawn(MAIN).unwrap();
        join(&mut session, MAIN, sub);
        runs(&mut session, sub);
        request(&mut session, sub);
        session.answer(2, "").unwrap();
        runs(&mut session, sub);
        session.end(sub, "");
        runs(&mut session, MAIN);
        assert_eq!(request(&mut session, MAIN), ends(&[(2, 0)], 0));
    }

    #[test]
    fn paths_count_within_the_parent() {
        let mut session = Session::new();
        let first = session.spawn(MAIN).unwrap();
        let inner = session.spawn(first).unwrap();
        let second = session.spawn(MAIN).unwrap();
        let innermost = session.spawn(inner).unwrap();
        let paths = [MAIN, first, inner, second, innermost].map(|id| session.path(id));
        assert_eq!(paths, ["", "1", "1.1", "2", "1.1.1"]);
        assert_eq!(session.check_wait(inner, second), Ok(()));
        for id in [inner, first, MAIN] {
            assert_eq!(session.check_wait(inner, id), Err(WaitError::Ancestor));
        }
    }

    #[test]
    fn a_race_stops_its_losers() {
        let mut session = Session::new();
        runs(&mut session, MAIN);
        let loser = session.spawn(MAIN).unwrap();
        let outside = session.spawn(MAIN).unwrap();
        let targets = vec![Target::Node(()), Target::Coroutine(loser), Target::Node(())];
        send(&mut session, MAIN, Mode::First, targets);
        runs(&mut session, loser);
        let inner = session.spawn(loser).unwrap();
        request(&mut session, loser);
        runs(&mut session, outside);
        join(&mut session, outside, inner);
        runs(&mut session, inner);
        request(&mut session, inner);
        session.answer(2, "first").unwrap();
        let won = Resumption::First(2, Outcome::Value("first"));
        assert_eq!(runs(&mut session, MAIN), won);
        assert_eq!(request(&mut session, MAIN), ends(&[(2, 0)], 0));
        assert_eq!(session.take_stopped(), [loser, inner]);
        assert_eq!(session.take_abandoned(), [1, 3, 4]);
        assert_eq!(
            runs(&mut session, outside),
            Resumption::All(vec![Outcome::Stopped])
        );
        session.end(outside, "");
        // The answers to the losers' requests resume nothing, once each.
        for node in [1, 3, 4] {
            assert_eq!(session.answer(node, "late"), Ok(()));
            assert_eq!(session.answer(node, "late"), Err(NotAwaited));
        }
        assert_eq!(session.take_ready(), None);
        assert!(!session.is_stuck());
        session.answer(5, "").unwrap();
        runs(&mut session, MAIN);
        session.end(MAIN, "");
        assert!(session.is_over());
    }

    #[test]
    fn a_race_that_is_decided_sends_nothing() {
        let mut session = Session::new();
        runs(&mut session, MAIN);
        let [one, two] = [(); 2].map(|()| session.spawn(MAIN).unwrap());
        request(&mut session, MAIN);
        for id in [one, two] {
            runs(&mut session, id);
            session.end(id, if id == one { "one" } else { "two" });
        }
        session.answer(1, "").unwrap();
        runs(&mut session, MAIN);
        let targets = vec![Target::Node(()), Target::Coroutine(two), Target::Coroutine(one)];
        assert!(send(&mut session, MAIN, Mode::First, targets).is_empty());
        assert_eq!(session.nodes(), 1);
        assert_eq!(session.unreceived().count(), 0);
        assert_eq!(
            runs(&mut session, MAIN),
            Resumption::First(1, Outcome::Value("two"))
        );
    }

    #[test]
    fn coroutines_that_wait_for_one_another_are_stuck() {
        let mut session = Session::new();
        runs(&mut session, MAIN);
        let [one, two] = [(); 2].map(|()| session.spawn(MAIN).unwrap());
        session.end(MAIN, "");
        runs(&mut session, one);
        join(&mut session, one, two);
        runs(&mut session, two);
        assert!(!session.is_stuck() || session.take_ready().is_none());
        join(&mut session, two, one);
        assert_eq!(session.take_ready(), None);
        assert!(session.is_stuck());
    }

    #[test]
    fn subagents_are_limited() {
        let mut session = Session::new();
        for _ in 0..MAX_LIVE {
            session.spawn(MAIN).unwrap();
        }
        assert_eq!(session.spawn(MAIN), Err(SpawnError::Live));
        runs(&mut session, MAIN);
        request(&mut session, MAIN);
        let mut spawned = MAX_LIVE;
        while let Some((id, _)) = session.take_ready() {
            session.end(id, "");
            if spawned < MAX_SUBAGENTS {
                session.spawn(id).unwrap();
                spawned += 1;
            }
        }
        assert_eq!(session.spawn(MAIN), Err(SpawnError::Total));
    }

    #[test]
    fn nesting_is_limited() {
        let mut session = Session::new();
        let mut id = MAIN;
        for _ in 0..MAX_DEPTH {
            id = session.spawn(id).unwrap();
        }
        assert_eq!(session.path(id).split('.').count(), MAX_DEPTH);
        assert_eq!(session.spawn(id), Err(SpawnError::Depth));
    }
}
