//! Comparisons, through the public API of the crate.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cache_states;
mod coverage;
mod documentation;
mod fail_if;
mod loads;
mod mirror;
mod outputs;
mod same_requests;
mod several_runs;
mod shares;
mod survivors;
mod synthetic;
mod verdicts;
mod whole_requests;
