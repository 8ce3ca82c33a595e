//! From the figures of both sides to verdicts.

use veeksha_model::Better;
use veeksha_slo::Aggregate;

use crate::comparison::{Candidate, Row, SideValue};
use crate::effect::{Effect, effect};
use crate::measured::{Lack, Measured};
use crate::paired::Paired;
use crate::statistic::{Resampled, resampled};
use crate::verdict::holm;
use crate::{Correction, Options, Side, Statistic, Verdict};

/// Fills in the rows of a candidate, and the remarks that come of them.
pub(crate) fn judge(
    candidate: &mut Candidate,
    a: &[Measured],
    b: &[Measured],
    sides: &Sides<'_>,
    options: &Options,
) {
    let mut rows: Vec<Row> = Vec::new();
    // The statistics of a metric stand one after the other.
    let mut pairs: Option<(&str, Option<Paired>)> = None;
    for one in a {
        let other = b.iter().find(|other| other.is(&one.name, one.statistic));
        if pairs.as_ref().is_none_or(|(name, _)| *name != one.name) {
            pairs = Some((&one.name, sides.paired(one)));
        }
        let paired = pairs.as_ref().and_then(|(_, paired)| paired.as_ref());
        rows.push(row(Some(one), other, paired, options));
    }
    let only_in_b = b
        .iter()
        .filter(|other| !a.iter().any(|one| one.is(&other.name, other.statistic)));
    rows.extend(only_in_b.map(|other| row(None, Some(other), None, options)));
    // Metrics with all that is compared of them, then figures: also where one side lacks some of it.
    let rank = |row: &Row| {
        let first = a.iter().chain(b).position(|measured| measured.name == row.name);
        (row.statistic == Statistic::Value, first)
    };
    rows.sort_by_key(rank);
    let judged = adjust(&mut rows, options);
    for row in &mut rows {
        decide(row, judged.beside(row), options);
        if !candidate.obstacles.is_empty() {
            row.verdict = Verdict::NotComparable;
        }
    }
    let looked_at = judged.directed;
    if rows.iter().any(|row| row.paired) {
        candidate.remarks.push(
            "both sides did the same work: their requests were compared one by one where that could be done, so that what they have in common is no noise"
                .into(),
        );
    }
    candidate.rows = rows;
    candidate.remarks.push(match options.correction {
        Correction::Holm => format!(
            "{looked_at} figures with a better side were judged; verdicts allow for their number (Holm), intervals are those of each figure by itself"
        ),
        Correction::Each => format!(
            "{looked_at} figures with a better side were judged, each by itself: about {} of as many that do not differ would be called better or worse",
            veeksha_stats::number(looked_at as f64 * (1.0 - options.confidence))
        ),
    });
}

/// Both sides as they were given.
pub(crate) struct Sides<'a> {
    pub(crate) baseline: &'a Side,
    pub(crate) candidate: &'a Side,
    /// Whether all runs did the same work.
    pub(crate) same_work: bool,
}

impl Sides<'_> {
    /// The samples of a metric request by request, if the requests are the same.
    fn paired(&self, of: &Measured) -> Option<Paired> {
        let is_metric = of.statistic != Statistic::Value;
        (self.same_work && is_metric)
            .then(|| Paired::new(&of.name, self.baseline, self.candidate))
            .flatten()
    }
}

fn resampled_of(statistic: Statistic) -> Option<Resampled> {
    match statistic {
        Statistic::OfSamples(aggregate) => resampled(aggregate),
        Statistic::Value => None,
    }
}

