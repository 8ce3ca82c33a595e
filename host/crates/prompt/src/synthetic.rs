//! Derives words from a seed.

use veeksha_model::Seed;
use veeksha_stats::RandomStream;

use crate::words::{Guarantee, Lead, Words};

/// Random words from this index on select the last word of a repaired text; those before select
/// words by their position.
const ALTERNATIVES: u64 = 1 << 33;

/// Text of a number of words. Word `k` depends on the seed and `k` alone, so a shorter text is a
/// prefix of a longer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SyntheticRun {
    pub(crate) seed: Seed,
    pub(crate) words: u32,
    /// 0: the last word is determined by its position; otherwise the number of its alternative.
    pub(crate) alternative: u32,
}

impl SyntheticRun {
    /// Creates the run of a synthetic segment.
    pub(crate) fn new(seed: Seed, words: u32) -> SyntheticRun {
        SyntheticRun {
            seed,
            words,
            alternative: 0,
        }
    }

    /// Appends the text, as at the beginning of a message or, if `out` is not empty, as its
    /// continuation.
    pub(crate) fn write(&self, words: &Words, out: &mut String) {
        if self.words == 0 {
            return;
        }
        let stream = RandomStream::new(self.seed.into(), 0, "synthetic");
        let bare = out.is_empty() && words.lead == Lead::Bare;
        // English words with their space have about six bytes.
        out.reserve(self.words as usize * 7);
        let last = u64::from(self.words) - 1;
        let plain = u64::from(self.words - self.redrawn(words.guarantee));
        let mut random = [0u32; 256];
        let mut first = 0;
        while first < plain {
            let count = (plain - first).min(random.len() as u64) as usize;
            stream.fill(first, &mut random[..count]);
            for (offset, random) in random[..count].iter().enumerate() {
                match first + offset as u64 {
                    0 => out.push_str(&words.choose_start(*random)[usize::from(bare)..]),
                    _ => out.push_str(words.choose(*random)),
                }
            }
            first += count as u64;
        }
        for position in plain..=last {
            let random = stream.word(ALTERNATIVES + 8 * u64::from(self.alternative) + last - position);
            let word = if position == 0 {
                words.choose_start(random)
            } else {
                words.choose(random)
            };
            let start = if position == 0 { usize::from(bare) } else { 0 };
            let end = if position == last {
                self.last_end(words.guarantee, word.len(), random)
            } else {
                word.len()
            };
            out.push_str(&word[start..end]);
        }
    }

    /// Returns the number of words at the end that are alternatives. Without a proof, the last word
    /// alone may never fit.
    fn redrawn(&self, guarantee: Guarantee) -> u32 {
        match (self.alternative, guarantee) {
            (0, _) => 0,
            (17.., Guarantee::Checked) => self.words.min(4),
            _ => 1,
        }
    }

    /// Returns the length of an alternative last word that is written. Without a proof, whole words
    /// may all cost the same number of tokens; prefixes of words cost one or several.
    fn last_end(&self, guarantee: Guarantee, length: usize, random: u32) -> usize {
        match guarantee {
            Guarantee::Checked if self.alternative > 16 => 2 + random as usize % (length - 1),
            _ => length,
        }
    }
}
