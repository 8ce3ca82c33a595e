//! Pairing of the requests of two runs that did the same work, which removes their common variation
//! from the error.

use std::collections::HashMap;

use veeksha_model::Nanos;
use veeksha_stats::RandomStream;

use crate::effect::{ComparisonScale, Variance};
use crate::input::RunData;
use crate::resample::{Blocks, DrawnStatistic, RunningVariance, influence};
use crate::sample::TimedSample;
use crate::series::{CELLS, Series, in_order};
use crate::statistic::Resampled;

/// Maximum share of samples without a partner; with more, the runs are treated as independent.
const STRANGERS: f64 = 0.1;

/// A metric of two runs, in cells of the same requests.
#[derive(Debug)]
pub(crate) struct Paired {
    a: Series,
    b: Series,
}

impl Paired {
    /// Pairs a metric's samples; `None` unless both runs have keys, nearly all of them in common.
    pub(crate) fn new(metric: &str, a: &RunData, b: &RunData) -> Option<Paired> {
        let (a, b) = (samples_of(metric, a)?, samples_of(metric, b)?);
        let order = common_order(a, b);
        let cells = order.len().min(CELLS);
        let place = |(place, key): (usize, u64)| (key, place * cells / order.len());
        let cell_of: HashMap<u64, usize> = order.iter().copied().enumerate().map(place).collect();
        Some(Paired {
            a: in_cells(a, &cell_of, cells)?,
            b: in_cells(b, &cell_of, cells)?,
        })
    }

    /// Returns the variance of B − A, or of the logarithm of B ÷ A, by a bootstrap that draws the
    /// same blocks of requests for both. The block length is chosen for the difference.
    pub(crate) fn within(
        &self,
        of: Resampled,
        scale: ComparisonScale,
        resamples: usize,
        stream: RandomStream,
    ) -> Option<Variance> {
        let (a, b) = (
            DrawnStatistic::new(&self.a, of)?,
            DrawnStatistic::new(&self.b, of)?,
        );
        let blocks = Blocks::new(&self.influence(of))?;
        let step = |run: &DrawnStatistic<'_>, times: &[f64]| {
            let deviation = run.deviation(times)?;
            Some(match scale {
                ComparisonScale::Difference => deviation,
                ComparisonScale::Ratio => (deviation / run.value).ln_1p(),
            })
        };
        let mut difference = RunningVariance::default();
        let mut draws = stream.draws();
        let mut times = Vec::new();
        for _ in 0..resamples {
            blocks.draw(&mut draws, &mut times);
            if let (Some(of_a), Some(of_b)) = (step(&a, &times), step(&b, &times)) {
                difference.push(of_b - of_a);
            }
        }
        Some(Variance {
            variance: blocks.whole(difference.variance().filter(|variance| variance.is_finite())?),
            freedom: blocks.freedom(),
        })
    }

    /// Returns the contribution of each cell to the difference's error.
    fn influence(&self, of: Resampled) -> Vec<f64> {
        let (in_a, in_b) = (influence(&self.a, of), influence(&self.b, of));
        let (of_a, of_b) = (self.a.weight(), self.b.weight());
        let cells = in_a.iter().zip(in_b);
        cells.map(|(in_a, in_b)| in_b / of_b - in_a / of_a).collect()
    }
}

/// Returns the samples of a run; `None` if it has none, or some without keys.
fn samples_of<'a>(metric: &str, run: &'a RunData) -> Option<&'a [TimedSample]> {
    let mut named = run.metrics.iter().filter(|data| data.name == metric);
    named.next().and_then(|data| data.samples.keyed())
}

/// Returns the common keys, ordered by the mean of their positions in both runs, which does not
/// depend on the order of the arguments.
fn common_order(one: &[TimedSample], other: &[TimedSample]) -> Vec<u64> {
    let (first, second) = (first_instants(one), first_instants(other));
    let mut common: Vec<(Nanos, u64)> = first
        .into_iter()
        .filter_map(|(key, at)| second.get(&key).map(|other| (at.saturating_add(*other), key)))
        .collect();
    common.sort_unstable();
    common.into_iter().map(|(_, key)| key).collect()
}

