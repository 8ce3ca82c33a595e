//! The amount of new text in a whole trace, in bounded memory.

use crate::path::LongestByPlace;
use crate::path::PromptPath;
use crate::piece::PrefixPiece;

/// Counts the tokens of all prompts that begin no earlier prompt. Their number does not depend on
/// the order of the prompts: it is the size of the tree that all prompts make together. Tokens hit
/// = all tokens − new tokens.
///
/// Up to `capacity` places of the tree are kept (20 to 40 bytes each) and the count is exact.
/// Beyond it, a uniform sample of the places is: each time the map is full, every second place is
/// dropped, and the rest counts double. With a million places the error is a few tenths of a
/// percent of the new tokens.
#[derive(Clone, Debug)]
pub struct PrefixCensus {
    sampled: LongestByPlace,
    capacity: usize,
    /// Places whose lowest `dropped` bits are 0 are in the sample: one in 2^`dropped`.
    dropped: u32,
}

impl PrefixCensus {
    /// No prompt yet; memory for `capacity` places (at least one).
    pub fn new(capacity: usize) -> Self {
        PrefixCensus {
            sampled: LongestByPlace::default(),
            capacity: capacity.max(1),
            dropped: 0,
        }
    }

    /// Takes in the pieces that follow `from`, and returns the place behind them. A prompt that
    /// continues another one is taken in from the place at which that one ended.
    pub fn extend(&mut self, from: PromptPath, pieces: &[PrefixPiece]) -> PromptPath {
        let mut path = from;
        for piece in pieces {
            let place = path.branch(piece.identity);
            if self.is_sampled(place) && piece.tokens > 0 {
                let longest = self.sampled.entry(place).or_insert(0);
                *longest = piece.tokens.max(*longest);
                while self.sampled.len() > self.capacity {
                    self.thin();
                }
            }
            path = path.then(piece);
        }
        path
    }

    /// Tokens that begin no earlier prompt; an estimate unless [`is_exact`](Self::is_exact).
    pub fn new_tokens(&self) -> u64 {
        let sampled: u64 = self.sampled.values().map(|tokens| u64::from(*tokens)).sum();
        sampled << self.dropped
    }

    /// Returns true if every place was kept.
    pub fn is_exact(&self) -> bool {
        self.dropped == 0
    }

    fn is_sampled(&self, place: u64) -> bool {
        place.trailing_zeros() >= self.dropped
    }

    fn thin(&mut self) {
        self.dropped += 1;
        let dropped = self.dropped;
        self.sampled.retain(|place, _| place.trailing_zeros() >= dropped);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::PrefixLedger;

    fn piece(identity: u64, tokens: u32) -> PrefixPiece {
        PrefixPiece { identity, tokens }
    }

    #[test]
    fn new_tokens_worked_out_by_hand() {
        let mut census = PrefixCensus::new(100);
        // A prompt of 10 + 5, the same with another end of 7, a longer form of the first piece: 10
        // + 5 + 7 + 2 new tokens.
        let first = census.extend(PromptPath::START, &[piece(1, 10)]);
        census.extend(first, &[piece(2, 5)]);
        census.extend(first, &[piece(3, 7)]);
        census.extend(PromptPath::START, &[piece(1, 12)]);
        assert_eq!((census.new_tokens(), census.is_exact()), (24, true));
    }

    /// 200,000 places of 3 tokens with a capacity of 10,000: between 5,000 and 10,000 remain, so
    /// one standard error is at most sqrt(1 / 5000) = 1.4 %; 5 % is three and a half of them.
    #[test]
    fn estimates_beyond_capacity() {
        let mut census = PrefixCensus::new(10_000);
        for identity in 0..200_000 {
            // Each twice: what is hit must not count again.
            census.extend(PromptPath::START, &[piece(identity, 3)]);
            census.extend(PromptPath::START, &[piece(identity, 3)]);
        }
        let new = census.new_tokens() as f64;
        assert!(!census.is_exact());
        assert!((new / 600_000.0 - 1.0).abs() < 0.05, "{new}");
        assert!(census.sampled.len() <= 10_000);
    }

    proptest! {
        /// In any order of prompts, and whether or not a prompt is continued from its beginning's
        /// place.
        #[test]
        fn hits_and_new_tokens_add_up(
            prompts in prop::collection::vec(
                prop::collection::vec((0u64..3, 1u32..6).prop_map(|(identity, tokens)| piece(identity, tokens)), 0..5),
                0..20,
            ),
            cut in 0usize..5,
        ) {
            let (mut ledger, mut census, mut backwards) = (PrefixLedger::new(), PrefixCensus::new(1000), PrefixCensus::new(1000));
            let mut all = 0;
            let mut hits = 0;
            for prompt in &prompts {
                all += prompt.iter().map(|piece| u64::from(piece.tokens)).sum::<u64>();
                hits += ledger.see(prompt);
                let (beginning, rest) = prompt.split_at(cut.min(prompt.len()));
                let path = census.extend(PromptPath::START, beginning);
                census.extend(path, rest);
            }
            for prompt in prompts.iter().rev() {
                backwards.extend(PromptPath::START, prompt);
            }
            prop_assert_eq!(all - census.new_tokens(), hits);
            prop_assert_eq!(backwards.new_tokens(), census.new_tokens());
        }
    }
}
