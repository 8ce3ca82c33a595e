//! The interval of the schedule, from which slices and windows are derived.

use veeksha_model::Nanos;

/// A half-open time interval: start included, end excluded.
pub(crate) type TimeSpan = (Nanos, Nanos);

/// The interval for which the schedule is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// The first intended instant of a measured request: the start of slices and windows.
    pub(crate) begin: Nanos,
    /// The last intended instant of a measured request.
    pub(crate) last: Nanos,
    /// The instant at which the schedule was stopped, if it was.
    stopped: Option<Nanos>,
    /// The end of the schedule: intended instants are within `begin..end`.
    pub(crate) end: Nanos,
}

impl Schedule {
    /// Creates the schedule with these intended instants; `None` if there are none.
    ///
    /// A schedule that was not stopped ended with its last request. Each request represents the
    /// mean time between two requests, so that `n` requests represent `n` such times and not `n -
    /// 1`: the schedule extends by one of them beyond the last request.
    pub(crate) fn of(intended: impl Iterator<Item = Nanos>, stopped: Option<Nanos>) -> Option<Self> {
        let mut bounds: Option<(Nanos, Nanos)> = None;
        let mut requests: u64 = 0;
        for at in intended {
            requests += 1;
            let (begin, last) = bounds.unwrap_or((at, at));
            bounds = Some((begin.min(at), last.max(at)));
        }
        let (begin, last) = bounds?;
        let between = (last - begin).checked_div(requests - 1).unwrap_or(0);
        let end = stopped.filter(|stopped| *stopped > last);
        Some(Schedule {
            begin,
            last,
            stopped,
            end: end.unwrap_or(last.saturating_add(between)),
        })
    }

    /// Returns true if the schedule is known to have continued beyond an instant.
    pub(crate) fn passed(&self, at: Nanos) -> bool {
        at <= self.stopped.unwrap_or(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_that_ends_by_itself_reaches_beyond_its_last_request() {
        // Every 100 from 50 to 350: four requests represent 400.
        let schedule = Schedule::of([150, 50, 350, 250].into_iter(), None).unwrap();
        assert_eq!((schedule.begin, schedule.last, schedule.end), (50, 350, 450));
        assert!(schedule.passed(350) && !schedule.passed(351));
    }

    #[test]
    fn what_stopped_a_schedule_ended_it() {
        let schedule = Schedule::of([50, 350].into_iter(), Some(360)).unwrap();
        assert_eq!(schedule.end, 360);
        assert!(schedule.passed(360) && !schedule.passed(361));
    }

    #[test]
    fn one_instant_is_no_stretch_of_time() {
        for instants in [vec![7], vec![7, 7, 7]] {
            let schedule = Schedule::of(instants.into_iter(), None).unwrap();
            assert_eq!((schedule.begin, schedule.end), (7, 7));
        }
        assert_eq!(Schedule::of(std::iter::empty(), Some(9)), None);
    }
}
