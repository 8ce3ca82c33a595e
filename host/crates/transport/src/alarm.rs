//! The alarm of a client thread: a kernel timer, used as a file descriptor. Timers of the runtime
//! would add a cost to every turn of its loop, and so to almost every read.

use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use veeksha_clock::RunClock;
use veeksha_model::Nanos;

/// A timer that fires at an instant of the run's clock.
pub(crate) struct Alarm {
    timer: AsyncFd<OwnedFd>,
    clock: RunClock,
    /// Next instant at which the timer fires.
    set_for: std::cell::Cell<Option<Nanos>>,
}

impl Alarm {
    /// Creates an alarm that is not set. Must be called on a runtime.
    pub(crate) fn new(clock: RunClock) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        #[expect(
            deprecated,
            reason = "it is unsound for types whose descriptor changes or dies early, and an OwnedFd is none; its replacement is unsafe to call"
        )]
        let timer = AsyncFd::new(timer)?;
        Ok(Alarm {
            timer,
            clock,
            set_for: std::cell::Cell::new(None),
        })
    }

    /// Makes the alarm fire at `at` at the latest. It may fire earlier because of a previous
    /// request that has become obsolete.
    pub(crate) fn ring_by(&self, at: Nanos) {
        if self.set_for.get().is_some_and(|set_for| set_for <= at) {
            return;
        }
        let none = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // An all-zero value would disarm the timer.
        let absolute = self.clock.origin().saturating_add(at).max(1);
        let seconds = i64::try_from(absolute / 1_000_000_000).unwrap_or(i64::MAX);
        let setting = Itimerspec {
            it_interval: none,
            it_value: Timespec {
                tv_sec: seconds,
                tv_nsec: (absolute % 1_000_000_000) as _,
            },
        };
        // The descriptor is a timer and the time is valid, so the kernel has no reason to refuse.
        if timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::ABSTIME, &setting).is_ok() {
            self.set_for.set(Some(at));
        }
    }

    /// Waits until the alarm fires.
    pub(crate) async fn rings(&self) -> io::Result<()> {
        loop {
            let mut ready = self.timer.readable().await?;
            let mut count = [0u8; 8];
            let read = ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut count)?));
            if let Ok(read) = read {
                self.set_for.set(None);
                return read.map(|_| ());
            }
        }
    }
}
