//! A row: a conversation with its requests, and the subagents among them.

use serde::Deserialize;
use veeksha_plugin::flavor::{Cell, Column};

/// The columns that are read.
pub(crate) fn columns() -> [Column; 4] {
    [
        Column::optional("id", Cell::Text),
        Column::optional("block_size", Cell::Count),
        Column::optional("hash_id_scope", Cell::Text),
        Column::required("requests", Cell::Items),
    ]
}

/// A conversation.
#[derive(Debug, Deserialize)]
pub struct Cells {
    pub(crate) id: Option<String>,
    pub(crate) block_size: Option<u32>,
    pub(crate) hash_id_scope: Option<String>,
    pub(crate) requests: Vec<Item>,
}

/// A request, or a subagent with separate requests. One type for both: the tag may stand
/// anywhere, and reading a tagged type would keep every hash id twice.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Item {
    /// Seconds from the start of the conversation.
    pub(crate) t: f64,
    /// `s`: streamed; `n`: not; `subagent`.
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) model: Option<String>,
    #[serde(rename = "in")]
    pub(crate) input: u64,
    #[serde(rename = "out")]
    pub(crate) output: u64,
    pub(crate) hash_ids: Vec<u64>,
    pub(crate) input_types: Vec<String>,
    pub(crate) output_types: Vec<String>,
    pub(crate) stop: Option<String>,
    /// Seconds that the answer took.
    pub(crate) api_time: Option<f64>,
    /// Seconds to its first token.
    pub(crate) ttft: Option<f64>,
    /// Seconds between the answer before it and this request.
    pub(crate) think_time: Option<f64>,
    pub(crate) agent_id: Option<String>,
    pub(crate) subagent_type: Option<String>,
    /// Those of a subagent.
    pub(crate) requests: Vec<Item>,
}

impl Item {
    /// When its answer was complete, if it was sent at `at`: at once, where that is not recorded.
    pub(crate) fn end(&self, at: f64) -> f64 {
        at + self.api_time.unwrap_or(0.0)
    }
}
