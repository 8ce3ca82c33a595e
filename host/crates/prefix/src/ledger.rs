//! Every prompt so far, as a tree of pieces.

use std::collections::HashMap;

use crate::Piece;

/// The prompts that were sent, in order. Memory grows with the number of different pieces.
#[derive(Clone, Debug, Default)]
pub struct PrefixLedger {
    /// (what came before, identity) to the longest such piece.
    known: HashMap<(u64, u64), u32>,
}

impl PrefixLedger {
    /// No prompt yet.
    pub fn new() -> Self {
        PrefixLedger::default()
    }

    /// How many tokens of a prompt were the beginning of an earlier one; and takes it in.
    pub fn see(&mut self, prompt: &[Piece]) -> u64 {
        let (mut before, mut hits, mut following) = (0, 0, true);
        for piece in prompt {
            let longest = self.known.entry((before, piece.identity)).or_insert(0);
            if following {
                hits += u64::from(piece.tokens.min(*longest));
                following = piece.tokens <= *longest;
            }
            *longest = piece.tokens.max(*longest);
            before = after(before, piece);
        }
        hits
    }
}

/// What has been said once `piece` follows `before`.
fn after(before: u64, piece: &Piece) -> u64 {
    let mut mixed = before ^ piece.identity.rotate_left(17) ^ (u64::from(piece.tokens) << 1 | 1);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
