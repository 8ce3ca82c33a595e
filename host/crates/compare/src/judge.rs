//! Verdicts from the values of both sides.

use veeksha_model::Better;

use crate::answered::Answered;
use crate::caches::CachedShares;
use crate::effect::Effect;
use crate::input::RunData;
use crate::loads::Loads;
use crate::measured::{Population, SideMeasurement};
use crate::options::{CompareOptions, Correction, Invalid};
use crate::paired::Paired;
use crate::remark::Remark;
use crate::row::{ComparisonRow, RowDraft, RowSides, draft};
use crate::statistic::Statistic;
use crate::verdict::DifferenceVerdict;
use crate::verdict::holm;

/// Factor from which a change is large: such a change is mentioned if only the number of runs
/// prevents a verdict.
const LARGE: f64 = 2.0;

/// Explanation for many requests whose times belong to few events.
const TOGETHER: &str = "significant by the number of requests, but they are concentrated in time and may be one event; several runs show how often that happens";

/// The runs of both sides, without copies.
pub(crate) struct JudgedSides<'a> {
    pub(crate) baseline: &'a [&'a RunData],
    pub(crate) candidate: &'a [&'a RunData],
    /// True if all runs did the same work.
    pub(crate) same_work: bool,
    /// True if they are comparable.
    pub(crate) comparable: bool,
    /// Answered requests, if known.
    pub(crate) answered: Option<Answered>,
    /// Cached shares of the prompt tokens, if they differ decisively.
    pub(crate) caches: Option<CachedShares>,
    /// Requested loads, if they differ.
    pub(crate) loads: Option<&'a Loads>,
}

impl JudgedSides<'_> {
    /// Returns the samples of a metric paired by request, if the requests are the same and each
    /// side has one run. With several runs the differences of the values show the error, and the
    /// common properties of all runs already cancel in them.
    fn paired(&self, of: &SideMeasurement) -> Option<Paired> {
        match (self.baseline, self.candidate) {
            ([a], [b]) if self.same_work && of.statistic != Statistic::Value => Paired::new(&of.name, a, b),
            _ => None,
        }
    }
}

/// Returns the rows of a candidate with their verdicts, and the resulting remarks.
pub(crate) fn judge(
    a: &[SideMeasurement],
    b: &[SideMeasurement],
    sides: &JudgedSides<'_>,
    options: &CompareOptions,
) -> (Vec<ComparisonRow>, Vec<Remark>) {
    let mut drafts = drafts(a, b, sides, options);
    for draft in &mut drafts {
        set_aside(draft, sides, options);
    }
    let directed = adjust(&mut drafts, true, options);
    let undirected = adjust(&mut drafts, false, options);
    for draft in &mut drafts {
        let judged = match draft.row.better {
            Better::Neither => undirected,
            _ => directed,
        };
        decide(draft, judged, options);
        doubt(draft, sides, options);
    }
    let rows: Vec<ComparisonRow> = drafts.into_iter().map(|draft| draft.row).collect();
    let remarks = if sides.comparable {
        remarks(&rows, directed, options)
    } else {
        Vec::new()
    };
    (rows, remarks)
}

/// Returns all rows without verdicts: metrics by statistic, then run-level values.
fn drafts(
    a: &[SideMeasurement],
    b: &[SideMeasurement],
    sides: &JudgedSides<'_>,
    options: &CompareOptions,
) -> Vec<RowDraft> {
    let mut drafts: Vec<RowDraft> = Vec::new();
    // The statistics of a metric are adjacent.
    let mut pairs: Option<(&str, Option<Paired>)> = None;
    for one in a {
        if pairs.as_ref().is_none_or(|(name, _)| *name != one.name) {
            pairs = Some((&one.name, sides.paired(one)));
        }
        let found = match b.iter().find(|other| other.is(&one.name, one.statistic)) {
            Some(other) => RowSides::Both(one, other),
            None => RowSides::Baseline(one),
        };
        let paired = pairs.as_ref().and_then(|(_, paired)| paired.as_ref());
        drafts.push(draft(found, paired, options));
    }
    let only_in_b = b
        .iter()
        .filter(|other| !a.iter().any(|one| one.is(&other.name, other.statistic)));
    drafts.extend(only_in_b.map(|other| draft(RowSides::Candidate(other), None, options)));
    // The order is kept even if one side lacks some of them.
    drafts.sort_by_key(|draft| {
        let first = a
            .iter()
            .chain(b)
            .position(|measured| measured.name == draft.row.name);
        (draft.row.statistic == Statistic::Value, first)
    });
    drafts
}

