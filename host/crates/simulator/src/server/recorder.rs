//! Writes the truth record of one request.

use std::sync::Arc;

use veeksha_model::{ChunkKind, Nanos, Usage};

use super::observed_requests::ObservedRequests;
use super::truth::{ReceivedRequest, TruthEntry, TruthOutcome};
use crate::wire_fault::WireFault;

/// The recorder of one request; a request whose recorder is dropped before its end was
/// disconnected.
pub(super) struct RequestRecorder {
    requests: Arc<ObservedRequests>,
    entry: TruthEntry,
    ordinal: u64,
    arrived_at: Nanos,
    first_token: bool,
    over: bool,
}

impl RequestRecorder {
    pub(super) fn open(requests: &Arc<ObservedRequests>, arrival: ReceivedRequest) -> Self {
        let arrived_at = arrival.at;
        let (ordinal, entry) = requests.truth.open(arrival);
        RequestRecorder {
            requests: Arc::clone(requests),
            entry,
            ordinal,
            arrived_at,
            first_token: false,
            over: false,
        }
    }

    pub(super) fn ordinal(&self) -> u64 {
        self.ordinal
    }

    pub(super) fn arrived_at(&self) -> Nanos {
        self.arrived_at
    }

    pub(super) fn now(&self) -> Nanos {
        self.requests.clock.now()
    }

    pub(super) fn fault(&self, fault: Option<WireFault>) {
        self.entry.update(|record| record.fault = fault);
    }

    /// Records the time of the head.
    pub(super) fn head(&self, at: Nanos) {
        self.entry.update(|record| record.headers_sent_at = Some(at));
    }

    /// Records events written in one call.
    pub(super) fn chunks(&mut self, at: Nanos, kinds: impl Iterator<Item = ChunkKind> + Clone) {
        if self.entry.keeps_chunks() {
            let kinds = kinds.clone();
            self.entry
                .update(|record| record.chunks.extend(kinds.map(|kind| (at, kind))));
        }
        if !self.first_token && kinds.into_iter().any(ChunkKind::is_generated) {
            self.first_token = true;
            self.requests
                .observe_first_token(at.saturating_sub(self.arrived_at));
        }
    }

    /// Completes the record.
    pub(super) fn finish(&mut self, outcome: TruthOutcome, usage: Option<Usage>) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        let now = self.now();
        self.entry.update(|record| {
            record.finished_at = Some(now);
            record.outcome = outcome;
            record.usage = usage;
        });
        self.requests.truth.close(self.ordinal, &self.entry);
        if matches!(outcome, TruthOutcome::Finished(_)) {
            self.requests.observe_end(now.saturating_sub(self.arrived_at));
        }
    }
}

impl Drop for RequestRecorder {
    fn drop(&mut self) {
        self.finish(TruthOutcome::Disconnected, None);
    }
}
