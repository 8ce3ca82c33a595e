//! Named streams of random words, and sequential draws from them.

use crate::philox::block;
use crate::split_mix::split_mix64;

/// A sequence of 2^34 words named by (seed, session, stream). Word `i` is computed from its index;
/// there is no state, so threads, order and repetition change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomStream {
    key: [u32; 2],
    session: u64,
}

impl RandomStream {
    /// The stream of a seed, a session and a name.
    pub fn new(seed: u64, session: u64, name: &str) -> Self {
        let key = split_mix64(seed ^ split_mix64(fnv1a(name)));
        RandomStream {
            key: [key as u32, (key >> 32) as u32],
            session,
        }
    }

    /// Returns word `index`.
    pub fn word(&self, index: u64) -> u32 {
        self.block(index / 4)[(index % 4) as usize]
    }

    /// Fills `out` with the words from `first` on.
    pub fn fill(&self, first: u64, out: &mut [u32]) {
        let mut index = first;
        let mut rest = out;
        while !rest.is_empty() {
            let words = self.block(index / 4);
            let start = (index % 4) as usize;
            let count = rest.len().min(4 - start);
            let (now, later) = rest.split_at_mut(count);
            now.copy_from_slice(&words[start..start + count]);
            rest = later;
            index += count as u64;
        }
    }

    /// Draws from the beginning of the stream, in order.
    pub fn draws(self) -> Draws {
        Draws {
            stream: self,
            next: 0,
            words: [0; 4],
        }
    }

    fn block(&self, number: u64) -> [u32; 4] {
        let session = self.session;
        block(
            self.key,
            [
                number as u32,
                (number >> 32) as u32,
                session as u32,
                (session >> 32) as u32,
            ],
        )
    }
}

/// Reads a [`RandomStream`] from its beginning.
#[derive(Clone, Debug)]
pub struct Draws {
    stream: RandomStream,
    next: u64,
    words: [u32; 4],
}

impl Draws {
    /// Returns the next word.
    pub fn next_u32(&mut self) -> u32 {
        let slot = (self.next % 4) as usize;
        if slot == 0 {
            self.words = self.stream.block(self.next / 4);
        }
        self.next += 1;
        self.words[slot]
    }

    /// Returns the next two words as one 64-bit number.
    pub fn next_u64(&mut self) -> u64 {
        (u64::from(self.next_u32()) << 32) | u64::from(self.next_u32())
    }

    /// Uniform on `[0, 1)`, 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform on `(0, 1]`: what a logarithm can take.
    pub fn unit_open(&mut self) -> f64 {
        1.0 - self.unit()
    }

    /// Uniform on `0 .. bound` without bias (Lemire's method); 0 for a bound of 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        if bound == 0 {
            return 0;
        }
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u64::from(self.next_u32()) * u64::from(bound);
            if product as u32 >= threshold {
                return (product >> 32) as u32;
            }
        }
    }

    /// Exponential with mean 1 (inversion), not clipped.
    pub fn exponential(&mut self) -> f64 {
        -self.unit_open().ln()
    }

    /// Standard normal (Box and Muller; one of the pair is thrown away to keep draws independent of
    /// call history).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit_open().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Gamma with the given shape and scale 1 (Marsaglia and Tsang, "A Simple Method for Generating
    /// Gamma Variables", 2000; shapes below 1 by their boost).
    pub fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            let boost = self.unit_open().powf(1.0 / shape);
            return self.gamma(shape + 1.0) * boost;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v <= 0.0 {
                continue;
            }
            let u = self.unit_open();
            if u.ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }
}

/// FNV-1a, 64 bits: names the stream.
fn fnv1a(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_do_not_depend_on_access_order() {
        let stream = RandomStream::new(42, 7, "lengths");
        let mut all = [0; 23];
        stream.fill(0, &mut all);
        let mut tail = [0; 11];
        stream.fill(12, &mut tail);
        assert_eq!(tail, all[12..]);
        let mut draws = stream.draws();
        for (index, word) in all.iter().enumerate() {
            assert_eq!(*word, stream.word(index as u64));
            assert_eq!(*word, draws.next_u32());
        }
    }

    #[test]
    fn seed_session_and_name_each_change_the_stream() {
        let base = RandomStream::new(1, 1, "a").word(0);
        assert_ne!(base, RandomStream::new(2, 1, "a").word(0));
        assert_ne!(base, RandomStream::new(1, 2, "a").word(0));
        assert_ne!(base, RandomStream::new(1, 1, "b").word(0));
    }

    /// The session is a part of the counter with all of its 64 bits.
    #[test]
    fn sessions_beyond_32_bits_have_distinct_streams() {
        let word = |session| RandomStream::new(1, session, "a").word(0);
        let sessions = [7, 7 | 1 << 32, 7 | 1 << 33, 7 | 1 << 63];
        let words: std::collections::BTreeSet<u32> = sessions.into_iter().map(word).collect();
        assert_eq!(words.len(), sessions.len());
    }

    /// For a bound of 3 * 2^30, four words fall on three values: without rejection, multiples of 3
    /// have a probability of 1/2 instead of 1/3. The tolerance is seven standard errors.
    #[test]
    fn below_is_unbiased_for_large_bounds() {
        let mut draws = RandomStream::new(5, 0, "below").draws();
        let n = 30_000;
        let multiples = (0..n).filter(|_| draws.below(3 << 30).is_multiple_of(3)).count();
        near(multiples as f64 / f64::from(n), 1.0 / 3.0, 0.02);
    }

    fn moments(mut sample: impl FnMut() -> f64) -> (f64, f64) {
        let n = 200_000;
        let values: Vec<f64> = (0..n).map(|_| sample()).collect();
        let mean = values.iter().sum::<f64>() / n as f64;
        (
            mean,
            values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64,
        )
    }

    fn near(value: f64, expected: f64, tolerance: f64) {
        assert!(
            (value - expected).abs() < tolerance,
            "{value} is not {expected} ± {tolerance}"
        );
    }

    /// Mean and variance from the distributions' formulas; tolerances are about five standard
    /// errors at n = 200,000.
    #[test]
    fn distributions_have_their_moments() {
        let mut draws = RandomStream::new(3, 0, "moments").draws();
        let (mean, variance) = moments(|| draws.exponential());
        near(mean, 1.0, 0.012);
        near(variance, 1.0, 0.035);
        let (mean, variance) = moments(|| draws.normal());
        near(mean, 0.0, 0.012);
        near(variance, 1.0, 0.017);
        for shape in [0.25, 1.0, 4.0] {
            let (mean, variance) = moments(|| draws.gamma(shape));
            near(mean, shape, 0.012 * shape.sqrt().max(1.0));
            near(variance, shape, 0.06 * shape);
        }
        let (mean, variance) = moments(|| f64::from(draws.below(6)));
        near(mean, 2.5, 0.02);
        near(variance, 35.0 / 12.0, 0.03);
    }

    /// Veeksha clips gaps at three means; here the tail P(X > 3) = e^-3 is there.
    #[test]
    fn the_exponential_tail_is_not_clipped() {
        let mut draws = RandomStream::new(9, 0, "tail").draws();
        let n = 200_000;
        let beyond = (0..n).filter(|_| draws.exponential() > 3.0).count() as f64 / f64::from(n);
        near(beyond, (-3.0f64).exp(), 0.0025);
    }
}
