//! Sampling error of a statistic within one run.

use veeksha_stats::RandomStream;

use crate::effect::{ComparisonScale, Variance};
use crate::resample::{Blocks, DrawnStatistic, RunningVariance, influence};
use crate::series::Series;
use crate::statistic::Resampled;

/// Sampling variance of a statistic of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Chance {
    /// Variance of the statistic.
    pub(crate) variance: f64,
    /// Variance of its logarithm; `None` if a resample is not positive.
    pub(crate) of_logarithm: Option<f64>,
    /// Degrees of freedom of both.
    pub(crate) freedom: f64,
}

impl Chance {
    /// Returns the variance on a scale.
    pub(crate) fn on(&self, scale: ComparisonScale) -> Option<Variance> {
        let variance = match scale {
            ComparisonScale::Difference => Some(self.variance),
            ComparisonScale::Ratio => self.of_logarithm,
        };
        variance.map(|variance| Variance {
            variance,
            freedom: self.freedom,
        })
    }
}

/// Estimates the statistic's variance by the circular block bootstrap (Politis and Romano 1992):
/// blocks of cells, long enough to be nearly independent, are drawn with replacement until the run
/// has its length again.
///
/// The block length is chosen for each statistic from the contributions of the cells to its error
/// (`block_length.rs`). `b` blocks give the variance `b - 1` degrees of freedom; the variance of
/// their resamples is too small by the factor `(b - 1) / b`, which is corrected.
pub(crate) fn chance(
    series: &Series,
    of: Resampled,
    resamples: usize,
    stream: RandomStream,
) -> Option<Chance> {
    let statistic = DrawnStatistic::new(series, of)?;
    let blocks = Blocks::new(&influence(series, of))?;
    let mut draws = stream.draws();
    let mut times = Vec::new();
    let (mut moments, mut logarithms) = (RunningVariance::default(), RunningVariance::default());
    let mut has_logarithms = true;
    for _ in 0..resamples {
        blocks.draw(&mut draws, &mut times);
        let Some(deviation) = statistic.deviation(&times) else {
            continue;
        };
        moments.push(deviation);
        let logarithm = (deviation / statistic.value).ln_1p();
        has_logarithms &= statistic.value > 0.0 && logarithm.is_finite();
        logarithms.push(logarithm);
    }
    let of_logarithm = logarithms.variance().map(|variance| blocks.whole(variance));
    Some(Chance {
        variance: blocks.whole(moments.variance()?),
        of_logarithm: of_logarithm.filter(|_| has_logarithms),
        freedom: blocks.freedom(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::TimedSample;
    use crate::student::reach;

    fn series(values: impl Iterator<Item = f64>) -> Series {
        let sample = |(place, value): (usize, f64)| TimedSample {
            at: place as u64,
            value,
            weight: 1.0,
            key: None,
        };
        Series::of_samples(values.enumerate().map(sample).collect())
    }

    fn stream() -> RandomStream {
        RandomStream::new(5, 0, "bootstrap")
    }

    /// Independent samples: the variance of a mean is that of a sample ÷ n; for normal samples,
    /// that of a median is π/2 times as large.
    #[test]
    fn independent_samples_have_the_textbook_variance() {
        let mut draws = RandomStream::new(1, 0, "normal").draws();
        let n = 20_000;
        let values: Vec<f64> = (0..n).map(|_| 10.0 + draws.normal()).collect();
        let series = series(values.into_iter());
        let mean = chance(&series, Resampled::Mean, 2000, stream()).unwrap();
        let median = chance(&series, Resampled::Quantile(0.5), 2000, stream()).unwrap();
        // A variance from 2000 resamples of 256 cells is known to about a tenth.
        let of_mean = mean.variance * f64::from(n);
        let of_median = median.variance * f64::from(n) / std::f64::consts::FRAC_PI_2;
        assert!((of_mean - 1.0).abs() < 0.3, "{of_mean}");
        assert!((of_median - 1.0).abs() < 0.3, "{of_median}");
        // Around 10, errors of logarithms are a tenth.
        let of_logarithm = 100.0 * mean.of_logarithm.unwrap() / mean.variance;
        assert!((of_logarithm - 1.0).abs() < 0.05, "{of_logarithm}");
    }

    /// Returns the share of `seeds` AR(1) series with mean 0 whose 95 % interval of `of` contains
    /// `truth`; also for the same samples in random order.
    fn coverage(correlation: f64, of: Resampled, truth: f64, seeds: u64) -> (f64, f64) {
        let holds = |series: &Series| {
            let Chance {
                variance, freedom, ..
            } = chance(series, of, 150, stream()).unwrap();
            let value = DrawnStatistic::new(series, of).unwrap().value;
            (value - truth).abs() <= reach(0.95, freedom) * variance.sqrt()
        };
        let (mut in_time, mut shuffled) = (0, 0);
        for seed in 0..seeds {
            let mut draws = RandomStream::new(seed, 0, "coverage").draws();
            let mut value = draws.normal();
            let mut samples: Vec<TimedSample> = (0..1500)
                .map(|at| {
                    let sample = TimedSample {
                        at,
                        value,
                        weight: 1.0,
                        key: None,
                    };
                    value = correlation * value + (1.0 - correlation.powi(2)).sqrt() * draws.normal();
                    sample
                })
                .collect();
            in_time += u64::from(holds(&Series::of_samples(samples.clone())));
            samples.iter_mut().for_each(|sample| sample.at = draws.next_u64());
            shuffled += u64::from(holds(&Series::of_samples(samples)));
        }
        (in_time as f64 / seeds as f64, shuffled as f64 / seeds as f64)
    }

    /// With a correlation of 0.8 the variance of a mean is (1 + 0.8) / (1 - 0.8) = 9 times that of
    /// independent samples. Drawing samples individually (blocks of samples in shuffled order)
    /// gives intervals of a third of the length, which contain the true value with probability 2
    /// Φ(1.96 / 3) - 1 = 49 %. Blocks in time contain it in about 95 %: for 300 series, three
    /// binomial standard errors are 3.8 %.
    #[test]
    fn block_bootstrap_covers_the_truth_of_correlated_samples() {
        let (blocks, singly) = coverage(0.8, Resampled::Mean, 0.0, 300);
        assert!((0.912..=0.988).contains(&blocks), "{blocks}");
        assert!((singly - 0.487).abs() < 0.09, "{singly}");
    }

    #[test]
    fn block_bootstrap_covers_quantiles_of_correlated_samples() {
        // The normal distribution's 90 % quantile.
        let (blocks, singly) = coverage(0.8, Resampled::Quantile(0.9), 1.2816, 200);
        assert!((0.904..=0.996).contains(&blocks), "{blocks}");
        assert!(singly < 0.8, "{singly}");
    }

    #[test]
    fn values_that_may_be_zero_have_no_logarithm() {
        let mostly_nothing = series((0..1000).map(|place| if place % 100 == 0 { 1.0 } else { 0.0 }));
        let median = chance(&mostly_nothing, Resampled::Quantile(0.5), 100, stream()).unwrap();
        assert_eq!(median.of_logarithm, None);
    }

    #[test]
    fn equal_samples_have_no_variance() {
        let series = series(std::iter::repeat_n(0.1, 1000));
        for of in [Resampled::Mean, Resampled::Quantile(0.9)] {
            let chance = chance(&series, of, 100, stream()).unwrap();
            assert!(chance.variance < 1e-30, "{chance:?}");
        }
    }
}
