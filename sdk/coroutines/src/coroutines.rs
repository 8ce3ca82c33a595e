//! The scheduler of a session's coroutines.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use crate::coroutine_id::CoroutineId;
use crate::limits::{
    MAX_DEPTH, MAX_ENDS, MAX_LIVE, MAX_NODES, MAX_SUBAGENTS, NotAwaited, SpawnError, TooManyNodes, WaitError,
};
use crate::moment::{Moment, Nanos, Node, Start};
use crate::step::{IssuedStep, NewNode, Outbox};
use crate::wait::{Awaited, Mode, Outcome, Resumption, Slot, Target, Wait};

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

impl<V> Coroutine<V> {
    fn is_stopped(&self) -> bool {
        matches!(self.state, State::Ended(Outcome::Stopped))
    }
}

/// The coroutines of a session. `V` is the value of an answer and of a coroutine that ended, `R` a
/// node as its author wrote it.
///
/// The caller takes coroutines from [`Coroutines::take_ready`] and runs each until it calls
/// [`Coroutines::wait`] or [`Coroutines::end`]. When none is ready, [`Coroutines::take_step`] has
/// the nodes that they have started.
pub struct Coroutines<V, R> {
    all: Vec<Coroutine<V>>,
    ready: VecDeque<(CoroutineId, Resumption<V>)>,
    /// Nodes in flight, with the coroutine that waits for each.
    open: BTreeMap<Node, CoroutineId>,
    outbox: Outbox<R>,
    stopped: Vec<CoroutineId>,
    live: usize,
    max_ends: usize,
}

impl<V: Clone, R: NewNode> Default for Coroutines<V, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: Clone, R: NewNode> Coroutines<V, R> {
    /// Creates a session with its main function, which is ready.
    pub fn new() -> Self {
        Self::with_max_ends(MAX_ENDS)
    }

