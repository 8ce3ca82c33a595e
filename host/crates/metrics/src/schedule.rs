//! From when to when the schedule asked for requests: what slices and windows are cut by.

use veeksha_model::Nanos;

/// The stretch of time for which it is known what the schedule asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// The first instant that it asked a measured request for: where slices and windows begin.
    pub(crate) begin: Nanos,
    /// The last one.
    pub(crate) last: Nanos,
    /// When something made it stop.
    stopped: Option<Nanos>,
    /// Until when it asked for what was intended: requests of `begin..end`.
    pub(crate) end: Nanos,
}

impl Schedule {
    /// The schedule that asked for requests at these instants; `None` if it asked for none.
    ///
    /// Where nothing made it stop, it ended with its last request. Each request stands for the mean time between two, so that `n` of them
    /// stand for `n` such times and not for `n - 1`: the schedule reaches as far beyond the last one.
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

    /// Whether it went on beyond an instant, as far as that is known.
    pub(crate) fn passed(&self, at: Nanos) -> bool {
        at <= self.stopped.unwrap_or(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_that_ends_by_itself_reaches_beyond_its_last_request() {
        // Every 100 from 50 to 350: four requests stand for 400.
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
