//! Whole runs of the program, and the files that they leave.

mod files;
mod run;
mod scenario;

pub(crate) use files::{RequestLine, RunFiles};
pub(crate) use run::{Ran, run_program};
pub(crate) use scenario::{Runtime, Traffic, scenario};
