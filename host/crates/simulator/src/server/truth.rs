//! What the server really did, and when: the record that a client's figures are checked against.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use veeksha_model::{ChunkKind, Nanos, Usage};

use crate::FinishReason;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TruthOutcome {
    /// Not over yet.
    InFlight,
    /// Answered to the end.
    Finished(FinishReason),
    /// Answered with an error status.
    Status(u16),
    /// The connection was closed without an answer, on purpose.
    Refused,
    /// The connection was closed inside the answer, on purpose.
    Dropped,
    /// An error took the place of the rest of the answer, on purpose.
    MidStreamError,
    /// The answer ended without a finish reason, on purpose.
    Truncated,
    /// The client went away, or the server was stopped, before the end.
    Disconnected,
}

/// One completion request as the server saw it. Times are readings of the server's clock.
///
/// A chunk's time is taken when the HTTP library takes the chunk to write it. What is not in it: framing the chunk and the
/// `writev` call, a few microseconds on an idle core, and more only if the client does not read and the socket is full. So the
/// time is never after the instant at which the client can see the chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruthRecord {
    /// The `x-request-id` header.
    pub request_id: Option<String>,
    /// The place among all completion requests, from 0, in the order of arrival.
    pub ordinal: u64,
    /// The connection, numbered from 0 in the order of acceptance.
    pub connection: u64,
    /// When the whole request had been read.
    pub arrived_at: Nanos,
    /// When the head of the answer was handed to the socket; for streams that is when the request is accepted, not when the
    /// first token exists.
    pub headers_sent_at: Option<Nanos>,
    /// Every event that was handed to the socket, and when. A whole (not streamed) answer is one chunk.
    pub chunks: Vec<(Nanos, ChunkKind)>,
    /// When the last byte was handed to the socket, or the end was known.
    pub finished_at: Option<Nanos>,
    /// The token counts that the client was, or would have been, told; only for finished answers.
    pub usage: Option<Usage>,
    /// What became of it.
    pub outcome: TruthOutcome,
}

/// The newest records.
pub(super) struct TruthLog {
    capacity: usize,
    log: Mutex<Log>,
}

struct Log {
    /// The ordinal of the first record.
    first: u64,
    records: VecDeque<TruthRecord>,
}

impl TruthLog {
    pub(super) fn new(capacity: usize) -> Self {
        TruthLog {
            capacity,
            log: Mutex::new(Log {
                first: 0,
                records: VecDeque::new(),
            }),
        }
    }

    /// Opens a record; returns its ordinal.
    pub(super) fn open(&self, request_id: Option<String>, connection: u64, arrived_at: Nanos) -> u64 {
        let mut log = self.log();
        let ordinal = log.first + log.records.len() as u64;
        log.records.push_back(TruthRecord {
            request_id,
            ordinal,
            connection,
            arrived_at,
            headers_sent_at: None,
            chunks: Vec::new(),
            finished_at: None,
            usage: None,
            outcome: TruthOutcome::InFlight,
        });
        while log.records.len() > self.capacity {
            log.records.pop_front();
            log.first += 1;
        }
        ordinal
    }

    /// Changes a record, if it is still kept.
    pub(super) fn update(&self, ordinal: u64, change: impl FnOnce(&mut TruthRecord)) {
        let mut log = self.log();
        let index = ordinal
            .checked_sub(log.first)
            .and_then(|index| usize::try_from(index).ok());
        if let Some(record) = index.and_then(|index| log.records.get_mut(index)) {
            change(record);
        }
    }

    pub(super) fn records(&self) -> Vec<TruthRecord> {
        self.log().records.iter().cloned().collect()
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_are_kept_and_ordinals_go_on() {
        let log = TruthLog::new(2);
        for at in 0..5 {
            assert_eq!(log.open(None, 0, at), at);
        }
        log.update(1, |_| panic!("forgotten"));
        log.update(4, |record| record.outcome = TruthOutcome::Refused);
        let kept = log.records();
        assert_eq!(
            kept.iter().map(|record| record.ordinal).collect::<Vec<_>>(),
            [3, 4]
        );
        assert_eq!(kept[1].outcome, TruthOutcome::Refused);
        let none = TruthLog::new(0);
        assert_eq!(
            (none.open(None, 0, 0), none.open(None, 0, 0), none.records().len()),
            (0, 1, 0)
        );
    }
}
