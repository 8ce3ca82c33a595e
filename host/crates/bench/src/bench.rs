//! Taking the figures.

use veeksha_clock::RunClock;
use veeksha_machine::Machine;

use crate::figures::take;
use crate::report::Report;
use crate::{BenchError, BenchOptions};

/// Takes the figures that are wanted, one after another, and tells `progress` which one it is at. What cannot be taken here has a row that
/// says why.
///
/// Child processes of [`BenchOptions::exe`] serve and are measured; they end with the figure that they are for. Several benches at the same
/// time would measure each other.
///
/// # Errors
/// [`BenchError::Repeats`] for options that make no sense.
pub fn run(options: &BenchOptions, progress: &mut dyn FnMut(&str)) -> Result<Report, BenchError> {
    options.check()?;
    let clock = RunClock::starting_now();
    // What the load was before, not what the bench makes of it.
    let machine = Machine::here().facts();
    let rows = take(options, progress);
    Ok(Report {
        machine,
        rows,
        seconds: clock.now() as f64 / 1e9,
    })
}