    /// Creates a session like [`Coroutines::new`] with another limit than [`MAX_ENDS`], at least 1.
    pub fn with_max_ends(max_ends: usize) -> Self {
        let mut coroutines = Coroutines {
            all: Vec::new(),
            ready: VecDeque::new(),
            open: BTreeMap::new(),
            outbox: Outbox::new(),
            stopped: Vec::new(),
            live: 0,
            max_ends: max_ends.max(1),
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

    /// Returns an error if a session has no room for the nodes of a wait.
    ///
    /// # Errors
    /// If it would have more than [`MAX_NODES`].
    pub fn check_nodes(&self, targets: &[Target<R>]) -> Result<(), TooManyNodes> {
        let nodes = targets.iter().filter(|target| !target.is_coroutine()).count();
        if nodes + self.outbox.nodes() as usize > MAX_NODES {
            return Err(TooManyNodes);
        }
        Ok(())
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
        self.condense(parent, 0);
        let spawner = self.get_mut(parent);
        spawner.children += 1;
        let (number, now) = (spawner.children, Rc::clone(&spawner.now));
        Ok(self.add(parent, number, now))
    }

    /// Delays everything that follows in a coroutine.
    pub fn sleep(&mut self, id: CoroutineId, time: Nanos) {
        Rc::make_mut(&mut self.get_mut(id).now).delay(time);
    }

    /// Replaces the moment of a coroutine by a timer if it has many ends, before subagents or
    /// `nodes` nodes start at it.
    ///
    /// A moment grows without bound where the ends of subagents follow from nothing else that the
    /// coroutine waits for, as in a loop of `spawn`, `sleep` and `join`. Each of its ends would be
    /// an edge of everything that starts.
    fn condense(&mut self, id: CoroutineId, nodes: usize) {
        let has_room = self.outbox.nodes() as usize + nodes < MAX_NODES;
        if self.get(id).now.ends() <= self.max_ends || !has_room {
            return;
        }
        let now = std::mem::take(&mut self.get_mut(id).now);
        let timer = self.outbox.unawaited_timer(id, &now);
        self.get_mut(id).now = Rc::new(Moment::completion(timer));
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

    /// Lets a running coroutine wait. No node of a race is sent if the race is decided already.
    ///
    /// The caller has checked the targets with [`Coroutines::check_wait`] and
    /// [`Coroutines::check_nodes`].
    pub fn wait(&mut self, id: CoroutineId, mode: Mode, targets: Vec<Target<R>>) {
        let nodes = targets.iter().filter(|target| !target.is_coroutine()).count();
        // The node of a single request has the edges that a timer would have.
        if nodes > 1 || nodes < targets.len() && nodes > 0 {
            self.condense(id, nodes);
        }
        let now = Rc::clone(&self.get(id).now);
        // A wait for one thing is not a race.
        let is_race = mode == Mode::First && targets.len() > 1;
        let winner = match mode {
            Mode::All => None,
            Mode::First => targets
                .iter()
                .position(|target| self.has_ended(target, &now, is_race)),
        };
        let request_start = self.outbox.request_start(&now);
        let is_run = |target: &Target<R>| matches!(target, Target::Node(node) if node.is_tool_run());
        let run_start = if winner.is_none() && targets.iter().any(is_run) {
            self.outbox.run_start(&now)
        } else {
            Start::default()
        };
        let is_open_race = is_race && winner.is_none();
        let mut slots = Vec::with_capacity(targets.len());
        for (index, target) in targets.into_iter().enumerate() {
            let slot = match target {
                Target::Coroutine(other) => self.coroutine_slot(id, other, is_open_race),
                Target::Node(_) if winner.is_some() => Slot::new(Awaited::Unsent),
                Target::Sleep(_) if winner.is_some_and(|winner| winner != index) => {
                    Slot::new(Awaited::Unsent)
                }
                Target::Sleep(time) => self.sleep_slot(id, &now.after(time), is_open_race),
                Target::Node(node) => {
                    let start = if node.is_tool_run() {
                        &run_start
                    } else {
                        &request_start
                    };
                    let node = self.outbox.issue(id, Some(node), start.clone());
                    self.open.insert(node, id);
                    Slot::new(Awaited::Node(node))
                }
            };
            slots.push(slot);
        }
        drop(now);
        let left = slots.iter().filter(|slot| slot.outcome.is_none()).count();
        self.get_mut(id).state = State::Waiting(Wait { mode, slots, left });
        self.resume_if_satisfied(id, winner);
    }

    /// Returns true if a target has ended at `now`, the moment of the coroutine that waits for it.
    fn has_ended(&self, target: &Target<R>, now: &Moment, is_race: bool) -> bool {
        match target {
            Target::Node(_) => false,
            Target::Sleep(time) => !is_race || self.has_passed(&now.after(*time), now),
            Target::Coroutine(other) => match &self.get(*other).state {
                State::Ended(Outcome::Stopped) => true,
                State::Ended(_) => !is_race || self.has_passed(&self.get(*other).now, now),
                State::Ready | State::Waiting(_) => false,
            },
        }
    }

    fn has_passed(&self, moment: &Moment, now: &Moment) -> bool {
        moment.has_passed(now, |node| self.outbox.is_ignored(node))
    }

    /// Waits for a subagent. One that has ended after a sleep ends with a timer in a race.
    fn coroutine_slot(&mut self, id: CoroutineId, other: CoroutineId, is_open_race: bool) -> Slot<V> {
        let mut slot = Slot::new(Awaited::Coroutine(other));
        let awaited = self.get_mut(other);
        let State::Ended(outcome) = &awaited.state else {
            awaited.joiners.push(id);
            return slot;
        };
        slot.outcome = Some(outcome.clone());
        if is_open_race {
            let ends = Rc::clone(&awaited.now);
            slot.timer = Some(self.timer(id, other, &ends));
        }
        slot
    }

    fn sleep_slot(&mut self, id: CoroutineId, ends: &Moment, is_open_race: bool) -> Slot<V> {
        Slot {
            outcome: Some(Outcome::Slept),
            timer: is_open_race.then(|| self.timer(id, id, ends)),
            ends: Some(Rc::new(ends.clone())),
            ..Slot::new(Awaited::Sleep)
        }
    }

    /// Starts a timer that `id` waits for.
    fn timer(&mut self, id: CoroutineId, of: CoroutineId, ends: &Moment) -> Node {
        let timer = self.outbox.timer(of, ends);
        self.open.insert(timer, id);
        timer
    }

    /// Records the end of a node.
    ///
    /// # Errors
    /// If the session has no such node in flight.
    pub fn answer(&mut self, node: Node, value: V) -> Result<(), NotAwaited> {
        if self.outbox.ignores(node) {
            return Ok(());
        }
        let id = self.open.remove(&node).ok_or(NotAwaited)?;
        if !self.expire(id, node) {
            self.fill(id, Awaited::Node(node), &Outcome::Value(value));
        }
        Ok(())
    }

    /// Ends a running coroutine.
    pub fn end(&mut self, id: CoroutineId, value: V) {
        let outcome = Outcome::Value(value);
        self.get_mut(id).state = State::Ended(outcome.clone());
        self.live -= 1;
        self.notify(id, &outcome);
    }

    /// Ends the timer of a race. Returns false if the node is not one.
    fn expire(&mut self, id: CoroutineId, timer: Node) -> bool {
        let State::Waiting(wait) = &mut self.get_mut(id).state else {
            return false;
        };
        let Some(index) = wait.slots.iter().position(|slot| slot.timer == Some(timer)) else {
            return false;
        };
        let slot = &mut wait.slots[index];
        slot.timer = None;
        slot.ends = Some(Rc::new(Moment::completion(timer)));
        self.resume_if_satisfied(id, Some(index));
        true
    }

    /// Enters an outcome into the wait of a coroutine, and resumes it if it waits for nothing else.
    fn fill(&mut self, id: CoroutineId, awaited: Awaited, outcome: &Outcome<V>) {
        let ends_later = self.ends_later(id, awaited, outcome);
        let State::Waiting(wait) = &mut self.get_mut(id).state else {
            return;
        };
        let mut filled = Vec::new();
        for (index, slot) in wait.slots.iter_mut().enumerate() {
            if slot.awaited == awaited && slot.outcome.is_none() {
                slot.outcome = Some(outcome.clone());
                wait.left -= 1;
                filled.push(index);
            }
        }
        let Some(&first) = filled.first() else { return };
        let Some((of, ends)) = ends_later else {
            self.resume_if_satisfied(id, Some(first));
            return;
        };
        let timer = self.timer(id, of, &ends);
        if let State::Waiting(wait) = &mut self.get_mut(id).state {
            wait.slots[first].timer = Some(timer);
        }
    }

    /// Returns a subagent that has ended after a sleep, and the moment of its end, if a race waits
    /// for it.
    fn ends_later(
        &self,
        id: CoroutineId,
        awaited: Awaited,
        outcome: &Outcome<V>,
    ) -> Option<(CoroutineId, Rc<Moment>)> {
        let (Awaited::Coroutine(of), Outcome::Value(_)) = (awaited, outcome) else {
            return None;
        };
        let State::Waiting(wait) = &self.get(id).state else {
            return None;
        };
        let is_race = wait.mode == Mode::First && wait.slots.len() > 1;
        let ends = &self.get(of).now;
        (is_race && !self.has_passed(ends, &self.get(id).now)).then(|| (of, Rc::clone(ends)))
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
                self.advance(id, std::slice::from_ref(&slot));
                if let Some(outcome) = slot.outcome.clone() {
                    self.ready.push_back((id, Resumption::First(index, outcome)));
                }
                for loser in &wait.slots {
                    self.stop_nodes(loser);
                    // A subagent may be awaited twice.
                    if let Awaited::Coroutine(root) = loser.awaited
                        && loser.awaited != slot.awaited
                    {
                        self.stop_tree(root, id);
                    }
                }
            }
            _ => {
                self.advance(id, &wait.slots);
                let outcomes = wait.slots.into_iter().filter_map(|slot| slot.outcome);
                self.ready.push_back((id, Resumption::All(outcomes.collect())));
            }
        }
    }

    /// Moves a coroutine to the end of what it waited for.
    ///
    /// The end of a node or sleep is not before the moment at which the coroutine began to wait for
    /// it, and that of a subagent is not before the moment at which it was spawned. So they imply
    /// everything that these moments have.
    fn advance(&mut self, id: CoroutineId, ended: &[Slot<V>]) {
        let mut now = std::mem::take(&mut self.get_mut(id).now);
        let is_implied = ended.iter().any(|slot| match slot.awaited {
            Awaited::Node(_) | Awaited::Sleep => true,
            Awaited::Coroutine(other) => {
                let other = self.get(other);
                !other.is_stopped() && Rc::ptr_eq(&other.spawned_at, &now)
            }
            Awaited::Unsent => false,
        });
        if is_implied {
            now = Rc::default();
        }
        for slot in ended {
            match slot.awaited {
                Awaited::Node(node) => Rc::make_mut(&mut now).add(&Moment::completion(node)),
                Awaited::Coroutine(other) => {
                    let other = self.get(other);
                    let now = Rc::make_mut(&mut now);
                    // The subagent of a stopped one may begin after the end of the race.
                    if !other.is_stopped() {
                        now.remove_implied(&other.spawned_at);
                    }
                    now.add(slot.ends.as_ref().unwrap_or(&other.now));
                }
                Awaited::Sleep => slot.ends.iter().for_each(|ends| Rc::make_mut(&mut now).add(ends)),
                Awaited::Unsent => {}
            }
        }
        self.get_mut(id).now = now;
    }

    /// Cancels the nodes in flight of a wait.
    fn stop_nodes(&mut self, slot: &Slot<V>) {
        let node = match slot.awaited {
            Awaited::Node(node) => Some(node),
            Awaited::Coroutine(_) | Awaited::Sleep | Awaited::Unsent => None,
        };
        for node in node.into_iter().chain(slot.timer) {
            if self.open.remove(&node).is_some() {
                self.outbox.cancel(node);
            }
        }
    }

    /// Stops a subagent and those that it spawned, because it lost the race of `id`.
    fn stop_tree(&mut self, root: CoroutineId, id: CoroutineId) {
        let decided = Rc::clone(&self.get(id).now);
        let tree: Vec<CoroutineId> = (root.0..self.all.len() as u32)
            .map(CoroutineId)
            .filter(|id| self.is_within(*id, root) && !self.has_ended_at(*id, &decided))
            .collect();
        // All of them end before a coroutine outside learns of it.
        for id in &tree {
            let ended = State::Ended(Outcome::Stopped);
            self.get_mut(*id).now = Rc::clone(&decided);
            match std::mem::replace(&mut self.get_mut(*id).state, ended) {
                State::Ready => {}
                State::Waiting(wait) => {
                    for slot in &wait.slots {
                        self.stop_nodes(slot);
                    }
                }
                // Its code has returned ahead of its sleeps.
                State::Ended(_) => continue,
            }
            self.live -= 1;
            self.stopped.push(*id);
        }
        for id in tree {
            self.notify(id, &Outcome::Stopped);
        }
    }

    /// Returns true if a coroutine has ended at a moment: its code has, and its sleeps are over.
    fn has_ended_at(&self, id: CoroutineId, moment: &Moment) -> bool {
        let coroutine = self.get(id);
        match coroutine.state {
            State::Ended(Outcome::Value(_)) => self.has_passed(&coroutine.now, moment),
            State::Ended(_) => true,
            State::Ready | State::Waiting(_) => false,
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

    /// Takes the nodes that the coroutines have started, and those that lost a race. To be called
    /// when [`Coroutines::take_ready`] returned `None`.
    pub fn take_step(&mut self) -> IssuedStep<R> {
        let done = self.is_over();
        self.outbox.take(done)
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

    /// A node with a wait, or a tool run.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Written {
        Request,
        Run,
    }

    impl NewNode for Written {
        fn is_tool_run(&self) -> bool {
            *self == Written::Run
        }

        fn root_wait(&self) -> Option<Nanos> {
            Some(0)
        }
    }

    type Session = Coroutines<&'static str, Written>;

    const REQUEST: Target<Written> = Target::Node(Written::Request);

    /// Lets a coroutine wait, and returns the starts of its requests.
    fn send(session: &mut Session, id: CoroutineId, mode: Mode, targets: Vec<Target<Written>>) -> Vec<Start> {
        let before = session.outbox.nodes();
        session.wait(id, mode, targets);
        let step = session.outbox.issued();
        let requests = step
            .iter()
            .filter(|issued| issued.node > before && issued.written.is_some());
        requests.map(|issued| issued.start.clone()).collect()
    }

    fn request(session: &mut Session, id: CoroutineId) -> Start {
        send(session, id, Mode::All, vec![REQUEST]).remove(0)
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
        let targets = vec![REQUEST, Target::Coroutine(loser), REQUEST];
        send(&mut session, MAIN, Mode::First, targets);
        runs(&mut session, loser);
        let inner = session.spawn(loser).unwrap();
        request(&mut session, loser);
        runs(&mut session, outside);
        join(&mut session, outside, inner);
        runs(&mut session, inner);
        request(&mut session, inner);
        session.take_step();
        session.answer(2, "first").unwrap();
        let won = Resumption::First(2, Outcome::Value("first"));
        assert_eq!(runs(&mut session, MAIN), won);
        assert_eq!(request(&mut session, MAIN), ends(&[(2, 0)], 0));
        assert_eq!(session.take_stopped(), [loser, inner]);
        assert_eq!(session.take_step().cancelled, [1, 3, 4]);
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
    fn a_subagent_that_races_with_itself_keeps_its_subagents() {
        let mut session = Session::new();
        runs(&mut session, MAIN);
        let racer = session.spawn(MAIN).unwrap();
        let twice = vec![Target::Coroutine(racer), Target::Coroutine(racer)];
        send(&mut session, MAIN, Mode::First, twice);
        runs(&mut session, racer);
        let inner = session.spawn(racer).unwrap();
        session.end(racer, "won");
        runs(&mut session, inner);
        request(&mut session, inner);
        let won = Resumption::First(0, Outcome::Value("won"));
        assert_eq!(runs(&mut session, MAIN), won);
        assert!(session.take_stopped().is_empty());
        join(&mut session, MAIN, inner);
        session.answer(1, "").unwrap();
        runs(&mut session, inner);
        session.end(inner, "found");
        let found = Resumption::All(vec![Outcome::Value("found")]);
        assert_eq!(runs(&mut session, MAIN), found);
    }

    #[test]
    fn a_join_of_a_loser_continues_when_the_race_ends() {
        let mut session = planned();
        let [loser, outside] = [(); 2].map(|()| session.spawn(MAIN).unwrap());
        send(
            &mut session,
            MAIN,
            Mode::First,
            vec![REQUEST, Target::Coroutine(loser)],
        );
        runs(&mut session, loser);
        request(&mut session, loser);
        runs(&mut session, outside);
        join(&mut session, outside, loser);
        session.take_step();
        session.answer(2, "").unwrap();
        runs(&mut session, MAIN);
        let stopped = Resumption::All(vec![Outcome::Stopped]);
        assert_eq!(runs(&mut session, outside), stopped);
        assert_eq!(request(&mut session, outside), ends(&[(1, 0), (2, 0)], 0));
    }

    #[test]
    fn a_loser_that_has_returned_and_sleeps_is_stopped() {
        let mut session = planned();
        let loser = session.spawn(MAIN).unwrap();
        send(
            &mut session,
            MAIN,
            Mode::First,
            vec![REQUEST, Target::Coroutine(loser)],
        );
        runs(&mut session, loser);
        session.sleep(loser, 20);
        session.end(loser, "late");
        session.take_step();
        session.answer(2, "quick").unwrap();
        runs(&mut session, MAIN);
        join(&mut session, MAIN, loser);
        let stopped = Resumption::All(vec![Outcome::Stopped]);
        assert_eq!(runs(&mut session, MAIN), stopped);
        assert_eq!(request(&mut session, MAIN), ends(&[(2, 0)], 0));
        session.answer(4, "").unwrap();
        runs(&mut session, MAIN);
        session.end(MAIN, "");
        assert!(session.is_over());
    }

    #[test]
    fn a_request_with_a_wait_does_not_represent_the_start_of_the_session() {
        let mut session = Session::new();
        runs(&mut session, MAIN);
        session.sleep(MAIN, 5);
        let quick = session.spawn(MAIN).unwrap();
        send(
            &mut session,
            MAIN,
            Mode::First,
            vec![REQUEST, Target::Coroutine(quick)],
        );
        runs(&mut session, quick);
        session.end(quick, "quick");
        runs(&mut session, MAIN);
        send(&mut session, MAIN, Mode::All, vec![Target::Node(Written::Run)]);
        // Node 1 lost and is not sent. The tool runs 5 ns after a timer at the session's start.
        let run = vec![(2, Event::Dispatched, 5)];
        let step = session.take_step();
        assert_eq!(nodes(&step), [(2, true, vec![]), (3, false, run)]);
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
        let targets = vec![REQUEST, Target::Coroutine(two), Target::Coroutine(one)];
        assert!(send(&mut session, MAIN, Mode::First, targets).is_empty());
        assert_eq!(session.outbox.nodes(), 1);
        assert_eq!(session.unreceived().count(), 0);
        assert_eq!(
            runs(&mut session, MAIN),
            Resumption::First(1, Outcome::Value("two"))
        );
    }

    /// The number of a node, true for a timer, edges with their delays.
    type Issued = (Node, bool, Vec<(Node, Event, Nanos)>);

    fn nodes(step: &IssuedStep<Written>) -> Vec<Issued> {
        let edges = |start: &Start| {
            let edges = start.edges.iter();
            edges.map(|edge| (edge.node, edge.event, edge.delay)).collect()
        };
        let nodes = step.nodes.iter();
        nodes
            .map(|issued| (issued.node, issued.written.is_none(), edges(&issued.start)))
            .collect()
    }

    /// Returns a session whose main function runs after the answer to a first request.
    fn planned() -> Session {
        let mut session = Session::new();
        runs(&mut session, MAIN);
        request(&mut session, MAIN);
        session.take_step();
        session.answer(1, "plan").unwrap();
        runs(&mut session, MAIN);
        session
    }

    const END: Event = Event::Completed;

    #[test]
    fn a_sleep_limits_the_time_of_a_race() {
        let race = |session: &mut Session| {
            send(session, MAIN, Mode::First, vec![REQUEST, Target::Sleep(20)]);
        };
        let mut session = planned();
        session.sleep(MAIN, 3);
        race(&mut session);
        let step = session.take_step();
        let timer = vec![(1, END, 23)];
        assert_eq!(nodes(&step), [(2, false, vec![(1, END, 0)]), (3, true, timer)]);
        assert_eq!(step.nodes[0].start.wait, 3);
        session.answer(3, "").unwrap();
        assert_eq!(runs(&mut session, MAIN), Resumption::First(1, Outcome::Slept));
        assert_eq!(request(&mut session, MAIN), ends(&[(3, 0)], 0));
        assert_eq!(session.take_step().cancelled, [2]);

        let mut session = planned();
        race(&mut session);
        session.take_step();
        session.answer(2, "quick").unwrap();
        let won = Resumption::First(0, Outcome::Value("quick"));
        assert_eq!(runs(&mut session, MAIN), won);
        session.end(MAIN, "");
        let step = session.take_step();
        assert_eq!((step.cancelled, step.done), (vec![3], true));
        assert_eq!(session.answer(3, ""), Ok(()));
    }

    #[test]
    fn a_subagent_ends_a_race_after_its_sleep() {
        let mut session = planned();
        let [sleeps, answers] = [(); 2].map(|()| session.spawn(MAIN).unwrap());
        let targets = vec![Target::Coroutine(sleeps), Target::Coroutine(answers)];
        send(&mut session, MAIN, Mode::First, targets);
        runs(&mut session, sleeps);
        session.sleep(sleeps, 7);
        session.end(sleeps, "slept");
        runs(&mut session, answers);
        request(&mut session, answers);
        let step = session.take_step();
        let timer = vec![(1, END, 7)];
        assert_eq!(nodes(&step), [(2, true, timer), (3, false, vec![(1, END, 0)])]);
        assert_eq!(session.take_ready(), None);
        // The second one sleeps after its answer, and is overtaken.
        session.answer(3, "").unwrap();
        runs(&mut session, answers);
        session.sleep(answers, 9);
        session.end(answers, "answered");
        let step = session.take_step();
        assert_eq!(nodes(&step), [(4, true, vec![(3, END, 9)])]);
        assert!(!session.is_stuck());
        session.answer(2, "").unwrap();
        let won = Resumption::First(0, Outcome::Value("slept"));
        assert_eq!(runs(&mut session, MAIN), won);
        assert_eq!(request(&mut session, MAIN), ends(&[(2, 0)], 0));
        assert_eq!(session.take_step().cancelled, [4]);
    }

    #[test]
    fn an_end_before_the_race_wins_it() {
        let mut session = planned();
        let sleeps = session.spawn(MAIN).unwrap();
        session.sleep(MAIN, 7);
        let targets = vec![REQUEST, Target::Coroutine(sleeps)];
        send(&mut session, MAIN, Mode::First, targets);
        runs(&mut session, sleeps);
        session.sleep(sleeps, 7);
        session.end(sleeps, "slept");
        let won = Resumption::First(1, Outcome::Value("slept"));
        assert_eq!(runs(&mut session, MAIN), won);
        // The request of the race is not sent.
        assert_eq!(request(&mut session, MAIN), ends(&[(1, 0)], 7));
        let step = session.take_step();
        assert_eq!(nodes(&step), [(3, false, vec![(1, END, 0)])]);
        assert!(step.cancelled.is_empty());
        assert_eq!(session.answer(2, ""), Err(NotAwaited));
    }

    #[test]
    fn sleeps_need_no_timer_without_a_race() {
        let mut session = planned();
        send(&mut session, MAIN, Mode::All, vec![REQUEST, Target::Sleep(20)]);
        session.take_step();
        session.answer(2, "x").unwrap();
        let both = vec![Outcome::Value("x"), Outcome::Slept];
        assert_eq!(runs(&mut session, MAIN), Resumption::All(both));
        assert_eq!(request(&mut session, MAIN), ends(&[(1, 20), (2, 0)], 0));
        session.answer(3, "x").unwrap();
        runs(&mut session, MAIN);
        send(&mut session, MAIN, Mode::All, vec![Target::Sleep(5)]);
        runs(&mut session, MAIN);
        send(&mut session, MAIN, Mode::First, vec![Target::Sleep(6)]);
        assert_eq!(runs(&mut session, MAIN), Resumption::First(0, Outcome::Slept));
        assert_eq!(request(&mut session, MAIN), ends(&[(3, 0)], 11));
    }

    #[test]
    fn a_timer_represents_the_start_of_the_session() {
        let mut session = Session::new();
        runs(&mut session, MAIN);
        session.sleep(MAIN, 5);
        let targets = vec![Target::Sleep(20), Target::Node(Written::Run)];
        send(&mut session, MAIN, Mode::First, targets);
        let start = |delay| vec![(1, Event::Dispatched, delay)];
        let expected = [(1, true, vec![]), (2, true, start(25)), (3, false, start(5))];
        assert_eq!(nodes(&session.take_step()), expected);
        // Nothing waits for the first timer.
        assert_eq!(session.answer(1, ""), Ok(()));
        assert_eq!(session.take_ready(), None);
    }

    #[test]
    fn a_node_that_another_one_names_is_sent_and_cancelled() {
        let mut session = Session::new();
        runs(&mut session, MAIN);
        let [ends, slow] = [(); 2].map(|()| session.spawn(MAIN).unwrap());
        let run = session.spawn(MAIN).unwrap();
        send(
            &mut session,
            MAIN,
            Mode::First,
            vec![REQUEST, Target::Coroutine(slow)],
        );
        runs(&mut session, ends);
        session.sleep(ends, 4);
        send(&mut session, ends, Mode::All, vec![Target::Node(Written::Run)]);
        runs(&mut session, slow);
        session.end(slow, "quick");
        runs(&mut session, run);
        session.end(run, "");
        runs(&mut session, MAIN);
        session.end(MAIN, "");
        let step = session.take_step();
        let run = vec![(1, Event::Dispatched, 4)];
        assert_eq!(nodes(&step), [(1, false, vec![]), (2, false, run)]);
        assert_eq!(step.cancelled, [1]);
        assert_eq!(session.answer(1, ""), Ok(()));
    }

    #[test]
    fn nodes_are_limited() {
        let mut session = planned();
        let many = vec![Target::Sleep(1); MAX_NODES];
        assert_eq!(session.check_nodes(&many), Err(TooManyNodes));
        assert_eq!(session.check_nodes(&many[1..]), Ok(()));
        send(&mut session, MAIN, Mode::First, many[1..].to_vec());
        assert_eq!(session.check_nodes(&[REQUEST]), Err(TooManyNodes));
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
