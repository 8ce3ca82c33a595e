//! The lines of `decisions.jsonl`: one JSON object each.

mod content;
mod header;
mod request;
#[cfg(test)]
mod round_trip;
mod step;

pub use header::DecisionsOrigin;
pub(crate) use header::HeaderLine;
pub(crate) use step::StepLine;
