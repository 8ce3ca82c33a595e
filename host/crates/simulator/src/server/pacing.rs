//! Lateness of token writes: the time of the `write` call minus the engine's time of the token.

use veeksha_model::Nanos;

/// Quantiles of the lateness of tokens since the server's start, in nanoseconds, with a resolution
/// of 7 %. Tokens delayed by a full socket are excluded, because the client causes that delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pacing {
    /// Tokens counted.
    pub count: u64,
    /// Median.
    pub p50: Nanos,
    /// 99th percentile.
    pub p99: Nanos,
    /// Maximum.
    pub max: Nanos,
}

/// Counts by magnitude: 16 buckets per doubling.
#[derive(Clone, Debug)]
pub(super) struct Lateness {
    counts: Vec<u64>,
    count: u64,
    max: Nanos,
}

const STEPS: u32 = 16;

impl Lateness {
    pub(super) fn new() -> Self {
        Lateness {
            counts: vec![0; (64 * STEPS) as usize],
            count: 0,
            max: 0,
        }
    }

    pub(super) fn add(&mut self, late: Nanos) {
        self.counts[place(late)] += 1;
        self.count += 1;
        self.max = self.max.max(late);
    }

    pub(super) fn snapshot(&self) -> Pacing {
        Pacing {
            count: self.count,
            p50: self.quantile(50),
            p99: self.quantile(99),
            max: self.max,
        }
    }

    fn quantile(&self, percent: u64) -> Nanos {
        let wanted = (self.count * percent).div_ceil(100);
        let mut below = 0;
        let found = self.counts.iter().position(|count| {
            below += count;
            below >= wanted.max(1)
        });
        found.map_or(0, |place| upper(place).min(self.max))
    }
}

fn place(value: Nanos) -> usize {
    if value < u64::from(STEPS) {
        return value as usize;
    }
    let exponent = value.ilog2();
    let step = (value >> (exponent - 4)) & u64::from(STEPS - 1);
    ((exponent - 3) * STEPS) as usize + step as usize
}

/// Returns the largest value of a bucket.
fn upper(place: usize) -> Nanos {
    let steps = STEPS as usize;
    if place < steps {
        return place as Nanos;
    }
    let shift = place / steps - 1;
    let next = ((steps + place % steps + 1) as u128) << shift;
    Nanos::try_from(next - 1).unwrap_or(Nanos::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_ordered_and_contain_their_values() {
        let mut last = 0;
        for value in (0..5000).chain((12..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1])) {
            let at = place(value);
            assert!(upper(at) >= value, "{value} lies above its place");
            assert!(at == 0 || upper(at - 1) < value, "{value} lies below its place");
            last = last.max(at);
        }
        assert!(last < Lateness::new().counts.len());
        assert!(place(u64::MAX) < Lateness::new().counts.len());
    }

    #[test]
    fn quantiles_use_nearest_rank() {
        let mut lateness = Lateness::new();
        assert_eq!(lateness.snapshot(), Pacing::default());
        (1..=1000).for_each(|value| lateness.add(value * 1000));
        let snapshot = lateness.snapshot();
        assert_eq!((snapshot.count, snapshot.max), (1000, 1_000_000));
        assert!((500_000..=535_000).contains(&snapshot.p50), "{snapshot:?}");
        assert!((990_000..=1_000_000).contains(&snapshot.p99), "{snapshot:?}");
    }
}
