//! A conversation so far, as one number.

use veeksha_stats::{mix64, split_mix64};

use crate::piece::PrefixPiece;

/// A place in the tree of all prompts: everything before the next piece. Two prompts are at the
/// same place if they consist of the same pieces (64 bits: among a hundred million places, two
/// collide with a probability of 0.03 %).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PromptPath(u64);

impl PromptPath {
    /// Before the first piece of a prompt.
    pub const START: PromptPath = PromptPath(0);

    /// The place behind `piece`.
    pub fn then(self, piece: &PrefixPiece) -> PromptPath {
        PromptPath(mix64(
            self.branch(piece.identity) ^ split_mix64(u64::from(piece.tokens)),
        ))
    }

    /// Names the place.
    pub(crate) fn key(self) -> u64 {
        self.0
    }

    /// Names the text of an identity at this place, whatever its length.
    pub(crate) fn branch(self, identity: u64) -> u64 {
        mix64(split_mix64(self.0) ^ identity)
    }
}

/// Keys that are mixed already need no second hash.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mixed(u64);

impl std::hash::Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = mix64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

/// From [`PromptPath::branch`] to the longest text of that identity at that place, in tokens.
pub(crate) type LongestByPlace = std::collections::HashMap<u64, u32, std::hash::BuildHasherDefault<Mixed>>;
