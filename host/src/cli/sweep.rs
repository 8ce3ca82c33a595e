//! Execution of the scenarios of a sweep, one after another in this process.

use veeksha_clock::RunClock;
use veeksha_experiments::{CellOutcome, Sweep, SweepError};
use veeksha_report::{ColorMode, summary_table};

use crate::cli::output::Printed;
use crate::interrupt::Interrupts;
use veeksha_app::{CommandFailure, Conclusion, Loaded, OUTPUT_DIR, Variant};
use veeksha_present::terminal;

/// Width of the overview where the width of the terminal is unknown.
const WIDTH: usize = 110;

/// Carries out each scenario. A single one is an ordinary run; several are a sweep, with a folder
/// and an overview.
pub(crate) fn each(
    mut variants: Vec<Variant<Loaded>>,
    interrupts: &Interrupts,
    quiet: bool,
    carry_out: impl Fn(Loaded, Printed) -> Result<Conclusion, CommandFailure>,
) -> Result<u8, CommandFailure> {
    if variants.len() == 1
        && let Some(variant) = variants.pop()
    {
        let printed = if quiet { Printed::Nothing } else { Printed::Table };
        return carry_out(variant.loaded, printed).map(|conclusion| conclusion.code);
    }
    let planned = variants
        .iter()
        .map(|variant| (&variant.loaded.scenario, variant.settings.clone()));
    let mut sweep = Sweep::plan(planned);
    let stamp = veeksha_clock::utc_stamp(veeksha_clock::wall_nanos());
    sweep.begin(&stamp).map_err(|error| match error {
        SweepError::Latest(error) => CommandFailure::no_folder(error, OUTPUT_DIR),
        other => CommandFailure::internal(other).hinted(OUTPUT_DIR),
    })?;
    let count = variants.len();
    for (index, mut variant) in variants.into_iter().enumerate() {
        if interrupts.is_interrupted() {
            break;
        }
        let place = format!("run {} of {count}", index + 1);
        terminal::err(if variant.settings.is_empty() {
            place
        } else {
            format!("{place}: {}", variant.name())
        });
        variant.loaded.scenario.output_dir = sweep
            .run_folder(index)
            .map_err(CommandFailure::internal)?
            .to_owned();
        let clock = RunClock::starting_now();
        let outcome = outcome(carry_out(variant.loaded, Printed::Nothing), clock.now());
        sweep.record(index, outcome).map_err(CommandFailure::internal)?;
    }
    if !quiet {
        let mut sections = vec![sweep.table()];
        sections.extend(sweep.health());
        terminal::out(summary_table(&sections, WIDTH, ColorMode::from_stdout()));
    }
    for group in sweep.groups() {
        if let Some(folder) = &group.folder {
            terminal::out(format!("sweep: {}", folder.display()));
        }
    }
    Ok(if interrupts.is_interrupted() {
        veeksha_exit::INTERRUPTED
    } else {
        sweep.exit_code()
    })
}

/// Converts the result of a run for the sweep. A failure is printed, and the sweep continues.
fn outcome(concluded: Result<Conclusion, CommandFailure>, nanos: u64) -> CellOutcome {
    let duration_seconds = Some(nanos as f64 / 1e9);
    match concluded {
        Ok(concluded) => {
            let results = concluded.results;
            let evaluation = &results.evaluation;
            CellOutcome {
                run_dir: concluded.folder,
                exit_code: concluded.code,
                failure: veeksha_exit::describe(concluded.code).map(str::to_owned),
                duration_seconds,
                verdict: Some(concluded.certificate.verdict.to_string()),
                summary_stats: evaluation.summary_stats(),
                throughput_metrics: evaluation.throughput_metrics(),
                slo_results: evaluation.slo_results(),
                prefill_stats: results.prefill_stats,
                decode_window_metrics: results.decode_windows.unwrap_or_default(),
                health_checks: results.health.json(),
            }
        }
        Err(failure) => {
            terminal::err(&failure);
            CellOutcome {
                exit_code: failure.code,
                failure: Some(failure.message.lines().next().unwrap_or_default().to_owned()),
                duration_seconds,
                ..CellOutcome::default()
            }
        }
    }
}
