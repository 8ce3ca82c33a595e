//! The words that synthetic text is made of, and why their number is the number of tokens.
//!
//! A word is a token of plain lower-case letters that stands for a whole word: `Ġword` in byte-level vocabularies, `▁word` in
//! SentencePiece's, `word` in WordPiece's. Synthetic text is such words with single spaces between them. It has exactly as
//! many tokens as words if nothing joins two words, and nothing splits one. Three things are established when a tokenizer
//! is loaded:
//!
//! 1. *No token reaches over a space between two words.* The module `crossing` looks at every entry of the vocabulary that
//!    has a letter before a space marker, and removes words until none of them can occur. BPE only ever forms entries of the
//!    vocabulary, and Unigram only chooses among them, so neither can join what a space separates, with or without a
//!    pre-tokenizer; and since merges and lattice arcs stay between the spaces, each word is encoded as if it were alone.
//! 2. *Each word is one token.* Every word of the list is encoded after another word and must give its own id.
//! 3. *The splitters see nothing else.* Normalisers and pre-tokenizers decide by the characters around a place. Every pair
//!    of a last and a first letter that the list can form is encoded once, so each kind of place has been tried.
//!
//! Then the guarantee is [`Guarantee::Proven`]: text of `n` words has `n` tokens, and a text may be cut between two words
//! and its parts counted on their own. Otherwise it is [`Guarantee::Checked`]: every text is encoded again and repaired.
//!
//! Text that stands first in a message has no space before it, because chat templates trim. Its first word is one that is a
//! single token there, too.

use std::collections::{BTreeMap, HashSet};

use crate::crossing::Crossings;
use crate::tokenizer::Origin;
use crate::{PromptError, Tokenizer, embedded};

/// Words needed to write text whose beginnings do not collide by chance.
const NEEDED: usize = 32;
/// Words that are enough to leave others out.
const ENOUGH: usize = 256;
/// Words used at most: the lowest ids, which are the most frequent words of the language the tokenizer was trained on.
const MOST: usize = 8192;
/// Words that are tried as first words, at most.
const STARTS_TRIED: usize = 1024;
/// How vocabularies write a space.
const MARKERS: [char; 3] = ['Ġ', '▁', ' '];

/// How far the number of tokens is known without encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guarantee {
    /// As many tokens as words, and words are boundaries at which a text may be counted in parts.
    Proven,
    /// Unknown until the text is encoded.
    Checked,
}

/// What text begins with, where nothing stands before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    /// The word itself.
    Bare,
    /// A space: the vocabulary has no words without one.
    Space,
}

/// The words of one tokenizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    /// All words, each with a space before it.
    spaced: String,
    /// Where each word lies in `spaced`: its first byte (the space) and its length.
    spans: Vec<(u32, u32)>,
    /// The words that may stand first.
    starts: Vec<u32>,
    pub(crate) lead: Lead,
    pub(crate) guarantee: Guarantee,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    id: u32,
    word: String,
}

impl Words {
    /// The words of a tokenizer. Those of the embedded one were found when it was made.
    pub(crate) fn of(tokenizer: &Tokenizer) -> Result<Words, PromptError> {
        match tokenizer.origin() {
            Origin::Embedded => Ok(embedded::words()),
            Origin::Given => Words::find(tokenizer),
        }
    }

