//! Identifiers and the unit of time.

use std::fmt;

/// Nanoseconds relative to the start of the run, on one monotonic clock. Always below 2^53, so that
/// every guest language can carry it.
pub type Nanos = u64;

/// Converts nanoseconds to seconds.
pub fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / 1e9
}

/// The index of a session in its workload: session *i* is a pure function of (plugin, config, seed,
/// *i*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// A node of a session's graph; unique within its session only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// One request of a run: the session and the node name it in every file and message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    /// The session that the request belongs to.
    pub session: SessionId,
    /// The node in that session.
    pub node: NodeId,
}

/// A 64-bit seed in two 32-bit halves, because JavaScript cannot represent 64-bit integers exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seed {
    /// The upper 32 bits.
    pub high: u32,
    /// The lower 32 bits.
    pub low: u32,
}

impl From<u64> for Seed {
    fn from(value: u64) -> Self {
        Seed {
            high: (value >> 32) as u32,
            low: value as u32,
        }
    }
}

impl From<Seed> for u64 {
    fn from(seed: Seed) -> u64 {
        (u64::from(seed.high) << 32) | u64::from(seed.low)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// `session/node`, for example `17/2`.
impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.session, self.node)
    }
}
