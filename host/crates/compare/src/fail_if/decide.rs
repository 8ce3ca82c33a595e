//! Decision of a fail-if expression.

use veeksha_slo::Aggregate;

use super::condition::{FailCondition, FailIf, Judged, MeasuredChange, MeasuredTerm};
use crate::comparison::{ComparedSide, Comparison};
use crate::row::ComparisonRow;
use crate::statistic::Statistic;
use crate::text::{change_text, difference_text, relative_text, row_name, value_text};
use crate::verdict::DifferenceVerdict;

/// Decision on the failure of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The expression.
    pub expression: String,
    /// Outcome for each candidate, in order.
    pub candidates: Vec<CandidateDecision>,
}

/// Outcome of an expression for one candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateDecision {
    /// Label of the candidate.
    pub label: String,
    /// Cell of a sweep.
    pub cell: Option<String>,
    /// Outcome.
    pub outcome: FailOutcome,
    /// Reasons, unless it passes.
    pub reasons: Vec<String>,
}

/// Outcome of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailOutcome {
    /// It is false.
    Passes,
    /// It is true.
    Fails,
    /// It cannot be decided: the sides are not comparable, a metric is missing or INVALID, or there
    /// is not enough data.
    Undecided,
}

impl FailOutcome {
    /// Returns the snake-case name used in files.
    pub fn name(self) -> &'static str {
        match self {
            FailOutcome::Passes => "passes",
            FailOutcome::Fails => "fails",
            FailOutcome::Undecided => "undecided",
        }
    }
}

impl Decision {
    /// Returns true if the comparison fails: the expression is true or undecided for a candidate.
    /// An undecided gate must not pass silently.
    pub fn fails(&self) -> bool {
        self.candidates
            .iter()
            .any(|candidate| candidate.outcome != FailOutcome::Passes)
    }
}

impl FailIf {
    /// Decides the expression. The comparison must have been made with [`FailIf::statistics`].
    pub fn decide(&self, comparison: &Comparison) -> Decision {
        let decide = |candidate: &ComparedSide| {
            let (outcome, reasons) = match self.truth(&self.condition, candidate) {
                Truth::False => (FailOutcome::Passes, Vec::new()),
                Truth::True(why) => (FailOutcome::Fails, why),
                Truth::Unknown(why) => (FailOutcome::Undecided, why),
            };
            CandidateDecision {
                label: candidate.side.label.clone(),
                cell: candidate.cell.clone(),
                outcome,
                reasons,
            }
        };
        Decision {
            expression: self.text.clone(),
            candidates: comparison.candidates.iter().map(decide).collect(),
        }
    }

    fn truth(&self, condition: &FailCondition, candidate: &ComparedSide) -> Truth {
        match condition {
            FailCondition::Any(parts) => any(parts.iter().map(|part| self.truth(part, candidate))),
            FailCondition::All(parts) => all(parts.iter().map(|part| self.truth(part, candidate))),
            FailCondition::Not { within, place } => match self.truth(within, candidate) {
                Truth::True(_) => Truth::False,
                Truth::False => {
                    let term = self.text.get(place.clone()).unwrap_or_default();
                    Truth::True(vec![format!("`{term}` holds")])
                }
                unknown => unknown,
            },
            FailCondition::NotComparable if candidate.obstacles.is_empty() => Truth::False,
            FailCondition::NotComparable => Truth::True(candidate.obstacles.clone()),
            FailCondition::Judged { verdict, of } => judged(*verdict, of, candidate),
            FailCondition::Measured(measured) => self.measured(measured, candidate),
        }
    }

