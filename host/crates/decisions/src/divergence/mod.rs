//! Differences between the decisions of two runs.
//!
//! Two sessions are compared as graphs, not as lists of steps: names of nodes and the order of
//! steps depend on the order in which concurrent answers came, although the decisions are equal.
//! A node of one session corresponds to a node of the other if their parents do and they are equal.
//! Below a node that differs nothing is compared: it has other reasons.

mod correspondence;
mod difference;
mod field;
mod graph;
mod matching;
mod node_key;
mod summary;

pub use field::DecisionField;
pub use matching::{Divergence, SessionComparison, divergence};
pub use summary::{DivergenceSummary, compare_files};
