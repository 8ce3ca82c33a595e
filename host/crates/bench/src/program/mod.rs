//! Whole runs of the program, and their files.

mod run;
mod run_files;
mod scenario;

pub(crate) use run::{ProgramRun, evaluate_record, run_program, run_program_with};
pub(crate) use run_files::{RequestLine, RunFiles};
pub(crate) use scenario::{ScenarioRuntime, ScenarioTraffic, scenario};
