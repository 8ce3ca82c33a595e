//! Several runs of one command: the scenarios of a sweep, one after another in this process.

use veeksha_clock::RunClock;
use veeksha_experiments::{CellOutcome, Sweep};
use veeksha_report::{Colour, summary_table};

use crate::cells::Cell;
use crate::exit;
use crate::failure::{Failure, OUTPUT_DIR};
use crate::interrupt::Interrupts;
use crate::results::Concluded;
use crate::say;
use crate::source::Loaded;

/// Width of the overview where the terminal's is not known.
const WIDTH: usize = 110;

/// Whether the closing table of a run is printed: those of a sweep's runs would hide its overview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// It is.
    Printed,
    /// It is not.
    Hidden,
}

/// Carries out each scenario. A single one is a run of its own; several are a sweep, with a folder and an overview.
pub(crate) fn each(
    mut cells: Vec<Cell>,
    interrupts: &Interrupts,
    quiet: bool,
    carry_out: impl Fn(Loaded, Table) -> Result<Concluded, Failure>,
) -> Result<u8, Failure> {
    if cells.len() == 1
        && let Some(cell) = cells.pop()
    {
        let table = if quiet { Table::Hidden } else { Table::Printed };
        return carry_out(cell.loaded, table).map(|concluded| concluded.code);
    }
    let planned = cells
        .iter()
        .map(|cell| (&cell.loaded.scenario, cell.settings.clone()));
    let mut sweep = Sweep::plan(planned);
    let stamp = veeksha_clock::utc_stamp(veeksha_clock::wall_nanos());
    sweep
        .begin(&stamp)
        .map_err(|error| Failure::internal(error).hinted(OUTPUT_DIR))?;
    let count = cells.len();
    for (index, mut cell) in cells.into_iter().enumerate() {
        if interrupts.happened() {
            break;
        }
        let place = format!("run {} of {count}", index + 1);
        say::err(match cell.settings.is_empty() {
            true => place,
            false => format!("{place}: {}", cell.name()),
        });
        cell.loaded.scenario.output_dir = sweep.run_folder(index).map_err(Failure::internal)?.to_owned();
        let clock = RunClock::starting_now();
        let outcome = outcome(carry_out(cell.loaded, Table::Hidden), clock.now());
        sweep.record(index, outcome).map_err(Failure::internal)?;
    }
    if !quiet {
        let mut sections = vec![sweep.table()];
        sections.extend(sweep.health());
        say::out(summary_table(&sections, WIDTH, Colour::of_stdout()));
    }
    for group in sweep.groups() {
        if let Some(folder) = &group.folder {
            say::out(format!("sweep: {}", folder.display()));
        }
    }
    Ok(match interrupts.happened() {
        true => exit::INTERRUPTED,
        false => sweep.exit_code(),
    })
}

/// What the sweep keeps of a run. A run that could not be carried out has said why, and the next one follows.
fn outcome(concluded: Result<Concluded, Failure>, nanos: u64) -> CellOutcome {
    let duration_seconds = Some(nanos as f64 / 1e9);
    match concluded {
        Ok(concluded) => {
            let evaluation = &concluded.evaluation;
            CellOutcome {
                run_dir: Some(concluded.folder),
                exit_code: concluded.code,
                failure: in_words(concluded.code),
                duration_seconds,
                verdict: Some(concluded.verdict.to_string()),
                summary_stats: evaluation.summary_stats(),
                throughput_metrics: evaluation.throughput_metrics(),
                slo_results: evaluation.slo_results(),
                prefill_stats: concluded.prefill_stats,
                decode_window_metrics: concluded.decode_windows.unwrap_or_default(),
                health_checks: concluded.health.json(),
            }
        }
        Err(failure) => {
            say::err(&failure);
            CellOutcome {
                exit_code: failure.code,
                failure: Some(failure.message.lines().next().unwrap_or_default().to_owned()),
                duration_seconds,
                ..CellOutcome::default()
            }
        }
    }
}

fn in_words(code: u8) -> Option<String> {
    let words = match code {
        exit::DONE => return None,
        exit::SLO_FAILED => "an SLO was not met",
        exit::PLUGIN => "a plugin failed",
        exit::TARGET => "the target was lost, or every request failed",
        exit::INVALID => "the measurement is invalid",
        exit::INTERRUPTED => "interrupted",
        _ => "an internal error",
    };
    Some(words.to_owned())
}