    fn measured(&self, measured: &MeasuredTerm, candidate: &ComparedSide) -> Truth {
        let name = &measured.name.name;
        let term = self.text.get(measured.place.clone()).unwrap_or_default();
        let statistic = measured.aggregate.map_or(Statistic::Value, Statistic::OfSamples);
        let what = value_name(name, measured.aggregate);
        let found = candidate
            .rows
            .iter()
            .find(|row| row.name == *name && row.statistic == statistic);
        let Some(row) = found else {
            return unknown(format!("{what} is in none of the runs"));
        };
        if measured.what != MeasuredChange::Value && !candidate.obstacles.is_empty() {
            return not_comparable(candidate);
        }
        if measured.what != MeasuredChange::Value && row.verdict == DifferenceVerdict::NotComparable {
            return unknown(format!("{what} is not comparable{}", because(row)));
        }
        let seen = match measured.what {
            MeasuredChange::Value => row.candidate.map(|side| side.value),
            MeasuredChange::Difference => row.difference,
            MeasuredChange::Relative => relative(row),
        };
        let Some(seen) = seen else {
            return unknown(match measured.what {
                MeasuredChange::Relative if row.difference.is_some() => {
                    format!("{what} has no relative change: its values are not positive")
                }
                _ => format!("{what} is not in all of the runs"),
            });
        };
        let bound = match measured.what {
            MeasuredChange::Relative => measured.bound.value,
            _ => match measured.bound.in_unit(&row.unit) {
                Ok(bound) => bound,
                Err(mismatch) => return unknown(mismatch.to_string()),
            },
        };
        if measured.what == MeasuredChange::Value
            && let Some(why) = untrusted(name, candidate)
        {
            let seen = value_text(seen, row.display_unit());
            return unknown(format!("{what} is {seen}, which is not reliable: {why}"));
        }
        if !measured.comparison.holds(seen, bound) {
            let is_change = measured.what != MeasuredChange::Value;
            return if is_change && is_doubted(DifferenceVerdict::Worse, row, candidate) {
                doubted(&[row], candidate)
            } else {
                Truth::False
            };
        }
        let text = match measured.what {
            MeasuredChange::Value => format!("is {}", value_text(seen, row.display_unit())),
            MeasuredChange::Difference => format!("changed by {}", difference_text(seen, row.display_unit())),
            MeasuredChange::Relative => format!("changed by {}", relative_text(seen)),
        };
        Truth::True(vec![format!("{what} {text} ({term})")])
    }
}

/// Explains why the candidate's own metrics of this name are invalid.
fn untrusted(name: &str, candidate: &ComparedSide) -> Option<String> {
    let meant = candidate.untrusted.iter().filter(|untrusted| untrusted.has(name));
    let why: Vec<&str> = meant.map(|untrusted| untrusted.why.as_str()).collect();
    (!why.is_empty()).then(|| format!("{}; --allow-invalid judges it nevertheless", why.join("; ")))
}

/// Returns candidate ÷ baseline − 1, also from and to 0.
fn relative(row: &ComparisonRow) -> Option<f64> {
    let difference = row.difference?;
    match row.baseline.map(|side| side.value) {
        _ if row.relative.is_some() => row.relative,
        _ if difference == 0.0 => Some(0.0),
        Some(0.0) => Some(f64::INFINITY.copysign(difference)),
        Some(baseline) if baseline > 0.0 => Some(difference / baseline),
        _ => None,
    }
}

fn judged(verdict: DifferenceVerdict, of: &Judged, candidate: &ComparedSide) -> Truth {
    if !candidate.obstacles.is_empty() {
        return not_comparable(candidate);
    }
    let what = match of {
        Judged::Any => "any value".to_owned(),
        Judged::Name(name) => name.name.clone(),
        Judged::Statistic(aggregate, name) => value_name(&name.name, Some(*aggregate)),
    };
    let is_meant = |row: &&ComparisonRow| match of {
        Judged::Any => true,
        Judged::Name(name) => row.name == name.name,
        Judged::Statistic(aggregate, name) => {
            row.name == name.name && row.statistic == Statistic::OfSamples(*aggregate)
        }
    };
    let rows: Vec<&ComparisonRow> = candidate.rows.iter().filter(is_meant).collect();
    let text = |row: &ComparisonRow| {
        let name = match row.statistic {
            Statistic::OfSamples(aggregate) => value_name(&row.name, Some(aggregate)),
            Statistic::Value => value_name(&row.name, None),
        };
        let change = match (row.relative, row.difference) {
            (Some(relative), _) => format!(" ({})", relative_text(relative)),
            (None, Some(_)) => format!(" ({})", change_text(row)),
            (None, None) => String::new(),
        };
        format!("{name} is {verdict}{change}")
    };
    let reasons: Vec<String> = rows
        .iter()
        .filter(|row| row.verdict == verdict)
        .map(|row| text(row))
        .collect();
    if !reasons.is_empty() {
        return Truth::True(reasons);
    }
    // A large difference without enough runs must not pass as no difference.
    let too_few_runs = rows
        .iter()
        .filter(|row| row.verdict == DifferenceVerdict::TooFewRuns && row.tends(verdict));
    let too_few_runs: Vec<String> = too_few_runs
        .map(|row| format!("{}: {}{}", row_name(row), row.verdict, because(row)))
        .collect();
    if !too_few_runs.is_empty() {
        return Truth::Unknown(too_few_runs);
    }
    // A fast answer must not pass either, if the slow ones may be among the unanswered requests, or
    // if the prompt was cached.
    let revoked = rows.iter().filter(|row| is_doubted(verdict, row, candidate));
    let revoked: Vec<&ComparisonRow> = revoked.copied().collect();
    if !revoked.is_empty() {
        return doubted(&revoked, candidate);
    }
    // Failed requests must not pass because there were too few to judge, even if all other rows
    // were judged.
    let unjudged = rows.iter().filter(|row| seems(verdict, row));
    let unjudged: Vec<String> = unjudged
        .map(|row| {
            let change = change_text(row);
            format!(
                "{} changed ({change}), but could not be judged{}",
                row_name(row),
                because(row)
            )
        })
        .collect();
    if !unjudged.is_empty() {
        return Truth::Unknown(unjudged);
    }
    let cannot_tell = |row: &&ComparisonRow| {
        matches!(
            row.verdict,
            DifferenceVerdict::NotEnoughData | DifferenceVerdict::NotComparable
        )
    };
    match rows
        .iter()
        .find(|row| row.verdict == DifferenceVerdict::NotComparable)
    {
        _ if !rows.iter().all(cannot_tell) => Truth::False,
        Some(row) => unknown(format!("{what} is not comparable{}", because(row))),
        None => unknown(format!("not enough data to judge {what}")),
    }
}

