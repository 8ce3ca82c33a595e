//! The truth log: the server's actions and their times, against which a client's measurements are
//! checked.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use veeksha_model::{ChunkKind, Nanos, Usage};

use crate::engine::FinishReason;
use crate::wire_fault::WireFault;

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TruthOutcome {
    /// In progress.
    InFlight,
    /// Answered completely.
    Finished(FinishReason),
    /// Answered with an error status.
    Status(u16),
    /// The connection was deliberately closed without an answer.
    Refused,
    /// The connection was deliberately closed inside the answer.
    Dropped,
    /// An error deliberately replaced the rest of the answer.
    MidStreamError,
    /// The answer deliberately ended without a finish reason.
    Truncated,
    /// The client disconnected, or the server was stopped, before the end.
    Disconnected,
}

/// One completion request as the server saw it. Times are readings of the server's clock.
///
/// A chunk's time is read immediately before the `write` call that completes it: on the loopback
/// interface a client's kernel stamps the bytes inside that call. So the time is never later than
/// the instant at which the client can see the chunk. An event that a full socket delayed has the
/// time of the call that wrote its last byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruthRecord {
    /// The `x-request-id` header.
    pub request_id: Option<String>,
    /// Zero-based position among all completion requests, in order of arrival.
    pub ordinal: u64,
    /// The connection's zero-based number, in order of acceptance.
    pub connection: u64,
    /// The requested path.
    pub path: String,
    /// The time at which the whole request had been read.
    pub arrived_at: Nanos,
    /// The time at which the head of the answer was written; for streams that is when the request
    /// is accepted, not when the first token exists.
    pub headers_sent_at: Option<Nanos>,
    /// Every written event with its time and the kind that a client sees in it, except errors. A
    /// whole (not streamed) answer is one chunk of content.
    pub chunks: Vec<(Nanos, ChunkKind)>,
    /// The time at which the last byte was written, or the end was known.
    pub finished_at: Option<Nanos>,
    /// The token counts that were, or would have been, sent to the client; only for finished
    /// answers.
    pub usage: Option<Usage>,
    /// The fault of the answer's bytes.
    pub fault: Option<WireFault>,
    /// The outcome.
    pub outcome: TruthOutcome,
}

/// A record shared by the answer's writer and the log.
#[derive(Clone)]
pub(super) struct TruthEntry {
    record: Arc<Mutex<TruthRecord>>,
    /// True if the chunks will be read.
    keeps_chunks: bool,
}

impl TruthEntry {
    pub(super) fn update<T>(&self, change: impl FnOnce(&mut TruthRecord) -> T) -> T {
        change(&mut lock(&self.record))
    }

    pub(super) fn keeps_chunks(&self) -> bool {
        self.keeps_chunks
    }
}

/// The newest records.
pub(super) struct TruthLog {
    /// Maximum number of records.
    records: usize,
    /// Maximum number of chunks in all finished records.
    chunks: usize,
    /// Receives each completed record.
    over: Option<Sender<TruthRecord>>,
    log: Mutex<Log>,
}

struct Log {
    /// Number of records opened so far.
    opened: u64,
    kept: VecDeque<Kept>,
    /// Number of chunks of the finished records that are kept.
    chunks: usize,
}

struct Kept {
    record: Arc<Mutex<TruthRecord>>,
    ordinal: u64,
    /// Number of its chunks that are counted in [`Log::chunks`].
    counted: usize,
}

/// Properties of a request known when it has been read.
pub(super) struct ReceivedRequest {
    pub(super) request_id: Option<String>,
    pub(super) connection: u64,
    pub(super) path: String,
    pub(super) at: Nanos,
}

impl TruthLog {
    pub(super) fn new(records: usize, chunks: usize, over: Option<Sender<TruthRecord>>) -> Self {
        TruthLog {
            records,
            chunks,
            over,
            log: Mutex::new(Log {
                opened: 0,
                kept: VecDeque::new(),
                chunks: 0,
            }),
        }
    }