/// Excludes rows that are not judged from the count.
fn set_aside(draft: &mut RowDraft, sides: &JudgedSides<'_>, options: &CompareOptions) {
    let invalid = (!draft.invalid_in.is_empty()).then(|| draft.invalid_in.join(", "));
    let loads = sides.loads.filter(|_| draft.subject == Population::Amount);
    let not_judged = draft.not_judged.clone();
    let not_judged = not_judged.or_else(|| loads?.why_not(&draft.row));
    let why = match (not_judged, invalid, options.invalid) {
        _ if !sides.comparable => None,
        (Some(why), _, _) => Some(why),
        (None, Some(runs), Invalid::NotComparable) => Some(format!(
            "INVALID by the certificate of {runs}; --allow-invalid judges it nevertheless"
        )),
        (None, Some(runs), Invalid::Judged) => {
            draft.row.remark.get_or_insert(format!(
                "judged although it is INVALID by the certificate of {runs}"
            ));
            return;
        }
        (None, None, _) => return,
    };
    draft.effect = None;
    draft.row.p = None;
    draft.row.verdict = DifferenceVerdict::NotComparable;
    draft.row.remark = why.or(draft.row.remark.take());
}

/// Adjusts the probabilities of a family of rows, and returns its size. Rows without a better side
/// are a separate family: they describe the load, and must not reduce the power for the others.
fn adjust(drafts: &mut [RowDraft], is_directed: bool, options: &CompareOptions) -> usize {
    let is_meant =
        |row: &&mut ComparisonRow| row.p.is_some() && (row.better != Better::Neither) == is_directed;
    let family: Vec<&mut ComparisonRow> = drafts
        .iter_mut()
        .map(|draft| &mut draft.row)
        .filter(is_meant)
        .collect();
    let probabilities: Vec<f64> = family.iter().filter_map(|row| row.p).collect();
    let adjusted = match options.correction {
        Correction::Holm => holm(&probabilities),
        Correction::Each => probabilities,
    };
    let count = family.len();
    for (row, adjusted) in family.into_iter().zip(adjusted) {
        row.p_adjusted = Some(adjusted);
    }
    count
}

/// Decides the verdict of a judged row, given their number.
fn decide(draft: &mut RowDraft, judged: usize, options: &CompareOptions) {
    let row = &mut draft.row;
    let (Some(effect), Some(p), Some(adjusted), Some(difference)) =
        (&draft.effect, row.p, row.p_adjusted, row.difference)
    else {
        return;
    };
    let chance = 1.0 - options.confidence;
    let (verdict, remark) = if adjusted > chance {
        let by_itself = (p <= chance).then(|| {
            format!(
                "significant by itself (p = {}), but not as one of {judged} values (Holm: {}); select fewer with --metrics",
                veeksha_stats::number(p),
                veeksha_stats::number(adjusted)
            )
        });
        if !is_large(row) {
            (DifferenceVerdict::NoDifference, by_itself)
        } else if effect.lacks_only_runs(chance) {
            let remark = too_few_runs(effect, by_itself, judged, options);
            (DifferenceVerdict::TooFewRuns, Some(remark))
        } else if effect.hangs_together(chance_of_one(judged, options)) {
            (DifferenceVerdict::TooFewRuns, Some(TOGETHER.into()))
        } else {
            (DifferenceVerdict::NoDifference, by_itself)
        }
    } else if row.client_error.is_some_and(|error| difference.abs() <= error) {
        (DifferenceVerdict::WithinClientError, None)
    } else if is_too_small(row, options) {
        (DifferenceVerdict::TooSmall, None)
    } else {
        (DifferenceVerdict::of_direction(effect.estimate, row.better), None)
    };
    row.verdict = verdict;
    row.remark = remark.or(row.remark.take());
}

