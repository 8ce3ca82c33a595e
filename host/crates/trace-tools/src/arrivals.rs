//! Statistics of arrivals.

use serde::Serialize;
use veeksha_model::Nanos;

use crate::distribution::{Distribution, QuantityUnit};
use crate::tally::Tally;

/// Nanoseconds per second.
pub(crate) const SECONDS: f64 = 1e9;

/// Maximum number of points of the rate curve.
const CURVE: u64 = 100;

/// Statistics of a sequence of arrivals. Times are seconds since the earliest arrival of the trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArrivalStats {
    /// Number of arrivals.
    pub count: u64,
    /// First arrival.
    pub first: f64,
    /// Last arrival.
    pub last: f64,
    /// Arrivals per second: (count − 1) / (last − first); `None` if all arrived at once.
    pub rate: Option<f64>,
    /// Gaps between successive arrivals, in seconds; `None` for a single arrival.
    pub gaps: Option<Distribution>,
    /// Coefficient of variation of the gaps, standard deviation / mean: 0 for equal gaps, 1 for a
    /// Poisson process.
    pub gap_variation: Option<f64>,
    /// (σ − μ) / (σ + μ) of the gaps: −1 for equal gaps, 0 for a Poisson process, near 1 for bursts
    /// (Goh and Barabási, "Burstiness and memory in complex systems", 2008).
    pub burstiness: Option<f64>,
    /// Arrivals per second over time: (middle of an interval, rate in it), adjacent intervals of
    /// equal length, at most 100.
    pub rate_over_time: Vec<(f64, f64)>,
}

impl ArrivalStats {
    /// Computes the statistics; `None` without arrivals.
    pub(crate) fn of(mut instants: Vec<Nanos>) -> Option<ArrivalStats> {
        instants.sort_unstable();
        let (first, last) = (*instants.first()?, *instants.last()?);
        let mut gaps = Tally::default();
        instants.windows(2).for_each(|pair| gaps.add(pair[1] - pair[0]));
        let gaps = Distribution::of(&gaps, QuantityUnit::Seconds, SECONDS);
        let spread = gaps.as_ref().filter(|gaps| gaps.mean > 0.0);
        Some(ArrivalStats {
            count: instants.len() as u64,
            first: first as f64 / SECONDS,
            last: last as f64 / SECONDS,
            rate: spread.map(|gaps| 1.0 / gaps.mean),
            gap_variation: spread.map(|gaps| gaps.std / gaps.mean),
            burstiness: spread.map(|gaps| (gaps.std - gaps.mean) / (gaps.std + gaps.mean)),
            gaps,
            rate_over_time: rate_over_time(&instants, first, last),
        })
    }
}

fn rate_over_time(instants: &[Nanos], first: Nanos, last: Nanos) -> Vec<(f64, f64)> {
    if last == first {
        return Vec::new();
    }
    // The last arrival belongs to the last interval.
    let span = (last - first).div_ceil(CURVE);
    let spans = (last - first).div_ceil(span);
    let mut counts = vec![0u64; spans as usize];
    for instant in instants {
        counts[((instant - first) / span).min(spans - 1) as usize] += 1;
    }
    let seconds = span as f64 / SECONDS;
    let begin = first as f64 / SECONDS;
    let point =
        |(number, count): (usize, u64)| (begin + (number as f64 + 0.5) * seconds, count as f64 / seconds);
    counts.into_iter().enumerate().map(point).collect()
}

#[cfg(test)]
mod tests {
    use veeksha_stats::RandomStream;

    use super::*;

    fn of(seconds: &[f64]) -> ArrivalStats {
        ArrivalStats::of(seconds.iter().map(|at| (at * 1e9) as Nanos).collect()).unwrap()
    }

    #[test]
    fn equal_gaps_have_burstiness_minus_one() {
        let clock = of(&[4.0, 1.0, 2.0, 3.0, 5.0]);
        assert_eq!((clock.first, clock.last, clock.rate), (1.0, 5.0, Some(1.0)));
        assert_eq!((clock.gap_variation, clock.burstiness), (Some(0.0), Some(-1.0)));
        assert_eq!(clock.gaps.unwrap().count, 4);
    }

    #[test]
    fn gap_statistics_worked_out_by_hand() {
        // Gaps 0, 0, 6: mean 2, variance (4 + 4 + 16) / 3 = 8.
        let burst = of(&[1.0, 1.0, 1.0, 7.0]);
        assert_eq!(burst.rate, Some(0.5));
        assert!((burst.gap_variation.unwrap() - 2f64.sqrt()).abs() < 1e-12);
        let expected = (8f64.sqrt() - 2.0) / (8f64.sqrt() + 2.0);
        assert!((burst.burstiness.unwrap() - expected).abs() < 1e-12);
    }

    #[test]
    fn poisson_arrivals_have_variation_one_and_even_rate() {
        let mut draws = RandomStream::new(1, 0, "arrivals").draws();
        let mut at = 0.0;
        let instants: Vec<f64> = (0..50_000)
            .map(|_| {
                at += draws.exponential() / 20.0;
                at
            })
            .collect();
        let poisson = of(&instants);
        assert!((poisson.rate.unwrap() - 20.0).abs() < 0.5, "{:?}", poisson.rate);
        assert!((poisson.gap_variation.unwrap() - 1.0).abs() < 0.03);
        assert!(poisson.burstiness.unwrap().abs() < 0.02);
        // 500 arrivals per interval: one standard deviation is 4.5 %.
        assert_eq!(poisson.rate_over_time.len(), 100);
        assert!(
            poisson
                .rate_over_time
                .iter()
                .all(|(_, rate)| (14.0..26.0).contains(rate))
        );
    }

    #[test]
    fn rate_curve_contains_every_arrival() {
        let seen = of(&[0.0, 0.1, 0.1, 9.9, 10.0]);
        let width = 10.0 / 100.0;
        let total: f64 = seen.rate_over_time.iter().map(|(_, rate)| rate * width).sum();
        assert!((total - 5.0).abs() < 1e-6, "{total}");
    }

    #[test]
    fn simultaneous_arrivals_have_no_rate() {
        let once = of(&[3.0, 3.0]);
        assert_eq!(
            (once.rate, once.gap_variation, once.burstiness),
            (None, None, None)
        );
        assert!(once.rate_over_time.is_empty());
        assert_eq!(of(&[3.0]).gaps, None);
        assert_eq!(ArrivalStats::of(Vec::new()), None);
    }
}
