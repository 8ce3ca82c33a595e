//! Prompts as chained block hashes, which the prefix cache compares.
//!
//! Block `k` of a prompt covers its tokens `k * block_size .. (k + 1) * block_size`, and its hash
//! covers the prompt from its beginning to the end of that block. So two prompts agree in their
//! first `k` hashes exactly when they agree in their first `k * block_size` tokens (up to
//! collisions of 64 bits). A last, partly filled block has no hash: real engines do not share it
//! either.

use veeksha_stats::split_mix64;

/// Tokens per image, sound or video, in addition to a few that identify it: the number for a
/// picture of half a megapixel in current models, to the order of magnitude. Nothing is decoded.
pub const MEDIA_TOKENS: usize = 256;

/// Collects a prompt, by token or by piece, into block hashes.
///
/// Pieces describe a prompt without its text: a prompt that consists of parts (a system prompt, a
/// document, an earlier answer) names each part by an identity and its length in tokens. Equal
/// (identity, offset) mean equal tokens.
#[derive(Clone, Debug)]
pub struct TokenIdentity {
    block_size: u32,
    filled: u32,
    hash: u64,
    tokens: u64,
    blocks: Vec<u64>,
}

impl TokenIdentity {
    /// Creates an empty prompt. A block size of 0 is treated as 1.
    pub fn new(block_size: u32) -> Self {
        TokenIdentity {
            block_size: block_size.max(1),
            filled: 0,
            hash: ROOT,
            tokens: 0,
            blocks: Vec::new(),
        }
    }

    /// Appends one token by its id.
    pub fn token(&mut self, id: u64) {
        self.span(TOKEN, id, 0, 1);
    }

    /// Appends a piece of `tokens` tokens of `identity`.
    pub fn piece(&mut self, identity: u64, tokens: u32) {
        let mut offset = 0;
        while offset < tokens {
            let count = (tokens - offset).min(self.block_size - self.filled);
            self.span(PIECE, identity, offset, count);
            offset += count;
        }
    }

    /// Returns the number of tokens so far.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Returns the hashes of the full blocks.
    pub fn into_blocks(self) -> Vec<u64> {
        self.blocks
    }

    /// A span is within one block, so (kind, identity, offset, count) determine its tokens and
    /// their positions.
    fn span(&mut self, kind: u64, identity: u64, offset: u32, count: u32) {
        let place = (u64::from(offset) << 32) | u64::from(count);
        self.hash = chain(chain(chain(self.hash, kind), identity), place);
        self.tokens += u64::from(count);
        self.filled += count;
        if self.filled == self.block_size {
            self.filled = 0;
            self.blocks.push(self.hash);
        }
    }
}

/// Returns the block hashes of a prompt given as token ids.
pub fn blocks_of(tokens: impl Iterator<Item = u64>, block_size: u32) -> Vec<u64> {
    let mut prompt = TokenIdentity::new(block_size);
    tokens.for_each(|id| prompt.token(id));
    prompt.into_blocks()
}

/// Returns the block hashes of a prompt given as pieces (identity, tokens).
pub fn blocks_of_pieces(pieces: impl Iterator<Item = (u64, u32)>, block_size: u32) -> Vec<u64> {
    let mut prompt = TokenIdentity::new(block_size);
    pieces.for_each(|(identity, tokens)| prompt.piece(identity, tokens));
    prompt.into_blocks()
}

/// Returns the identity of a text, for [`TokenIdentity::piece`].
pub fn identity(text: &str) -> u64 {
    let mut words = text.as_bytes().chunks_exact(8);
    let mut hash = chain(ROOT, text.len() as u64);
    for word in words.by_ref() {
        hash = chain(
            hash,
            word.iter().fold(0, |value, byte| (value << 8) | u64::from(*byte)),
        );
    }
    words
        .remainder()
        .iter()
        .fold(hash, |hash, byte| chain(hash, u64::from(*byte)))
}

