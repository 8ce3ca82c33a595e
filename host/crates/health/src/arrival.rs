//! Whether requests were sent when their parents were done and the think time was over.

use veeksha_model::{Nanos, RequestId, SessionId};
use veeksha_stats::{duration, share};

use crate::expected::{Expected, Traffic};
use crate::report::{Check, Culprits, Times, Unit, count, difference};
use crate::session::Child;

pub(crate) const NAME: &str = "Intra-Session Request Arrival";

/// Dispatch against the last parent's completion plus the think time. Of replayed traffic a request is also not due before its
/// recorded instant. How long limits kept a request back is not its lateness.
pub(crate) struct Arrival {
    late: Nanos,
    late_share: f64,
    early: Nanos,
    replayed: bool,
    differences: Times,
    measured: u64,
    too_late: Culprits,
    too_early: Culprits,
}

impl Arrival {
    pub(crate) fn new(expected: &Expected) -> Self {
        Arrival {
            late: expected.late,
            late_share: expected.late_share,
            early: expected.early,
            replayed: expected.traffic == Traffic::FixedSchedule,
            differences: Times::default(),
            measured: 0,
            too_late: Culprits::default(),
            too_early: Culprits::default(),
        }
    }

    /// Takes a request whose last parent was complete at `done`.
    pub(crate) fn add(&mut self, session: SessionId, child: &Child, done: Nanos) {
        let ready = done.saturating_add(child.wait_after_ready);
        let due = if self.replayed {
            ready.max(child.intended)
        } else {
            ready
        };
        let request = RequestId {
            session,
            node: child.node,
        };
        self.measured += 1;
        self.differences
            .add(child.dispatched_at, due.saturating_add(child.held));
        // A limit can only make a request later: whether it was early is seen without it.
        let early = difference(due, child.dispatched_at);
        let late = difference(child.dispatched_at, due.saturating_add(child.held));
        if u64::try_from(early).is_ok_and(|early| early > self.early) {
            self.too_early
                .add(|| format!("{request} by {}", duration(early as f64 / 1e9)));
        }
        if u64::try_from(late).is_ok_and(|late| late > self.late) {
            self.too_late
                .add(|| format!("{request} by {}", duration(late as f64 / 1e9)));
        }
    }

    pub(crate) fn finish(self) -> Check {
        if self.measured == 0 {
            return Check::skipped(NAME, "no measured request waited for another");
        }
        let mut check = Check::new(NAME);
        let seconds = |nanos: Nanos| duration(nanos as f64 / 1e9);
        let late_share = self.too_late.count as f64 / self.measured as f64;
        if self.too_early.count > 0 {
            check.fail(format!(
                "{} dispatched before what they waited for was over: {}",
                count(self.too_early.count, "request"),
                self.too_early.names()
            ));
        }
        if self.too_late.count > 0 {
            let what = format!(
                "{} of {} ({}) dispatched more than {} late: {}",
                self.too_late.count,
                count(self.measured, "request"),
                share(late_share),
                seconds(self.late),
                self.too_late.names()
            );
            if late_share > self.late_share {
                check.fail(what);
            } else {
                check.note(what);
            }
        }
        check.figure("requests", Unit::Count, self.measured as f64);
        check.figure("early", Unit::Count, self.too_early.count as f64);
        check.figure("late", Unit::Count, self.too_late.count as f64);
        check.distribution("dispatched - due", Unit::Seconds, self.differences.summary());
        check
    }
}
