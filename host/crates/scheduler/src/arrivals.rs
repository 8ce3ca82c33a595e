//! The arrival instants of open-loop traffic: a pure function of (seed, interval, session id).

use std::collections::BTreeMap;

use veeksha_model::Nanos;
use veeksha_stats::RandomStream;

use crate::config::{Interval, Shard};

/// The arrivals of one shard's sessions.
///
/// Arrival 0 is 0; arrival `i` is the sum of the gaps `0 .. i`, and gap `i` is drawn from the
/// stream (seed, `i`, "arrival"). Gaps are rounded to whole nanoseconds before they are added, so
/// that sums are exact and every shard gets the same ones. Instants are computed once, in the order
/// of ids; those of sessions that were passed over wait until they are asked for.
#[derive(Clone, Debug)]
pub struct DrawnArrivals {
    interval: Interval,
    seed: u64,
    shard: Shard,
    /// The next id whose arrival is computed, and that arrival.
    next: (u64, Nanos),
    passed: BTreeMap<u64, Nanos>,
}

impl DrawnArrivals {
    /// The arrivals of a shard.
    pub fn new(interval: Interval, seed: u64, shard: Shard) -> Self {
        DrawnArrivals {
            interval,
            seed,
            shard,
            next: (0, 0),
            passed: BTreeMap::new(),
        }
    }

    /// The arrival of a session of this shard. Each can be taken once; a second time it is `None`.
    pub fn take(&mut self, id: u64) -> Option<Nanos> {
        if let Interval::Fixed { interval } = self.interval {
            return Some(nanos(id as f64 * (interval * 1e9)));
        }
        if id < self.next.0 {
            return self.passed.remove(&id);
        }
        while self.next.0 < id {
            let (passed, at) = self.next;
            if self.shard.owns(passed) {
                self.passed.insert(passed, at);
            }
            self.step();
        }
        let at = self.next.1;
        self.step();
        Some(at)
    }

    fn step(&mut self) {
        let (id, at) = self.next;
        self.next = (id + 1, at.saturating_add(self.gap(id)));
    }

    /// The gap between session `id` and the next.
    fn gap(&self, id: u64) -> Nanos {
        let mut draws = RandomStream::new(self.seed, id, "arrival").draws();
        let seconds = match self.interval {
            Interval::Fixed { interval } => interval,
            Interval::Poisson { rate } => draws.exponential() / rate,
            Interval::Gamma { rate, cv } => {
                let shape = 1.0 / (cv * cv);
                draws.gamma(shape) / (rate * shape)
            }
        };
        nanos(seconds * 1e9)
    }
}

/// Rounds; what no clock of 2^53 ns can reach (a rate of 0) is the end of time.
fn nanos(value: f64) -> Nanos {
    const END: f64 = (1u64 << 53) as f64;
    value.round().clamp(0.0, END) as Nanos
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(interval: Interval, n: u64) -> Vec<Nanos> {
        let mut arrivals = DrawnArrivals::new(interval, 42, Shard::WHOLE);
        (0..n).filter_map(|id| arrivals.take(id)).collect()
    }

    fn gaps(interval: Interval, n: u64) -> Vec<f64> {
        all(interval, n + 1)
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as f64 / 1e9)
            .collect()
    }

    fn moments(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        (
            mean,
            (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt(),
        )
    }

    #[test]
    fn fixed_arrivals_do_not_drift() {
        let third = all(Interval::Fixed { interval: 1.0 / 3.0 }, 3_000_001);
        assert_eq!(third[..4], [0, 333_333_333, 666_666_667, 1_000_000_000]);
        assert_eq!(third[3_000_000], 1_000_000 * 1_000_000_000);
    }

    /// Exponential: mean 1/rate, standard deviation 1/rate, P(gap > 3/rate) = e^-3. Tolerances:
    /// five standard errors.
    #[test]
    fn poisson_gaps_are_exponential_and_not_clipped() {
        let n = 200_000;
        let gaps = gaps(Interval::Poisson { rate: 5.0 }, n);
        let (mean, deviation) = moments(&gaps);
        assert!((mean - 0.2).abs() < 5.0 * 0.2 / (n as f64).sqrt(), "{mean}");
        assert!((deviation - 0.2).abs() < 0.004, "{deviation}");
        let beyond = gaps.iter().filter(|gap| **gap > 0.6).count() as f64 / n as f64;
        let p = (-3.0f64).exp();
        assert!(
            (beyond - p).abs() < 5.0 * (p * (1.0 - p) / n as f64).sqrt(),
            "{beyond}"
        );
    }

    #[test]
    fn gamma_gaps_have_their_rate_and_variation() {
        for cv in [0.3, 1.0, 2.5] {
            let n = 200_000;
            let (mean, deviation) = moments(&gaps(Interval::Gamma { rate: 10.0, cv }, n));
            assert!(
                (mean - 0.1).abs() < 5.0 * 0.1 * cv / (n as f64).sqrt(),
                "{cv}: {mean}"
            );
            assert!(
                (deviation / mean - cv).abs() < 0.03 * cv.max(1.0),
                "{cv}: {}",
                deviation / mean
            );
        }
    }

    #[test]
    fn shards_and_order_do_not_change_arrivals() {
        let interval = Interval::Poisson { rate: 100.0 };
        let whole = all(interval, 300);
        for count in 1..=4 {
            for index in 0..count {
                let shard = Shard { index, count };
                let mut arrivals = DrawnArrivals::new(interval, 42, shard);
                // Backwards in blocks of ten owned sessions: later ones are asked for before
                // earlier ones.
                let owned: Vec<u64> = (0..300).filter(|id| shard.owns(*id)).collect();
                for block in owned.chunks(10) {
                    for id in block.iter().rev() {
                        assert_eq!(arrivals.take(*id), Some(whole[*id as usize]));
                    }
                }
                assert!(arrivals.passed.is_empty());
                assert_eq!(arrivals.take(owned[0]), None);
            }
        }
    }

    #[test]
    fn another_seed_gives_other_arrivals() {
        let interval = Interval::Poisson { rate: 1.0 };
        let mut other = DrawnArrivals::new(interval, 43, Shard::WHOLE);
        assert_ne!(all(interval, 2)[1], other.take(1).unwrap());
    }

    #[test]
    fn rate_of_zero_has_one_arrival() {
        assert_eq!(all(Interval::Poisson { rate: 0.0 }, 2), [0, 1 << 53]);
    }
}
