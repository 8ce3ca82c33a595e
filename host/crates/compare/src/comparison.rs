//! Comparison of sides with a baseline.

use crate::answered::Answered;
use crate::comparable::{SettingDifference, comparability, settings};
use crate::copies;
use crate::error::CompareError;
use crate::input::Side;
use crate::judge::{Sides, judge};
use crate::load::Loads;
use crate::measured::{Measured, measure};
use crate::options::Options;
use crate::row::Row;
use crate::statistic::Statistic;
use crate::untrusted::Untrusted;

/// Result of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The side that the others are compared with.
    pub baseline: SideLabels,
    /// Every other side compared with the baseline, in the given order.
    pub candidates: Vec<Candidate>,
    /// Remarks about all of them.
    pub remarks: Vec<String>,
    /// Options of the comparison.
    pub options: Options,
}

/// Labels of a side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideLabels {
    /// Label of the side.
    pub label: String,
    /// Labels of its runs.
    pub runs: Vec<String>,
}

/// A side compared with the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Cell of a sweep, if the sides are sweeps: `traffic.rate = 2`.
    pub cell: Option<String>,
    /// The baseline, with its runs of this cell.
    pub baseline: SideLabels,
    /// The compared side.
    pub side: SideLabels,
    /// Reasons why the two are not comparable; empty if they are. The metrics are present in any
    /// case.
    pub obstacles: Vec<String>,
    /// Remarks for the reader.
    pub remarks: Vec<String>,
    /// Metrics of this side that are invalid even by themselves.
    pub untrusted: Vec<Untrusted>,
    /// Answered requests of both sides; `None` if unknown.
    pub answered: Option<Answered>,
    /// Findings of certificates about the metrics of each run, with reasons; the remarks summarize
    /// them.
    pub certificates: Vec<String>,
    /// Settings that differ.
    pub settings: Vec<SettingDifference>,
    /// Metrics by statistic, followed by values of the whole run.
    pub rows: Vec<Row>,
}

impl Candidate {
    /// Returns `B against A`, with the cell.
    pub fn title(&self) -> String {
        let pair = format!("{} against {}", self.side.label, self.baseline.label);
        match &self.cell {
            Some(cell) => format!("{pair}, {cell}"),
            None => pair,
        }
    }
}

/// Compares every other side with the first one.
///
/// `asked` are statistics in addition to the default ones (mean, P50, P90 and P99 of each metric):
/// those of [`crate::FailIf::statistics`].
pub fn compare(
    sides: &[Side],
    asked: &[(String, Statistic)],
    options: &Options,
) -> Result<Comparison, CompareError> {
    if let Some(side) = sides.iter().find(|side| side.runs.is_empty()) {
        return Err(CompareError::NoRuns(side.label.clone()));
    }
    compare_cell(None, sides, asked, options)
}

/// Compares the runs of one cell of a sweep. A side without runs of it is not comparable there.
pub fn compare_cell(
    cell: Option<&str>,
    sides: &[Side],
    asked: &[(String, Statistic)],
    options: &Options,
) -> Result<Comparison, CompareError> {
    options.check()?;
    let (baseline, others) = match sides {
        [baseline, others @ ..] if !others.is_empty() => (baseline, others),
        _ => return Err(CompareError::TooFewSides(sides.len())),
    };
    for (place, side) in sides.iter().enumerate() {
        if sides[..place].iter().any(|before| before.label == side.label) {
            return Err(CompareError::SameLabel(side.label.clone()));
        }
    }
    let measured = measure(&copies::distinct(baseline), asked, options);
    let candidate = |side: &Side| Candidate {
        cell: cell.map(str::to_owned),
        ..against(baseline, &measured, side, asked, options)
    };
    Ok(Comparison {
        baseline: labels(baseline),
        candidates: others.iter().map(candidate).collect(),
        remarks: Vec::new(),
        options: options.clone(),
    })
}

