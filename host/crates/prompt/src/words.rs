//! The words of synthetic text, and the proof that their number is the number of tokens.
//!
//! A word is a token of plain lower-case letters that represents a whole word: `Ġword` in
//! byte-level vocabularies, `▁word` in SentencePiece's, `word` in WordPiece's. Synthetic text is
//! such words with single spaces between them. It has exactly as many tokens as words if nothing
//! joins two words, and nothing splits one. Three properties are established when a tokenizer is
//! loaded:
//!
//! 1. *No token spans a space between two words.* The module `crossing` inspects every entry of the
//!    vocabulary that has a letter before a space marker, and removes words until none of them can
//!    occur. BPE only ever forms entries of the vocabulary, and Unigram only chooses among them, so
//!    neither can join words separated by a space, with or without a pre-tokenizer; and since
//!    merges and lattice arcs stay between the spaces, each word is encoded as if it were alone.
//! 2. *Each word is one token.* Every word of the list is encoded after another word and must give
//!    its id.
//! 3. *Normalizers and pre-tokenizers behave alike everywhere.* They decide by the characters
//!    around a position. Every pair of a last and a first letter that the list can form is encoded
//!    once, so each kind of position has been tested.
//!
//! Then the guarantee is [`Guarantee::Proven`]: text of `n` words has `n` tokens, and a text may be
//! cut between two words and its parts counted separately. Otherwise it is [`Guarantee::Checked`]:
//! every text is encoded again and repaired.
//!
//! The first text of a message has no space before it, because chat templates trim. Its first word
//! is one that is also a single token without a space.

use std::collections::{BTreeMap, HashSet};

use crate::crossing::Crossings;
use crate::embedded;
use crate::error::PromptError;
use crate::tokenizer::Tokenizer;
use crate::tokenizer::TokenizerOrigin;

/// Minimum number of words, so that the beginnings of texts do not collide by chance.
const MIN_WORDS: usize = 32;
/// Number of words that suffices to exclude others.
const SUFFICIENT_WORDS: usize = 256;
/// Maximum number of words used: the lowest ids, which are the most frequent words of the language
/// the tokenizer was trained on.
const MAX_WORDS: usize = 8192;
/// Maximum number of words that are tested as first words.
const STARTS_TRIED: usize = 1024;
/// The representations of a space in vocabularies.
const MARKERS: [char; 3] = ['Ġ', '▁', ' '];

/// Knowledge about the number of tokens before encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guarantee {
    /// As many tokens as words, and texts may be cut between words and counted in parts.
    Proven,
    /// Unknown until the text is encoded.
    Checked,
}

/// The beginning of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    /// The word itself.
    Bare,
    /// A space: the vocabulary has no words without one.
    Space,
}

/// The words of a tokenizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    /// All words, each with a space before it.
    spaced: String,
    /// The offset of each word in `spaced` (that of its space), and its length.
    spans: Vec<(u32, u32)>,
    /// The words that may be first in a text.
    starts: Vec<u32>,
    pub(crate) lead: Lead,
    pub(crate) guarantee: Guarantee,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct WordCandidate {
    id: u32,
    word: String,
}

impl Words {
    /// Returns the words of a tokenizer. Those of the embedded one are stored.
    pub(crate) fn of(tokenizer: &Tokenizer) -> Result<Words, PromptError> {
        match tokenizer.origin() {
            TokenizerOrigin::Embedded => Ok(Words::embedded()),
            TokenizerOrigin::Given => Words::find(tokenizer),
        }
    }

    /// Returns the result of [`Words::find`] for the embedded tokenizer, which is stored.
    pub(crate) fn embedded() -> Words {
        let starts = embedded::WORDS
            .lines()
            .enumerate()
            .filter(|(_, line)| line.starts_with('*'));
        let starts = starts.map(|(index, _)| index as u32).collect();
        let words = embedded::WORDS
            .lines()
            .map(|line| line.strip_prefix('*').unwrap_or(line));
        Words::new(words, starts, Lead::Bare, Guarantee::Proven)
    }

