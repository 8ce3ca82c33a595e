//! Bounds of a session, and the errors of calls that exceed them or cannot be carried out.

use std::fmt;

/// Maximum number of nodes of a session.
pub const MAX_NODES: usize = 65_536;

/// Maximum number of subagents of a session that have not ended.
pub const MAX_LIVE: usize = 4_096;
/// Maximum number of subagents of a session.
pub const MAX_SUBAGENTS: usize = 65_536;

/// Maximum length of the chain of spawns from the main function to a subagent.
pub const MAX_DEPTH: usize = 256;

/// Maximum number of ends that subagents and concurrent nodes of a coroutine wait for; a timer
/// replaces more.
///
/// Every one is an edge of each node, so more cost memory and time; a timer is one more node.
pub const MAX_ENDS: usize = 16;

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

/// More nodes than [`MAX_NODES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyNodes;

impl fmt::Display for TooManyNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a session may have {MAX_NODES} nodes")
    }
}

impl std::error::Error for TooManyNodes {}

/// The end of a node that no coroutine waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAwaited;
