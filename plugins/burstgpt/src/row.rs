//! A row of the table, by the names of its header, and what it counts.

use std::time::Duration;

use serde::Deserialize;
use veeksha_plugin::Error;
use veeksha_plugin::flavor::{Cell, Column, Row};

/// The columns that are read. Older releases lack `Session ID` and `Elapsed time`, so that
/// positions mean nothing.
pub(crate) fn columns() -> [Column; 7] {
    [
        Column::required("Timestamp", Cell::Number),
        Column::optional("Session ID", Cell::Text),
        Column::optional("Elapsed time", Cell::Number),
        Column::optional("Model", Cell::Text),
        Column::required("Request tokens", Cell::Count),
        Column::required("Response tokens", Cell::Count),
        Column::optional("Log Type", Cell::Text),
    ]
}

/// A row.
#[derive(Debug, Deserialize)]
pub struct Cells {
    #[serde(rename = "Elapsed time")]
    elapsed: Option<f64>,
    /// `ChatGPT` or `GPT-4`.
    #[serde(rename = "Model")]
    pub model: Option<String>,
    #[serde(rename = "Request tokens")]
    request: u64,
    #[serde(rename = "Response tokens")]
    response: u64,
    /// `Conversation log` or `API log`.
    #[serde(rename = "Log Type")]
    pub log_type: Option<String>,
}

/// The counts of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    /// When it came.
    pub at: Option<u64>,
    /// The duration of its answer.
    pub elapsed: Option<Duration>,
    /// Tokens that were sent.
    pub request: u32,
    /// Tokens that were answered; 0: it failed.
    pub response: u32,
}

impl Counts {
    /// The counts of a row.
    pub(crate) fn of(row: &Row<Cells>) -> Result<Self, Error> {
        let elapsed = row
            .cells
            .elapsed
            .map(|seconds| row.seconds("Elapsed time", seconds));
        Ok(Counts {
            at: row.at,
            elapsed: elapsed.transpose()?,
            request: row.tokens("Request tokens", row.cells.request)?,
            response: row.tokens("Response tokens", row.cells.response)?,
        })
    }

    /// The time since the answer to the turn before it, where that is recorded.
    pub(crate) fn think_time(&self, before: &Counts) -> Option<Duration> {
        let gap = Duration::from_nanos(self.at?.saturating_sub(before.at?));
        Some(gap.saturating_sub(before.elapsed?))
    }
}