fn first_instants(samples: &[TimedSample]) -> HashMap<u64, Nanos> {
    let mut first: HashMap<u64, Nanos> = HashMap::new();
    for sample in samples {
        if let Some(key) = sample.key {
            let at = first.entry(key).or_insert(sample.at);
            *at = (*at).min(sample.at);
        }
    }
    first
}

/// Assigns each sample to its key's cell, and one without a partner to the preceding sample's;
/// `None` if there are too many of them.
fn in_cells(samples: &[TimedSample], cell_of: &HashMap<u64, usize>, cells: usize) -> Option<Series> {
    let known = |sample: &TimedSample| sample.key.and_then(|key| cell_of.get(&key).copied());
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

    fn run_of(samples: &[(u64, u64, f64)]) -> RunData {
        let mut collected = TimedSamples::new();
        for (key, at, value) in samples {
            collected.push_keyed(*at, *value, 1.0, *key);
        }
        RunData {
            metrics: vec![MetricData::new("m", "s", veeksha_model::Better::Less, collected)],
            ..RunData::default()
        }
    }

    fn stream() -> RandomStream {
        RandomStream::new(1, 0, "paired")
    }

    /// The common part of two runs (an answer length that varies by 1 between requests) cancels.
    /// The rest varies by 0.1 in each: the variance of the difference of means of n requests is 2 ·
    /// 0.01 ÷ n instead of 2 · 1.01 ÷ n.
    #[test]
    fn pairing_removes_common_properties_of_requests() {
        let n = 4000u64;
        let mut draws = RandomStream::new(3, 0, "requests").draws();
        let lengths: Vec<f64> = (0..n).map(|_| draws.normal()).collect();
        let mut run = || {
            let of = |key: u64| {
                let value = 10.0 + lengths[key as usize] + 0.1 * draws.normal();
                (key, 1000 * key, value)
            };
            run_of(&(0..n).map(of).collect::<Vec<_>>())
        };
        let paired = Paired::new("m", &run(), &run()).unwrap();
        let variance = |of, scale| paired.within(of, scale, 500, stream()).unwrap().variance;
        let difference = variance(Resampled::Mean, ComparisonScale::Difference);
        let expected = 2.0 * 0.01 / n as f64;
        assert!(
            (difference / expected - 1.0).abs() < 0.35,
            "{difference} is not {expected}"
        );
        // 10 on both sides: errors of logarithms are a tenth.
        let ratio = variance(Resampled::Mean, ComparisonScale::Ratio);
        assert!((ratio * 100.0 / difference - 1.0).abs() < 0.05);
        let median = variance(Resampled::Quantile(0.5), ComparisonScale::Difference);
        assert!(median < 0.2 * 2.0 * 1.01 * 1.57 / n as f64, "{median}");
    }

    /// The influence on the difference is that of B minus that of A, so it is 0 in every cell for
    /// equal runs.
    #[test]
    fn influence_of_equal_runs_cancels() {
        let value = |key: u64| 1.0 + (key * 37 % 100) as f64;
        let run = || {
            run_of(
                &(0..400)
                    .map(|key| (key, 1000 * key, value(key)))
                    .collect::<Vec<_>>(),
            )
        };
        let paired = Paired::new("m", &run(), &run()).unwrap();
        for of in [Resampled::Mean, Resampled::Quantile(0.5)] {
            assert!(influence(&paired.a, of).iter().any(|part| part.abs() > 1e-3));
            assert!(paired.influence(of).iter().all(|part| part.abs() < 1e-12));
        }
    }

    #[test]
    fn runs_with_different_requests_are_not_paired() {
        let run = |from: u64| run_of(&(from..from + 100).map(|key| (key, key, 1.0)).collect::<Vec<_>>());
        let paired = |from: u64| Paired::new("m", &run(0), &run(from));
        assert!(paired(0).is_some());
        assert!(paired(10).is_some());
        assert!(paired(11).is_none());
        assert!(paired(100).is_none());
        let mut without = run(0);
        without.metrics[0].samples.push(0, 1.0);
        assert!(Paired::new("m", &run(0), &without).is_none());
        assert!(Paired::new("other", &run(0), &run(0)).is_none());
    }
}
