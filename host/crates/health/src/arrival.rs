//! Check that requests are sent once the events that they wait for have happened and the think time
//! has passed.

use veeksha_model::{Nanos, RequestId, SessionId};
use veeksha_stats::{duration, share};

use crate::expected::{Expected, ExpectedTraffic};
use crate::report::{HealthCheck, LESS_LOAD, REPORT_DEFECT, Times, ValueUnit, Violations, difference};
use crate::session::{EdgesMet, WaitingRequest};

pub(crate) const NAME: &str = "Intra-Session Request Arrival";

/// Dispatch instants compared with the last awaited event of a parent plus the think time. A
/// request of replayed traffic is also not due before its recorded instant. Time spent waiting for
/// a limit does not count as lateness.
pub(crate) struct ArrivalCheck {
    late: Nanos,
    late_share: f64,
    early: Nanos,
    replayed: bool,
    differences: Times,
    measured: u64,
    too_late: Violations,
    too_early: Violations,
}

impl ArrivalCheck {
    pub(crate) fn new(expected: &Expected) -> Self {
        ArrivalCheck {
            late: expected.late,
            late_share: expected.late_share,
            early: expected.early,
            replayed: expected.traffic == ExpectedTraffic::FixedSchedule,
            differences: Times::default(),
            measured: 0,
            too_late: Violations::default(),
            too_early: Violations::default(),
        }
    }

    /// Records a request whose last edge was met at `met`.
    pub(crate) fn add(&mut self, session: SessionId, child: &WaitingRequest, met: EdgesMet) {
        let due = |met: Nanos| {
            let ready = met.saturating_add(child.wait_after_ready);
            if self.replayed {
                ready.max(child.intended)
            } else {
                ready
            }
        };
        let (due_from, due_until) = (due(met.from), due(met.until).saturating_add(child.held));
        let request = RequestId {
            session,
            node: child.node,
        };
        self.measured += 1;
        self.differences.add(child.dispatched_at, due_until);
        // Limits can only delay a request, so earliness is judged without subtracting `held`.
        let early = difference(due_from, child.dispatched_at);
        let late = difference(child.dispatched_at, due_until);
        if u64::try_from(early).is_ok_and(|early| early > self.early) {
            self.too_early
                .add(|| format!("{request} by {}", duration(early as f64 / 1e9)));
        }
        if u64::try_from(late).is_ok_and(|late| late > self.late) {
            self.too_late
                .add(|| format!("{request} by {}", duration(late as f64 / 1e9)));
        }
    }

    pub(crate) fn finish(self) -> HealthCheck {
        if self.measured == 0 {
            return HealthCheck::skipped(NAME, "no measured request waited for another");
        }
        let mut check = HealthCheck::new(NAME);
        let seconds = |nanos: Nanos| duration(nanos as f64 / 1e9);
        let late_share = self.too_late.count as f64 / self.measured as f64;
        if self.too_early.count > 0 {
            check.fail(
                format!(
                    "{} dispatched before the events of their parents that they wait for, or during the think time: {}",
                    veeksha_stats::counted(self.too_early.count, "request"),
                    self.too_early.names()
                ),
                REPORT_DEFECT,
            );
        }
        if self.too_late.count > 0 {
            let what = format!(
                "{} of {} ({}) dispatched more than {} after their parents and the think time: {}",
                self.too_late.count,
                veeksha_stats::counted(self.measured, "request"),
                share(late_share),
                seconds(self.late),
                self.too_late.names()
            );
            if late_share > self.late_share {
                check.fail(what, LESS_LOAD);
            } else {
                check.note(what);
            }
        }
        check.value("requests", ValueUnit::Count, self.measured as f64);
        check.value("early", ValueUnit::Count, self.too_early.count as f64);
        check.value("late", ValueUnit::Count, self.too_late.count as f64);
        check.distribution("dispatched - due", ValueUnit::Seconds, self.differences.summary());
        check
    }
}
