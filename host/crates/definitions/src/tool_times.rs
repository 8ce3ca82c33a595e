//! The instants of a tool run, and the formulas over them.

use veeksha_model::{Nanos, TIMER, ToolRunRecord};

use crate::observation::seconds_between;

/// The instants of a tool run, from which its metrics are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolTimes {
    /// The instant at which the call was made.
    pub ready: Nanos,
    /// The instant at which a server took it.
    pub started: Nanos,
    /// Its end.
    pub completed: Nanos,
}

impl ToolTimes {
    /// Extracts the instants of a record. A timer is an instant: what comes before it is think
    /// time.
    pub fn of(record: &ToolRunRecord) -> Self {
        if &*record.class == TIMER {
            let end = record.completed_at;
            return ToolTimes {
                ready: end,
                started: end,
                completed: end,
            };
        }
        ToolTimes {
            ready: record.ready_at,
            started: record.started_at,
            completed: record.completed_at,
        }
    }

    pub(crate) fn waiting(&self) -> f64 {
        seconds_between(self.ready, self.started)
    }

    pub(crate) fn service(&self) -> f64 {
        seconds_between(self.started, self.completed)
    }
}
