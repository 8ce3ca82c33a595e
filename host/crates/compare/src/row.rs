//! Rows: one statistic on both sides, with its difference and confidence.

use veeksha_model::Better;
use veeksha_slo::Aggregate;

use crate::effect::{Effect, effect, spread};
use crate::effect::{Scale, Spread};
use crate::measured::{Lack, Measured, Subject};
use crate::options::Options;
use crate::paired::Paired;
use crate::statistic::Statistic;
use crate::statistic::{Resampled, resampled};
use crate::verdict::Verdict;
use crate::whole_run::Counted;

/// One statistic on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Name of the metric or run-level value.
    pub name: String,
    /// Compared statistic.
    pub statistic: Statistic,
    /// Unit of values and differences.
    pub unit: String,
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
    pub scale: Scale,
    /// Confidence interval of the difference, for this row by itself; only on
    /// [`Scale::Difference`].
    pub interval: Option<(f64, f64)>,
    /// Confidence interval of the relative change; only on [`Scale::Ratio`].
    pub relative_interval: Option<(f64, f64)>,
    /// True if the sides' requests were paired because they are the same.
    pub paired: bool,
    /// Probability of such a difference by chance.
    pub p: Option<f64>,
    /// The same probability, corrected for the number of rows.
    pub p_adjusted: Option<f64>,
    /// Degrees of freedom of the error; `None` also if there are so many that they do not matter.
    pub freedom: Option<f64>,
    /// Bound on the clients' error of the difference: both sides together.
    pub client_error: Option<f64>,
    /// Verdict on the row.
    pub verdict: Verdict,
    /// Remark for the reader.
    pub remark: Option<String>,
}

impl Row {
    /// Returns true if the numerical change would give this verdict if it were significant.
    pub(crate) fn tends(&self, verdict: Verdict) -> bool {
        let change = self.difference.filter(|difference| *difference != 0.0);
        change.is_some_and(|change| Verdict::of_direction(change, self.better) == verdict)
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
    pub counted: Option<Counted>,
    /// Variation between runs, if there are several.
    pub spread: Option<Spread>,
    /// True if it was read from a histogram, which is accurate within 0.2 %.
    pub approximate: bool,
}

/// Remark on a row whose runs agree.
pub(crate) const AGREE: &str =
    "the runs of each side agree exactly, and nothing within them tells how much others would vary";

/// A row before its verdict, with the inputs of the verdict.
pub(crate) struct Draft {
    pub(crate) row: Row,
    /// Population that it covers.
    pub(crate) subject: Subject,
    /// Effect; `None` if it cannot be judged, with the reason in the row's remark.
    pub(crate) effect: Option<Effect>,
    /// Runs whose certificates call the metric INVALID.
    pub(crate) invalid_in: Vec<String>,
    /// Reason why it is not judged.
    pub(crate) not_judged: Option<String>,
}

/// A value that at least one side has.
#[derive(Clone, Copy)]
pub(crate) enum Found<'a> {
    Both(&'a Measured, &'a Measured),
    Baseline(&'a Measured),
    Candidate(&'a Measured),
}

impl<'a> Found<'a> {
    fn of_baseline(self) -> Option<&'a Measured> {
        match self {
            Found::Both(a, _) | Found::Baseline(a) => Some(a),
            Found::Candidate(_) => None,
        }
    }

    fn of_candidate(self) -> Option<&'a Measured> {
        match self {
            Found::Both(_, b) | Found::Candidate(b) => Some(b),
            Found::Baseline(_) => None,
        }
    }

    fn either(self) -> &'a Measured {
        match self {
            Found::Both(known, _) | Found::Baseline(known) | Found::Candidate(known) => known,
        }
    }
}

