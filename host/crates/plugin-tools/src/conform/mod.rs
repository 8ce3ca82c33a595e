//! Conformance: what the contract requires of a plugin beyond its types.

mod checks;
mod evaluators;
mod generators;
mod report;

pub use checks::conform;
pub use report::{ConformReport, ConformState};
