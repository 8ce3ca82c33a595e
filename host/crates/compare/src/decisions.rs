//! Differences between the decisions of agents.

use serde_json::Value;

/// The comparison of the decisions that the agents of two sides made.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionDifferences {
    /// The distribution as lines of text.
    pub lines: Vec<String>,
    /// The same for `comparison.json`.
    pub json: Value,
}
