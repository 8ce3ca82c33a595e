//! Comparison of sides with a baseline.

use crate::answered::Answered;
use crate::caches::CachedShares;
use crate::comparable::{SettingDifference, comparability, settings};
use crate::copies;
use crate::decisions::DecisionDifferences;
use crate::error::CompareError;
use crate::input::{CompareSide, ScenarioLabel};
use crate::judge::{JudgedSides, judge};
use crate::loads::Loads;
use crate::measured::{SideMeasurement, measure};
use crate::options::CompareOptions;
use crate::remark::{DifferentLoads, Remark};
use crate::row::ComparisonRow;
use crate::statistic::Statistic;
use crate::untrusted::Untrusted;

/// Result of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The side that the others are compared with.
    pub baseline: SideLabels,
    /// Every other side compared with the baseline, in the given order.
    pub candidates: Vec<ComparedSide>,
    /// Remarks about all of them.
    pub remarks: Vec<Remark>,
    /// Options of the comparison.
    pub options: CompareOptions,
}

/// Labels of a side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideLabels {
    /// Label of the side.
    pub label: String,
    /// Labels of its runs.
    pub runs: Vec<String>,
    /// Distinct names, descriptions and tags of their scenarios, as far as they have any.
    pub scenarios: Vec<ScenarioLabel>,
}

/// A side compared with the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedSide {
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
    pub remarks: Vec<Remark>,
    /// Metrics of this side that are invalid even by themselves.
    pub untrusted: Vec<Untrusted>,
    /// Answered requests of both sides; `None` if unknown.
    pub answered: Option<Answered>,
    /// Cached shares of the prompt tokens of both sides; `None` if unknown or similar.
    pub caches: Option<CachedShares>,
    /// Findings of certificates about the metrics of each run, with reasons; the remarks summarize
    /// them.
    pub certificates: Vec<String>,
    /// Settings that differ.
    pub settings: Vec<SettingDifference>,
    /// Differences between the decisions of both sides' agents. [`compare`] leaves it empty: the
    /// caller reads the decisions.
    pub decisions: Option<DecisionDifferences>,
    /// Metrics by statistic, followed by values of the whole run.
    pub rows: Vec<ComparisonRow>,
}

impl Comparison {
    /// Returns the texts of the remarks about all candidates.
    pub fn remark_texts(&self) -> Vec<String> {
        self.remarks.iter().map(Remark::to_string).collect()
    }
}

impl ComparedSide {
    /// Returns the texts of the remarks.
    pub fn remark_texts(&self) -> Vec<String> {
        self.remarks.iter().map(Remark::to_string).collect()
    }

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
    sides: &[CompareSide],
    asked: &[(String, Statistic)],
    options: &CompareOptions,
) -> Result<Comparison, CompareError> {
    if let Some(side) = sides.iter().find(|side| side.runs.is_empty()) {
        return Err(CompareError::NoRuns(side.label.clone()));
    }
    compare_cell(None, sides, asked, options)
}

/// Compares the runs of one cell of a sweep. A side without runs of it is not comparable there.
pub fn compare_cell(
    cell: Option<&str>,
    sides: &[CompareSide],
    asked: &[(String, Statistic)],
    options: &CompareOptions,
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
    let candidate = |side: &CompareSide| ComparedSide {
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
        joined.remarks.push(Remark::Cells {
            count,
            false_cells: count as f64 * chance,
        });
    }
    Some(joined)
}

/// Compares one side with the baseline.
fn against(
    baseline: &CompareSide,
    measured: &[SideMeasurement],
    side: &CompareSide,
    asked: &[(String, Statistic)],
    options: &CompareOptions,
) -> ComparedSide {
    let mut candidate = ComparedSide {
        cell: None,
        baseline: labels(baseline),
        side: labels(side),
        obstacles: Vec::new(),
        remarks: Vec::new(),
        untrusted: Untrusted::of(side, options.invalid),
        answered: None,
        caches: None,
        certificates: Vec::new(),
        settings: Vec::new(),
        decisions: None,
        rows: Vec::new(),
    };
    let without: Vec<&CompareSide> = [baseline, side]
        .into_iter()
        .filter(|side| side.runs.is_empty())
        .collect();
    if !without.is_empty() {
        let lacking = |side: &&CompareSide| format!("{} has no run of this cell", side.label);
        candidate.obstacles = without.iter().map(lacking).collect();
        return candidate;
    }
    let found = comparability(baseline, side, options.invalid);
    let (of_baseline, of_side) = (copies::distinct(baseline), copies::distinct(side));
    let loads = Loads::that_differ(&of_baseline, &of_side);
    let sides = JudgedSides {
        baseline: &of_baseline,
        candidate: &of_side,
        same_work: found.same_work,
        comparable: found.obstacles.is_empty(),
        answered: Answered::of(&of_baseline, &of_side),
        caches: CachedShares::that_differ(&of_baseline, &of_side),
        loads: loads.as_ref(),
    };
    let (rows, of_rows) = judge(measured, &measure(&of_side, asked, options), &sides, options);
    candidate.obstacles = found.obstacles;
    candidate.answered = sides.answered;
    candidate.caches = sides.caches;
    let lost = sides
        .answered
        .and_then(|answered| answered.remark(&baseline.label, &side.label, &rows));
    candidate.remarks.extend(lost);
    candidate.remarks.extend(loads.map(|loads| {
        Remark::DifferentLoads(DifferentLoads {
            loads,
            labels: [baseline.label.clone(), side.label.clone()],
        })
    }));
    candidate.remarks.extend(found.remarks);
    candidate.certificates = found.details;
    candidate
        .remarks
        .extend([baseline, side].into_iter().filter_map(copies::remark));
    candidate.remarks.push(Remark::Noise([
        (baseline.label.clone(), of_baseline.len()),
        (side.label.clone(), of_side.len()),
    ]));
    candidate
        .remarks
        .extend(has_spread(&rows).then_some(Remark::Spread));
    candidate.remarks.extend(of_rows);
    candidate.settings = settings(baseline, side);
    candidate.rows = rows;
    candidate
}

fn labels(side: &CompareSide) -> SideLabels {
    let mut scenarios: Vec<ScenarioLabel> = Vec::new();
    for run in &side.runs {
        if run.scenario != ScenarioLabel::default() && !scenarios.contains(&run.scenario) {
            scenarios.push(run.scenario.clone());
        }
    }
    SideLabels {
        scenarios,
        label: side.label.clone(),
        runs: side.runs.iter().map(|run| run.label.clone()).collect(),
    }
}

/// Returns true if a row has a ± sign.
fn has_spread(rows: &[ComparisonRow]) -> bool {
    let mut sides = rows
        .iter()
        .flat_map(|row| [row.baseline, row.candidate])
        .flatten();
    sides.any(|side| side.spread.is_some())
}
