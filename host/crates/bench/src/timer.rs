//! A timer that an event queue can wait for, to the nanosecond: timeouts of the queue itself are whole milliseconds on older kernels.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use veeksha_model::Nanos;

use crate::BenchError;

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
    /// A timer that is off.
    pub(crate) fn new() -> Result<Self, BenchError> {
        let file = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )
        .map_err(|error| BenchError::io("making a timer")(error.into()))?;
        Ok(Timer { file, armed: None })
    }

    /// Tells at this absolute instant, or not at all. Costs nothing if that is so already.
    pub(crate) fn arm(&mut self, due: Option<Nanos>) -> Result<(), BenchError> {
        if due == self.armed {
            return Ok(());
        }
        // Zero switches a timer off; nothing was ever due at the first nanosecond of the machine.
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

    /// Takes note that it has told: until then it goes on telling.
    pub(crate) fn told(&mut self) {
        // If it has not told, there is nothing to read, and nothing waits.
        let _ = rustix::io::read(&self.file, &mut [0; 8]);
        self.armed = None;
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use veeksha_clock::RunClock;

    use super::*;

    fn tells(timer: &Timer, wait: Option<&Timespec>) -> bool {
        poll(&mut [PollFd::new(timer, PollFlags::IN)], wait).expect("a poll") > 0
    }

    #[test]
    fn it_tells_at_its_instant_and_once() {
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let clock = RunClock::with_origin(0);
        let mut timer = Timer::new().expect("a timer");
        assert!(!tells(&timer, Some(&at_once)));
        let due = clock.now() + 3_000_000;
        timer.arm(Some(due)).expect("set");
        assert!(tells(&timer, None));
        assert!(clock.now() >= due);
        timer.told();
        assert!(!tells(&timer, Some(&at_once)));
        timer.arm(Some(clock.now() + 3_600_000_000_000)).expect("set");
        timer.arm(None).expect("off");
        assert!(!tells(&timer, Some(&at_once)));
    }
}
