//! Prompts as sequences of blocks of one size.

use std::hash::{DefaultHasher, Hash, Hasher};

use veeksha_model::Role;
use veeksha_prefix::{PrefixPiece, role_piece};

/// A block of a prompt; the last one may be shorter than the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PromptBlock {
    /// Key of the text: equal for equal text. A shorter block has the key of the longer one that
    /// begins with it if both lie in the same pieces.
    pub(crate) key: u64,
    pub(crate) tokens: u32,
}

/// Cuts a prompt into blocks of `size` tokens (at least one). Roles do not affect blocks; other
/// marks do.
pub(crate) fn blocks(prompt: &[PrefixPiece], size: u32) -> Vec<PromptBlock> {
    let size = size.max(1);
    let roles = [Role::System, Role::User, Role::Assistant, Role::Tool].map(role_piece);
    let mut blocks = Vec::new();
    let mut open = OpenBlock::default();
    for piece in prompt {
        if piece.tokens == 0 {
            if !roles.contains(piece) {
                open.add(piece.identity, 0, 0);
            }
            continue;
        }
        let mut offset = 0;
        while offset < piece.tokens {
            let here = (piece.tokens - offset).min(size - open.tokens);
            open.add(piece.identity, offset, here);
            offset += here;
            if open.tokens == size {
                blocks.push(std::mem::take(&mut open).close());
            }
        }
    }
    if open.tokens > 0 {
        blocks.push(open.close());
    }
    blocks
}

/// A block that is being filled.
#[derive(Default)]
struct OpenBlock {
    tokens: u32,
    text: DefaultHasher,
    /// Length of the last slice. It enters the key only once something follows.
    last: Option<u32>,
}

impl OpenBlock {
    fn add(&mut self, identity: u64, offset: u32, tokens: u32) {
        self.last.replace(tokens).hash(&mut self.text);
        (identity, offset).hash(&mut self.text);
        self.tokens += tokens;
    }

    fn close(self) -> PromptBlock {
        PromptBlock {
            key: self.text.finish(),
            tokens: self.tokens,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn piece(identity: u64, tokens: u32) -> PrefixPiece {
        PrefixPiece { identity, tokens }
    }

    fn keys(prompt: &[(u64, u32)], size: u32) -> Vec<u64> {
        let prompt: Vec<PrefixPiece> = prompt
            .iter()
            .map(|(identity, tokens)| piece(*identity, *tokens))
            .collect();
        blocks(&prompt, size).iter().map(|block| block.key).collect()
    }

    #[test]
    fn last_block_has_the_remainder() {
        let cut = blocks(&[piece(1, 700), role_piece(Role::User), piece(2, 500)], 512);
        let tokens: Vec<u32> = cut.iter().map(|block| block.tokens).collect();
        assert_eq!(tokens, [512, 512, 176]);
        assert!(blocks(&[role_piece(Role::User)], 512).is_empty());
    }

    #[test]
    fn equal_text_gives_equal_blocks() {
        // Aligned pieces of the block's size, as from a trace of hash ids: the key is the piece's,
        // in any context.
        let (one, other) = (
            keys(&[(7, 64), (8, 64), (9, 30)], 64),
            keys(&[(9, 64), (8, 64), (7, 12)], 64),
        );
        assert_eq!((one[0], one[1], one[2]), (other[2], other[1], other[0]));
        // Another offset, or another length before what follows, is another text.
        let split = keys(&[(7, 32), (8, 96)], 64);
        assert_eq!(split.len(), 2);
        assert!(split.iter().all(|key| !one.contains(key)));
        assert_ne!(keys(&[(7, 32), (8, 32)], 64), keys(&[(7, 31), (8, 33)], 64));
        assert_eq!(keys(&[(7, 32), (8, 32)], 64), keys(&[(7, 32), (8, 5)], 64));
    }

    #[test]
    fn marks_distinguish_blocks() {
        assert_ne!(keys(&[(50, 0), (7, 64)], 64), keys(&[(51, 0), (7, 64)], 64));
        assert_eq!(keys(&[(7, 64)], 64), {
            let user = role_piece(Role::User);
            keys(&[(user.identity, 0), (7, 64)], 64)
        });
    }

    proptest! {
        /// Compared with the tokens themselves: two full blocks of one cut are equal if and only if
        /// their slices are.
        #[test]
        fn keys_are_equal_for_equal_slices(prompt in prop::collection::vec((0u64..3, 1u32..9), 1..12), size in 1u32..7) {
            let pieces: Vec<PrefixPiece> = prompt.iter().map(|(identity, tokens)| piece(*identity, *tokens)).collect();
            let cut = blocks(&pieces, size);
            // The piece's number distinguishes adjacent pieces of one identity.
            let tokens: Vec<(u64, u32)> =
                prompt.iter().flat_map(|(identity, tokens)| (0..*tokens).map(|token| (*identity, token))).collect();
            let texts: Vec<&[(u64, u32)]> = tokens.chunks(size as usize).collect();
            prop_assert_eq!(cut.len(), texts.len());
            for (one, text) in cut.iter().zip(&texts) {
                prop_assert_eq!(one.tokens as usize, text.len());
                for (other, other_text) in cut.iter().zip(&texts) {
                    if text.len() == other_text.len() {
                        prop_assert_eq!(one.key == other.key, text == other_text);
                    }
                }
            }
        }
    }
}
