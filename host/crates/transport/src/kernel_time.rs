//! Brings the kernel's receive times onto the run's clock. Pure: readings of clocks go in, arrivals come out.
//!
//! The kernel stamps what it receives on `CLOCK_REALTIME`; a run counts on `CLOCK_MONOTONIC`. The kernel slews both alike, so
//! their difference is constant until somebody *sets* the wall clock. It is sampled at every read. A sample is too large by
//! the time between its two readings (the thread may lose the processor there), so the smallest of the last two seconds counts.
//!
//! When the wall clock is set, the difference jumps, and stamps from before the jump are wrong by as much. They are recognised and
//! refused: one that lies in the future, and one that, by the new difference, lies before the jump was noticed (or
//! shortly after it, where the clock was set back). A refused stamp is counted, and the read's own time takes its place.

use veeksha_model::Nanos;

/// How far a difference may wander, and a stamp lie in the future, before the wall clock must have been set: 1 ms.
const TOLERANCE: i64 = 1_000_000;

/// For how long the smallest sample counts.
const WINDOW: Nanos = 1_000_000_000;

/// The longest time after a jump for which stamps are doubted: data that waited longer for their read are not expected.
const DOUBT: Nanos = 1_000_000_000;

/// The difference between the two clocks, as one thread sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KernelTime {
    offset: Option<Offset>,
    /// Arrivals before this are not believed.
    trusted_from: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Offset {
    /// Realtime less run clock, in nanoseconds.
    best: i64,
    /// The smallest sample of the window that is open.
    newest: i64,
    window_ends: Nanos,
}

/// When something arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// On the run's clock.
    pub(crate) at: Nanos,
    /// How much later the read returned; 0 where `at` is the read's own time.
    pub(crate) lag: u32,
    /// What `at` is.
    pub(crate) source: Source,
}

/// What an arrival time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The kernel's.
    Kernel,
    /// The read's own: the kernel gave none.
    Read,
    /// The read's own: the kernel's cannot be believed.
    Refused,
}

impl Arrival {
    /// The read's own time.
    pub(crate) fn of_read(now: Nanos, source: Source) -> Self {
        Arrival {
            at: now,
            lag: 0,
            source,
        }
    }
}

impl KernelTime {
    /// Whether a sample of the difference (realtime less run clock) says that the wall clock was set. Before that is believed, a
    /// second sample is worth its price.
    pub(crate) fn jumps(&self, sample: i64) -> bool {
        self.offset
            .is_some_and(|offset| (sample - offset.best).abs() > TOLERANCE)
    }

    /// The arrival of what a read returned at `now`, when the difference was `sample`, and that the kernel stamped with
    /// `stamp` (nanoseconds of realtime).
    pub(crate) fn arrival(&mut self, now: Nanos, sample: i64, stamp: u64) -> Arrival {
        let offset = match &mut self.offset {
            Some(offset) if (sample - offset.best).abs() <= TOLERANCE => {
                offset.take(now, sample);
                offset.best
            }
            jumped => {
                if let Some(old) = jumped {
                    let jump = (sample - old.best).unsigned_abs();
                    self.trusted_from = now.saturating_add(jump.min(DOUBT));
                }
                self.offset = Some(Offset {
                    best: sample,
                    newest: sample,
                    window_ends: now + WINDOW,
                });
                sample
            }
        };
        let at = i64::try_from(stamp).unwrap_or(i64::MAX).saturating_sub(offset);
        let lag = (now as i64).saturating_sub(at);
        if lag < -TOLERANCE || at < 0 || (at as Nanos) < self.trusted_from {
            return Arrival::of_read(now, Source::Refused);
        }
        let lag = u32::try_from(lag.max(0)).unwrap_or(u32::MAX);
        Arrival {
            at: now.min(at as Nanos),
            lag,
            source: Source::Kernel,
        }
    }
}

