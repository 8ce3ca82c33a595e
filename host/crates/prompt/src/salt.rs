//! A run's salt: different text for every seed, so that an earlier run's entries in a server's
//! prefix cache are not hit.

use veeksha_model::Seed;

/// Maps seeds to seeds, one to one: equal seeds stay equal and different seeds stay different, so
/// everything that a workload expresses by equal seeds (shared prefixes, shared blocks, repeated
/// prompts) still holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextSalt(Option<u64>);

impl TextSalt {
    /// Creates a salt; `None` leaves every seed unchanged.
    pub(crate) fn new(salt: Option<u64>) -> Self {
        TextSalt(salt)
    }

    pub(crate) fn apply(self, seed: Seed) -> Seed {
        match self.0 {
            None => seed,
            Some(salt) => Seed::from(mix(u64::from(seed) ^ mix(salt))),
        }
    }
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014) after its increment; a bijection of the
/// 64-bit words.
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn mixer_matches_splitmix64() {
        // The first words of the reference implementation for the state 1234567
        // (prng.di.unimi.it/splitmix64.c).
        let golden = 0x9e37_79b9_7f4a_7c15u64;
        let expected = [
            6_457_827_717_110_365_317u64,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        for (i, expected) in (0..).zip(expected) {
            assert_eq!(mix(1_234_567u64.wrapping_add(golden.wrapping_mul(i))), expected);
        }
    }

    #[test]
    fn salted_seeds_stay_distinct() {
        let seeds: Vec<Seed> = (0..1000u64)
            .chain((0..1000).map(|seed| seed << 40 | 1))
            .map(Seed::from)
            .collect();
        let mut seen: HashSet<Seed> = seeds.iter().copied().collect();
        let distinct = seen.len();
        for salt in [0, 1, 2, u64::MAX] {
            seen.extend(seeds.iter().map(|seed| TextSalt::new(Some(salt)).apply(*seed)));
        }
        assert_eq!(seen.len(), 5 * distinct);
        assert_eq!(TextSalt::new(None).apply(seeds[7]), seeds[7]);
    }
}
