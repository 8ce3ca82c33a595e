//! Random agents, run by the scheduler of coroutines and by a reference that really sleeps.
//!
//! The scheduler runs code ahead of its sleeps and gives nodes symbolic starts. The reference is a
//! plain simulation in which a sleep suspends the code. Both must start and end the same requests
//! at the same instants.

#![expect(clippy::expect_used, reason = "helpers of tests may fail as tests do")]

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::rc::Rc;

use veeksha_coroutines::{
    CoroutineId, Coroutines, Event, IssuedNode, MAX_ENDS, Mode, NewNode, Node, Resumption, Target,
};

type Time = u64;
/// Start and end of each request, by its place in the program.
type Schedule = BTreeMap<String, (Time, Time)>;

/// The code of an agent or subagent.
type Program = Vec<Op>;

#[derive(Clone, Debug)]
enum Op {
    Sleep(Time),
    Spawn(Rc<Program>),
    Wait(bool, Vec<Branch>),
}

#[derive(Clone, Debug)]
enum Branch {
    /// A request or tool run, with the time that it takes.
    Node {
        is_run: bool,
        takes: Time,
    },
    Sleep(Time),
    /// The subagent with this position among those that the code has spawned.
    Child(usize),
    /// The same among those that the parent has spawned, before this one.
    Sibling(usize),
}

/// The subagents that a program can wait for.
#[derive(Default)]
struct Children {
    spawned: usize,
    /// The number of subagents that its parent has spawned before it.
    siblings: usize,
}

struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A time that no other one equals in practice, nor a sum of others.
    fn time(&mut self) -> Time {
        1 + self.below(1 << 40)
    }

    fn node(&mut self) -> Branch {
        Branch::Node {
            is_run: self.below(3) == 0,
            takes: self.time(),
        }
    }

    fn program(&mut self, depth: u32, siblings: usize) -> Program {
        let mut program = Vec::new();
        let mut children = Children {
            siblings,
            ..Children::default()
        };
        for _ in 0..self.below(6) {
            match self.below(8) {
                0 | 1 => program.push(Op::Sleep(self.time())),
                2..=4 if depth > 0 => {
                    self.spawn(&mut program, &mut children, depth);
                }
                5 | 6 => self.wait(&mut program, &mut children, depth),
                _ => program.push(Op::Wait(false, vec![self.node()])),
            }
        }
        program
    }

    fn spawn(&mut self, program: &mut Program, children: &mut Children, depth: u32) -> usize {
        program.push(Op::Spawn(Rc::new(self.program(depth - 1, children.spawned))));
        children.spawned += 1;
        children.spawned - 1
    }

    fn wait(&mut self, program: &mut Program, children: &mut Children, depth: u32) {
        let is_race = self.below(2) == 0;
        if is_race && self.below(2) == 0 {
            program.push(Op::Wait(false, vec![self.node()]));
        }
        // Which of several subagents wins that ended before the race is not defined. So a race has
        // one that was spawned before, or any number that begin with the race.
        let mut may_be_old = true;
        let are_new = self.below(2) == 0;
        let mut branches = Vec::new();
        for _ in 0..=self.below(4) {
            let branch = match self.below(5) {
                0 => Branch::Sleep(self.time()),
                1 | 2 if is_race && are_new && depth > 0 => {
                    Branch::Child(self.spawn(program, children, depth))
                }
                // An old one must not have younger siblings: their code may have taken its end
                // ahead of its sleeps when the race stops it.
                1 | 2 if is_race => {
                    let youngest = children.spawned.checked_sub(1);
                    match youngest.filter(|_| !are_new && may_be_old) {
                        Some(youngest) => {
                            may_be_old = false;
                            Branch::Child(youngest)
                        }
                        None => self.node(),
                    }
                }
                1 | 2 if children.spawned > 0 => Branch::Child(self.below(children.spawned as u64) as usize),
                3 if !is_race && children.siblings > 0 => {
                    Branch::Sibling(self.below(children.siblings as u64) as usize)
                }
                _ => self.node(),
            };
            let is_twice = matches!(branch, Branch::Child(_)) && self.below(4) == 0;
            branches.extend(is_twice.then(|| branch.clone()));
            branches.push(branch);
        }
        program.push(Op::Wait(is_race, branches));
    }
}

