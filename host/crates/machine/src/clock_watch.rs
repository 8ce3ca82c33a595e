//! Detection of steps of the wall clock during a run.
//!
//! Nothing is measured with the wall clock, but the files of a run contain wall clock times, and
//! logs of other machines are compared with them.

use veeksha_clock::{RunClock, wall_nanos};
use veeksha_model::Nanos;

/// Both clocks at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// The run's clock (`CLOCK_MONOTONIC`), in nanoseconds.
    pub monotonic: Nanos,
    /// Nanoseconds since 1970 (`CLOCK_REALTIME`).
    pub wall: u64,
}

impl ClockReading {
    /// Reads both clocks. The monotonic clock is read before and after the wall clock, up to eight
    /// times, and the closest pair is used: an interruption between the two must not look like a
    /// step.
    pub fn take(clock: RunClock) -> Self {
        let mut best = (
            Nanos::MAX,
            ClockReading {
                monotonic: 0,
                wall: 0,
            },
        );
        for _ in 0..8 {
            let before = clock.now();
            let wall = wall_nanos();
            let width = clock.now() - before;
            if width < best.0 {
                let monotonic = before + width / 2;
                best = (width, ClockReading { monotonic, wall });
            }
            if width < 1_000 {
                break;
            }
        }
        best.1
    }
}

/// A step of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// Time of the reading that detected the step.
    pub at: Nanos,
    /// Time of the previous reading. The step occurred between the two.
    pub since: Nanos,
    /// Displacement of the wall clock in nanoseconds; negative if it was set back.
    pub by: i64,
}

/// A detector of steps that compares readings of the two clocks.
#[derive(Clone, Debug)]
pub struct ClockWatch {
    threshold: Nanos,
    last: Option<ClockReading>,
}

impl ClockWatch {
    /// Returns a watch that reports steps of at least `threshold` nanoseconds between two readings.
    /// Time servers that slew the clock move it by up to 500 µs each second, which is not a step:
    /// choose more than that for the time between two readings.
    pub fn new(threshold: Nanos) -> Self {
        ClockWatch {
            threshold,
            last: None,
        }
    }

    /// Processes a reading. Returns the step since the previous reading if it is at least the
    /// threshold.
    pub fn look(&mut self, reading: ClockReading) -> Option<ClockStep> {
        let last = self.last.replace(reading)?;
        let wall = i128::from(reading.wall) - i128::from(last.wall);
        let monotonic = i128::from(reading.monotonic) - i128::from(last.monotonic);
        let by = wall - monotonic;
        (by.unsigned_abs() >= u128::from(self.threshold.max(1))).then(|| ClockStep {
            at: reading.monotonic,
            since: last.monotonic,
            by: by.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const EPOCH: u64 = 1_795_132_800_000_000_000;

    fn at(monotonic: Nanos, wall: u64) -> ClockReading {
        ClockReading { monotonic, wall }
    }

    #[test]
    fn a_clock_that_goes_on_is_no_step() {
        let mut watch = ClockWatch::new(10 * MS);
        assert_eq!(watch.look(at(5, EPOCH)), None);
        assert_eq!(watch.look(at(5 + 1_000 * MS, EPOCH + 1_000 * MS)), None);
        // Slewed by 500 ppm for ten seconds: 5 ms.
        assert_eq!(watch.look(at(5 + 11_000 * MS, EPOCH + 11_005 * MS)), None);
    }

    #[test]
    fn steps_in_both_directions_are_reported_once() {
        let mut watch = ClockWatch::new(10 * MS);
        watch.look(at(0, EPOCH));
        let forth = watch
            .look(at(1_000 * MS, EPOCH + 3_600_000 * MS))
            .expect("an hour");
        assert_eq!(
            forth,
            ClockStep {
                at: 1_000 * MS,
                since: 0,
                by: 3_599_000 * MS as i64
            }
        );
        assert_eq!(watch.look(at(2_000 * MS, EPOCH + 3_601_000 * MS)), None);
        let back = watch
            .look(at(3_000 * MS, EPOCH + 3_601_990 * MS))
            .expect("ten milliseconds");
        assert_eq!(back.by, -10 * MS as i64);
    }

    #[test]
    fn the_extremes_do_not_overflow() {
        let mut watch = ClockWatch::new(0);
        watch.look(at(0, u64::MAX));
        assert_eq!(watch.look(at(u64::MAX, 0)).expect("a step").by, i64::MIN);
        assert_eq!(watch.look(at(u64::MAX, 0)), None);
    }

    #[test]
    fn real_readings_show_no_step() {
        let clock = RunClock::starting_now();
        let mut watch = ClockWatch::new(10 * MS);
        assert_eq!(watch.look(ClockReading::take(clock)), None);
        assert_eq!(watch.look(ClockReading::take(clock)), None);
    }
}
