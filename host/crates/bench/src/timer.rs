//! A pollable timer with nanosecond resolution: timeouts of the queue itself are whole milliseconds
//! on older kernels.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use veeksha_model::Nanos;

use crate::error::BenchError;

/// A timer on `CLOCK_MONOTONIC`.
#[derive(Debug)]
pub(crate) struct Timer {
    file: OwnedFd,
    armed: Option<Nanos>,
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Timer {
    /// Creates a disarmed timer.
    pub(crate) fn new() -> Result<Self, BenchError> {
        let file = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )
        .map_err(|error| BenchError::io("making a timer")(error.into()))?;
        Ok(Timer { file, armed: None })
    }

    /// Arms the timer for an absolute instant, or disarms it. Free of cost if nothing changes.
    pub(crate) fn arm(&mut self, due: Option<Nanos>) -> Result<(), BenchError> {
        if due == self.armed {
            return Ok(());
        }
        // Zero disarms a timer; nothing is ever due at the machine's first nanosecond.
        let at = due.map_or(0, |due| due.max(1));
        let setting = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                tv_sec: (at / 1_000_000_000) as i64,
                tv_nsec: (at % 1_000_000_000) as _,
            },
        };
        timerfd_settime(&self.file, TimerfdTimerFlags::ABSTIME, &setting)
            .map_err(|error| BenchError::io("setting a timer")(error.into()))?;
        self.armed = due;
        Ok(())
    }

    /// Clears the expiration; until then the timer stays readable.
    pub(crate) fn clear(&mut self) {
        // If it has not expired, there is nothing to read, and the read does not block.
        let _ = rustix::io::read(&self.file, &mut [0; 8]);
        self.armed = None;
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use veeksha_clock::RunClock;

    use super::*;

    fn is_readable(timer: &Timer, wait: Option<&Timespec>) -> bool {
        poll(&mut [PollFd::new(timer, PollFlags::IN)], wait).expect("a poll") > 0
    }

    #[test]
    fn expires_at_its_instant_and_once() {
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let clock = RunClock::with_origin(0);
        let mut timer = Timer::new().expect("a timer");
        assert!(!is_readable(&timer, Some(&at_once)));
        let due = clock.now() + 3_000_000;
        timer.arm(Some(due)).expect("set");
        assert!(is_readable(&timer, None));
        assert!(clock.now() >= due);
        timer.clear();
        assert!(!is_readable(&timer, Some(&at_once)));
        timer.arm(Some(clock.now() + 3_600_000_000_000)).expect("set");
        timer.arm(None).expect("off");
        assert!(!is_readable(&timer, Some(&at_once)));
    }
}
