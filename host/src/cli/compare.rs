//! `veeksha-host compare`: tests whether runs differ, and by how much.

mod decisions;
mod files;
mod path;
mod read;
mod show;
mod sides;
mod wanted;

use serde_json::Value;
use veeksha_compare::{
    CandidateDecision, CompareOptions, CompareSide, Comparison, Decision, FailIf, Invalid, KnownKind,
    KnownName, compare_cell, join,
};
use veeksha_metrics::Catalogue;
use veeksha_model::{alters_display, printable};

use crate::cli::args::CompareArgs;
use sides::ComparedCell;
use veeksha_app::CommandFailure;
use veeksha_present::terminal;
use wanted::Wanted;

pub(super) fn compare(args: &CompareArgs) -> Result<u8, CommandFailure> {
    let mut fail_if = args
        .fail_if
        .as_deref()
        .map(FailIf::parse)
        .transpose()
        .map_err(invalid_expression)?;
    files::check(args)?;
    let cells = sides::cells(&args.runs)?;
    let comparison = compared(&cells, &mut fail_if, args)?;
    let decision = fail_if.map(|fail_if| fail_if.decide(&comparison));
    if !files::take_output(args) {
        show::show(&comparison, args);
    }
    let decided = decision.as_ref();
    files::write(args.json.as_deref(), || {
        pretty(&comparison.json(decided).map_err(CommandFailure::internal)?)
    })?;
    files::write(args.html.as_deref(), || Ok(comparison.html(decided)))?;
    files::write(args.junit.as_deref(), || {
        comparison.junit(decided).map_err(CommandFailure::internal)
    })?;
    if args.github {
        terminal::out(comparison.annotations(decided).trim_end());
    }
    Ok(decision.map_or(veeksha_exit::DONE, |decision| report_decision(&decision)))
}

/// Prints the outcome of the gate with its reasons. Returns the exit code.
fn report_decision(decision: &Decision) -> u8 {
    let (outcome, code) = if decision.fails() {
        ("fails", veeksha_exit::SLO_FAILED)
    } else {
        ("passes", veeksha_exit::DONE)
    };
    for candidate in &decision.candidates {
        if !candidate.reasons.is_empty() {
            let why = format!("{}: {}", candidate_name(candidate), candidate.reasons.join("; "));
            terminal::err(printable(&why));
        }
    }
    let what = format!("--fail-if {}: {outcome}", decision.expression);
    terminal::err(printable(&what));
    code
}

fn candidate_name(candidate: &CandidateDecision) -> String {
    match &candidate.cell {
        Some(cell) => format!("{}, {cell}", candidate.label),
        None => candidate.label.clone(),
    }
}

/// Reads and compares cell by cell, so that the samples of only one cell are in memory.
fn compared(
    cells: &[ComparedCell],
    fail_if: &mut Option<FailIf>,
    args: &CompareArgs,
) -> Result<Comparison, CommandFailure> {
    let judged = fail_if.as_ref().map_or_else(Vec::new, FailIf::names);
    let mut wanted = Wanted::new(&args.metrics, &judged);
    let options = CompareOptions {
        confidence: args.confidence,
        seed: args.seed,
        smallest: (args.ignore_below > 0.0).then_some(args.ignore_below),
        invalid: if args.allow_invalid {
            Invalid::Judged
        } else {
            Invalid::NotComparable
        },
        ..CompareOptions::default()
    };
    let mut comparisons = Vec::new();
    let mut is_checked = false;
    for cell in cells {
        if let Some(name) = &cell.name {
            terminal::err(format!(
                "cell {} of {}: {}",
                comparisons.len() + 1,
                cells.len(),
                printable(name)
            ));
        }
        let sides = read_all(cell, &mut wanted)?;
        if !is_checked && sides.iter().any(|side| !side.runs.is_empty()) {
            wanted.check(&args.runs)?;
            if let Some(fail_if) = fail_if {
                fail_if.check(&known(&sides)).map_err(invalid_expression)?;
            }
            is_checked = true;
        }
        let requested = fail_if.as_ref().map_or_else(Vec::new, FailIf::statistics);
        let compared = compare_cell(cell.name.as_deref(), &sides, &requested, &options);
        let mut compared = compared.map_err(CommandFailure::usage)?;
        let (baseline, others) = match &cell.sides[..] {
            [baseline, others @ ..] => (&baseline.runs[..], others),
            [] => (&[][..], &[][..]),
        };
        for (candidate, side) in compared.candidates.iter_mut().zip(others) {
            candidate.decisions = decisions::differences(baseline, &side.runs);
            candidate.remarks.splice(0..0, cell.redaction_remark());
        }
        comparisons.push(compared);
    }
    join(comparisons).ok_or_else(|| CommandFailure::usage("the sweeps contain no run with a record"))
}

fn read_all(cell: &ComparedCell, wanted: &mut Wanted) -> Result<Vec<CompareSide>, CommandFailure> {
    let mut sides = Vec::new();
    for folders in &cell.sides {
        let mut side = CompareSide {
            label: folders.label.clone(),
            runs: Vec::new(),
        };
        for run in &folders.runs {
            side.runs.push(read::read(run, wanted)?);
        }
        sides.push(side);
    }
    Ok(sides)
}

fn invalid_expression(error: impl std::fmt::Display) -> CommandFailure {
    CommandFailure::usage(format!("--fail-if: {error}"))
}

/// Formats the value as JSON without control characters. Characters that JSON permits but a
/// terminal may interpret are escaped, which yields the same strings.
fn pretty(value: &Value) -> Result<String, CommandFailure> {
    let text = serde_json::to_string_pretty(value).map_err(CommandFailure::internal)?;
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if alters_display(character) && character != '\n' {
            escaped += &format!("\\u{:04x}", u32::from(character))
        } else {
            escaped.push(character)
        }
    }
    Ok(escaped)
}

/// Returns the names that an expression may use: all built-in metrics, including those that these
/// runs lack, and all metrics of the runs.
fn known(sides: &[CompareSide]) -> Vec<KnownName> {
    let catalogue = Catalogue::built_in();
    let metrics = catalogue.iter().map(|info| KnownName {
        name: info.name.clone(),
        aliases: info
            .metric
            .into_iter()
            .flat_map(|metric| metric.definition_of().aliases)
            .map(|alias| (*alias).to_owned())
            .collect(),
        unit: info.unit.clone(),
        kind: KnownKind::Metric,
        range: info.range(),
    });
    let run_metrics = catalogue.run_metrics().map(|run_metric| KnownName {
        name: run_metric.name.to_owned(),
        aliases: Vec::new(),
        unit: run_metric.unit.to_owned(),
        kind: KnownKind::RunMetric,
        range: run_metric.metric.range(),
    });
    let mut known: Vec<KnownName> = metrics.chain(run_metrics).collect();
    for seen in KnownName::of(sides) {
        if !known.iter().any(|known| known.name == seen.name) {
            known.push(seen);
        }
    }
    known
}
