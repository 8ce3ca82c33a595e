//! Comparisons, through the crate's door.

mod coverage;
mod fail_if;
mod mirror;
mod outputs;
mod several_runs;
mod synthetic;
mod verdicts;
