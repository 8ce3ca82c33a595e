//! `veeksha-host check`: what a run would do, or each run of a sweep.

mod how_long;
mod sections;

use std::collections::BTreeSet;

use veeksha_experiments::Sweep;
use veeksha_report::{ColorMode, Section, summary_table};
use veeksha_scenario::Scenario;

use crate::cli::args::ScenarioArgs;
use crate::cli::scenarios::scenarios;
use crate::interrupt::Interrupts;
use how_long::HowLong;
use sections::row;
use veeksha_app::{Failure, Loaded, Variant, collect_errors};
use veeksha_present::terminal;

/// Width of the table where the terminal's is not known.
const WIDTH: usize = 110;

/// A scenario that nothing is wrong with.
struct Checked {
    scenario: Scenario,
    sections: Vec<Section>,
    how_long: HowLong,
    notes: Vec<String>,
}

pub(super) fn check(args: &ScenarioArgs, overrides: &[(String, String)]) -> Result<u8, Failure> {
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
    Ok(veeksha_exit::DONE)
}

/// The scenarios of a command, if nothing is wrong with any. A single one tells by itself, before its folder is made; of several, none begins
/// before all have been looked at, as `check` does.
///
/// # Errors
/// What `check` says.
pub(super) fn sound(
    cells: Vec<Variant<Result<Loaded, Failure>>>,
    interrupts: &Interrupts,
) -> Result<Vec<Variant<Loaded>>, Failure> {
    let cells = collect_errors(cells)?;
    if cells.len() < 2 {
        return Ok(cells);
    }
    let looked_at = cells.into_iter().map(|cell| {
        cell.and_then(|loaded| {
            // Who does not want to wait for it does not want the runs either: none begins then.
            if !interrupts.happened() {
                checked(loaded.clone())?;
            }
            Ok(loaded)
        })
    });
    collect_errors(looked_at.collect())
}

fn checked(loaded: Loaded) -> Result<Checked, Failure> {
    let checked = veeksha_app::check(loaded)?;
    let (sections, how_long) = sections::sections(&checked.scenario, &checked.wired)?;
    Ok(Checked {
        scenario: checked.scenario,
        sections,
        how_long,
        notes: checked.wired.notes,
    })
}

/// How many runs there are, in what they differ, and how long each takes and all together.
fn overview(cells: &[Variant<Checked>]) -> Vec<Section> {
    let planned = cells
        .iter()
        .map(|cell| (&cell.loaded.scenario, cell.settings.clone()));
    let sweep = Sweep::plan(planned);
    let each: Vec<HowLong> = cells.iter().map(|cell| cell.loaded.how_long).collect();
    let together = each
        .iter()
        .copied()
        .fold(HowLong::default(), |all, one| all + one);
    let mut rows = vec![row("Runs", cells.len().to_string())];
    let varied = sweep.varied().into_iter();
    rows.extend(varied.map(|(path, values)| row(&path, values.join(", "))));
    rows.push(row("Takes", together.to_string()));
    let takes: Vec<String> = each.iter().map(HowLong::to_string).collect();
    vec![
        Section {
            title: "Sweep".to_owned(),
            columns: Vec::new(),
            rows,
        },
        sweep.plan_table(&takes),
    ]
}