    /// Finds the words of a tokenizer.
    pub(crate) fn find(tokenizer: &Tokenizer) -> Result<Words, PromptError> {
        let (candidates, uncrossed) = candidates(tokenizer);
        let few = |found| PromptError::FewWords {
            name: tokenizer.name().to_string(),
            found,
            needed: MIN_WORDS,
        };
        let Some(anchor) = candidates.first().map(|first| first.word.clone()) else {
            return Err(few(0));
        };
        let probe = Probe {
            tokenizer,
            anchor_tokens: tokenizer.try_count(&anchor)? as usize,
            anchor,
        };

        let mut words = Vec::new();
        for chunk in candidates.chunks(256) {
            probe.keep_single_tokens(chunk, &mut words)?;
        }
        if words.len() < MIN_WORDS {
            return Err(few(words.len()));
        }
        let pairs = probe.holds(&letter_pairs(&words))?;
        let (lead, starts) = starts(tokenizer, &words)?;
        let proven = pairs && uncrossed && starts.len() >= MIN_WORDS;

        let starts = if starts.is_empty() {
            (0..words.len() as u32).collect()
        } else {
            starts
        };
        let guarantee = if proven {
            Guarantee::Proven
        } else {
            Guarantee::Checked
        };
        let words = words.iter().map(|candidate| candidate.word.as_str());
        Ok(Words::new(words, starts, lead, guarantee))
    }

    pub(crate) fn new<'a>(
        words: impl Iterator<Item = &'a str>,
        starts: Vec<u32>,
        lead: Lead,
        guarantee: Guarantee,
    ) -> Words {
        let mut spaced = String::new();
        let mut spans = Vec::new();
        for word in words {
            spans.push((spaced.len() as u32, word.len() as u32 + 1));
            spaced.push(' ');
            spaced.push_str(word);
        }
        Words {
            spaced,
            spans,
            starts,
            lead,
            guarantee,
        }
    }

    /// Returns all words, and whether each may be first in a text.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, bool)> {
        (0..self.spans.len()).map(|index| {
            let first = self.starts.contains(&(index as u32));
            (&self.spaced_word(index)[1..], first)
        })
    }

    /// Returns the number of words.
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns the word selected by a uniform random word of 32 bits, with a space before it.
    pub(crate) fn choose(&self, random: u32) -> &str {
        self.spaced_word(scale(random, self.spans.len()))
    }

    /// Like [`Words::choose`], among the words that may be first in a text.
    pub(crate) fn choose_start(&self, random: u32) -> &str {
        self.spaced_word(self.starts[scale(random, self.starts.len())] as usize)
    }

    /// Returns a text of one token that may be first in a text to be counted, in place of something
    /// that was cut off.
    pub(crate) fn anchor(&self) -> &str {
        let word = self.choose_start(0);
        match self.lead {
            Lead::Bare => &word[1..],
            Lead::Space => word,
        }
    }

    fn spaced_word(&self, index: usize) -> &str {
        let (start, length) = self.spans[index];
        &self.spaced[start as usize..(start + length) as usize]
    }
}

/// Maps 32 random bits to `0 .. bound`.
fn scale(random: u32, bound: usize) -> usize {
    ((u64::from(random) * bound as u64) >> 32) as usize
}

/// Returns the tokens that look like words, lowest id first, and whether no token spans the space
/// between two of them.
fn candidates(tokenizer: &Tokenizer) -> (Vec<WordCandidate>, bool) {
    let added = tokenizer.added();
    let added_words: Vec<&str> = added
        .iter()
        .map(|(_, text)| text.as_str())
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b' '))
        .flat_map(str::split_whitespace)
        .collect();
    let added_ids: HashSet<u32> = added.iter().map(|(id, _)| *id).collect();

    // One list per representation of a word; the vocabulary uses the one with the most words.
    let mut lists: [Vec<WordCandidate>; 4] = Default::default();
    let mut crossings = Crossings::default();
    for (id, token) in tokenizer.tokens() {
        if added_ids.contains(&id) {
            continue;
        }
        let marker = MARKERS.iter().position(|marker| token.starts_with(*marker));
        let word = marker.map_or(token.as_str(), |marker| &token[MARKERS[marker].len_utf8()..]);
        if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            if (1..=14).contains(&word.len()) && !added_words.iter().any(|added| word.contains(added)) {
                lists[marker.unwrap_or(3)].push(WordCandidate {
                    id,
                    word: word.to_string(),
                });
            }
        } else {
            crossings.note(&token, &MARKERS);
        }
    }
    // Vocabularies with markers also have pieces without one; those without markers only have such
    // pieces.
    let marked = (0..3)
        .max_by_key(|list| lists[*list].len())
        .filter(|list| lists[*list].len() >= MIN_WORDS);
    let list = preferred(std::mem::take(&mut lists[marked.unwrap_or(3)]));
    let apart = crossings.avoid(&list, |candidate| &candidate.word);
    if apart.len() >= SUFFICIENT_WORDS || apart.len() == list.len() {
        (apart, true)
    } else {
        (list, false)
    }
}

