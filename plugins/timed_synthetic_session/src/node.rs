//! Rows, and the nodes of a session's graph.

use std::time::Duration;

use serde::Deserialize;
use veeksha_plugin::flavor::Row;

/// A row.
#[derive(Debug, Deserialize)]
pub struct Cells {
    pub(crate) input_length: u32,
    pub(crate) new_input_length: u32,
    pub(crate) output_length: u32,
    pub(crate) session_context: Option<SessionContext>,
    pub(crate) turn_idx: Option<i64>,
    pub(crate) wait_after_previous_response_s: Option<f64>,
}

/// A row's place in the graph of its session.
#[derive(Debug, Deserialize)]
pub(crate) struct SessionContext {
    pub(crate) node_id: u32,
    pub(crate) parent_nodes: Option<Vec<u32>>,
    pub(crate) history_parent: Option<u32>,
    pub(crate) wait_after_ready: Option<f64>,
}

/// A node of the session's graph.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub(crate) row: &'a Row<Cells>,
    pub(crate) id: u32,
    pub(crate) parents: Vec<u32>,
    pub(crate) history_parent: Option<u32>,
    pub(crate) wait: Duration,
}