    /// Opens a record; also returns its ordinal.
    pub(super) fn open(&self, arrival: ReceivedRequest) -> (u64, TruthEntry) {
        let mut log = lock(&self.log);
        let ordinal = log.opened;
        log.opened += 1;
        let record = Arc::new(Mutex::new(TruthRecord {
            request_id: arrival.request_id,
            ordinal,
            connection: arrival.connection,
            path: arrival.path,
            arrived_at: arrival.at,
            headers_sent_at: None,
            chunks: Vec::new(),
            finished_at: None,
            usage: None,
            fault: None,
            outcome: TruthOutcome::InFlight,
        }));
        if self.records > 0 {
            log.kept.push_back(Kept {
                record: Arc::clone(&record),
                ordinal,
                counted: 0,
            });
        }
        while log.kept.len() > self.records {
            log.drop_oldest();
        }
        let keeps_chunks = self.records > 0 || self.over.is_some();
        (ordinal, TruthEntry { record, keeps_chunks })
    }

    /// Completes a record, which does not change afterwards.
    pub(super) fn close(&self, ordinal: u64, entry: &TruthEntry) {
        let chunks = lock(&entry.record).chunks.len();
        let mut log = lock(&self.log);
        let oldest = log.kept.front().map_or(ordinal, |kept| kept.ordinal);
        let place = ordinal
            .checked_sub(oldest)
            .and_then(|place| usize::try_from(place).ok());
        if let Some(kept) = place.and_then(|place| log.kept.get_mut(place)) {
            kept.counted = chunks;
            log.chunks += chunks;
        }
        while log.chunks > self.chunks && !log.kept.is_empty() {
            log.drop_oldest();
        }
        drop(log);
        if let Some(over) = &self.over {
            // The receiver may be gone.
            let _ = over.send(lock(&entry.record).clone());
        }
    }

    pub(super) fn records(&self) -> Vec<TruthRecord> {
        let kept: Vec<_> = lock(&self.log)
            .kept
            .iter()
            .map(|kept| Arc::clone(&kept.record))
            .collect();
        kept.iter().map(|record| lock(record).clone()).collect()
    }
}

impl Log {
    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.kept.pop_front() {
            self.chunks -= oldest.counted;
        }
    }
}

// Nothing panics while the lock is held, and the data is consistent at every point.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(at: Nanos) -> ReceivedRequest {
        ReceivedRequest {
            request_id: None,
            connection: 0,
            path: "/v1/completions".into(),
            at,
        }
    }

    fn ordinals(log: &TruthLog) -> Vec<u64> {
        log.records().iter().map(|record| record.ordinal).collect()
    }

    #[test]
    fn keeps_the_newest_records() {
        let log = TruthLog::new(2, 100, None);
        let entries: Vec<_> = (0..5).map(|at| log.open(arrival(at))).collect();
        let opened: Vec<u64> = entries.iter().map(|(ordinal, _)| *ordinal).collect();
        assert_eq!(opened, [0, 1, 2, 3, 4]);
        entries[1]
            .1
            .update(|record| record.outcome = TruthOutcome::Dropped);
        entries[4]
            .1
            .update(|record| record.outcome = TruthOutcome::Refused);
        assert_eq!(ordinals(&log), [3, 4]);
        assert_eq!(log.records()[1].outcome, TruthOutcome::Refused);
        let none = TruthLog::new(0, 100, None);
        assert_eq!(none.open(arrival(0)).0, 0);
        let (ordinal, entry) = none.open(arrival(0));
        assert_eq!((ordinal, none.records().len()), (1, 0));
        assert!(!entry.keeps_chunks());
    }

    #[test]
    fn drops_the_oldest_records_at_the_chunk_limit() {
        let (sender, over) = std::sync::mpsc::channel();
        let log = TruthLog::new(100, 10, Some(sender));
        for _ in 0..4 {
            let (ordinal, entry) = log.open(arrival(0));
            entry.update(|record| record.chunks = vec![(1, ChunkKind::Content); 4]);
            log.close(ordinal, &entry);
        }
        assert_eq!(ordinals(&log), [2, 3], "two records of 4 chunks fit into 10");
        // The receiver gets all of them.
        assert_eq!(over.try_iter().count(), 4);
        // A record that is closed after it was dropped is not counted.
        let log = TruthLog::new(1, 10, None);
        let (first, entry) = log.open(arrival(0));
        entry.update(|record| record.chunks = vec![(1, ChunkKind::Content); 40]);
        log.open(arrival(0));
        log.close(first, &entry);
        assert_eq!(ordinals(&log), [1]);
    }
}
