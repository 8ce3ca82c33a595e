//! Conversion of the kernel's receive times to the run's clock. Pure: the inputs are clock
//! readings, the outputs are arrivals.
//!
//! The kernel stamps received data with `CLOCK_REALTIME`; a run uses `CLOCK_MONOTONIC`. The kernel
//! slews both alike, so their difference is constant until the wall clock is *set*. The difference
//! is sampled at every read. A sample is too large by the time between its two readings (the thread
//! may be preempted there), so the smallest sample of the last two seconds is used.
//!
//! When the wall clock is set, the difference jumps, and stamps from before the jump are wrong by
//! the same amount. They are detected and rejected: a stamp is rejected if it is in the future, or
//! if, by the new difference, it precedes the detection of the jump (or follows it shortly, where
//! the clock was set back). A rejected stamp is counted, and the time of the read replaces it.

use veeksha_model::Nanos;

/// Maximum drift of the difference, and maximum distance of a stamp into the future, before the
/// wall clock is considered to have been set: 1 ms.
const TOLERANCE: i64 = 1_000_000;

/// Duration in nanoseconds for which the smallest sample is used.
const WINDOW: Nanos = 1_000_000_000;

/// Maximum time in nanoseconds after a jump for which stamps are distrusted. Data are not expected
/// to wait longer than this for their read.
const DOUBT: Nanos = 1_000_000_000;

/// Difference between the two clocks, as sampled by one thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KernelTime {
    offset: Option<Offset>,
    /// Arrivals before this time are rejected.
    trusted_from: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Offset {
    /// Realtime minus run clock, in nanoseconds.
    best: i64,
    /// Smallest sample of the current window.
    newest: i64,
    window_ends: Nanos,
}

/// Arrival time of received data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceiveTime {
    /// Time on the run's clock.
    pub(crate) at: Nanos,
    /// Nanoseconds from `at` to the return of the read; 0 if `at` is the time of the read.
    pub(crate) lag: u32,
    /// Source of `at`.
    pub(crate) source: TimeSource,
}

/// Source of an arrival time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeSource {
    /// The kernel's stamp.
    Kernel,
    /// The time of the read: there is no kernel stamp.
    Read,
    /// The time of the read: the kernel stamp was rejected.
    Refused,
}

impl ReceiveTime {
    /// Returns an arrival with the time of the read.
    pub(crate) fn of_read(now: Nanos, source: TimeSource) -> Self {
        ReceiveTime {
            at: now,
            lag: 0,
            source,
        }
    }
}

impl KernelTime {
    /// Returns true if a sample of the difference (realtime minus run clock) indicates that the
    /// wall clock was set. A second sample is worth its cost before this is accepted.
    pub(crate) fn jumps(&self, sample: i64) -> bool {
        self.offset
            .is_some_and(|offset| (sample - offset.best).abs() > TOLERANCE)
    }

    /// Returns the arrival of data that a read returned at `now`, for the clock difference `sample`
    /// and the kernel stamp `stamp` (nanoseconds of realtime).
    pub(crate) fn arrival(&mut self, now: Nanos, sample: i64, stamp: u64) -> ReceiveTime {
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
            return ReceiveTime::of_read(now, TimeSource::Refused);
        }
        let lag = u32::try_from(lag.max(0)).unwrap_or(u32::MAX);
        ReceiveTime {
            at: now.min(at as Nanos),
            lag,
            source: TimeSource::Kernel,
        }
    }
}

impl Offset {
    fn take(&mut self, now: Nanos, sample: i64) {
        if now >= self.window_ends {
            // Two windows are in use: the one that just closed and the one that starts.
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

    fn kernel(at: Nanos, lag: u64) -> ReceiveTime {
        ReceiveTime {
            at,
            lag: lag as u32,
            source: TimeSource::Kernel,
        }
    }

    fn stamp(offset: i64, at: Nanos) -> u64 {
        (offset + at as i64) as u64
    }

    #[test]
    fn stamp_is_shifted_by_the_difference_of_the_clocks() {
        let mut time = KernelTime::default();
        let arrival = time.arrival(10 * MS, EPOCH, stamp(EPOCH, 7 * MS));
        assert_eq!(arrival, kernel(7 * MS, 3 * MS));
    }

    #[test]
    fn delayed_sample_does_not_shift_arrivals() {
        let mut time = KernelTime::default();
        time.arrival(10 * MS, EPOCH, stamp(EPOCH, 9 * MS));
        // The thread was preempted for 0.8 ms between the two readings.
        let held_up = EPOCH + 800_000;
        assert_eq!(
            time.arrival(20 * MS, held_up, stamp(EPOCH, 19 * MS)),
            kernel(19 * MS, MS)
        );
        // An initial sample that was delayed is corrected by the next one.
        let mut time = KernelTime::default();
        time.arrival(10 * MS, held_up, stamp(EPOCH, 9 * MS));
        assert_eq!(
            time.arrival(20 * MS, EPOCH, stamp(EPOCH, 19 * MS)),
            kernel(19 * MS, MS)
        );
    }

    #[test]
    fn follows_small_forward_step_within_two_windows() {
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
    fn stamp_slightly_in_the_future_is_now() {
        let mut time = KernelTime::default();
        assert_eq!(
            time.arrival(10 * MS, EPOCH, stamp(EPOCH, 10 * MS + 900_000)),
            kernel(10 * MS, 0)
        );
        assert_eq!(
            time.arrival(10 * MS, EPOCH, stamp(EPOCH, 11 * MS + 1)),
            ReceiveTime::of_read(10 * MS, TimeSource::Refused)
        );
    }

    #[test]
    fn refuses_stamp_from_before_the_clock_was_set() {
        // The clock is set at 100 ms, which is detected by a read at 101 ms. Each case is a stamp
        // by the old clock that is read a little later.
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
                    ReceiveTime::of_read(now * MS, TimeSource::Refused),
                    "{step} {now} {at}"
                );
            }
            // Stamps after the period of distrust are accepted again.
            assert_eq!(
                time.arrival(2_000 * MS, set, stamp(set, 1_999 * MS)),
                kernel(1_999 * MS, MS),
                "{step}"
            );
        }
    }

    #[test]
    fn lag_beyond_its_type_is_the_maximum() {
        let mut time = KernelTime::default();
        let arrival = time.arrival(10 * S, EPOCH, stamp(EPOCH, S));
        assert_eq!((arrival.at, arrival.lag), (S, u32::MAX));
    }
}
