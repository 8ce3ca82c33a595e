//! Whole runs of the program, and the files that they leave.

mod files;
mod run;
mod scenario;

pub(crate) use files::{RequestLine, RunFiles};
pub(crate) use run::{Ran, evaluate_record, run_program, run_program_with};
pub(crate) use scenario::{Runtime, Traffic, scenario};
