//! SplitMix64 as a hash of 64-bit words.
//!
//! Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (OOPSLA 2014), with the
//! constants of the reference implementation by Vigna
//! (<https://prng.di.unimi.it/splitmix64.c>).

/// The odd number nearest to 2⁶⁴ ÷ the golden ratio: the increment of the generator's state.
pub const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the finalizer of SplitMix64 of a word: a bijection in which every bit of the input
/// affects every bit of the output. 0 remains 0.
pub fn mix64(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Returns the first output of SplitMix64 with a word as its seed: [`mix64`] after the increment. A
/// bijection; the outputs of successive words show no pattern.
pub fn split_mix64(word: u64) -> u64 {
    mix64(word.wrapping_add(GOLDEN_GAMMA))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of the reference implementation with the seed 1234567.
    #[test]
    fn agrees_with_the_reference_implementation() {
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        let outputs =
            (0..5u64).map(|step| split_mix64(GOLDEN_GAMMA.wrapping_mul(step).wrapping_add(1_234_567)));
        assert!(outputs.eq(expected));
        assert_eq!(mix64(0), 0);
    }
}
