//! Sides that did the same work: what their requests have in common is no difference between the sides.

use std::collections::HashMap;

use veeksha_model::Nanos;
use veeksha_stats::RandomStream;

use crate::Side;
use crate::resample::{Blocks, Drawn, Moments, influence};
use crate::series::{CELLS, Series, in_order};
use crate::statistic::Resampled;
use crate::timed_samples::Sample;

/// Samples of a run whose request the others do not have, at most: where more are missing, the sides are taken as independent.
const STRANGERS: f64 = 0.1;

/// A metric of both sides, in cells of the same requests.
#[derive(Debug)]
pub(crate) struct Paired {
    a: Vec<Series>,
    b: Vec<Series>,
}

/// Variances of a difference within runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Within {
    /// Of the difference.
    pub(crate) difference: f64,
    /// Of the difference of both sides, each divided by its value: that of the ratio's logarithm, to first order.
    pub(crate) relative: f64,
    /// Degrees of freedom of both.
    pub(crate) freedom: f64,
    /// What the runs of the baseline vary by within themselves without having it in common.
    pub(crate) apart_in_a: f64,
    /// The same of the candidate's.
    pub(crate) apart_in_b: f64,
}

impl Paired {
    /// The metric's samples, if those of all runs have keys, and nearly all of these are those of the others.
    pub(crate) fn new(metric: &str, baseline: &Side, candidate: &Side) -> Option<Paired> {
        let (a, b) = (samples_of(metric, baseline)?, samples_of(metric, candidate)?);
        let order = common_order(a.first()?, b.first()?);
        let cells = order.len().min(CELLS);
        let place = |(place, key): (usize, u64)| (key, place * cells / order.len());
        let cell_of: HashMap<u64, usize> = order.iter().copied().enumerate().map(place).collect();
        let series = |runs: Vec<&[Sample]>| -> Option<Vec<Series>> {
            let of = |samples: &[Sample]| in_cells(samples, &cell_of, cells);
            runs.into_iter().map(of).collect()
        };
        Some(Paired {
            a: series(a)?,
            b: series(b)?,
        })
    }

    /// The variances, by a bootstrap that draws the same blocks of requests for all runs. Blocks are as long as the difference asks for.
    pub(crate) fn within(&self, of: Resampled, resamples: usize, stream: RandomStream) -> Option<Within> {
        let a: Option<Vec<Drawn<'_>>> = self.a.iter().map(|run| Drawn::new(run, of)).collect();
        let b: Option<Vec<Drawn<'_>>> = self.b.iter().map(|run| Drawn::new(run, of)).collect();
        let (a, b) = (a?, b?);
        let blocks = Blocks::new(&self.influence(of))?;
        let mean = |runs: &[Drawn<'_>]| runs.iter().map(|run| run.value).sum::<f64>() / runs.len() as f64;
        let (a_value, b_value) = (mean(&a), mean(&b));
        let (mut difference, mut relative) = (Moments::default(), Moments::default());
        let (mut in_a, mut in_b) = (Apart::default(), Apart::default());
        let mut draws = stream.draws();
        let mut times = Vec::new();
        for _ in 0..resamples {
            blocks.draw(&mut draws, &mut times);
            let (Some(of_a), Some(of_b)) = (in_a.take(&a, &times), in_b.take(&b, &times)) else {
                continue;
            };
            difference.push(of_b - of_a);
            relative.push(of_b / b_value - of_a / a_value);
        }
        let relative = relative.variance().filter(|variance| variance.is_finite());
        Some(Within {
            difference: blocks.whole(difference.variance()?),
            // Only read where both values are positive.
            relative: blocks.whole(relative.unwrap_or(0.0)),
            freedom: blocks.freedom(),
            apart_in_a: blocks.whole(in_a.mean()),
            apart_in_b: blocks.whole(in_b.mean()),
        })
    }

    /// What each cell adds to the difference's error.
    fn influence(&self, of: Resampled) -> Vec<f64> {
        let cells = self.a.first().map_or(0, Series::cells);
        let mut sum = vec![0.0; cells];
        for (runs, sign) in [(&self.a, -1.0), (&self.b, 1.0)] {
            for run in runs {
                let share = sign / (run.weight() * runs.len() as f64);
                let added = influence(run, of);
                sum.iter_mut()
                    .zip(added)
                    .for_each(|(sum, added)| *sum += share * added);
            }
        }
        sum
    }
}

/// By how much runs of one side vary in resamples, apart from one another.
#[derive(Debug, Default)]
struct Apart {
    sum: f64,
    count: f64,
}

impl Apart {
    /// The mean deviation of the runs in one resample.
    fn take(&mut self, runs: &[Drawn<'_>], times: &[f64]) -> Option<f64> {
        let deviations: Option<Vec<f64>> = runs.iter().map(|run| run.deviation(times)).collect();
        let deviations = deviations?;
        let mean = deviations.iter().sum::<f64>() / deviations.len() as f64;
        let mut among = Moments::default();
        deviations.iter().for_each(|deviation| among.push(*deviation));
        self.sum += among.variance().unwrap_or(0.0);
        self.count += 1.0;
        Some(mean)
    }

    fn mean(&self) -> f64 {
        if self.count > 0.0 {
            self.sum / self.count
        } else {
            0.0
        }
    }
}

/// The samples of each run of a side; `None` if some run has none, or some without keys.
fn samples_of<'a>(metric: &str, side: &'a Side) -> Option<Vec<&'a [Sample]>> {
    let of_run = |run: &'a crate::RunData| {
        let mut named = run.metrics.iter().filter(|data| data.name == metric);
        named.next().and_then(|data| data.samples.keyed())
    };
    side.runs.iter().map(of_run).collect()
}

