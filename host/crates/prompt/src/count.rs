//! Counts the tokens of a partly synthetic text.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::error::PromptError;
use crate::tokenizer::Tokenizer;
use crate::words::{Guarantee, Words};

/// A text and its synthetic parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BuiltText {
    pub(crate) text: Arc<str>,
    /// Byte ranges of synthetic text; adjacent ones are merged.
    pub(crate) stretches: Vec<(usize, usize)>,
}

impl BuiltText {
    /// Wraps text that is synthetic as a whole.
    pub(crate) fn synthetic(text: Arc<str>) -> BuiltText {
        let stretches = if text.is_empty() {
            Vec::new()
        } else {
            vec![(0, text.len())]
        };
        BuiltText { text, stretches }
    }

    /// Wraps text that is not synthetic.
    pub(crate) fn verbatim(text: String) -> BuiltText {
        BuiltText {
            text: text.into(),
            stretches: Vec::new(),
        }
    }

    /// Returns true if the text is synthetic as a whole, not empty, and unaffected by trimming.
    pub(crate) fn is_bare_synthetic(&self) -> bool {
        self.stretches == [(0, self.text.len())] && !self.text.starts_with(' ')
    }
}

/// Number of words of synthetic text that are encoded together with the adjacent text.
const MARGIN: usize = 1;
/// Maximum length of cached parts: the text that a template has between two messages, with a word
/// on either side.
const PART_BYTES: usize = 4 << 10;
/// Size of cached parts at which the cache is cleared. 8192 words before and after a template are
/// about two mebibytes.
const COUNT_CACHE_BYTES: usize = 16 << 20;

/// Cached token counts of short recurring texts.
#[derive(Debug)]
pub(crate) struct TokenCounter {
    memo: RwLock<CountCache>,
    /// See [`Tokenizer::cuts`].
    cuts: Vec<String>,
}

#[derive(Debug, Default)]
struct CountCache {
    bytes: usize,
    counts: HashMap<Box<str>, u32>,
}

impl TokenCounter {
    pub(crate) fn of(tokenizer: &Tokenizer) -> Self {
        TokenCounter {
            memo: RwLock::default(),
            cuts: tokenizer.cuts(),
        }
    }

    /// Returns the effect of the following text on the word before it.
    fn cut_at(&self, rest: &str) -> FollowedBy {
        if rest.is_empty() || self.cuts.iter().any(|token| rest.starts_with(token.as_str())) {
            FollowedBy::Nothing
        } else {
            FollowedBy::Text
        }
    }

    fn count(&self, tokenizer: &Tokenizer, text: &str) -> Result<u32, PromptError> {
        if text.len() > PART_BYTES {
            return tokenizer.try_count(text);
        }
        // A panic with the lock held leaves at worst an incomplete cache.
        let known = self
            .memo
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .counts
            .get(text)
            .copied();
        if let Some(tokens) = known {
            return Ok(tokens);
        }
        let tokens = tokenizer.try_count(text)?;
        let mut memo = self.memo.write().unwrap_or_else(PoisonError::into_inner);
        if memo.bytes > COUNT_CACHE_BYTES {
            *memo = CountCache::default();
        }
        memo.bytes += text.len() + 64;
        memo.counts.insert(text.into(), tokens);
        Ok(tokens)
    }
}

/// Counts the tokens of a text.
///
/// If words are proven boundaries, only the texts and a word on either side of them are encoded;
/// the words between are a token each. Before a control token no word is needed: the tokenizer cuts
/// there. A part that begins in the middle of the text gets a word before it, so that it does not
/// begin with a space that was not at a beginning.
pub(crate) fn count(
    tokenizer: &Tokenizer,
    words: &Words,
    counted: &TokenCounter,
    built: &BuiltText,
) -> Result<u32, PromptError> {
    let text = &*built.text;
    if words.guarantee == Guarantee::Checked {
        return tokenizer.try_count(text);
    }
    let part = |start: usize, end: usize| match (start, end) {
        _ if start == end => Ok(0),
        (0, _) => counted.count(tokenizer, &text[..end]),
        _ => {
            let part = format!("{}{}", words.anchor(), &text[start..end]);
            Ok(counted.count(tokenizer, &part)?.saturating_sub(1))
        }
    };
    let mut tokens = 0;
    let mut done = 0;
    for &(start, end) in &built.stretches {
        let Some((left, inner, right)) = inner_words(text, start, end, counted.cut_at(&text[end..])) else {
            continue;
        };
        tokens += inner + part(done, left)?;
        done = right;
    }
    Ok(tokens + part(done, text.len())?)
}

/// The effect of the text after a stretch on its last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FollowedBy {
    Nothing,
    Text,
}

/// Returns the words of a stretch that are not adjacent to text: the offset of their beginning,
/// their number, and the offset of their end. `None` if there are none.
fn inner_words(text: &str, start: usize, end: usize, behind: FollowedBy) -> Option<(usize, u32, usize)> {
    let stretch = &text[start..end];
    // The space after the last word of the margin; the first word may have a space before it.
    let left = match start {
        0 => 0,
        _ => {
            start
                + stretch
                    .match_indices(' ')
                    .nth(MARGIN - usize::from(!stretch.starts_with(' ')))?
                    .0
        }
    };
    let right = match behind {
        FollowedBy::Nothing => end,
        FollowedBy::Text => start + stretch.rmatch_indices(' ').nth(MARGIN - 1)?.0,
    };
    let inner = text.get(left..right).filter(|inner| !inner.is_empty())?;
    let spaces = inner.bytes().filter(|byte| *byte == b' ').count();
    let words = if inner.starts_with(' ') {
        spaces
    } else {
        spaces + 1
    };
    Some((left, words as u32, right))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_one_word_on_either_side_with_the_text() {
        //          0123456789012345678901
        let text = "T: one two three four.";
        // After a text, with and without a space before the first word.
        let inner_words = |text, start, end| inner_words(text, start, end, FollowedBy::Text);
        assert_eq!(inner_words(text, 2, 21), Some((6, 2, 16)));
        assert_eq!(inner_words(text, 3, 21), Some((6, 2, 16)));
        // At the very beginning and end there is no adjacent text.
        assert_eq!(inner_words("one two.", 0, 7), Some((0, 1, 3)));
        let at_the_end = |text, start, end| super::inner_words(text, start, end, FollowedBy::Nothing);
        assert_eq!(at_the_end("T: one two", 3, 10), Some((6, 1, 10)));
        assert_eq!(at_the_end("one two", 0, 7), Some((0, 2, 7)));
        assert_eq!(at_the_end("T: one two<|end|>", 3, 10), Some((6, 1, 10)));
        // Nothing is left between the margins.
        assert_eq!(inner_words("T: one.", 3, 6), None);
        assert_eq!(inner_words("T: one two.", 3, 10), None);
    }
}
