//! The tokenizer inside the binary, and its words.
//!
//! Finding the words of a tokenizer encodes all of them, which would dominate the start of a run
//! with this tokenizer. They never change, so they are stored next to it; a test verifies them.

use crate::words::{Guarantee, Lead, Words};

/// Byte-level BPE, see `tokenizer/make.py`.
pub(crate) const TOKENIZER: &[u8] = include_bytes!("../tokenizer/tokenizer.json");

/// One word per line, lowest id first; a word that may be first in a text has a star before it.
const WORDS: &str = include_str!("../tokenizer/words.txt");

/// The result of [`Words::find`] for [`TOKENIZER`].
pub(crate) fn words() -> Words {
    let starts = WORDS
        .lines()
        .enumerate()
        .filter(|(_, line)| line.starts_with('*'));
    let starts = starts.map(|(index, _)| index as u32).collect();
    let words = WORDS.lines().map(|line| line.strip_prefix('*').unwrap_or(line));
    Words::new(words, starts, Lead::Bare, Guarantee::Proven)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;
    use crate::Tokenizer;

    /// With `UPDATE_WORDS` set, the file is written instead, for use after the tokenizer was
    /// regenerated.
    #[test]
    fn stored_words_match_the_tokenizer() {
        let found = Words::find(&Tokenizer::embedded().unwrap()).unwrap();
        if std::env::var_os("UPDATE_WORDS").is_some() {
            let mut text = String::new();
            for (word, first) in found.all() {
                let star = if first { "*" } else { "" };
                writeln!(text, "{star}{word}").unwrap();
            }
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tokenizer/words.txt");
            std::fs::write(file, text).unwrap();
        }
        assert_eq!(words(), found, "UPDATE_WORDS=1 updates tokenizer/words.txt");
    }
}
