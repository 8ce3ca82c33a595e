//! The rows of the trace.

use serde::Deserialize;
use serde_json::Value;

/// A row.
#[derive(Debug, Deserialize)]
pub struct Cells {
    pub(crate) turns: Vec<Value>,
    pub(crate) timestamp: Option<f64>,
}
