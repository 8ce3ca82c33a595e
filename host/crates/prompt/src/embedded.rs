//! The tokenizer inside the binary, and its vocabulary of words.
//!
//! Finding the words of a tokenizer encodes all of them, which would dominate the start of a run
//! with this tokenizer. They never change, so they are stored next to it; a test verifies them.

/// Byte-level BPE, see `tokenizer/make.py`.
pub(crate) const TOKENIZER: &[u8] = include_bytes!("../tokenizer/tokenizer.json");

/// One word per line, lowest id first; a word that may be first in a text has a star before it.
pub(crate) const WORDS: &str = include_str!("../tokenizer/words.txt");

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use crate::tokenizer::Tokenizer;
    use crate::words::Words;

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
        assert_eq!(
            Words::embedded(),
            found,
            "UPDATE_WORDS=1 updates tokenizer/words.txt"
        );
    }
}