/// Returns the words of at least three letters if there are enough of them, else all; at most the
/// maximum number.
fn preferred(words: Vec<WordCandidate>) -> Vec<WordCandidate> {
    let preferred: Vec<WordCandidate> = words
        .iter()
        .filter(|candidate| candidate.word.len() >= 3)
        .cloned()
        .collect();
    let mut words = if preferred.len() >= SUFFICIENT_WORDS {
        preferred
    } else {
        words
    };
    words.truncate(MAX_WORDS);
    words
}

/// Encodes words after an anchor and compares their ids.
struct Probe<'a> {
    tokenizer: &'a Tokenizer,
    anchor: String,
    anchor_tokens: usize,
}

impl Probe<'_> {
    /// Returns true if consecutive words are encoded to exactly their ids.
    fn holds(&self, words: &[WordCandidate]) -> Result<bool, PromptError> {
        let mut text = self.anchor.clone();
        for candidate in words {
            text.push(' ');
            text.push_str(&candidate.word);
        }
        let ids = self.tokenizer.encode(&text)?;
        let expected = words.iter().map(|candidate| candidate.id);
        Ok(ids.len() == self.anchor_tokens + words.len()
            && ids[self.anchor_tokens..].iter().copied().eq(expected))
    }

    /// Keeps the words that are one token, by bisection.
    fn keep_single_tokens(
        &self,
        words: &[WordCandidate],
        kept: &mut Vec<WordCandidate>,
    ) -> Result<(), PromptError> {
        if self.holds(words)? {
            kept.extend_from_slice(words);
        } else if words.len() > 1 {
            let (left, right) = words.split_at(words.len() / 2);
            self.keep_single_tokens(left, kept)?;
            self.keep_single_tokens(right, kept)?;
        }
        Ok(())
    }
}

/// Orders words so that every pair of (last letter, first letter) that they can form occurs.
fn letter_pairs(words: &[WordCandidate]) -> Vec<WordCandidate> {
    let mut by_last: BTreeMap<u8, &WordCandidate> = BTreeMap::new();
    let mut by_first: BTreeMap<u8, &WordCandidate> = BTreeMap::new();
    for candidate in words {
        if let (Some(first), Some(last)) = (candidate.word.bytes().next(), candidate.word.bytes().last()) {
            by_first.entry(first).or_insert(candidate);
            by_last.entry(last).or_insert(candidate);
        }
    }
    let mut order = Vec::with_capacity(2 * by_last.len() * by_first.len());
    for last in by_last.values() {
        for first in by_first.values() {
            order.push((*last).clone());
            order.push((*first).clone());
        }
    }
    order
}

/// Returns the words that are one token at the beginning of a text, and the kind of beginning.
fn starts(tokenizer: &Tokenizer, words: &[WordCandidate]) -> Result<(Lead, Vec<u32>), PromptError> {
    for lead in [Lead::Bare, Lead::Space] {
        let mut starts = Vec::new();
        for (index, candidate) in words.iter().take(STARTS_TRIED).enumerate() {
            let count = match lead {
                Lead::Bare => tokenizer.try_count(&candidate.word)?,
                Lead::Space => tokenizer.try_count(&format!(" {}", candidate.word))?,
            };
            if count == 1 {
                starts.push(index as u32);
            }
        }
        if starts.len() >= MIN_WORDS {
            return Ok((lead, starts));
        }
    }
    Ok((Lead::Bare, Vec::new()))
}
