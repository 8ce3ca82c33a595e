//! One figure on both sides: its values, its difference and how sure that is.

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
    /// Candidate ÷ baseline - 1, where both are positive.
    pub relative: Option<f64>,
    /// Whether interval and probability are those of the ratio or of the difference.
    pub scale: Scale,
    /// Where the difference lies with the confidence asked for, this figure looked at by itself; only on [`Scale::Difference`].
    pub interval: Option<(f64, f64)>,
    /// Where the relative change lies; only on [`Scale::Ratio`].
    pub relative_interval: Option<(f64, f64)>,
    /// Whether the requests of both sides were compared one by one: they are the same ones.
    pub paired: bool,
    /// How probable such a difference is by chance.
    pub p: Option<f64>,
    /// The same, allowing for all the figures that were looked at.
    pub p_adjusted: Option<f64>,
    /// Degrees of freedom of the error behind interval and probability; `None` also where there are so many that they do not matter.
    pub freedom: Option<f64>,
    /// How far the clients may have falsified the difference: both sides' errors together.
    pub client_error: Option<f64>,
    /// What that comes to.
    pub verdict: Verdict,
    /// What should be known of it, in words.
    pub remark: Option<String>,
}

impl Row {
    /// Whether the figure, as it stands, has changed so that the verdict would be this one if it were more than chance.
    pub(crate) fn tends(&self, verdict: Verdict) -> bool {
        let change = self.difference.filter(|difference| *difference != 0.0);
        change.is_some_and(|change| Verdict::of_direction(change, self.better) == verdict)
    }
}

/// A figure of one side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SideValue {
    /// Its value. Of several runs their mean: the geometric one where the row is compared by ratio, else the arithmetic one.
    pub value: f64,
    /// Samples over all runs; of a share of requests, requests; of another figure of the whole run, runs.
    pub samples: u64,
    /// Of a share of requests: so many of so many, over all runs.
    pub counted: Option<Counted>,
    /// How it varies from run to run, if there are several.
    pub spread: Option<Spread>,
    /// Whether it was read from a histogram, and is so within 0.2 %.
    pub approximate: bool,
}

/// What is said of a row whose runs do not vary.
pub(crate) const AGREE: &str =
    "the runs of each side agree exactly, and nothing within them tells how much others would vary";

/// A row without its verdict, and what the verdict comes of.
pub(crate) struct Draft {
    pub(crate) row: Row,
    /// What it tells of.
    pub(crate) subject: Subject,
    /// `None` where it cannot be judged; the row's remark says why.
    pub(crate) effect: Option<Effect>,
    /// Runs whose certificates call the metric INVALID.
    pub(crate) invalid_in: Vec<String>,
    /// Why it is not judged whatever the values are.
    pub(crate) not_judged: Option<String>,
}

/// A figure that one of the sides has at least.
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

/// A row without its verdict. `pairs` are the samples of both sides request by request, where that can be done.
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
    // A scale of which a resample has no value becomes that of differences.
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

/// Why a difference cannot be judged, if it cannot.
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
    // Some runs that agree to the last digit do not tell that no run ever differs, where they tell nothing by themselves.
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

/// What both clients together may be wrong by.
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
