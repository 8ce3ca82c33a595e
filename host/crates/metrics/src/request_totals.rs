//! Counts of a part of a run's requests: of a time slice, or of a group.

use serde_json::{Value, json};

use crate::row::{End, RequestRow};

/// The number of entries of [`RequestTotals::columns`].
pub(crate) const TOTAL_COLUMNS: usize = 11;

/// Counts of measured requests that were sent and ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestTotals {
    /// Sent and ended, with any outcome.
    pub requests: u64,
    /// Answered.
    pub completed: u64,
    /// Failed.
    pub errored: u64,
    /// Withdrawn in flight.
    pub cancelled: u64,
    /// Cancelled in flight by the workload; not a failure.
    pub cancelled_by_client: u64,
    /// Good requests, if goodput is defined and known.
    pub good: Option<u64>,
    /// Prompt tokens (history and new messages) of answered requests.
    pub input_tokens: u64,
    /// Output tokens of answered requests.
    pub output_tokens: u64,
}

impl RequestTotals {
    /// Creates empty counts. `judged` is true if goodput is defined and known.
    pub(crate) fn new(judged: bool) -> Self {
        RequestTotals {
            good: judged.then_some(0),
            ..RequestTotals::default()
        }
    }

    pub(crate) fn add(&mut self, row: &RequestRow) {
        self.requests += 1;
        match row.end {
            End::Failed => self.errored += 1,
            End::Cancelled => self.cancelled += 1,
            End::CancelledByClient => self.cancelled_by_client += 1,
            End::Answered => {
                self.completed += 1;
                self.input_tokens += u64::from(row.observed.total_prompt_tokens);
                self.output_tokens += u64::from(row.observed.output_tokens);
                if let Some(good) = &mut self.good {
                    *good += u64::from(row.good);
                }
            }
        }
    }

    /// Returns the entries of the counts in files, with the answered requests and the output tokens
    /// per second. A value that does not exist is null.
    pub(crate) fn columns(
        &self,
        requests_per_second: Option<f64>,
        output_tokens_per_second: Option<f64>,
    ) -> [(&'static str, Value); TOTAL_COLUMNS] {
        [
            ("requests", json!(self.requests)),
            ("completed", json!(self.completed)),
            ("errored", json!(self.errored)),
            ("cancelled", json!(self.cancelled)),
            ("cancelled_by_client", json!(self.cancelled_by_client)),
            ("good", json!(self.good)),
            ("error_rate", json!(self.error_rate())),
            ("input_tokens", json!(self.input_tokens)),
            ("output_tokens", json!(self.output_tokens)),
            ("requests_per_second", json!(requests_per_second)),
            ("output_tokens_per_second", json!(output_tokens_per_second)),
        ]
    }

    /// Returns the names of the entries.
    pub(crate) fn column_names() -> [&'static str; TOTAL_COLUMNS] {
        RequestTotals::default().columns(None, None).map(|(name, _)| name)
    }

    /// Returns failed ÷ sent; `None` if nothing was sent.
    pub fn error_rate(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.errored as f64 / self.requests as f64)
    }
}
