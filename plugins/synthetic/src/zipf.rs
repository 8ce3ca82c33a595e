//! The Zipf distribution: rank k of 1..=n with a probability in proportion to 1 / k^theta.

use std::cell::OnceCell;

use crate::draw::Draw;

/// Exact sampling without tables, for any number of ranks and any exponent from 0:
/// rejection-inversion (W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates
/// from monotone discrete distributions", ACM TOMACS 6(3), 1996).
#[derive(Debug)]
pub(crate) struct Zipf {
    min: u32,
    ranks: u64,
    theta: f64,
    /// H(n + ½) and H(1½) − h(1), between which the inversion draws.
    upper: f64,
    lower: f64,
    /// The distance below its rank within which a point is always accepted.
    sure: f64,
    /// The scattering of ranks over numbers, from the seed of the run; made at the first draw.
    scatter: Option<OnceCell<Permutation>>,
}

impl Zipf {
    /// Numbers from `min` to `max`, `min` having rank 1 unless the ranks are scattered.
    pub(crate) fn new(min: u32, max: u32, theta: f64, scramble: bool) -> Self {
        let ranks = u64::from(max - min) + 1;
        let mut zipf = Zipf {
            min,
            ranks,
            theta,
            upper: 0.0,
            lower: 0.0,
            sure: 0.0,
            scatter: None,
        };
        zipf.upper = zipf.integral(ranks as f64 + 0.5);
        zipf.lower = zipf.integral(1.5) - 1.0;
        zipf.sure = 2.0 - zipf.integral_inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf.scatter = scramble.then(OnceCell::new);
        zipf
    }

    /// Returns the largest number.
    pub(crate) fn max(&self) -> u32 {
        self.min + (self.ranks - 1) as u32
    }

    /// The next number.
    pub(crate) fn sample(&self, draw: &mut Draw<'_>) -> u32 {
        let rank = self.rank(draw) - 1;
        let place = match &self.scatter {
            None => rank,
            Some(cell) => cell
                .get_or_init(|| {
                    let mut shared = draw.random.shared_stream("zipf_scramble");
                    Permutation::new(self.ranks, shared.long_word())
                })
                .apply(rank),
        };
        self.min + place as u32
    }

    fn rank(&self, draw: &mut Draw<'_>) -> u64 {
        loop {
            let u = self.upper + draw.draws.unit() * (self.lower - self.upper);
            let x = self.integral_inverse(u);
            let k = (x + 0.5).clamp(1.0, self.ranks as f64).floor();
            if k - x <= self.sure || u >= self.integral(k + 0.5) - self.weight(k) {
                return k as u64;
            }
        }
    }

    /// h(x) = x^−theta.
    fn weight(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// H(x) = (x^(1 − theta) − 1) / (1 − theta), or ln x for theta = 1: an antiderivative of h.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let t = (1.0 - self.theta) * log;
        // (e^t − 1) / t, which is 1 + t/2 + … near 0.
        let ratio = if t.abs() > 1e-8 {
            t.exp_m1() / t
        } else {
            1.0 + t / 2.0
        };
        ratio * log
    }

    /// The inverse of H.
    fn integral_inverse(&self, y: f64) -> f64 {
        let t = ((1.0 - self.theta) * y).max(-1.0);
        // ln(1 + t) / t, which is 1 − t/2 + … near 0.
        let ratio = if t.abs() > 1e-8 {
            t.ln_1p() / t
        } else {
            1.0 - t / 2.0
        };
        (ratio * y).exp()
    }
}

/// A bijection of 0..n that a key selects: a Feistel network over the next even number of bits,
/// repeated until it lands in the range ("cycle walking").
#[derive(Debug)]
struct Permutation {
    size: u64,
    half_bits: u32,
    key: u64,
}

