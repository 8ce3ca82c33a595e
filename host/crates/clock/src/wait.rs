//! Waiting for an instant without a runtime's timer wheel.

use std::num::NonZeroU64;

use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::Timespec;
use veeksha_model::Nanos;

use crate::run_clock::RunClock;

/// Sleeps until `deadline` on the run's clock: an absolute wait, so that a late wake-up does not
/// push later ones. Returns at once if the deadline has passed.
pub fn sleep_until(clock: RunClock, deadline: Nanos) {
    let absolute = clock.origin().saturating_add(deadline);
    let request = Timespec {
        tv_sec: (absolute / 1_000_000_000) as i64,
        tv_nsec: (absolute % 1_000_000_000) as _,
    };
    // A signal may end the sleep early; the deadline is absolute, so sleeping again is exact.
    while clock_nanosleep_absolute(ClockId::Monotonic, &request).is_err() && clock.now() < deadline {}
}

/// Asks the kernel to wake this thread as close to its deadlines as it can (1 ns of slack instead
/// of 50 µs). Returns false if the kernel refuses; waits then end a little later, which the run's
/// lateness metrics show.
pub fn minimal_timer_slack() -> bool {
    set_current_timer_slack(NonZeroU64::new(1)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_until_never_ends_early() {
        let clock = RunClock::starting_now();
        let deadline = clock.now() + 2_000_000;
        sleep_until(clock, deadline);
        assert!(clock.now() >= deadline);
    }

    #[test]
    fn sleep_until_returns_at_once_after_deadline() {
        let clock = RunClock::with_origin(0);
        sleep_until(clock, 1);
    }
}