/// The place of a request: the subagent, the operation, and the position among its branches.
fn place(path: &str, op: usize, branch: usize) -> String {
    format!("{path}/{op}/{branch}")
}

/// A node as the program has it.
#[derive(Clone)]
struct Written {
    place: String,
    is_run: bool,
    takes: Time,
}

impl NewNode for Written {
    fn is_tool_run(&self) -> bool {
        self.is_run
    }

    fn root_wait(&self) -> Option<Time> {
        Some(0)
    }
}

/// The code of a coroutine: its program, the next operation, and its subagents.
struct Code {
    parent: Option<CoroutineId>,
    program: Rc<Program>,
    next: usize,
    children: Vec<CoroutineId>,
}

/// A session that the scheduler under test runs.
struct Scheduled {
    coroutines: Coroutines<(), Written>,
    code: Vec<Code>,
    now: Time,
    nodes: BTreeMap<Node, IssuedNode<Written>>,
    /// Nodes that have not started.
    waiting: BTreeSet<Node>,
    /// Starts and ends.
    started: BTreeMap<Node, Time>,
    ended: BTreeMap<Node, Time>,
    events: BinaryHeap<Reverse<(Time, bool, Node)>>,
    schedule: Schedule,
}

impl Scheduled {
    fn run(program: Rc<Program>, max_ends: usize) -> Schedule {
        let mut session = Scheduled {
            coroutines: Coroutines::with_max_ends(max_ends),
            code: vec![Code {
                parent: None,
                program,
                next: 0,
                children: Vec::new(),
            }],
            now: 0,
            nodes: BTreeMap::new(),
            waiting: BTreeSet::new(),
            started: BTreeMap::new(),
            ended: BTreeMap::new(),
            events: BinaryHeap::new(),
            schedule: Schedule::new(),
        };
        session.step();
        while let Some(Reverse((at, ends, node))) = session.events.pop() {
            if session.ended.contains_key(&node) {
                continue;
            }
            session.now = at;
            if ends {
                session.end(node);
                session.coroutines.answer(node, ()).expect("a node in flight");
                session.step();
            } else if let Entry::Vacant(started) = session.started.entry(node) {
                started.insert(at);
                let takes = session.nodes[&node].written.as_ref().map_or(0, |node| node.takes);
                session.events.push(Reverse((at + takes, true, node)));
                session.plan();
            }
        }
        assert!(session.coroutines.is_over(), "the session ends");
        session.schedule
    }

    /// Runs the coroutines until all of them wait, and takes what they have started.
    fn step(&mut self) {
        while let Some((id, resumption)) = self.coroutines.take_ready() {
            assert!(!matches!(resumption, Resumption::All(outcomes) if outcomes.is_empty()));
            self.resume(id);
        }
        self.coroutines.take_stopped();
        let step = self.coroutines.take_step();
        for issued in step.nodes {
            self.waiting.insert(issued.node);
            self.nodes.insert(issued.node, issued);
        }
        for node in step.cancelled {
            if !self.ended.contains_key(&node) {
                self.waiting.remove(&node);
                self.end(node);
                self.coroutines.answer(node, ()).expect("a cancelled node");
            }
        }
        self.plan();
    }

    fn resume(&mut self, id: CoroutineId) {
        loop {
            let code = &mut self.code[id.index()];
            let (op, index) = (code.program.get(code.next).cloned(), code.next);
            code.next += 1;
            match op {
                None => return self.coroutines.end(id, ()),
                Some(Op::Sleep(time)) => self.coroutines.sleep(id, time),
                Some(Op::Spawn(program)) => {
                    let child = self.coroutines.spawn(id).expect("few subagents");
                    self.code[id.index()].children.push(child);
                    self.code.push(Code {
                        parent: Some(id),
                        program,
                        next: 0,
                        children: Vec::new(),
                    });
                }
                Some(Op::Wait(is_race, branches)) => {
                    let path = self.coroutines.path(id);
                    let targets = branches
                        .into_iter()
                        .enumerate()
                        .map(|(branch, target)| match target {
                            Branch::Sleep(time) => Target::Sleep(time),
                            Branch::Child(child) => Target::Coroutine(self.code[id.index()].children[child]),
                            Branch::Sibling(sibling) => {
                                let parent = self.code[id.index()].parent.expect("a subagent");
                                Target::Coroutine(self.code[parent.index()].children[sibling])
                            }
                            Branch::Node { is_run, takes } => Target::Node(Written {
                                place: place(&path, index, branch),
                                is_run,
                                takes,
                            }),
                        });
                    let targets = targets.collect();
                    let mode = if is_race { Mode::First } else { Mode::All };
                    return self.coroutines.wait(id, mode, targets);
                }
            }
        }
    }

