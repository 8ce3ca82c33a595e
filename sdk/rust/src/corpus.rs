//! User-supplied text in prompts of exact length.

use std::cell::RefCell;
use std::ops::Range;

use crate::blobs::Blob;
use crate::session::{synthetic, text};
use crate::tokens;
use crate::types::{Error, Segment};

/// Bytes of the largest corpus that is read; a plugin keeps it in memory.
const LARGEST: u64 = 16 << 20;
/// Bytes asked for in one read; the host gives at most 4 MiB.
const READ: u32 = 1 << 20;
/// Bytes of a piece; longer lines are taken apart.
const PIECE: usize = 512;

/// A text that prompts are cut from.
///
/// It is taken line by line; the tokens of a line are counted once. A prompt begins at a line that
/// its seed chooses and goes on with the lines that follow, from the beginning again after the last
/// one.
pub struct Corpus {
    text: String,
    /// Neighbouring ranges of the text: lines, or parts of long ones. None is blank.
    pieces: Vec<Range<usize>>,
    /// The tokens of each piece; 0: not counted yet.
    counts: RefCell<Vec<u32>>,
    count: Box<dyn Fn(&str) -> u32>,
}

impl Corpus {
    /// Reads a granted file.
    ///
    /// # Errors
    /// A file that was not granted or cannot be read, is larger than 16 MiB, is not UTF-8, or holds
    /// no words.
    pub fn open(name: &str) -> Result<Self, Error> {
        let blob = Blob::open(name)?;
        let size = blob.size();
        if size > LARGEST {
            return Err(Error::new(
                "corpus",
                format!("`{name}` has {size} bytes; a corpus has {LARGEST} at most"),
            )
            .hint("cut it: prompts are taken from all of its lines"));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        while (bytes.len() as u64) < size {
            let read = blob.read(bytes.len() as u64, READ)?;
            if read.is_empty() {
                break;
            }
            bytes.extend(read);
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            Error::new(
                "corpus",
                format!("`{name}` is not UTF-8 text: byte {at} does not fit"),
            )
        })?;
        Corpus::new(text, tokens::count).map_err(|error| Error {
            message: format!("`{name}`: {}", error.message),
            ..error
        })
    }

    /// A corpus of this text, with this count of tokens: for tests, which have no host.
    ///
    /// # Errors
    /// A text without words.
    pub fn new(text: impl Into<String>, count: impl Fn(&str) -> u32 + 'static) -> Result<Self, Error> {
        let mut text = text.into();
        if !text.ends_with('\n') {
            // The first line follows the last one.
            text.push('\n');
        }
        let pieces = pieces(&text);
        if pieces.is_empty() {
            return Err(Error::new("corpus", "a corpus has at least one word"));
        }
        Ok(Corpus {
            counts: RefCell::new(vec![0; pieces.len()]),
            text,
            pieces,
            count: Box::new(count),
        })
    }

    /// Segments of exactly `tokens` tokens: `lead` (empty, or what sets the text off from something
    /// before it), then as many whole words of the corpus as fit, then synthetic text for the few
    /// tokens that are missing. Equal arguments give equal segments. No tokens, no segments.
    pub fn segments(&self, seed: u64, tokens: u32, lead: &str) -> Vec<Segment> {
        let mut taken = self.lines(seed, tokens, lead);
        let had = self.fit(&mut taken, tokens);
        let missing = tokens - had;
        let mut segments = Vec::with_capacity(2);
        if had > 0 {
            segments.push(text(taken));
        }
        if missing > 0 {
            segments.push(synthetic(seed, missing));
        }
        segments
    }

    /// Lines from the one that the seed chooses, and the beginning of the next, as far as the sum
    /// of their tokens goes.
    fn lines(&self, seed: u64, tokens: u32, lead: &str) -> String {
        let mut taken = lead.to_owned();
        let mut left = tokens;
        if !lead.is_empty() {
            left = left.saturating_sub((self.count)(lead));
        }
        let mut at = (seed % self.pieces.len() as u64) as usize;
        loop {
            let piece = &self.text[self.pieces[at].clone()];
            let tokens = self.tokens_of(at, piece);
            if tokens > left {
                let words = ends_of_words(piece);
                let fitting = words.partition_point(|end| (self.count)(&piece[..*end]) <= left);
                taken.push_str(&piece[..fitting.checked_sub(1).map_or(0, |last| words[last])]);
                return taken;
            }
            taken.push_str(piece);
            left -= tokens;
            at = (at + 1) % self.pieces.len();
        }
    }

    /// Takes words off the end until the whole has at most `tokens` tokens, and returns how many it
    /// has. The parts of a text may count less than the text.
    fn fit(&self, taken: &mut String, tokens: u32) -> u32 {
        loop {
            taken.truncate(taken.trim_end().len());
            if taken.is_empty() {
                return 0;
            }
            let had = (self.count)(taken);
            if had <= tokens {
                return had;
            }
            for _ in tokens..had {
                let last = taken.trim_end().rfind(char::is_whitespace);
                taken.truncate(last.unwrap_or(0));
            }
        }
    }

    fn tokens_of(&self, at: usize, piece: &str) -> u32 {
        let mut counts = self.counts.borrow_mut();
        if counts[at] == 0 {
            // A piece that counts nothing would be taken for ever.
            counts[at] = (self.count)(piece).max(1);
        }
        counts[at]
    }
}

/// The lines of a text, each with its line break and the blank lines after it; long ones in parts.
fn pieces(text: &str) -> Vec<Range<usize>> {
    let mut pieces: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let mut line = line;
        while !line.is_empty() {
            let length = part(line);
            let end = start + length;
            match pieces.last_mut() {
                Some(last) if line[..length].trim().is_empty() => last.end = end,
                None if line[..length].trim().is_empty() => {}
                _ => pieces.push(start..end),
            }
            start = end;
            line = &line[length..];
        }
    }
    pieces
}