impl Offset {
    fn take(&mut self, now: Nanos, sample: i64) {
        if now >= self.window_ends {
            // Two windows: the one that has just closed, and the one that begins.
            self.best = self.newest.min(sample);
            self.newest = sample;
            self.window_ends = now + WINDOW;
        } else {
            self.newest = self.newest.min(sample);
            self.best = self.best.min(sample);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const S: u64 = 1_000 * MS;
    /// Realtime at the run's zero.
    const EPOCH: i64 = 1_795_132_800_000_000_000;

    fn kernel(at: Nanos, lag: u64) -> Arrival {
        Arrival {
            at,
            lag: lag as u32,
            source: Source::Kernel,
        }
    }

    fn stamp(offset: i64, at: Nanos) -> u64 {
        (offset + at as i64) as u64
    }

    #[test]
    fn a_stamp_is_moved_by_the_difference_of_the_clocks() {
        let mut time = KernelTime::default();
        let arrival = time.arrival(10 * MS, EPOCH, stamp(EPOCH, 7 * MS));
        assert_eq!(arrival, kernel(7 * MS, 3 * MS));
    }

    #[test]
    fn a_sample_that_was_held_up_does_not_move_arrivals() {
        let mut time = KernelTime::default();
        time.arrival(10 * MS, EPOCH, stamp(EPOCH, 9 * MS));
        // The thread lost the processor for 0.8 ms between the two readings.
        let held_up = EPOCH + 800_000;
        assert_eq!(
            time.arrival(20 * MS, held_up, stamp(EPOCH, 19 * MS)),
            kernel(19 * MS, MS)
        );
        // And one that was held up first is corrected by the next.
        let mut time = KernelTime::default();
        time.arrival(10 * MS, held_up, stamp(EPOCH, 9 * MS));
        assert_eq!(
            time.arrival(20 * MS, EPOCH, stamp(EPOCH, 19 * MS)),
            kernel(19 * MS, MS)
        );
    }

    #[test]
    fn a_small_forward_move_is_followed_within_two_windows() {
        let mut time = KernelTime::default();
        time.arrival(10 * MS, EPOCH, stamp(EPOCH, 9 * MS));
        let moved = EPOCH + 500_000;
        for second in 1..=2 {
            time.arrival(second * S + 20 * MS, moved, stamp(moved, second * S));
        }
        let arrival = time.arrival(3 * S + 100 * MS, moved, stamp(moved, 3 * S));
        assert_eq!(arrival, kernel(3 * S, 100 * MS));
    }

    #[test]
    fn a_stamp_a_little_in_the_future_is_now() {
        let mut time = KernelTime::default();
        assert_eq!(
            time.arrival(10 * MS, EPOCH, stamp(EPOCH, 10 * MS + 900_000)),
            kernel(10 * MS, 0)
        );
        assert_eq!(
            time.arrival(10 * MS, EPOCH, stamp(EPOCH, 11 * MS + 1)),
            Arrival::of_read(10 * MS, Source::Refused)
        );
    }

    #[test]
    fn what_was_stamped_before_the_clock_was_set_is_refused() {
        // Set at 100 ms; noticed at a read at 101 ms. Each case: a stamp by the old clock, read a little later.
        for step in [
            3_600 * S as i64,
            -3_600 * S as i64,
            5 * MS as i64,
            -5 * MS as i64,
            2 * MS as i64,
            -2 * MS as i64,
        ] {
            let set = EPOCH + step;
            let mut time = KernelTime::default();
            time.arrival(50 * MS, EPOCH, stamp(EPOCH, 49 * MS));
            assert!(time.jumps(set) && !time.jumps(EPOCH + 900_000));
            for (now, at) in [(101, 99), (102, 99), (104, 98), (106, 99)] {
                assert_eq!(
                    time.arrival(now * MS, set, stamp(EPOCH, at * MS)),
                    Arrival::of_read(now * MS, Source::Refused),
                    "{step} {now} {at}"
                );
            }
            // What comes after the doubt is believed again.
            assert_eq!(
                time.arrival(2_000 * MS, set, stamp(set, 1_999 * MS)),
                kernel(1_999 * MS, MS),
                "{step}"
            );
        }
    }

    #[test]
    fn a_lag_beyond_its_type_is_the_largest() {
        let mut time = KernelTime::default();
        let arrival = time.arrival(10 * S, EPOCH, stamp(EPOCH, S));
        assert_eq!((arrival.at, arrival.lag), (S, u32::MAX));
    }
}