    fn end(&mut self, node: Node) {
        self.ended.insert(node, self.now);
        if let (Some(written), Some(&start)) = (&self.nodes[&node].written, self.started.get(&node))
            && start < self.now
        {
            self.schedule.insert(written.place.clone(), (start, self.now));
        }
    }

    /// Plans the starts of nodes whose events have happened.
    fn plan(&mut self) {
        let (now, nodes, started, ended) = (self.now, &self.nodes, &self.started, &self.ended);
        let mut planned = Vec::new();
        self.waiting.retain(|node| {
            let start = &nodes[node].start;
            let met = start.edges.iter().map(|edge| {
                let event = match edge.event {
                    Event::Dispatched => started.get(&edge.node).or(ended.get(&edge.node)),
                    Event::Completed => ended.get(&edge.node),
                };
                event.map(|at| at + edge.delay)
            });
            let met: Option<Vec<Time>> = met.collect();
            let Some(met) = met else { return true };
            let at = met.into_iter().max().unwrap_or(0) + start.wait;
            // The end of a subagent may have passed when a race begins to wait for it.
            let is_timer = nodes[node].written.is_none();
            assert!(at >= now || is_timer, "node {node} would start in the past");
            planned.push(Reverse((at.max(now), false, *node)));
            false
        });
        self.events.extend(planned);
    }
}

/// A thing that the reference waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    Node(usize),
    Sleep(usize),
    Code(usize),
}

#[derive(PartialEq, Eq)]
enum State {
    Running,
    /// The things, and those that have not ended.
    Waiting(bool, Vec<Thing>),
    Over,
}

struct Process {
    parent: Option<usize>,
    path: String,
    program: Rc<Program>,
    next: usize,
    children: Vec<usize>,
    state: State,
}

/// The same session, with sleeps that suspend the code.
#[derive(Default)]
struct Reference {
    now: Time,
    processes: Vec<Process>,
    /// The place and the start of each node in flight.
    nodes: Vec<Option<(String, Time)>>,
    sleeps: usize,
    ended: BTreeSet<Thing>,
    events: BinaryHeap<Reverse<(Time, Thing)>>,
    schedule: Schedule,
}

impl Reference {
    fn run(program: Rc<Program>) -> Schedule {
        let mut session = Reference::default();
        session.spawn(None, program);
        session.settle();
        while let Some(Reverse((at, thing))) = session.events.pop() {
            session.now = at;
            if let Thing::Node(node) = thing {
                session.finish(node);
            }
            session.ended.insert(thing);
            session.settle();
        }
        assert!(
            session
                .processes
                .iter()
                .all(|process| process.state == State::Over)
        );
        session.schedule
    }

    fn spawn(&mut self, parent: Option<usize>, program: Rc<Program>) {
        let path = match parent {
            None => String::new(),
            Some(parent) => {
                let of = &self.processes[parent];
                let number = of.children.len() + 1;
                if of.path.is_empty() {
                    number.to_string()
                } else {
                    format!("{}.{number}", of.path)
                }
            }
        };
        let id = self.processes.len();
        if let Some(parent) = parent {
            self.processes[parent].children.push(id);
        }
        self.processes.push(Process {
            parent,
            path,
            program,
            next: 0,
            children: Vec::new(),
            state: State::Running,
        });
    }

    /// Enters the end of a node, or its cancellation.
    fn finish(&mut self, node: usize) {
        if let Some((place, start)) = self.nodes[node].take()
            && start < self.now
        {
            self.schedule.insert(place, (start, self.now));
        }
    }

