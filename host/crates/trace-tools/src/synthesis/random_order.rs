//! A random order in which each element of a sample appears exactly once.

use veeksha_stats::{RandomStream, split_mix64};

/// A random permutation of `0 .. count`, computed per place: a Feistel network over the next power
/// of four, walked until it is within the count. It needs no list and gives random access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RandomOrder {
    count: u64,
    half: u32,
    keys: [u32; ROUNDS],
}

const ROUNDS: usize = 6;

impl RandomOrder {
    pub(crate) fn new(seed: u64, name: &str, count: u64) -> Self {
        let mut keys = [0; ROUNDS];
        RandomStream::new(seed, 0, name).fill(0, &mut keys);
        let bits = 64 - count.saturating_sub(1).leading_zeros();
        RandomOrder {
            count,
            half: bits.div_ceil(2).max(1),
            keys,
        }
    }

    /// Returns the number at `place` (both below the count).
    fn at(&self, place: u64) -> u64 {
        let mut at = self.round_trip(place);
        while at >= self.count {
            at = self.round_trip(at);
        }
        at
    }

    /// Returns a position in `0.0..1.0` for a place: the positions of all places are evenly spaced.
    pub(crate) fn position(&self, place: u64) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        (self.at(place % self.count) as f64 + 0.5) / self.count as f64
    }

    /// Returns the rank behind `position`.
    pub(crate) fn rank(&self, place: u64) -> u64 {
        match self.count {
            0 => 0,
            count => self.at(place % count),
        }
    }

    fn round_trip(&self, place: u64) -> u64 {
        let mask = (1u64 << self.half) - 1;
        let (mut left, mut right) = (place >> self.half & mask, place & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (split_mix64(right ^ u64::from(key) << 32) & mask));
        }
        left << self.half | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_a_permutation() {
        for count in [1, 2, 3, 4, 5, 16, 17, 1000, 4097] {
            let random_order = RandomOrder::new(7, "test", count);
            let mut seen: Vec<u64> = (0..count).map(|place| random_order.rank(place)).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..count).collect::<Vec<_>>());
        }
        assert_eq!(RandomOrder::new(7, "test", 0).position(3), 0.0);
    }

    #[test]
    fn order_is_random_and_depends_on_seed_and_name() {
        let order = |seed, name| {
            let random_order = RandomOrder::new(seed, name, 1000);
            (0..1000)
                .map(|place| random_order.rank(place))
                .collect::<Vec<_>>()
        };
        let one = order(1, "a");
        assert_eq!(one, order(1, "a"));
        assert_ne!(one, order(2, "a"));
        assert_ne!(one, order(1, "b"));
        // In a random order one place is a fixed point on average, and the mean distance to the
        // place is a third.
        let stay = one.iter().zip(0..).filter(|(at, place)| *at == place).count();
        assert!(stay < 10, "{stay}");
        let distance: u64 = one.iter().zip(0u64..).map(|(at, place)| at.abs_diff(place)).sum();
        assert!((300_000..367_000).contains(&distance), "{distance}");
    }
}
