//! Check of the time a request spends in each stage inside the host.

use veeksha_model::RequestRecord;

use crate::report::{HealthCheck, REPORT_DEFECT, Times, ValueUnit, Violations};

pub(crate) const NAME: &str = "Lifecycle Timing Delays";

/// Time from due to dispatched, picked up and sent, and from the answer's end to its result. The
/// certificate judges long delays; this check fails only if a stage begins before the preceding
/// one.
#[derive(Default)]
pub(crate) struct Lifecycle {
    requests: u64,
    dispatch: Times,
    held: Times,
    pick_up: Times,
    send: Times,
    process: Times,
    early: Violations,
    disordered: Violations,
}

impl Lifecycle {
    /// Records a measured request.
    pub(crate) fn on_record(&mut self, record: &RequestRecord) {
        self.requests += 1;
        self.dispatch.add(record.dispatched_at, record.intended);
        if record.held.total() > 0 {
            self.held.add(record.held.total(), 0);
        }
        if record.dispatched_at < record.intended {
            self.early.add(|| record.id.to_string());
        }
        let mut ordered = record.processed_at >= record.completed_at;
        if let Some(picked_up) = record.picked_up_at {
            self.pick_up.add(picked_up, record.dispatched_at);
            ordered &= picked_up >= record.dispatched_at;
        }
        if let (Some(picked_up), Some(sent)) = (record.picked_up_at, record.sent_at) {
            self.send.add(sent, picked_up);
            ordered &= sent >= picked_up;
        }
        self.process.add(record.processed_at, record.completed_at);
        if !ordered {
            self.disordered.add(|| record.id.to_string());
        }
    }

    pub(crate) fn finish(self) -> HealthCheck {
        if self.requests == 0 {
            return HealthCheck::skipped(NAME, "no measured request was sent");
        }
        let mut check = HealthCheck::new(NAME);
        if self.early.count > 0 {
            let early = veeksha_stats::counted(self.early.count, "request");
            check.fail(
                format!("{early} dispatched before they were due: {}", self.early.names()),
                REPORT_DEFECT,
            );
        }
        if self.disordered.count > 0 {
            let disordered = veeksha_stats::counted(self.disordered.count, "request");
            let names = self.disordered.names();
            check.fail(
                format!("{disordered} with stages that begin before the preceding stage: {names}"),
                "keep the system clock from being set during a run",
            );
        }
        check.distribution("due to dispatched", ValueUnit::Seconds, self.dispatch.summary());
        check.distribution(
            "of it, held back by limits",
            ValueUnit::Seconds,
            self.held.summary(),
        );
        check.distribution(
            "dispatched to picked up",
            ValueUnit::Seconds,
            self.pick_up.summary(),
        );
        check.distribution("picked up to sent", ValueUnit::Seconds, self.send.summary());
        check.distribution(
            "completed to processed",
            ValueUnit::Seconds,
            self.process.summary(),
        );
        check
    }
}
