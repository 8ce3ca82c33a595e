//! Rows: one statistic on both sides, with its difference and confidence.

use veeksha_model::Better;
use veeksha_slo::Aggregate;

use crate::effect::{ComparisonScale, RunSpread};
use crate::effect::{Effect, effect, spread};
use crate::lack::Lack;
use crate::measured::{Population, SideMeasurement};
use crate::options::CompareOptions;
use crate::paired::Paired;
use crate::request_share::RequestShare;
use crate::statistic::Statistic;
use crate::statistic::{Resampled, resampled};
use crate::verdict::DifferenceVerdict;

/// One statistic on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonRow {
    /// Name of the metric or run-level value.
    pub name: String,
    /// Compared statistic.
    pub statistic: Statistic,
    /// Unit of values and differences.
    pub unit: String,
    /// True if the values are shares, from 0 to 1. Other values of the unit `1` are ratios.
    pub is_share: bool,
    /// Better direction.
    pub better: Better,
    /// The baseline's value.
    pub baseline: Option<SideValue>,
    /// The candidate's value.
    pub candidate: Option<SideValue>,
    /// Candidate − baseline.
    pub difference: Option<f64>,
    /// Candidate ÷ baseline − 1, if both are positive.
    pub relative: Option<f64>,
    /// Scale of interval and probability.
    pub scale: ComparisonScale,
    /// Confidence interval of the difference, for this row by itself; only on
    /// [`ComparisonScale::Difference`].
    pub interval: Option<(f64, f64)>,
    /// Confidence interval of the relative change; only on [`ComparisonScale::Ratio`].
    pub relative_interval: Option<(f64, f64)>,
    /// True if the sides' requests were paired because they are the same.
    pub paired: bool,
    /// Probability of such a difference by chance.
    pub p: Option<f64>,
    /// The same probability, corrected for the number of rows.
    pub p_adjusted: Option<f64>,
    /// Degrees of freedom of the error; `None` also if they are too many to matter.
    pub freedom: Option<f64>,
    /// Bound on the clients' error of the difference: both sides together.
    pub client_error: Option<f64>,
    /// Verdict on the row.
    pub verdict: DifferenceVerdict,
    /// Remark for the reader.
    pub remark: Option<String>,
}

impl ComparisonRow {
    /// Returns the unit of values and differences as text: `share` for values from 0 to 1 that are
    /// shown in percent.
    pub(crate) fn display_unit(&self) -> &str {
        if self.is_share { "share" } else { &self.unit }
    }

    /// Returns true if the numerical change would give this verdict if it were significant.
    pub(crate) fn tends(&self, verdict: DifferenceVerdict) -> bool {
        let change = self.difference.filter(|difference| *difference != 0.0);
        change.is_some_and(|change| DifferenceVerdict::of_direction(change, self.better) == verdict)
    }
}

/// A value of one side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SideValue {
    /// The value; for several runs the geometric mean on the ratio scale, else the arithmetic mean.
    pub value: f64,
    /// Samples over all runs; requests for a share of requests; runs for another run-level value.
    pub samples: u64,
    /// For a share of requests: counts over all runs.
    pub counted: Option<RequestShare>,
    /// Variation between runs, if there are several.
    pub spread: Option<RunSpread>,
    /// True if it was read from a histogram, which is accurate within 0.2 %.
    pub approximate: bool,
}

/// Remark on a row whose runs agree.
pub(crate) const AGREE: &str =
    "the runs of each side agree exactly, so the variation of other runs is unknown";

/// A row before its verdict, with the inputs of the verdict.
pub(crate) struct RowDraft {
    pub(crate) row: ComparisonRow,
    /// Population that it covers.
    pub(crate) subject: Population,
    /// Effect; `None` if it cannot be judged, with the reason in the row's remark.
    pub(crate) effect: Option<Effect>,
    /// Runs whose certificates call the metric INVALID.
    pub(crate) invalid_in: Vec<String>,
    /// Reason why it is not judged.
    pub(crate) not_judged: Option<String>,
    /// True if it contains the prefill of prompts.
    pub(crate) contains_prefill: bool,
}