    /// Finds the words of a tokenizer.
    pub(crate) fn find(tokenizer: &Tokenizer) -> Result<Words, PromptError> {
        let (candidates, uncrossed) = candidates(tokenizer);
        let few = |found| PromptError::FewWords {
            name: tokenizer.name().to_string(),
            found,
            needed: NEEDED,
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
        if words.len() < NEEDED {
            return Err(few(words.len()));
        }
        let pairs = probe.holds(&letter_pairs(&words))?;
        let (lead, starts) = starts(tokenizer, &words)?;
        let proven = pairs && uncrossed && starts.len() >= NEEDED;

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

    /// All words, each with whether it may stand first.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, bool)> {
        (0..self.spans.len()).map(|index| {
            let first = self.starts.contains(&(index as u32));
            (&self.spaced_word(index)[1..], first)
        })
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// The word that a uniform random word of 32 bits chooses, with a space before it.
    pub(crate) fn choose(&self, random: u32) -> &str {
        self.spaced_word(scale(random, self.spans.len()))
    }

    /// Like [`Words::choose`], among the words that may stand first.
    pub(crate) fn choose_start(&self, random: u32) -> &str {
        self.spaced_word(self.starts[scale(random, self.starts.len())] as usize)
    }

    /// A text of one token that stands first in a text to be counted, in place of something that was cut off.
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

/// The tokens that look like words, lowest id first, and whether no token reaches over the space between two of them.
fn candidates(tokenizer: &Tokenizer) -> (Vec<Candidate>, bool) {
    let added = tokenizer.added();
    let added_words: Vec<&str> = added
        .iter()
        .map(|(_, text)| text.as_str())
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b' '))
        .flat_map(str::split_whitespace)
        .collect();
    let added_ids: HashSet<u32> = added.iter().map(|(id, _)| *id).collect();

    // One list for each way to write a word; the vocabulary's way is the one with the most words.
    let mut lists: [Vec<Candidate>; 4] = Default::default();
    let mut crossings = Crossings::default();
    for (id, token) in tokenizer.tokens() {
        if added_ids.contains(&id) {
            continue;
        }
        let marker = MARKERS.iter().position(|marker| token.starts_with(*marker));
        let word = marker.map_or(token.as_str(), |marker| &token[MARKERS[marker].len_utf8()..]);
        if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            if (1..=14).contains(&word.len()) && !added_words.iter().any(|added| word.contains(added)) {
                lists[marker.unwrap_or(3)].push(Candidate {
                    id,
                    word: word.to_string(),
                });
            }
        } else {
            crossings.note(&token, &MARKERS);
        }
    }
    // Vocabularies with markers also have pieces without one; those without markers have no others.
    let marked = (0..3)
        .max_by_key(|list| lists[*list].len())
        .filter(|list| lists[*list].len() >= NEEDED);
    let list = natural(std::mem::take(&mut lists[marked.unwrap_or(3)]));
    let apart = crossings.avoid(&list, |candidate| &candidate.word);
    if apart.len() >= ENOUGH || apart.len() == list.len() {
        (apart, true)
    } else {
        (list, false)
    }
}

/// Words of three letters and more if there are enough of them, else all; the first of them.
fn natural(words: Vec<Candidate>) -> Vec<Candidate> {
    let natural: Vec<Candidate> = words
        .iter()
        .filter(|candidate| candidate.word.len() >= 3)
        .cloned()
        .collect();
    let mut words = if natural.len() >= ENOUGH { natural } else { words };
    words.truncate(MOST);
    words
}

/// Encodes words after an anchor and compares their ids.
struct Probe<'a> {
    tokenizer: &'a Tokenizer,
    anchor: String,
    anchor_tokens: usize,
}

impl Probe<'_> {
    /// Whether words, one after the other, give exactly their ids.
    fn holds(&self, words: &[Candidate]) -> Result<bool, PromptError> {
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

    /// Keeps the words that are one token, by halving what does not hold as a whole.
    fn keep_single_tokens(&self, words: &[Candidate], kept: &mut Vec<Candidate>) -> Result<(), PromptError> {
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

/// Words in an order in which every pair of (last letter, first letter) that they can form occurs.
fn letter_pairs(words: &[Candidate]) -> Vec<Candidate> {
    let mut by_last: BTreeMap<u8, &Candidate> = BTreeMap::new();
    let mut by_first: BTreeMap<u8, &Candidate> = BTreeMap::new();
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

/// The words that are one token at the beginning of a text, and how a text begins.
fn starts(tokenizer: &Tokenizer, words: &[Candidate]) -> Result<(Lead, Vec<u32>), PromptError> {
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
        if starts.len() >= NEEDED {
            return Ok((lead, starts));
        }
    }
    Ok((Lead::Bare, Vec::new()))
}