/// Returns true for a share of the whole run (`error_rate`, `goodput`) that could not be judged and
/// has numerically changed this way.
fn seems(verdict: DifferenceVerdict, row: &ComparisonRow) -> bool {
    let is_run_share = row.statistic == Statistic::Value && row.is_share;
    is_run_share && row.verdict == DifferenceVerdict::NotEnoughData && row.tends(verdict)
}

/// Returns true for a row that might have this verdict if all requests had been answered, or if
/// the caches had been in the same state.
fn is_doubted(verdict: DifferenceVerdict, row: &ComparisonRow, candidate: &ComparedSide) -> bool {
    let may_be = || {
        candidate
            .answered
            .is_some_and(|answered| answered.may_be(verdict, row))
    };
    match row.verdict {
        DifferenceVerdict::SurvivorsOnly => may_be(),
        DifferenceVerdict::CacheStatesDiffer => {
            candidate.caches.is_some_and(|caches| caches.may_be(verdict, row))
        }
        _ => false,
    }
}

/// Returns the undecided truth of rows whose verdicts were revoked, with a reason for each cause.
fn doubted(rows: &[&ComparisonRow], candidate: &ComparedSide) -> Truth {
    let survivors = candidate.answered.map(|answered| answered.why());
    let caches = candidate.caches.map(|caches| caches.why());
    let causes = [
        (DifferenceVerdict::SurvivorsOnly, survivors),
        (DifferenceVerdict::CacheStatesDiffer, caches),
    ];
    let reason = |(verdict, why): (DifferenceVerdict, Option<String>)| {
        let of_cause = rows.iter().filter(|row| row.verdict == verdict);
        let names: Vec<String> = of_cause.map(|row| row_name(row)).collect();
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        (!names.is_empty()).then(|| format!("{}: {verdict}{why}", names.join(", ")))
    };
    Truth::Unknown(causes.into_iter().filter_map(reason).collect())
}

/// Formats a row as a reason.
fn because(row: &ComparisonRow) -> String {
    row.remark
        .as_ref()
        .map_or_else(String::new, |remark| format!(" ({remark})"))
}

fn value_name(name: &str, aggregate: Option<Aggregate>) -> String {
    match aggregate {
        Some(aggregate) => format!("{aggregate}({name})"),
        None => name.to_owned(),
    }
}

/// A truth value of Kleene's logic, with reasons.
enum Truth {
    True(Vec<String>),
    False,
    Unknown(Vec<String>),
}

fn unknown(why: String) -> Truth {
    Truth::Unknown(vec![why])
}

fn not_comparable(candidate: &ComparedSide) -> Truth {
    Truth::Unknown(
        candidate
            .obstacles
            .iter()
            .map(|obstacle| format!("not comparable: {obstacle}"))
            .collect(),
    )
}

/// True if one part is; else unknown if one is (Kleene's logic).
fn any(parts: impl Iterator<Item = Truth>) -> Truth {
    let (mut yes, mut unknown) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Truth::True(why) => yes.extend(why),
            Truth::Unknown(why) => unknown.extend(why),
            Truth::False => {}
        }
    }
    match (yes.is_empty(), unknown.is_empty()) {
        (false, _) => Truth::True(yes),
        (true, false) => Truth::Unknown(deduplicated(unknown)),
        (true, true) => Truth::False,
    }
}

/// False if one part is; else unknown if one is.
fn all(parts: impl Iterator<Item = Truth>) -> Truth {
    let (mut yes, mut unknown) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Truth::False => return Truth::False,
            Truth::True(why) => yes.extend(why),
            Truth::Unknown(why) => unknown.extend(why),
        }
    }
    if unknown.is_empty() {
        Truth::True(yes)
    } else {
        Truth::Unknown(deduplicated(unknown))
    }
}

fn deduplicated(reasons: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for reason in reasons {
        if !kept.contains(&reason) {
            kept.push(reason);
        }
    }
    kept
}
