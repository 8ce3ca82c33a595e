//! Sampling error of a run-level value, from its contributions.

use veeksha_model::Nanos;
use veeksha_stats::RandomStream;

use crate::bootstrap::{Chance, chance};
use crate::input::ValueParts;
use crate::lack::Lack;
use crate::request_share::RequestShare;
use crate::sample::TimedSample;
use crate::series::{CELLS, Series};
use crate::statistic::{ENOUGH, Resampled};

/// Returns the counts behind a value, if it is a share of requests.
pub(crate) fn counted(parts: &ValueParts) -> Option<RequestShare> {
    let ValueParts::Outcomes(samples) = parts else {
        return None;
    };
    let series = samples.series();
    Some(RequestShare {
        part: series.sum().round() as u64,
        whole: series.count(),
    })
}

/// Estimates the value's error by the block bootstrap over time.
pub(crate) fn chance_of(
    parts: Option<&ValueParts>,
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
        ValueParts::Outcomes(samples) | ValueParts::Mean(samples) => of_mean(&samples.series()),
        ValueParts::Amounts { samples, window } => {
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
    let sample = |(place, sum): (usize, f64)| TimedSample {
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

    /// Arrivals of a Poisson process: the standard deviation of their number is its root, so that
    /// the variance of its logarithm is 1 / n.
    #[test]
    fn rate_of_independent_arrivals_has_poisson_error() {
        let mut draws = RandomStream::new(3, 0, "arrivals").draws();
        let (mut samples, mut at) = (TimedSamples::new(), 0.0);
        for _ in 0..4000 {
            at += draws.exponential() * 1e7;
            samples.push(at as Nanos, 1.0);
        }
        let window = (0, at as Nanos);
        let known = chance_of(Some(&ValueParts::Amounts { samples, window }), 1000, stream()).unwrap();
        let of_logarithm = known.of_logarithm.unwrap() * 4000.0;
        assert!((of_logarithm - 1.0).abs() < 0.35, "{of_logarithm}");
        let rate = 4000.0 / (at / 1e9);
        let variance = known.variance / (rate * rate) * 4000.0;
        assert!((variance - 1.0).abs() < 0.35, "{variance}");
    }

    #[test]
    fn rate_of_regular_arrivals_has_almost_no_error() {
        let mut samples = TimedSamples::new();
        (0..2560u64).for_each(|place| samples.push(place * 10_000_000, 1.0));
        let window = (0, 25_600_000_000);
        let known = chance_of(Some(&ValueParts::Amounts { samples, window }), 200, stream()).unwrap();
        assert!(known.of_logarithm.unwrap() < 1e-9, "{known:?}");
    }
}