impl Permutation {
    fn new(size: u64, key: u64) -> Self {
        let bits = u64::BITS - (size - 1).leading_zeros();
        Permutation {
            size,
            half_bits: bits.div_ceil(2).max(1),
            key,
        }
    }

    fn apply(&self, mut value: u64) -> u64 {
        loop {
            value = self.shuffle(value);
            if value < self.size {
                return value;
            }
        }
    }

    fn shuffle(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for round in 0..6u64 {
            let mixed = mix(right ^ self.key.rotate_left(round as u32 * 11) ^ (round << 56)) & mask;
            (left, right) = (right, left ^ mixed);
        }
        (left << self.half_bits) | right
    }
}

/// The finaliser of SplitMix64.
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chi_square, random};

    fn counts(zipf: &Zipf, n: usize) -> Vec<u32> {
        let random = random(11, 0);
        let mut draw = Draw::new(&random, "zipf", 0);
        let mut counts = vec![0; zipf.ranks as usize];
        for _ in 0..n {
            counts[(zipf.sample(&mut draw) - zipf.min) as usize] += 1;
        }
        counts
    }

    /// Against n / (k^theta · Σ i^−theta), summed plainly: chi-square with 19 degrees of freedom
    /// exceeds 50.8 once in 10,000.
    #[test]
    fn every_rank_has_its_probability() {
        let n = 200_000;
        for theta in [0.0, 0.6, 0.99, 1.0, 1.5, 3.0] {
            let total: f64 = (1..=20).map(|k| f64::from(k).powf(-theta)).sum();
            let expected: Vec<f64> = (1..=20)
                .map(|k| n as f64 * f64::from(k).powf(-theta) / total)
                .collect();
            let statistic = chi_square(&counts(&Zipf::new(6, 25, theta, false), n), &expected);
            assert!(statistic < 50.8, "theta {theta}: {statistic}");
        }
    }

    /// Veeksha's zeta misses its last term, so that its second rank is wrong: with two numbers and
    /// theta = 1, the probabilities are 2/3 and 1/3 (standard deviation 149 of 100,000).
    #[test]
    fn two_ranks_have_two_thirds_and_one_third() {
        let counts = counts(&Zipf::new(1, 2, 1.0, false), 100_000);
        assert!((f64::from(counts[0]) - 66_666.7).abs() < 745.0, "{counts:?}");
    }

    #[test]
    fn one_number_and_four_billion_are_both_possible() {
        let random = random(1, 0);
        let mut draw = Draw::new(&random, "zipf", 0);
        assert_eq!(Zipf::new(7, 7, 0.6, true).sample(&mut draw), 7);
        let wide = Zipf::new(1, u32::MAX, 0.5, true);
        let mean = (0..20_000)
            .map(|_| f64::from(wide.sample(&mut draw)))
            .sum::<f64>()
            / 20_000.0;
        // Scattered over the whole range, the mean is near its middle: standard error about 0.2 %
        // of the range.
        assert!((mean / f64::from(u32::MAX) - 0.5).abs() < 0.02, "{mean}");
    }

    #[test]
    fn scattering_keeps_the_probabilities_and_moves_the_numbers() {
        let plain = counts(&Zipf::new(6, 25, 1.5, false), 50_000);
        let mut scattered = counts(&Zipf::new(6, 25, 1.5, true), 50_000);
        assert_ne!(plain, scattered);
        scattered.sort_unstable_by(|a, b| b.cmp(a));
        let mut sorted = plain;
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(scattered, sorted, "the same words give the same ranks");
    }

    #[test]
    fn a_permutation_meets_every_number_once() {
        for size in [1, 2, 3, 7, 8, 9, 100, 1000] {
            for key in [0, 1, u64::MAX] {
                let permutation = Permutation::new(size, key);
                let mut met = vec![false; size as usize];
                (0..size).for_each(|value| met[permutation.apply(value) as usize] = true);
                assert!(met.iter().all(|&met| met), "{size} {key}");
            }
        }
    }
}
