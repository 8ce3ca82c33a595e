//! Prompts from hash blocks: a trace that names the blocks of a prompt shows which prompts begin
//! alike.

use crate::session::synthetic;
use crate::types::Segment;

/// The end of a prompt whose length is not a multiple of the block size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastBlock {
    /// The last id names a partial block (Mooncake: 6,955 tokens in blocks of 512 have 14 ids).
    Partial,
    /// Only full blocks have ids; the rest of the prompt is its own (Weka).
    Full,
}

/// The segments of a prompt of `tokens` tokens that consists of blocks: block *k* is
/// `synthetic(seed(ids[k]), size)`, so equal ids are equal text, and a partial block is the
/// beginning of the full one. What the ids do not cover is text of `rest`'s seed; ids beyond the
/// length are an error.
///
/// # Errors
/// A message if the id count exceeds the blocks of the length, or the block size is 0.
pub fn blocks(
    ids: &[u64],
    size: u32,
    tokens: u32,
    last: LastBlock,
    seed: impl Fn(u64) -> u64,
    rest: u64,
) -> Result<Vec<Segment>, String> {
    if size == 0 {
        return Err("a block has at least one token".into());
    }
    let most = match last {
        LastBlock::Partial => tokens.div_ceil(size),
        LastBlock::Full => tokens / size,
    };
    if ids.len() as u64 > u64::from(most) {
        return Err(format!(
            "{} hash ids for {tokens} tokens, which have {most} blocks of {size}; is the block size right?",
            ids.len()
        ));
    }
    let mut left = tokens;
    let mut segments = Vec::with_capacity(ids.len() + 1);
    for id in ids {
        let here = left.min(size);
        segments.push(synthetic(seed(*id), here));
        left -= here;
    }
    if left > 0 {
        segments.push(synthetic(rest, left));
    }
    Ok(segments)
}

/// A seed that depends on a scope and some numbers, and on nothing else: equal arguments give equal
/// text in every run, and different ones do not meet. FNV-1a over the bytes, finished as in
/// SplitMix64.
pub fn seed_of(scope: &str, numbers: &[u64]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut eat = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    eat(scope.as_bytes());
    for number in numbers {
        eat(&[0xff]);
        eat(&number.to_le_bytes());
    }
    let mut mixed = hash;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::SyntheticText;

    fn lengths(segments: &[Segment]) -> Vec<u32> {
        let tokens = segments.iter().map(|segment| match segment {
            Segment::Synthetic(SyntheticText { tokens, .. }) => *tokens,
            _ => panic!("only synthetic text is expected"),
        });
        tokens.collect()
    }

    /// The example of Mooncake's documentation: 6,955 tokens are 13 blocks of 512 and one of 299.
    #[test]
    fn the_last_block_of_mooncake_is_partial() {
        let ids: Vec<u64> = (46..60).collect();
        let made = blocks(&ids, 512, 6955, LastBlock::Partial, |id| id, 0).unwrap();
        let mut expected = vec![512; 13];
        expected.push(299);
        assert_eq!(lengths(&made), expected);
        assert_eq!(made[13], synthetic(59u64, 299));
    }

    #[test]
    fn tokens_without_an_id_are_unique_text() {
        let made = blocks(&[7, 8], 64, 150, LastBlock::Full, |id| id, 99).unwrap();
        assert_eq!(
            made,
            [synthetic(7u64, 64), synthetic(8u64, 64), synthetic(99u64, 22)]
        );
        assert_eq!(
            blocks(&[], 64, 5, LastBlock::Partial, |id| id, 3).unwrap(),
            [synthetic(3u64, 5)]
        );
    }

    #[test]
    fn more_ids_than_blocks_are_refused() {
        let refused = blocks(&[1, 2, 3], 64, 128, LastBlock::Partial, |id| id, 0).unwrap_err();
        assert_eq!(
            refused,
            "3 hash ids for 128 tokens, which have 2 blocks of 64; is the block size right?"
        );
        assert!(blocks(&[1, 2], 64, 127, LastBlock::Full, |id| id, 0).is_err());
        assert!(blocks(&[1], 0, 127, LastBlock::Full, |id| id, 0).is_err());
    }

    /// Computed apart from this code, from the definitions of FNV-1a and of SplitMix64's finisher.
    /// Other SDKs have the same table: flavors in different languages make the same text of the
    /// same ids.
    #[test]
    fn seeds_are_those_of_the_contract() {
        let cases: [(&str, &[u64], u64); 5] = [
            ("", &[], 0xf52a_15e9_a9b5_e89b),
            ("block", &[1, 2], 0x840e_6b43_62ae_2d5f),
            ("mooncake", &[0, 46], 0x5d42_8a95_aa6c_7800),
            ("blocks", &[59], 0x2ff5_dd52_8094_3a73),
            ("weka", &[3, u64::MAX], 0xc9b6_9351_5e01_1173),
        ];
        for (scope, numbers, seed) in cases {
            assert_eq!(seed_of(scope, numbers), seed, "{scope} {numbers:?}");
        }
    }

    #[test]
    fn seeds_differ_by_scope_number_and_order() {
        let seeds = [
            seed_of("block", &[1, 2]),
            seed_of("block", &[2, 1]),
            seed_of("block", &[1]),
            seed_of("rest", &[1, 2]),
            seed_of("block", &[]),
        ];
        for (i, one) in seeds.iter().enumerate() {
            assert!(seeds[i + 1..].iter().all(|other| other != one));
        }
        assert_eq!(seed_of("block", &[1, 2]), seeds[0]);
    }
}
