//! The times of requests as the server observes them: the truth log and the histograms of
//! latencies.

use std::sync::{Mutex, MutexGuard, PoisonError};

use veeksha_clock::RunClock;
use veeksha_model::Nanos;

use super::metrics::LatencyHistograms;
use super::truth::TruthLog;

/// The truth log and the histograms of latencies, with the clock of their times.
pub(super) struct ObservedRequests {
    pub(super) clock: RunClock,
    pub(super) truth: TruthLog,
    latencies: Mutex<LatencyHistograms>,
}

impl ObservedRequests {
    pub(super) fn new(clock: RunClock, truth: TruthLog) -> Self {
        ObservedRequests {
            clock,
            truth,
            latencies: Mutex::new(LatencyHistograms::new()),
        }
    }

    pub(super) fn observe_first_token(&self, latency: Nanos) {
        self.latencies().first_token.observe(latency);
    }

    pub(super) fn observe_end(&self, latency: Nanos) {
        self.latencies().end.observe(latency);
    }

    // Nothing panics while the lock is held, and the data is consistent at every point.
    pub(super) fn latencies(&self) -> MutexGuard<'_, LatencyHistograms> {
        self.latencies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