/// Bytes of the first part of a line: all of it, or up to the last space within the limit, or up to
/// the limit.
fn part(line: &str) -> usize {
    if line.len() <= PIECE {
        return line.len();
    }
    let limit = line.floor_char_boundary(PIECE);
    match line[..limit].rfind(' ') {
        Some(space) => space + 1,
        None => limit,
    }
}

/// The ends of words in a piece; where it has no spaces, the ends of its characters.
fn ends_of_words(piece: &str) -> Vec<usize> {
    let body = piece.trim_end();
    let mut ends: Vec<usize> = body
        .match_indices(char::is_whitespace)
        .map(|(at, _)| at)
        .filter(|at| *at > 0)
        .collect();
    if ends.is_empty() {
        ends = body.char_indices().map(|(at, _)| at).skip(1).collect();
    }
    ends.push(body.len());
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Seed, SyntheticText};

    fn words(text: &str) -> u32 {
        text.split_whitespace().count() as u32
    }

    /// A tokenizer whose parts count less than the whole: every three bytes begun, and one for each
    /// line break.
    fn thirds(text: &str) -> u32 {
        (text.len() as u32).div_ceil(3) + text.matches('\n').count() as u32
    }

    const POEM: &str = "one two three\nfour five\n\nsix seven eight nine\n";

    fn total(segments: &[Segment], count: impl Fn(&str) -> u32) -> u32 {
        let tokens = segments.iter().map(|segment| match segment {
            Segment::Text(text) => count(text),
            Segment::Synthetic(SyntheticText { tokens, .. }) => *tokens,
            _ => panic!("only text"),
        });
        tokens.sum()
    }

    #[test]
    fn text_begins_at_the_line_of_the_seed_and_goes_on() {
        let corpus = Corpus::new(POEM, words).unwrap();
        assert_eq!(corpus.segments(0, 5, ""), [text("one two three\nfour five")]);
        assert_eq!(corpus.segments(1, 3, ""), [text("four five\n\nsix")]);
        assert_eq!(
            corpus.segments(2, 6, ""),
            [text("six seven eight nine\none two")],
            "the beginning again after the end"
        );
        assert_eq!(corpus.segments(3, 1, ""), [text("one")]);
        assert_eq!(corpus.segments(3, 0, ""), []);
        assert_eq!(corpus.segments(0, 2, "\n"), [text("\none two")]);
    }

    #[test]
    fn a_corpus_without_a_last_line_break_keeps_its_words_apart() {
        let corpus = Corpus::new("a b", words).unwrap();
        assert_eq!(corpus.segments(0, 5, ""), [text("a b\na b\na")]);
    }

    #[test]
    fn fills_up_with_synthetic_text_where_no_word_fits() {
        // Ten bytes are four tokens; three of them hold no word.
        let corpus = Corpus::new("abcdefghij klm\n", thirds).unwrap();
        assert_eq!(corpus.segments(7, 3, ""), [synthetic(7u64, 3)]);
        assert_eq!(
            corpus.segments(7, 5, ""),
            [text("abcdefghij klm")],
            "14 bytes are five tokens"
        );
        assert_eq!(
            corpus.segments(7, 4, ""),
            [text("abcdefghij")],
            "10 bytes are four tokens"
        );
    }

    /// Whatever the length, the seed and the tokenizer: the sum is exact, and equal arguments give
    /// equal segments.
    #[test]
    fn every_length_is_exact() {
        let long = format!("{}\n{}", "word ".repeat(400), "ohnepunktundkomma".repeat(90));
        for source in [POEM, "x", "日本語のテキスト\n", long.as_str()] {
            for count in [words as fn(&str) -> u32, thirds] {
                for lead in ["", "\n"] {
                    let corpus = Corpus::new(source, count).unwrap();
                    for tokens in (0..60).chain([100, 777, 2000]) {
                        for seed in 0..5 {
                            let made = corpus.segments(seed, tokens, lead);
                            assert_eq!(total(&made, count), tokens, "{source:.9} {tokens} {seed}");
                            assert_eq!(made, corpus.segments(seed, tokens, lead));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn long_lines_are_taken_apart_and_nothing_is_lost() {
        let long = format!("\n \n{}\n\n{}\nend", "word ".repeat(400), "日本".repeat(900));
        let pieces = pieces(&long);
        assert!(pieces.iter().all(|piece| piece.len() <= PIECE + 1));
        assert!(pieces.iter().all(|piece| !long[piece.clone()].trim().is_empty()));
        let whole: String = pieces.iter().map(|piece| &long[piece.clone()]).collect();
        assert_eq!(
            whole,
            long[3..],
            "only blank lines before the first word are left out"
        );
    }

    #[test]
    fn a_corpus_has_words() {
        for blank in ["", " \n\n"] {
            let refused = Corpus::new(blank, words).err().unwrap();
            assert_eq!(refused.message, "a corpus has at least one word");
        }
    }

    #[test]
    fn the_missing_tokens_have_the_seed_of_the_text() {
        let corpus = Corpus::new("abcdefghij", thirds).unwrap();
        let made = corpus.segments(1 << 40, 2, "");
        assert_eq!(
            made,
            [text("abcdef")],
            "a word without spaces is cut between its letters"
        );
        let Segment::Synthetic(made) = synthetic(1u64 << 40, 1) else {
            panic!()
        };
        assert_eq!(made.seed, Seed { high: 256, low: 0 });
    }
}