/// Approximates a tokenizer: splits before each space and punctuation mark and after every fourth
/// byte of a word, which gives about as many pieces as a tokenizer with a large vocabulary on
/// English prose. The split depends only on the preceding text, so equal beginnings of texts give
/// equal beginnings of tokens.
pub fn approximate_tokens(text: &str) -> Vec<u32> {
    let mut tokens = Vec::with_capacity(text.len() / 4 + 1);
    let mut start = 0;
    let mut inside = false;
    for (at, letter) in text.char_indices() {
        let word = letter.is_alphanumeric();
        // A space belongs to the word that follows it.
        let boundary = if word { at - start >= 5 && inside } else { true };
        if boundary && at > start {
            tokens.push(identity(&text[start..at]) as u32);
            start = at;
        }
        inside = word;
    }
    if start < text.len() {
        tokens.push(identity(&text[start..]) as u32);
    }
    tokens
}

const ROOT: u64 = 0x9e37_79b9_7f4a_7c15;
const TOKEN: u64 = 1;
const PIECE: u64 = 2;

/// The finalizer of SplitMix64 over the running hash and the next word.
fn chain(hash: u64, word: u64) -> u64 {
    split_mix64(hash.rotate_left(23).wrapping_mul(0xd134_2543_de82_ef95) ^ word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_match_exactly_as_far_as_tokens() {
        let a: Vec<u64> = (0..100).collect();
        for differs_at in 0..100 {
            let mut b = a.clone();
            b[differs_at] += 1000;
            let (x, y) = (blocks_of(a.iter().copied(), 16), blocks_of(b.iter().copied(), 16));
            assert_eq!(x.len(), 6);
            let agree = x.iter().zip(&y).take_while(|(left, right)| left == right).count();
            assert_eq!(agree, (differs_at / 16).min(6), "difference at {differs_at}");
            assert!(
                x[agree..].iter().all(|hash| !y.contains(hash)),
                "hashes are chained"
            );
        }
    }

    #[test]
    fn pieces_share_blocks_up_to_the_first_different_piece() {
        // 40 + 30 tokens against 40 + 30 others: blocks of 16 end at 16, 32, 48, 64; two are within
        // the first piece.
        let a = blocks_of_pieces([(7, 40), (8, 30)].into_iter(), 16);
        let b = blocks_of_pieces([(7, 40), (9, 30)].into_iter(), 16);
        assert_eq!((a.len(), b.len()), (4, 4));
        assert_eq!(a[..2], b[..2]);
        assert_ne!(a[2], b[2]);
        // A longer piece of the same identity begins with the same tokens.
        let longer = blocks_of_pieces([(7, 64)].into_iter(), 16);
        assert_eq!(a[..2], longer[..2]);
        assert_ne!(a[2], longer[2]);
        // The same piece at another position is not the same prefix.
        assert_ne!(blocks_of_pieces([(8, 16), (7, 16)].into_iter(), 16)[1], a[0]);
    }

    #[test]
    fn approximate_tokens_preserve_text_and_prefixes() {
        let text = "The quick brown fox jumps over the lazy dog. Überraschungen überall; 東京 12345678!";
        let all = approximate_tokens(text);
        assert!(
            (text.len() / 8..=text.len()).contains(&all.len()),
            "{}",
            all.len()
        );
        for (at, _) in text.char_indices() {
            let part = approximate_tokens(&text[..at]);
            let keep = part.len().saturating_sub(1);
            assert_eq!(part[..keep], all[..keep], "cut at {at}");
        }
        assert!(approximate_tokens("").is_empty());
    }

    #[test]
    fn identities_distinguish_texts() {
        let texts = [
            "",
            "a",
            "b",
            "ab",
            "abcdefgh",
            "abcdefghi",
            "bbcdefgh",
            "\0",
            "\0\0",
        ];
        for (i, a) in texts.iter().enumerate() {
            for b in &texts[i + 1..] {
                assert_ne!(identity(a), identity(b), "{a:?} {b:?}");
            }
        }
    }
}
