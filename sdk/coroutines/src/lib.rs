//! The coroutines of an agent's session: the main function and its subagents.
//!
//! Agents of Lua and of the Rust SDK have one scheduler, [`Coroutines`]. It decides which coroutine
//! runs next, which one an answer resumes, and when a node may start: a request or a tool run. The
//! caller runs the code.
//! It is a pure function of the calls, so a session depends on its code and on the order of the
//! answers alone.
//!
//! Time in a coroutine is a moment: the latest of events of the session, each with a delay. A
//! coroutine that waits continues at the moment of what it waited for, a sleep adds a delay, and a
//! subagent begins at the moment of its parent. The nodes of a coroutine start at its moment.
//! That is why a sleep delays everything that follows it, also across the end of a subagent.
//!
//! A sleep is not an event, but a race is decided by events. So where a race waits for an end that
//! a sleep delays, that end is a node: a timer, which starts at its moment and takes no time.
//!
//! A moment keeps no event that another one implies: a subagent ends after everything that had
//! ended when it was spawned. Where many remain, a timer replaces them for what starts next, so
//! that the number of edges does not grow with the length of a session.
#![forbid(unsafe_code)]

mod coroutine_id;
mod coroutines;
mod limits;
mod moment;
mod rules;
mod step;
mod wait;

pub use coroutine_id::CoroutineId;
pub use coroutines::Coroutines;
pub use limits::{
    MAX_DEPTH, MAX_ENDS, MAX_LIVE, MAX_NODES, MAX_SUBAGENTS, NotAwaited, SpawnError, TooManyNodes, WaitError,
};
pub use moment::{Event, Nanos, Node, Start, StartEdge};
pub use rules::{NodeEdge, SUBAGENT, join_edges, lacks_subagent};
pub use step::{IssuedNode, IssuedStep, NewNode};
pub use wait::{Mode, Outcome, Resumption, Target};
