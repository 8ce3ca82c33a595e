//! `veeksha-host check`: the plan of a run, or of each run of a sweep.

mod duration;
mod sections;

use std::collections::BTreeSet;

use veeksha_experiments::Sweep;
use veeksha_report::{ColorMode, Section, summary_table};
use veeksha_scenario::Scenario;

use crate::cli::args::ScenarioArgs;
use crate::cli::scenarios::scenarios;
use crate::interrupt::Interrupts;
use duration::RunDuration;
use sections::row;
use veeksha_app::{CheckedScenario, CommandFailure, Loaded, Variant, collect_errors, require_target};
use veeksha_present::terminal;

/// Width of the table where the width of the terminal is unknown.
const WIDTH: usize = 110;

/// A valid scenario.
struct CheckedRun {
    scenario: Scenario,
    sections: Vec<Section>,
    duration: RunDuration,
    notes: Vec<String>,
}

pub(super) fn check(args: &ScenarioArgs, overrides: &[(String, String)]) -> Result<u8, CommandFailure> {
    let read = scenarios(args, overrides)?.into_iter();
    let checked = read.map(|cell| cell.and_then(|loaded| loaded.and_then(checked)));
    let cells = collect_errors(checked.collect())?;
    let sections = match cells.as_slice() {
        [one] => one.loaded.sections.clone(),
        several => overview(several),
    };
    terminal::out(summary_table(&sections, WIDTH, ColorMode::from_stdout()));
    let notes: BTreeSet<&String> = cells.iter().flat_map(|cell| &cell.loaded.notes).collect();
    for note in notes {
        terminal::err(format!("note: {note}"));
    }
    // Last, because the plan is useful without a target: `simulate` needs none.
    for cell in &cells {
        require_target(&cell.loaded.scenario, &args.scenario)?;
    }
    Ok(veeksha_exit::DONE)
}

/// Returns the scenarios of a command if all are valid. A single scenario is validated by its run,
/// before its folder is created; of several, none starts before all have been validated as by
/// `check`.
pub(super) fn sound(
    cells: Vec<Variant<Result<Loaded, CommandFailure>>>,
    interrupts: &Interrupts,
) -> Result<Vec<Variant<Loaded>>, CommandFailure> {
    let cells = collect_errors(cells)?;
    if cells.len() < 2 {
        return Ok(cells);
    }
    let looked_at = cells.into_iter().map(|cell| {
        cell.and_then(|loaded| {
            // After an interrupt no run starts, so there is nothing to validate.
            if !interrupts.is_interrupted() {
                checked(loaded.clone())?;
            }
            Ok(loaded)
        })
    });
    collect_errors(looked_at.collect())
}

/// Returns the sections of a plan, those of workload and traffic first.
pub(super) fn plan_sections(checked: &CheckedScenario) -> Result<Vec<Section>, CommandFailure> {
    sections::sections(&checked.scenario, &checked.wired).map(|(sections, _)| sections)
}

fn checked(loaded: Loaded) -> Result<CheckedRun, CommandFailure> {
    let checked = veeksha_app::check(loaded)?;
    let (sections, duration) = sections::sections(&checked.scenario, &checked.wired)?;
    Ok(CheckedRun {
        scenario: checked.scenario,
        sections,
        duration,
        notes: checked.wired.notes,
    })
}

/// Returns the runs of a sweep, the keys in which they differ, and their durations.
fn overview(cells: &[Variant<CheckedRun>]) -> Vec<Section> {
    let planned = cells
        .iter()
        .map(|cell| (&cell.loaded.scenario, cell.settings.clone()));
    let sweep = Sweep::plan(planned);
    let each: Vec<RunDuration> = cells.iter().map(|cell| cell.loaded.duration).collect();
    let together = each
        .iter()
        .copied()
        .fold(RunDuration::default(), |all, one| all + one);
    let mut rows = vec![row("Runs", cells.len().to_string())];
    let varied = sweep.varied().into_iter();
    rows.extend(varied.map(|(path, values)| row(&path, values.join(", "))));
    rows.push(row("Duration", together.to_string()));
    let takes: Vec<String> = each.iter().map(RunDuration::to_string).collect();
    vec![
        Section {
            title: "Sweep".to_owned(),
            columns: Vec::new(),
            rows,
        },
        sweep.plan_table(&takes),
    ]
}
