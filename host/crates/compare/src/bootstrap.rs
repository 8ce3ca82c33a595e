//! How far a statistic of one run would have been off by chance.

use veeksha_stats::RandomStream;

use crate::resample::{Blocks, Drawn, Moments, influence};
use crate::series::Series;
use crate::statistic::Resampled;

/// A statistic of one run with its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) value: f64,
    /// Variance of the statistic; 0 where it is not known from the run itself.
    pub(crate) variance: f64,
    /// Degrees of freedom of that variance.
    pub(crate) freedom: f64,
}

/// The statistic's variance by the circular block bootstrap (Politis and Romano 1992): stretches of cells, long enough that what lies in
/// different ones hardly depends on one another, are drawn with replacement until the run is as long as it was.
///
/// The length of the stretches is chosen for each statistic from what each cell adds to its error (`block_length.rs`). `b` blocks tell the
/// variance with `b - 1` degrees of freedom, and a resample of them varies by `(b - 1) / b` too little, which is put right.
pub(crate) fn estimate(
    series: &Series,
    of: Resampled,
    resamples: usize,
    stream: RandomStream,
) -> Option<Estimate> {
    let statistic = Drawn::new(series, of)?;
    let blocks = Blocks::new(&influence(series, of))?;
    let mut draws = stream.draws();
    let mut times = Vec::new();
    let mut moments = Moments::default();
    for _ in 0..resamples {
        blocks.draw(&mut draws, &mut times);
        if let Some(deviation) = statistic.deviation(&times) {
            moments.push(deviation);
        }
    }
    Some(Estimate {
        value: statistic.value,
        variance: blocks.whole(moments.variance()?),
        freedom: blocks.freedom(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::student::reach;
    use crate::timed_samples::Sample;

    fn series(values: impl Iterator<Item = f64>) -> Series {
        let sample = |(place, value): (usize, f64)| Sample {
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

    /// Independent samples: the variance of a mean is that of a sample ÷ n, that of a median π/2 times as much for normal ones.
    #[test]
    fn independent_samples_have_the_variances_of_the_book() {
        let mut draws = RandomStream::new(1, 0, "normal").draws();
        let n = 20_000;
        let values: Vec<f64> = (0..n).map(|_| 10.0 + draws.normal()).collect();
        let series = series(values.into_iter());
        let mean = estimate(&series, Resampled::Mean, 2000, stream()).unwrap();
        let median = estimate(&series, Resampled::Quantile(0.5), 2000, stream()).unwrap();
        // A variance from 2000 resamples of 256 cells is known to about a tenth.
        let of_mean = mean.variance * f64::from(n);
        let of_median = median.variance * f64::from(n) / std::f64::consts::FRAC_PI_2;
        assert!((of_mean - 1.0).abs() < 0.3, "{of_mean}");
        assert!((of_median - 1.0).abs() < 0.3, "{of_median}");
    }

    /// Of how many of `seeds` AR(1) series with mean 0 the 95 % interval of `of` holds `truth`; of the same samples in a random order too.
    fn coverage(correlation: f64, of: Resampled, truth: f64, seeds: u64) -> (f64, f64) {
        let holds = |series: &Series| {
            let Estimate {
                value,
                variance,
                freedom,
            } = estimate(series, of, 150, stream()).unwrap();
            (value - truth).abs() <= reach(0.95, freedom) * variance.sqrt()
        };
        let (mut in_time, mut shuffled) = (0, 0);
        for seed in 0..seeds {
            let mut draws = RandomStream::new(seed, 0, "coverage").draws();
            let mut value = draws.normal();
            let mut samples: Vec<Sample> = (0..1500)
                .map(|at| {
                    let sample = Sample {
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

    /// With a correlation of 0.8 the variance of a mean is (1 + 0.8) / (1 - 0.8) = 9 times that of independent samples. Drawing samples one
    /// by one (blocks of samples whose order in time was destroyed) gives intervals of a third of the length: they hold the truth with
    /// probability 2 Φ(1.96 / 3) - 1 = 49 %. Blocks in time hold it in about 95 %: of 300 series, three binomial standard errors are 3.8 %.
    #[test]
    fn blocks_in_time_hold_the_truth_and_single_samples_do_not() {
        let (blocks, singly) = coverage(0.8, Resampled::Mean, 0.0, 300);
        assert!((0.912..=0.988).contains(&blocks), "{blocks}");
        assert!((singly - 0.487).abs() < 0.09, "{singly}");
    }

    #[test]
    fn a_quantile_of_series_that_depend_on_time_is_held_too() {
        // The normal distribution's 90 % quantile.
        let (blocks, singly) = coverage(0.8, Resampled::Quantile(0.9), 1.2816, 200);
        assert!((0.904..=0.996).contains(&blocks), "{blocks}");
        assert!(singly < 0.8, "{singly}");
    }

    #[test]
    fn equal_samples_have_no_variance() {
        let series = series(std::iter::repeat_n(0.1, 1000));
        for of in [Resampled::Mean, Resampled::Quantile(0.9)] {
            let estimate = estimate(&series, of, 100, stream()).unwrap();
            assert!(
                (estimate.value - 0.1).abs() < 1e-15 && estimate.variance < 1e-30,
                "{estimate:?}"
            );
        }
    }
}
