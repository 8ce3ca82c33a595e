//! Sampling error of a run-level value, from its contributions.

use veeksha_model::Nanos;
use veeksha_stats::RandomStream;

use crate::bootstrap::{Chance, chance};
use crate::effect::Variance;
use crate::input::Parts;
use crate::measured::Lack;
use crate::series::{CELLS, Series};
use crate::statistic::{ENOUGH, Resampled};
use crate::timed_samples::Sample;

/// A number of requests out of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Requests that count, such as failed ones.
    pub part: u64,
    /// All requests.
    pub whole: u64,
}

impl Counted {
    /// Returns `part` ÷ `whole`.
    pub(crate) fn share(self) -> f64 {
        self.part as f64 / self.whole as f64
    }

    /// Returns the sum of both counts.
    pub(crate) fn and(self, other: Counted) -> Counted {
        Counted {
            part: self.part + other.part,
            whole: self.whole + other.whole,
        }
    }

    /// Returns the smallest plausible variance of the share, for independent requests: that of
    /// Agresti and Caffo, "Simple and Effective Confidence Intervals for Proportions and
    /// Differences of Proportions", The American Statistician 54 (2000), who add a request that
    /// counts and one that does not. It is therefore positive even if all requests of a side are
    /// alike.
    pub(crate) fn variance(self) -> Option<Variance> {
        let (part, whole) = (self.part as f64 + 1.0, self.whole as f64 + 2.0);
        let share = part / whole;
        (self.whole as f64 >= ENOUGH).then_some(Variance {
            variance: share * (1.0 - share) / whole,
            freedom: self.whole as f64 - 1.0,
        })
    }
}

/// Returns the counts behind a value, if it is a share of requests.
pub(crate) fn counted(parts: &Parts) -> Option<Counted> {
    let Parts::Outcomes(samples) = parts else {
        return None;
    };
    let series = samples.series();
    Some(Counted {
        part: series.sum().round() as u64,
        whole: series.count(),
    })
}

/// Estimates the value's error by the block bootstrap over time.
pub(crate) fn chance_of(
    parts: Option<&Parts>,
    resamples: usize,
    stream: RandomStream,
) -> Result<Chance, Lack> {
    let parts = parts.ok_or(Lack::OneValue)?;
    let has = parts.samples().count();
    if (has as f64) < ENOUGH {
        return Err(Lack::Samples {
            has,
            needs: ENOUGH as u64,
        });
    }
    let of_mean = |series: &Series| chance(series, Resampled::Mean, resamples, stream).ok_or(Lack::Blocks);
    match parts {
        Parts::Outcomes(samples) | Parts::Mean(samples) => of_mean(&samples.series()),
        Parts::Amounts { samples, window } => {
            let seconds = window.1.saturating_sub(window.0) as f64 / 1e9;
            let sums = samples.sums_in_time(*window, CELLS);
            let cells = cells(sums.filter(|_| seconds > 0.0).ok_or(Lack::OneValue)?);
            // The mean of a cell times the number of cells is the sum of all.
            let scale = (cells.count() as f64 / seconds).powi(2);
            let of_cells = of_mean(&cells)?;
            Ok(Chance {
                variance: of_cells.variance * scale,
                ..of_cells
            })
        }
    }
}

/// Creates a series with one sample for each cell.
fn cells(sums: Vec<f64>) -> Series {
    let sample = |(place, sum): (usize, f64)| Sample {
        at: place as Nanos,
        value: sum,
        weight: 1.0,
        key: None,
    };
    Series::of_samples(sums.into_iter().enumerate().map(sample).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TimedSamples;

    fn stream() -> RandomStream {
        RandomStream::new(7, 0, "whole run")
    }

    /// (40 + 1) / (120 + 2) = 0.33607, × 0.66393 ÷ 122 = 0.0018289; for 0 of 120, 1/122 × 121/122 ÷
    /// 122 = 0.00006664.
    #[test]
    fn shares_of_counts_have_the_variance_of_agresti_and_caffo() {
        let of = |part, whole| Counted { part, whole }.variance().map(|known| known.variance);
        assert!((of(40, 120).unwrap() - 0.001_828_9).abs() < 1e-7);
        assert!((of(0, 120).unwrap() - 0.000_066_64).abs() < 1e-8);
        assert!((of(0, 120).unwrap() - of(120, 120).unwrap()).abs() < 1e-15);
        assert_eq!(of(0, 19), None);
        assert!(of(0, 20).is_some());
    }

    /// Arrivals of a Poisson process: the standard deviation of their number is its root, so that
    /// the variance of its logarithm is 1 / n.
    #[test]
    fn the_rate_of_independent_arrivals_varies_by_the_root_of_their_number() {
        let mut draws = RandomStream::new(3, 0, "arrivals").draws();
        let (mut samples, mut at) = (TimedSamples::new(), 0.0);
        for _ in 0..4000 {
            at += draws.exponential() * 1e7;
            samples.push(at as Nanos, 1.0);
        }
        let window = (0, at as Nanos);
        let known = chance_of(Some(&Parts::Amounts { samples, window }), 1000, stream()).unwrap();
        let of_logarithm = known.of_logarithm.unwrap() * 4000.0;
        assert!((of_logarithm - 1.0).abs() < 0.35, "{of_logarithm}");
        let rate = 4000.0 / (at / 1e9);
        let variance = known.variance / (rate * rate) * 4000.0;
        assert!((variance - 1.0).abs() < 0.35, "{variance}");
    }

    #[test]
    fn arrivals_on_a_beat_have_a_rate_that_hardly_varies() {
        let mut samples = TimedSamples::new();
        (0..2560u64).for_each(|place| samples.push(place * 10_000_000, 1.0));
        let window = (0, 25_600_000_000);
        let known = chance_of(Some(&Parts::Amounts { samples, window }), 200, stream()).unwrap();
        assert!(known.of_logarithm.unwrap() < 1e-9, "{known:?}");
    }
}
