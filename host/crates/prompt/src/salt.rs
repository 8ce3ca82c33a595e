//! A run's salt: different text for every seed, so that an earlier run's entries in a server's
//! prefix cache are not hit.

use veeksha_model::Seed;
use veeksha_stats::split_mix64;

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
            Some(salt) => Seed::from(split_mix64(u64::from(seed) ^ split_mix64(salt))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

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
