//! The decisions of the watch mode, without files, clocks and threads.
//!
//! [`WatchedInputs`] decides if a changed file matters and which project it belongs to,
//! [`Debounce`] when a series of changes is complete, [`CycleResults::compare`] which results of
//! two cycles differ.
#![forbid(unsafe_code)]

mod debounce;
mod results;
mod watched_inputs;

pub use debounce::Debounce;
pub use results::{CycleDifference, CycleResults, MetricChange, MetricValue, SessionText};
pub use watched_inputs::{FileChange, WatchedInputs, is_source_folder};