/// A value that at least one side has.
#[derive(Clone, Copy)]
pub(crate) enum RowSides<'a> {
    Both(&'a SideMeasurement, &'a SideMeasurement),
    Baseline(&'a SideMeasurement),
    Candidate(&'a SideMeasurement),
}

impl<'a> RowSides<'a> {
    fn of_baseline(self) -> Option<&'a SideMeasurement> {
        match self {
            RowSides::Both(a, _) | RowSides::Baseline(a) => Some(a),
            RowSides::Candidate(_) => None,
        }
    }

    fn of_candidate(self) -> Option<&'a SideMeasurement> {
        match self {
            RowSides::Both(_, b) | RowSides::Candidate(b) => Some(b),
            RowSides::Baseline(_) => None,
        }
    }

    fn either(self) -> &'a SideMeasurement {
        match self {
            RowSides::Both(known, _) | RowSides::Baseline(known) | RowSides::Candidate(known) => known,
        }
    }
}

/// Creates a row before its verdict. `pairs` are the samples of both sides by request, if they can
/// be paired.
pub(crate) fn draft(found: RowSides<'_>, pairs: Option<&Paired>, options: &CompareOptions) -> RowDraft {
    let (a, b) = (found.of_baseline(), found.of_candidate());
    let known = found.either();
    let same_unit = |one: &&SideMeasurement| one.unit == known.unit;
    let b = b.filter(same_unit);
    let values = || {
        a.into_iter()
            .chain(b)
            .flat_map(|side| side.values.iter().copied())
    };
    let mut scale = ComparisonScale::of(known.is_share, values());
    // If a resample has no value on the scale, differences are used.
    if a.into_iter().chain(b).any(|side| !side.has(scale)) {
        scale = ComparisonScale::Difference;
    }
    let side = |measured: &SideMeasurement| SideValue {
        value: scale.centre(&measured.values),
        samples: measured.samples,
        counted: measured.counted,
        spread: spread(&measured.values),
        approximate: measured.approximate,
    };
    let mut draft = RowDraft {
        row: ComparisonRow {
            name: known.name.clone(),
            statistic: known.statistic,
            unit: known.unit.clone(),
            is_share: known.is_share,
            better: known.better,
            baseline: a.map(side),
            candidate: b.map(side),
            difference: None,
            relative: None,
            scale,
            interval: None,
            relative_interval: None,
            paired: false,
            p: None,
            p_adjusted: None,
            freedom: None,
            client_error: None,
            verdict: DifferenceVerdict::NotEnoughData,
            remark: None,
        },
        subject: known.subject,
        effect: None,
        invalid_in: a
            .into_iter()
            .chain(b)
            .flat_map(|side| side.invalid_in.clone())
            .collect(),
        not_judged: known.not_judged.clone(),
        contains_prefill: known.contains_prefill,
    };
    let row = &mut draft.row;
    let (a, b) = match (found, b) {
        (RowSides::Both(a, _), Some(b)) => (a, b),
        (RowSides::Both(a, b), None) => {
            row.remark = Some(format!("the units differ: `{}` and `{}`", a.unit, b.unit));
            return draft;
        }
        (RowSides::Candidate(_), _) => {
            row.remark = Some("missing in the baseline".into());
            return draft;
        }
        (RowSides::Baseline(_), _) => {
            row.remark = Some("missing in the candidate".into());
            return draft;
        }
    };
    if let (Some(one), Some(other)) = (row.baseline, row.candidate) {
        row.difference = Some(ComparisonScale::Difference.step(one.value, other.value));
        let positive = one.value > 0.0 && other.value > 0.0;
        row.relative = positive.then(|| ComparisonScale::Ratio.step(one.value, other.value).exp_m1());
    }
    row.client_error = client_error(known.statistic, a, b);
    let paired = pairs.and_then(|pairs| {
        let of = resampled_of(a.statistic)?;
        a.within(scale).and(b.within(scale)).ok()?;
        pairs.within(of, scale, options.resamples, a.stream(options))
    });
    let seen = effect(&a.noise(scale), &b.noise(scale), scale, paired);
    match why_not(a, b, &seen) {
        Some(why) => row.remark = Some(why),
        None => {
            let interval = seen.interval(options.confidence);
            match scale {
                ComparisonScale::Difference => row.interval = interval,
                ComparisonScale::Ratio => row.relative_interval = interval,
            }
            row.p = seen.p();
            row.freedom = seen
                .error
                .map(|error| error.freedom)
                .filter(|freedom| *freedom < 1e6);
            row.paired = paired.is_some();
            draft.effect = Some(seen);
        }
    }
    draft
}

