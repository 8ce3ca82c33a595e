//! Numbers of coroutines.

/// A coroutine of a session. Numbers count from 0, the main function, in the order of the spawns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoroutineId(pub(crate) u32);

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
