//! The monotonic clock of one run.

use rustix::time::{ClockId, clock_gettime};
use veeksha_model::Nanos;

/// Reads `CLOCK_MONOTONIC` relative to an origin. Copies share the origin, so their readings can be
/// compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunClock {
    origin: u64,
}

impl RunClock {
    /// A clock whose zero is now.
    pub fn starting_now() -> Self {
        RunClock {
            origin: monotonic_nanos(),
        }
    }

    /// A clock whose zero is the given absolute reading of `CLOCK_MONOTONIC`, in nanoseconds.
    pub fn with_origin(origin: u64) -> Self {
        RunClock { origin }
    }

    /// The absolute reading of `CLOCK_MONOTONIC` at this clock's zero: what relates two processes
    /// on one machine.
    pub fn origin(&self) -> u64 {
        self.origin
    }

    /// Nanoseconds since the origin (0 before it).
    pub fn now(&self) -> Nanos {
        monotonic_nanos().saturating_sub(self.origin)
    }
}

/// The absolute reading of `CLOCK_MONOTONIC`.
pub(crate) fn monotonic_nanos() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_monotonic_and_share_origin() {
        let clock = RunClock::starting_now();
        let other = RunClock::with_origin(clock.origin());
        let (a, b, c) = (clock.now(), other.now(), clock.now());
        assert!(a <= b && b <= c);
    }
}