/// The keys that both have, in the order of the time at which both together came to them: the same order whichever is first.
fn common_order(one: &[Sample], other: &[Sample]) -> Vec<u64> {
    let (first, second) = (first_instants(one), first_instants(other));
    let mut common: Vec<(Nanos, u64)> = first
        .into_iter()
        .filter_map(|(key, at)| second.get(&key).map(|other| (at.saturating_add(*other), key)))
        .collect();
    common.sort_unstable();
    common.into_iter().map(|(_, key)| key).collect()
}

fn first_instants(samples: &[Sample]) -> HashMap<u64, Nanos> {
    let mut first: HashMap<u64, Nanos> = HashMap::new();
    for sample in samples {
        if let Some(key) = sample.key {
            let at = first.entry(key).or_insert(sample.at);
            *at = (*at).min(sample.at);
        }
    }
    first
}

/// Each sample in its key's cell, a stranger in that of the sample before it; `None` if there are too many strangers.
fn in_cells(samples: &[Sample], cell_of: &HashMap<u64, usize>, cells: usize) -> Option<Series> {
    let known = |sample: &Sample| sample.key.and_then(|key| cell_of.get(&key).copied());
    let strangers = samples.iter().filter(|sample| known(sample).is_none()).count();
    if cells == 0 || strangers as f64 > STRANGERS * samples.len() as f64 {
        return None;
    }
    let mut ordered = samples.to_vec();
    in_order(&mut ordered);
    let mut last = 0;
    Some(Series::placed(ordered, cells, |_, sample| {
        last = known(sample).unwrap_or(last);
        last
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MetricData, RunData, TimedSamples};

    fn side(label: &str, runs: &[Vec<(u64, u64, f64)>]) -> Side {
        let of = |samples: &Vec<(u64, u64, f64)>| {
            let mut collected = TimedSamples::new();
            for (key, at, value) in samples {
                collected.push_keyed(*at, *value, 1.0, *key);
            }
            RunData {
                metrics: vec![MetricData {
                    name: "m".into(),
                    unit: "s".into(),
                    better: veeksha_model::Better::Less,
                    samples: collected,
                    client_error: None,
                }],
                ..RunData::default()
            }
        };
        Side {
            label: label.into(),
            runs: runs.iter().map(of).collect(),
        }
    }

    fn stream() -> RandomStream {
        RandomStream::new(1, 0, "paired")
    }

    /// What two runs have in common (a length of the answer that varies by 1 from request to request) falls out; what is left varies by 0.1 each:
    /// the variance of the difference of means of n is 2 · 0.01 ÷ n, and not 2 · 1.01 ÷ n.
    #[test]
    fn what_requests_have_in_common_falls_out() {
        let n = 4000u64;
        let mut draws = RandomStream::new(3, 0, "requests").draws();
        let lengths: Vec<f64> = (0..n).map(|_| draws.normal()).collect();
        let mut run = || -> Vec<(u64, u64, f64)> {
            let of = |key: u64| {
                (
                    key,
                    1000 * key,
                    10.0 + lengths[key as usize] + 0.1 * draws.normal(),
                )
            };
            (0..n).map(of).collect()
        };
        let (a, b) = (side("A", &[run(), run()]), side("B", &[run()]));
        let paired = Paired::new("m", &a, &b).unwrap();
        let within = paired.within(Resampled::Mean, 500, stream()).unwrap();
        // One run of B and the mean of two of A.
        let expected = 0.01 * 1.5 / n as f64;
        assert!(
            (within.difference / expected - 1.0).abs() < 0.35,
            "{} is not {expected}",
            within.difference
        );
        // 10 on both sides.
        assert!((within.relative * 100.0 / within.difference - 1.0).abs() < 0.05);
        let apart = 0.01 / n as f64;
        assert!(
            (within.apart_in_a / apart - 1.0).abs() < 0.35,
            "{} is not {apart}",
            within.apart_in_a
        );
        assert_eq!(within.apart_in_b, 0.0);
        let median = paired.within(Resampled::Quantile(0.5), 300, stream()).unwrap();
        assert!(
            median.difference < 0.2 * 2.0 * 1.01 * 1.57 / n as f64,
            "{}",
            median.difference
        );
    }

    #[test]
    fn other_requests_are_not_paired() {
        let run =
            |from: u64| -> Vec<(u64, u64, f64)> { (from..from + 100).map(|key| (key, key, 1.0)).collect() };
        let paired = |from: u64| Paired::new("m", &side("A", &[run(0)]), &side("B", &[run(from)]));
        assert!(paired(0).is_some());
        assert!(paired(10).is_some());
        assert!(paired(11).is_none());
        assert!(paired(100).is_none());
        let mut without = side("B", &[run(0)]);
        without.runs[0].metrics[0].samples.push(0, 1.0);
        assert!(Paired::new("m", &side("A", &[run(0)]), &without).is_none());
        assert!(Paired::new("other", &side("A", &[run(0)]), &side("B", &[run(0)])).is_none());
    }
}