fn resampled_of(statistic: Statistic) -> Option<Resampled> {
    match statistic {
        Statistic::OfSamples(aggregate) => resampled(aggregate),
        Statistic::Value => None,
    }
}

/// Explains why a difference cannot be judged, if it cannot.
fn why_not(a: &SideMeasurement, b: &SideMeasurement, seen: &Effect) -> Option<String> {
    let lacks = || {
        let sides = [("baseline", a), ("candidate", b)];
        let lack =
            |(name, side): (&'static str, &SideMeasurement)| Some((name, side.within(seen.scale).err()?));
        sides.into_iter().find_map(lack)
    };
    let Some(error) = seen.error else {
        return Some(match lacks() {
            Some((side, Lack::Samples { has, needs })) => {
                let (statistic, samples) = match a.statistic {
                    Statistic::Value => (a.name.clone(), "requests"),
                    statistic => (statistic.to_string(), "samples"),
                };
                format!("{statistic} needs {needs} {samples} per run; the {side} has {has}")
            }
            Some((side, Lack::Requests { samples, has, needs })) => {
                let (statistic, requests) = (a.statistic, if has == 1 { "request" } else { "requests" });
                format!(
                    "{statistic} needs samples of {needs} requests per run; the {samples} of the {side} are of {has} {requests}, and samples of one request depend on each other"
                )
            }
            Some((side, Lack::Blocks)) => {
                format!("the samples of the {side} depend on each other over the whole run")
            }
            Some((_, Lack::OneValue)) => {
                "one value on each side; several runs show how much it varies".into()
            }
            Some((_, Lack::NoError | Lack::Several)) | None => {
                format!(
                    "the error of {} is unknown with one run; it needs several",
                    of_what(b.statistic)
                )
            }
        });
    };
    // A few runs that agree to the last digit do not prove that runs never differ, if nothing is
    // known within them.
    let silent = error.variance == 0.0 && seen.estimate != 0.0 && lacks().is_some();
    silent.then(|| AGREE.into())
}

fn of_what(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::OfSamples(Aggregate::Min | Aggregate::Percentile(0.0)) => "the smallest of many samples",
        Statistic::OfSamples(Aggregate::Max | Aggregate::Percentile(_)) => "the largest of many samples",
        _ => "this value",
    }
}

/// Returns the bound on the error of both clients together.
fn client_error(statistic: Statistic, a: &SideMeasurement, b: &SideMeasurement) -> Option<f64> {
    let typical = match statistic {
        Statistic::OfSamples(Aggregate::Mean) => true,
        Statistic::OfSamples(Aggregate::Percentile(percent)) => percent <= 50.0,
        _ => false,
    };
    let of = |side: &SideMeasurement| {
        side.client_error
            .map(|error| if typical { error.mean } else { error.p99 })
    };
    match (of(a), of(b)) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0.0) + other.unwrap_or(0.0)),
    }
}