/// Revokes a verdict that holds for the survivors only, or that different states of the cache may
/// explain.
fn doubt(draft: &mut RowDraft, sides: &JudgedSides<'_>, options: &CompareOptions) {
    let row = &mut draft.row;
    let is_doubted = |answered: &Answered| answered.doubt(row, draft.subject, row.verdict, options);
    if sides.answered.as_ref().is_some_and(is_doubted) {
        row.verdict = DifferenceVerdict::SurvivorsOnly;
    }
    if let Some(caches) = sides.caches.filter(|_| draft.contains_prefill && sides.same_work)
        && caches.doubt(row)
    {
        row.verdict = DifferenceVerdict::CacheStatesDiffer;
        row.remark.get_or_insert_with(|| caches.why());
    }
}

/// Returns the probability below which a difference is reported whatever the other rows are.
fn chance_of_one(judged: usize, options: &CompareOptions) -> f64 {
    let chance = 1.0 - options.confidence;
    match options.correction {
        Correction::Holm => chance / judged.max(1) as f64,
        Correction::Each => chance,
    }
}

/// Explains a change that few runs cannot distinguish from chance, and the remedy.
fn too_few_runs(
    effect: &Effect,
    by_itself: Option<String>,
    judged: usize,
    options: &CompareOptions,
) -> String {
    let freedom = effect.error.map_or(f64::INFINITY, |error| error.freedom);
    let runs = match effect.runs_that_would_tell(chance_of_one(judged, options)) {
        Some(runs) => format!("about {runs} runs per side would decide"),
        None => "even 30 runs per side would not decide".into(),
    };
    let why = by_itself.unwrap_or_else(|| {
        format!(
            "the runs differ widely and leave {} degrees of freedom: this may be noise",
            veeksha_stats::number((freedom * 10.0).round() / 10.0)
        )
    });
    format!("{why}; {runs}")
}

/// Returns true if the candidate is at least twice or at most half of the baseline.
fn is_large(row: &ComparisonRow) -> bool {
    match (row.baseline, row.candidate) {
        (Some(a), Some(b)) => {
            let (a, b) = (a.value.abs(), b.value.abs());
            a.max(b) >= LARGE * a.min(b)
        }
        _ => false,
    }
}

/// Returns the size of a relative change, seen from the side from which it is smaller, so that A
/// against B is judged like B against A.
fn symmetric_change(relative: f64) -> f64 {
    let reverse = 1.0 / (1.0 + relative) - 1.0;
    relative.abs().min(reverse.abs())
}

fn is_too_small(row: &ComparisonRow, options: &CompareOptions) -> bool {
    match (options.smallest, row.relative) {
        (Some(smallest), Some(relative)) => symmetric_change(relative) < smallest,
        _ => false,
    }
}

fn remarks(rows: &[ComparisonRow], judged: usize, options: &CompareOptions) -> Vec<Remark> {
    let is_paired = rows.iter().any(|row| row.paired);
    let counted = Remark::JudgedValues {
        count: judged,
        false_verdicts: match options.correction {
            Correction::Holm => None,
            Correction::Each => Some(judged as f64 * (1.0 - options.confidence)),
        },
    };
    is_paired
        .then_some(Remark::Paired)
        .into_iter()
        .chain([counted])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From 100 to 125 is +25 % and back -20 %: both directions are a change of 20 %.
    #[test]
    fn change_has_the_same_size_in_both_directions() {
        for (relative, size) in [(0.25, 0.2), (-0.2, 0.2), (1.0, 0.5), (-0.5, 0.5), (0.0, 0.0)] {
            assert!((symmetric_change(relative) - size).abs() < 1e-12, "{relative}");
        }
    }
}