/// Joins the comparisons of the cells of a sweep: all candidates of the first cell, then those of
/// the second one. `None` without cells.
pub fn join(cells: Vec<Comparison>) -> Option<Comparison> {
    let count = cells.len();
    let mut joined = cells.into_iter().reduce(|mut all, next| {
        all.baseline.runs.extend(next.baseline.runs);
        all.candidates.extend(next.candidates);
        all
    })?;
    if count > 1 {
        let chance = 1.0 - joined.options.confidence;
        joined.remarks.push(format!(
            "{count} cells, each compared by itself: verdicts allow for the figures of a cell, not for the number of cells; of as many that do not differ, about {} would have a figure that is called better or worse",
            veeksha_stats::number(count as f64 * chance)
        ));
    }
    Some(joined)
}

/// Compares one side with the baseline.
fn against(
    baseline: &Side,
    measured: &[Measured],
    side: &Side,
    asked: &[(String, Statistic)],
    options: &Options,
) -> Candidate {
    let mut candidate = Candidate {
        cell: None,
        baseline: labels(baseline),
        side: labels(side),
        obstacles: Vec::new(),
        remarks: Vec::new(),
        untrusted: Untrusted::of(side, options.invalid),
        answered: None,
        certificates: Vec::new(),
        settings: Vec::new(),
        rows: Vec::new(),
    };
    let without: Vec<&Side> = [baseline, side]
        .into_iter()
        .filter(|side| side.runs.is_empty())
        .collect();
    if !without.is_empty() {
        let lacking = |side: &&Side| format!("{} has no run of this cell", side.label);
        candidate.obstacles = without.iter().map(lacking).collect();
        return candidate;
    }
    let found = comparability(baseline, side, options.invalid);
    let (of_baseline, of_side) = (copies::distinct(baseline), copies::distinct(side));
    let loads = Loads::that_differ(&of_baseline, &of_side);
    let sides = Sides {
        baseline: &of_baseline,
        candidate: &of_side,
        same_work: found.same_work,
        comparable: found.obstacles.is_empty(),
        answered: Answered::of(&of_baseline, &of_side),
        loads: loads.as_ref(),
    };
    let (rows, of_rows) = judge(measured, &measure(&of_side, asked, options), &sides, options);
    candidate.obstacles = found.obstacles;
    candidate.answered = sides.answered;
    let lost = sides
        .answered
        .and_then(|answered| answered.remark(&baseline.label, &side.label, &rows));
    candidate.remarks.extend(lost);
    candidate
        .remarks
        .extend(loads.map(|loads| loads.remark(baseline, side)));
    candidate.remarks.extend(found.remarks);
    candidate.certificates = found.details;
    candidate
        .remarks
        .extend([baseline, side].into_iter().filter_map(copies::remark));
    candidate
        .remarks
        .push(noise((baseline, of_baseline.len()), (side, of_side.len())));
    candidate.remarks.extend(spreads(&rows));
    candidate.remarks.extend(of_rows);
    candidate.settings = settings(baseline, side);
    candidate.rows = rows;
    candidate
}

fn labels(side: &Side) -> SideLabels {
    SideLabels {
        label: side.label.clone(),
        runs: side.runs.iter().map(|run| run.label.clone()).collect(),
    }
}

/// Explains the ± sign, if a row has one.
fn spreads(rows: &[Row]) -> Option<String> {
    let sides = rows.iter().flat_map(|row| [row.baseline, row.candidate]);
    let is_told = sides.flatten().any(|side| side.spread.is_some());
    is_told.then(|| {
        "a value with ± is that of several runs and how far single ones lie from it (their standard deviation): it is no interval; that of the difference is in its own column"
            .into()
    })
}

/// Returns the remark on the noise between runs, by their number on each side.
fn noise((baseline, first): (&Side, usize), (candidate, second): (&Side, usize)) -> String {
    let borrowed = |from: &Side, runs: usize, to: &Side| {
        format!(
            "the noise between runs is known of {} only ({runs} runs), and taken for {} too",
            from.label, to.label
        )
    };
    match (first, second) {
        (1, 1) => "one run on each side: how much such runs differ by themselves is not known; run each side several times to know it".into(),
        (_, 1) => borrowed(baseline, first, candidate),
        (1, _) => borrowed(candidate, second, baseline),
        _ => format!(
            "{} has {first} runs and {} {second}: each run is one value, and what they differ by is the noise (Welch's test)",
            baseline.label, candidate.label
        ),
    }
}