    /// Runs all code that can run at this instant.
    fn settle(&mut self) {
        loop {
            let mut acted = false;
            for id in 0..self.processes.len() {
                if let State::Waiting(is_race, things) = &self.processes[id].state {
                    let (is_race, things) = (*is_race, things.clone());
                    let winner = things.iter().position(|thing| self.ended.contains(thing));
                    let all = things.iter().all(|thing| self.ended.contains(thing));
                    if !(all || is_race && winner.is_some()) {
                        continue;
                    }
                    self.processes[id].state = State::Running;
                    if is_race {
                        let won = winner.map(|winner| things[winner]);
                        for thing in things {
                            if Some(thing) != won {
                                self.stop(thing);
                            }
                        }
                    }
                }
                if self.processes[id].state == State::Running {
                    self.resume(id);
                    acted = true;
                }
            }
            if !acted {
                return;
            }
        }
    }

    fn stop(&mut self, thing: Thing) {
        match thing {
            Thing::Node(node) => self.finish(node),
            Thing::Sleep(_) => {}
            Thing::Code(root) => {
                for id in root..self.processes.len() {
                    let mut above = Some(id);
                    while above.is_some_and(|above| above != root) {
                        above = above.and_then(|above| self.processes[above].parent);
                    }
                    if above.is_none() {
                        continue;
                    }
                    self.ended.insert(Thing::Code(id));
                    let state = std::mem::replace(&mut self.processes[id].state, State::Over);
                    if let State::Waiting(_, things) = state {
                        for thing in things {
                            if let Thing::Node(node) = thing {
                                self.finish(node);
                            }
                        }
                    }
                }
            }
        }
    }

    fn sleep(&mut self, time: Time) -> Thing {
        self.sleeps += 1;
        let thing = Thing::Sleep(self.sleeps);
        self.events.push(Reverse((self.now + time, thing)));
        thing
    }

    fn resume(&mut self, id: usize) {
        loop {
            let process = &mut self.processes[id];
            let (op, index) = (process.program.get(process.next).cloned(), process.next);
            process.next += 1;
            match op {
                None => {
                    process.state = State::Over;
                    self.ended.insert(Thing::Code(id));
                    return;
                }
                Some(Op::Sleep(time)) => {
                    let slept = self.sleep(time);
                    self.processes[id].state = State::Waiting(false, vec![slept]);
                    return;
                }
                Some(Op::Spawn(program)) => self.spawn(Some(id), program),
                Some(Op::Wait(is_race, branches)) => {
                    let mut things = Vec::new();
                    for (branch, target) in branches.into_iter().enumerate() {
                        things.push(match target {
                            Branch::Sleep(time) => self.sleep(time),
                            Branch::Child(child) => Thing::Code(self.processes[id].children[child]),
                            Branch::Sibling(sibling) => {
                                let parent = self.processes[id].parent.expect("a subagent");
                                Thing::Code(self.processes[parent].children[sibling])
                            }
                            Branch::Node { takes, .. } => {
                                let node = Thing::Node(self.nodes.len());
                                let place = place(&self.processes[id].path, index, branch);
                                self.nodes.push(Some((place, self.now)));
                                self.events.push(Reverse((self.now + takes, node)));
                                node
                            }
                        });
                    }
                    self.processes[id].state = State::Waiting(is_race, things);
                    return;
                }
            }
        }
    }
}

#[test]
fn random_programs_run_as_if_sleeps_suspended_the_code() {
    let (mut requests, mut cancelled) = (0, 0);
    for seed in 0..20_000 {
        let program = Rc::new(Draws(seed).program(3, 0));
        let expected = Reference::run(Rc::clone(&program));
        // With a small limit, timers replace the ends of most moments.
        for max_ends in [MAX_ENDS, 1 + seed as usize % 2] {
            let found = Scheduled::run(Rc::clone(&program), max_ends);
            assert_eq!(found, expected, "seed {seed}, {max_ends} ends: {program:#?}");
        }
        requests += expected.len();
        cancelled += usize::from(format!("{program:?}").contains("Wait(true"));
    }
    assert!(requests > 50_000 && cancelled > 3_000, "{requests} {cancelled}");
}
