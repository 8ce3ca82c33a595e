//! The host's own time during a call: what it takes to answer what a plugin asks of the results of a run.
//!
//! A percentile of a hundred million samples takes seconds. They are not the plugin's fault, so they do not count against its
//! deadline; but a plugin that asks for ever is stopped too.

use std::time::Duration;

use crate::ticker::{self, Ticks};

/// Counts ticks.
#[derive(Debug)]
pub(crate) struct Answering {
    ticks: Ticks,
    allowed: Duration,
    /// Ticks of the running call so far.
    taken: u64,
    /// Those of them that the guest's deadline has not been put off by.
    owed: u64,
}

/// The host answered for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("results: the host took more than {} ms to answer what was asked in one call", .0.as_millis())]
pub(crate) struct AnsweredTooLong(Duration);

impl Answering {
    pub(crate) fn new(ticks: Ticks, allowed: Duration) -> Self {
        Answering {
            ticks,
            allowed,
            taken: 0,
            owed: 0,
        }
    }

    /// A call begins.
    pub(crate) fn begin(&mut self) {
        self.taken = 0;
        self.owed = 0;
    }

    /// The count at which an answer begins.
    pub(crate) fn now(&self) -> u64 {
        self.ticks.count()
    }

    /// An answer that began at a count is there.
    pub(crate) fn answered(&mut self, began: u64) -> Result<(), AnsweredTooLong> {
        let ticks = self.ticks.count().saturating_sub(began);
        self.taken += ticks;
        self.owed += ticks;
        if self.taken > ticker::epochs(self.allowed) {
            return Err(AnsweredTooLong(self.allowed));
        }
        Ok(())
    }

    /// By how many ticks the guest's deadline is to be put off.
    pub(crate) fn take_owed(&mut self) -> u64 {
        std::mem::take(&mut self.owed)
    }
}
