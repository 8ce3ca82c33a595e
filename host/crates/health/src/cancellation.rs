//! Check that requests end once an event that cancels them has happened.

use veeksha_model::{
    Cancellation, EventInstants, Nanos, NodeId, RequestId, RequestRecord, SessionId, Status,
};
use veeksha_stats::{duration, share};

use crate::expected::Expected;
use crate::report::{HealthCheck, LESS_LOAD, Times, ValueUnit, Violations};

pub(crate) const NAME: &str = "Request Cancellation";

/// The ends of requests compared with the first event that cancels each. One that ended before is
/// as it should be.
pub(crate) struct CancellationCheck {
    late: Nanos,
    late_share: f64,
    differences: Times,
    due: u64,
    cancelled: u64,
    too_late: Violations,
}

/// A finished request that events were to cancel.
#[derive(Clone, Debug)]
pub(crate) struct CancellableRequest {
    node: NodeId,
    cancellation: Box<Cancellation>,
    dispatched_at: Nanos,
    /// The arrival of the generated chunk after which the rest was not wanted.
    enough_at: Option<Nanos>,
    completed_at: Nanos,
    cancelled: bool,
}

impl CancellableRequest {
    /// Returns the facts about a request; `None` if nothing was to cancel it.
    pub(crate) fn of(record: &RequestRecord) -> Option<Self> {
        let cancellation = record.cancellation.clone().filter(|_| record.measured)?;
        let last = cancellation.after_chunks.and_then(|chunks| chunks.checked_sub(1));
        Some(CancellableRequest {
            node: record.id.node,
            dispatched_at: record.dispatched_at,
            enough_at: last.and_then(|last| record.generated_at().nth(last as usize)),
            completed_at: record.completed_at,
            cancelled: record.status == Status::CancelledByClient,
            cancellation,
        })
    }
}

impl CancellationCheck {
    pub(crate) fn new(expected: &Expected) -> Self {
        CancellationCheck {
            late: expected.late,
            late_share: expected.late_share,
            differences: Times::default(),
            due: 0,
            cancelled: 0,
            too_late: Violations::default(),
        }
    }

    /// Records a request of a session whose nodes have these events.
    pub(crate) fn add(
        &mut self,
        session: SessionId,
        request: &CancellableRequest,
        events: impl Fn(NodeId) -> Option<EventInstants>,
    ) {
        let when = request.cancellation.when.iter();
        let met = when.filter_map(|edge| {
            let event = events(edge.parent)?.of(edge.trigger);
            Some(event.saturating_add(edge.delay))
        });
        self.cancelled += u64::from(request.cancelled);
        // An agent may add a request after an event that cancels it.
        let due = met
            .chain(request.enough_at)
            .min()
            .map(|due| due.max(request.dispatched_at));
        let Some(due) = due.filter(|due| *due <= request.completed_at) else {
            return;
        };
        self.due += 1;
        self.differences.add(request.completed_at, due);
        let late = request.completed_at - due;
        if late > self.late {
            let id = RequestId {
                session,
                node: request.node,
            };
            self.too_late
                .add(|| format!("{id} by {}", duration(late as f64 / 1e9)));
        }
    }

    pub(crate) fn finish(self) -> HealthCheck {
        if self.due == 0 {
            return HealthCheck::skipped(NAME, "no event cancelled a measured request");
        }
        let mut check = HealthCheck::new(NAME);
        let late_share = self.too_late.count as f64 / self.due as f64;
        if self.too_late.count > 0 {
            let what = format!(
                "{} of {} ({}) ended more than {} after the event that cancels them: {}",
                self.too_late.count,
                veeksha_stats::counted(self.due, "request"),
                share(late_share),
                duration(self.late as f64 / 1e9),
                self.too_late.names()
            );
            if late_share > self.late_share {
                check.fail(what, LESS_LOAD);
            } else {
                check.note(what);
            }
        }
        check.value("requests", ValueUnit::Count, self.due as f64);
        check.value("cancelled", ValueUnit::Count, self.cancelled as f64);
        check.value("late", ValueUnit::Count, self.too_late.count as f64);
        check.distribution("ended - due", ValueUnit::Seconds, self.differences.summary());
        check
    }
}