/// A row without its verdict.
fn row(a: Option<&Measured>, b: Option<&Measured>, pairs: Option<&Paired>, options: &Options) -> Row {
    // One of them is there.
    let (name, statistic, unit, better) = a.or(b).map_or_else(
        || (String::new(), Statistic::Value, String::new(), Better::Neither),
        |known| {
            (
                known.name.clone(),
                known.statistic,
                known.unit.clone(),
                known.better,
            )
        },
    );
    let side = |measured: &Measured| SideValue {
        value: measured.value(),
        samples: measured.samples,
        spread: measured.spread(),
        approximate: measured.approximate,
    };
    let mut row = Row {
        name,
        statistic,
        unit,
        better,
        baseline: a.map(side),
        candidate: b.map(side),
        difference: None,
        interval: None,
        relative: None,
        relative_interval: None,
        paired: false,
        p: None,
        p_adjusted: None,
        client_error: None,
        verdict: Verdict::NotEnoughData,
        remark: None,
    };
    let (a, b) = match (a, b) {
        (Some(a), Some(b)) => (a, b),
        (None, _) => {
            row.remark = Some("the baseline has none".into());
            return row;
        }
        (_, None) => {
            row.remark = Some("the candidate has none".into());
            return row;
        }
    };
    if a.unit != b.unit {
        row.remark = Some(format!("the units differ: `{}` and `{}`", a.unit, b.unit));
        row.candidate = None;
        return row;
    }
    let within =
        pairs.and_then(|pairs| pairs.within(resampled_of(statistic)?, options.resamples, a.stream(options)));
    let seen = effect(&a.runs, &b.runs, within.as_ref(), options.confidence);
    row.paired = within.is_some();
    row.difference = Some(seen.difference);
    row.relative = seen.relative;
    row.client_error = client_error(statistic, a, b);
    match why_not(a, b, &seen) {
        Some(why) => row.remark = Some(why),
        None => {
            row.interval = Some(seen.interval);
            row.relative_interval = seen.relative_interval;
            row.p = Some(seen.p);
        }
    }
    row
}

/// Why a difference cannot be judged, if it cannot.
fn why_not(a: &Measured, b: &Measured, seen: &Effect) -> Option<String> {
    let sides = [("the baseline", a), ("the candidate", b)];
    for (side, measured) in sides {
        match measured.lacks {
            None => {}
            Some(Lack::Samples { has, needs }) => {
                return Some(format!(
                    "{} takes {needs} samples a run; {side} has {has}",
                    measured.statistic
                ));
            }
            Some(Lack::Blocks) => {
                return Some(format!("the samples of {side} hang together over the whole run"));
            }
            Some(Lack::NoError) => {
                return Some(format!(
                    "nothing tells the error of {}",
                    of_what(measured.statistic)
                ));
            }
        }
    }
    if a.statistic != Statistic::Value {
        return None;
    }
    if a.runs.len() < 2 && b.runs.len() < 2 {
        return Some("one value on each side; several runs would tell how much it varies".into());
    }
    // Some runs that agree to the last digit do not tell that no run ever differs.
    let silent = seen.difference != 0.0 && seen.interval.0 == seen.interval.1;
    silent.then(|| "the runs of each side agree exactly; how much others would differ is not known".into())
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

/// How many figures were judged.
struct Counts {
    /// Of those that have a better side.
    directed: usize,
    /// Of those that have none.
    undirected: usize,
}

impl Counts {
    /// How many of the row's kind there are, itself included.
    fn beside(&self, row: &Row) -> usize {
        match row.better {
            Better::Neither => self.undirected,
            _ => self.directed,
        }
    }
}

/// Adjusts probabilities. What has no better side is a family of its own: it describes the load, and takes nothing from what is at stake.
fn adjust(rows: &mut [Row], options: &Options) -> Counts {
    let mut of_kind = |is_directed: bool| {
        let is_meant = |row: &&mut Row| row.p.is_some() && (row.better != Better::Neither) == is_directed;
        let family: Vec<&mut Row> = rows.iter_mut().filter(is_meant).collect();
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
    };
    Counts {
        directed: of_kind(true),
        undirected: of_kind(false),
    }
}

fn decide(row: &mut Row, judged: usize, options: &Options) {
    let (Some(p), Some(adjusted), Some(difference)) = (row.p, row.p_adjusted, row.difference) else {
        return;
    };
    let chance = 1.0 - options.confidence;
    row.verdict = if adjusted > chance || difference == 0.0 {
        if p <= chance && difference != 0.0 {
            row.remark = Some(format!(
                "the interval leaves out 0, as that of some figure among {judged} may by chance"
            ));
        }
        Verdict::NoDifference
    } else if row.client_error.is_some_and(|error| difference.abs() <= error) {
        Verdict::WithinClientError
    } else if is_too_small(row, options) {
        Verdict::TooSmall
    } else {
        Verdict::of_direction(difference, row.better)
    };
}

fn is_too_small(row: &Row, options: &Options) -> bool {
    match (options.smallest, row.relative) {
        // The smaller of both ways to see it, so that A against B is judged as B against A.
        (Some(smallest), Some(relative)) => {
            relative.abs().min((1.0 / (1.0 + relative) - 1.0).abs()) < smallest
        }
        _ => false,
    }
}