/// Creates a row before its verdict. `pairs` are the samples of both sides by request, if they can
/// be paired.
pub(crate) fn draft(found: Found<'_>, pairs: Option<&Paired>, options: &Options) -> Draft {
    let (a, b) = (found.of_baseline(), found.of_candidate());
    let known = found.either();
    let same_unit = |one: &&Measured| one.unit == known.unit;
    let b = b.filter(same_unit);
    let values = || {
        a.into_iter()
            .chain(b)
            .flat_map(|side| side.values.iter().copied())
    };
    let mut scale = Scale::of(&known.unit, values());
    // If a resample has no value on the scale, differences are used.
    if a.into_iter().chain(b).any(|side| !side.has(scale)) {
        scale = Scale::Difference;
    }
    let side = |measured: &Measured| SideValue {
        value: scale.centre(&measured.values),
        samples: measured.samples,
        counted: measured.counted,
        spread: spread(&measured.values),
        approximate: measured.approximate,
    };
    let mut draft = Draft {
        row: Row {
            name: known.name.clone(),
            statistic: known.statistic,
            unit: known.unit.clone(),
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
            verdict: Verdict::NotEnoughData,
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
    };
    let row = &mut draft.row;
    let (a, b) = match (found, b) {
        (Found::Both(a, _), Some(b)) => (a, b),
        (Found::Both(a, b), None) => {
            row.remark = Some(format!("the units differ: `{}` and `{}`", a.unit, b.unit));
            return draft;
        }
        (Found::Candidate(_), _) => {
            row.remark = Some("the baseline has none".into());
            return draft;
        }
        (Found::Baseline(_), _) => {
            row.remark = Some("the candidate has none".into());
            return draft;
        }
    };
    if let (Some(one), Some(other)) = (row.baseline, row.candidate) {
        row.difference = Some(Scale::Difference.step(one.value, other.value));
        let positive = one.value > 0.0 && other.value > 0.0;
        row.relative = positive.then(|| Scale::Ratio.step(one.value, other.value).exp_m1());
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
                Scale::Difference => row.interval = interval,
                Scale::Ratio => row.relative_interval = interval,
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
fn why_not(a: &Measured, b: &Measured, seen: &Effect) -> Option<String> {
    let lacks = || {
        let sides = [("baseline", a), ("candidate", b)];
        let lack = |(name, side): (&'static str, &Measured)| Some((name, side.within(seen.scale).err()?));
        sides.into_iter().find_map(lack)
    };
    let Some(error) = seen.error else {
        return Some(match lacks() {
            Some((side, Lack::Samples { has, needs })) => {
                let (statistic, samples) = match a.statistic {
                    Statistic::Value => (a.name.clone(), "requests"),
                    statistic => (statistic.to_string(), "samples"),
                };
                format!("{statistic} takes {needs} {samples} a run; the {side} has {has}")
            }
            Some((side, Lack::Requests { samples, has, needs })) => {
                let (statistic, requests) = (a.statistic, if has == 1 { "request" } else { "requests" });
                format!(
                    "{statistic} takes samples of {needs} requests a run; the {samples} of the {side} are of {has} {requests}, and those of one request hang together"
                )
            }
            Some((side, Lack::Blocks)) => {
                format!("the samples of the {side} hang together over the whole run")
            }
            Some((_, Lack::OneValue)) => {
                "one value on each side; several runs would tell how much it varies".into()
            }
            Some((_, Lack::NoError | Lack::Several)) | None => {
                format!(
                    "one run does not tell the error of {}; several would",
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
        _ => "this figure",
    }
}

/// Returns the bound on the error of both clients together.
fn client_error(statistic: Statistic, a: &Measured, b: &Measured) -> Option<f64> {
    let typical = match statistic {
        Statistic::OfSamples(Aggregate::Mean) => true,
        Statistic::OfSamples(Aggregate::Percentile(percent)) => percent <= 50.0,
        _ => false,
    };
    let of = |side: &Measured| {
        side.client_error
            .map(|error| if typical { error.mean } else { error.p99 })
    };
    match (of(a), of(b)) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0.0) + other.unwrap_or(0.0)),
    }
}
