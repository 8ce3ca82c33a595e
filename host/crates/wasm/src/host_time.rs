//! Host time during a call: the time to answer a plugin's queries about the results of a run.
//!
//! A percentile of a hundred million samples takes seconds. They are not caused by the plugin, so
//! they do not count against its deadline; a plugin that queries endlessly is stopped as well.

use std::time::Duration;

use crate::ticker::{self, EpochTicks};

/// Measures the host's time in ticks.
#[derive(Debug)]
pub(crate) struct HostTime {
    ticks: EpochTicks,
    allowed: Duration,
    /// Ticks of the running call so far.
    taken: u64,
    /// Ticks by which the guest's deadline has yet to be extended.
    owed: u64,
}

/// The host exceeded its time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "results: the host took more than {} ms to answer the queries of one call",
    .0.as_millis()
)]
pub(crate) struct HostTimeExceeded(Duration);

impl HostTime {
    pub(crate) fn new(ticks: EpochTicks, allowed: Duration) -> Self {
        HostTime {
            ticks,
            allowed,
            taken: 0,
            owed: 0,
        }
    }

    /// Starts a call.
    pub(crate) fn begin(&mut self) {
        self.taken = 0;
        self.owed = 0;
    }

    /// Returns the current count, for [`HostTime::answered`].
    pub(crate) fn now(&self) -> u64 {
        self.ticks.count()
    }

    /// Adds an answer that began at the count `began`.
    pub(crate) fn answered(&mut self, began: u64) -> Result<(), HostTimeExceeded> {
        let ticks = self.ticks.count().saturating_sub(began);
        self.taken += ticks;
        self.owed += ticks;
        if self.taken > ticker::epochs(self.allowed) {
            return Err(HostTimeExceeded(self.allowed));
        }
        Ok(())
    }

    /// Returns the ticks by which the guest's deadline must be extended, and resets them.
    pub(crate) fn take_owed(&mut self) -> u64 {
        std::mem::take(&mut self.owed)
    }
}
