//! Running the benchmarks.

use veeksha_clock::RunClock;
use veeksha_machine::Machine;

use crate::benchmarks::take;
use crate::error::BenchError;
use crate::options::BenchOptions;
use crate::report::Report;

/// Runs the selected benchmarks one after another; `progress` receives the name of each before it
/// starts. A benchmark that cannot run here yields a row with the reason.
///
/// Each benchmark starts child processes of [`BenchOptions::exe`] and ends them. Do not run several
/// benches at the same time: they would measure each other.
///
/// # Errors
/// [`BenchError::Repeats`] if the number of repeats is out of range.
pub fn run(options: &BenchOptions, progress: &mut dyn FnMut(&str)) -> Result<Report, BenchError> {
    options.check()?;
    let clock = RunClock::starting_now();
    // Taken first, so that the load reported is not the bench's own.
    let machine = Machine::here().facts();
    let rows = take(options, progress);
    Ok(Report {
        machine,
        rows,
        seconds: clock.now() as f64 / 1e9,
    })
}
