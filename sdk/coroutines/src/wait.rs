//! Waits of coroutines: their targets and outcomes.

use std::rc::Rc;

use crate::coroutine_id::CoroutineId;
use crate::moment::{Moment, Nanos, Node};

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
    /// This time.
    Sleep(Nanos),
}

impl<R> Target<R> {
    pub(crate) fn is_coroutine(&self) -> bool {
        matches!(self, Target::Coroutine(_))
    }
}

/// The end of a node or of a coroutine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<V> {
    /// It ended with this value.
    Value(V),
    /// The time of a sleep has passed.
    Slept,
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

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    Node(Node),
    Coroutine(CoroutineId),
    Sleep,
    /// A node or sleep of a race that was decided before it.
    Unsent,
}

/// A target of a wait.
pub(crate) struct Slot<V> {
    pub(crate) awaited: Awaited,
    pub(crate) outcome: Option<Outcome<V>>,
    /// In a race: the timer that ends when the end of the coroutine or sleep is reached.
    pub(crate) timer: Option<Node>,
    /// The moment of the end, unless `awaited` implies it.
    pub(crate) ends: Option<Rc<Moment>>,
}

impl<V> Slot<V> {
    pub(crate) fn new(awaited: Awaited) -> Self {
        Slot {
            awaited,
            outcome: None,
            timer: None,
            ends: None,
        }
    }
}

/// The targets of a coroutine that waits.
pub(crate) struct Wait<V> {
    pub(crate) mode: Mode,
    pub(crate) slots: Vec<Slot<V>>,
    /// Slots without an outcome.
    pub(crate) left: usize,
}
