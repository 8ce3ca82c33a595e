//! The rows of the trace.

use serde::Deserialize;
use serde_json::Value;

/// A row.
#[derive(Debug, Deserialize)]
pub struct Cells {
    pub(crate) conversation_hash: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) timestamp: Option<Value>,
    pub(crate) conversation: Vec<Value>,
    pub(crate) language: Option<String>,
    pub(crate) toxic: Option<bool>,
    pub(crate) redacted: Option<bool>,
}
