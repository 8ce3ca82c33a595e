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
#![forbid(unsafe_code)]

mod coroutines;
mod moment;

pub use coroutines::{
    CoroutineId, Coroutines, MAX_DEPTH, MAX_LIVE, MAX_SUBAGENTS, Mode, NotAwaited, Outcome, Resumption,
    SpawnError, Target, WaitError,
};
pub use moment::{Event, Nanos, NoEdge, Node, Root, Start, StartEdge};
