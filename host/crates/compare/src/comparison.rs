//! Sides against a baseline.

use veeksha_model::Better;

use crate::comparable::{SettingDifference, comparability, settings};
use crate::judge::{Sides, judge};
use crate::measured::measure;
use crate::{CompareError, Options, Side, Spread, Statistic, Verdict};

/// What a comparison came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What the others were compared with.
    pub baseline: SideLabels,
    /// Each other side against the baseline, in the order in which they were given.
    pub candidates: Vec<Candidate>,
    /// How it was done.
    pub options: Options,
}

/// The names of a side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideLabels {
    /// The side's.
    pub label: String,
    /// Its runs'.
    pub runs: Vec<String>,
}

/// A side against the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Which side.
    pub side: SideLabels,
    /// Why the two cannot be compared, in words; empty if they can. The figures are there nevertheless.
    pub obstacles: Vec<String>,
    /// What the reader should know, in words.
    pub remarks: Vec<String>,
    /// Settings that differ.
    pub settings: Vec<SettingDifference>,
    /// Metrics by statistic, then figures of the whole run.
    pub rows: Vec<Row>,
}

/// One figure on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The metric's or the figure's name.
    pub name: String,
    /// What is compared of it.
    pub statistic: Statistic,
    /// The unit of values and differences.
    pub unit: String,
    /// Which way it is good.
    pub better: Better,
    /// The baseline's value.
    pub baseline: Option<SideValue>,
    /// The candidate's value.
    pub candidate: Option<SideValue>,
    /// Candidate less baseline.
    pub difference: Option<f64>,
    /// Where the difference lies with the confidence asked for, this figure looked at by itself.
    pub interval: Option<(f64, f64)>,
    /// Candidate ÷ baseline - 1, where both are positive.
    pub relative: Option<f64>,
    /// Where that lies.
    pub relative_interval: Option<(f64, f64)>,
    /// Whether the requests of both sides were compared one by one: they are the same ones.
    pub paired: bool,
    /// How probable such a difference is by chance.
    pub p: Option<f64>,
    /// The same, allowing for all the figures that were looked at.
    pub p_adjusted: Option<f64>,
    /// How far the clients may have falsified the difference: both sides' errors together.
    pub client_error: Option<f64>,
    /// What that comes to.
    pub verdict: Verdict,
    /// What should be known of it, in words.
    pub remark: Option<String>,
}

/// A figure of one side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SideValue {
    /// Its value: the mean over the runs that have it.
    pub value: f64,
    /// Samples over all runs; of a figure of the whole run, runs.
    pub samples: u64,
    /// How it varies from run to run, if there are several.
    pub spread: Option<Spread>,
    /// Whether it was read from a histogram, and is so within 0.2 %.
    pub approximate: bool,
}

/// Compares every other side with the first one.
///
/// `asked` are figures beyond the usual ones (mean, P50, P90 and P99 of each metric): those that [`crate::FailIf::statistics`] names.
pub fn compare(
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
        if side.runs.is_empty() {
            return Err(CompareError::NoRuns(side.label.clone()));
        }
        if sides[..place].iter().any(|before| before.label == side.label) {
            return Err(CompareError::SameLabel(side.label.clone()));
        }
    }
    let measured = measure(baseline, asked, options);
    let candidate = |side: &Side| {
        let found = comparability(baseline, side);
        let mut candidate = Candidate {
            side: labels(side),
            obstacles: found.obstacles,
            remarks: found.remarks,
            settings: settings(baseline, side),
            rows: Vec::new(),
        };
        candidate.remarks.extend(noise(baseline, side));
        let sides = Sides {
            baseline,
            candidate: side,
            same_work: found.same_work,
        };
        judge(
            &mut candidate,
            &measured,
            &measure(side, asked, options),
            &sides,
            options,
        );
        candidate
    };
    Ok(Comparison {
        baseline: labels(baseline),
        candidates: others.iter().map(candidate).collect(),
        options: options.clone(),
    })
}

fn labels(side: &Side) -> SideLabels {
    SideLabels {
        label: side.label.clone(),
        runs: side.runs.iter().map(|run| run.label.clone()).collect(),
    }
}

/// What is known of the noise between runs.
fn noise(baseline: &Side, candidate: &Side) -> Option<String> {
    let borrowed = |from: &Side, to: &Side| {
        Some(format!(
            "the noise between runs is known of {} only ({} runs), and taken for {} too",
            from.label,
            from.runs.len(),
            to.label
        ))
    };
    match (baseline.runs.len(), candidate.runs.len()) {
        (1, 1) => Some(
            "one run on each side: how much such runs differ by themselves is not known; run each side several times to know it"
                .into(),
        ),
        (_, 1) => borrowed(baseline, candidate),
        (1, _) => borrowed(candidate, baseline),
        _ => None,
    }
}
