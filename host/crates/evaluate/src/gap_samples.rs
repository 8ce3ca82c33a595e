//! The pooled gaps between chunks: by far the largest sample of a run.

use veeksha_model::Nanos;
use veeksha_stats::{Summary, interpolate};

/// Gaps in nanoseconds. A run of a million answers of a hundred chunks has a hundred million of them, so those below
/// 4.29 s, which are nearly all, take four bytes; none is rounded.
#[derive(Debug, Default)]
pub(crate) struct GapSamples {
    short: Vec<u32>,
    long: Vec<Nanos>,
}

impl GapSamples {
    pub(crate) fn push(&mut self, gap: Nanos) {
        match u32::try_from(gap) {
            Ok(gap) => self.short.push(gap),
            Err(_) => self.long.push(gap),
        }
    }

    pub(crate) fn sorted(mut self) -> SortedGaps {
        self.short.sort_unstable();
        self.long.sort_unstable();
        SortedGaps { gaps: self }
    }
}

/// Gaps in ascending order: every long one is longer than every short one.
#[derive(Debug)]
pub(crate) struct SortedGaps {
    gaps: GapSamples,
}

impl SortedGaps {
    pub(crate) fn count(&self) -> usize {
        self.gaps.short.len() + self.gaps.long.len()
    }

    /// In seconds.
    fn at(&self, rank: usize) -> f64 {
        let GapSamples { short, long } = &self.gaps;
        match short.get(rank) {
            Some(gap) => f64::from(*gap) / 1e9,
            None => long[rank - short.len()] as f64 / 1e9,
        }
    }

    pub(crate) fn percentile(&self, p: f64) -> Option<f64> {
        interpolate(self.count(), p, |rank| self.at(rank))
    }

    pub(crate) fn summary(&self) -> Option<Summary> {
        Summary::of_ranks(self.count(), |rank| self.at(rank))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compact or not, the figures are the same to the last bit.
        #[test]
        fn compact_gaps_have_the_figures_of_plain_ones(
            gaps in prop::collection::vec(prop_oneof![0u64..1_000, 4_294_967_290u64..4_294_967_300, 0..1u64 << 53], 0..60),
            p in 0.0..=1.0f64,
        ) {
            let mut compact = GapSamples::default();
            gaps.iter().for_each(|gap| compact.push(*gap));
            let compact = compact.sorted();
            let mut plain: Vec<f64> = gaps.iter().map(|gap| *gap as f64 / 1e9).collect();
            prop_assert_eq!(compact.summary(), Summary::of(&mut plain));
            prop_assert_eq!(compact.percentile(p), veeksha_stats::percentile(&plain, p));
        }
    }
}
