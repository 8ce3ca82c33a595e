//! One message: its pieces as text, counted, and repaired until the count is the target.

use veeksha_model::Seed;

use crate::synthetic::Run;
use crate::words::{Guarantee, Words};
use crate::{PromptError, Tokenizer};

/// A piece of a message's text. Neighbouring texts have been joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Synthetic(Run),
}

/// A finished text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Composed {
    pub(crate) text: String,
    /// Tokens asked for.
    pub(crate) target: u32,
    /// Tokens of `text`.
    pub(crate) tokens: u32,
}

/// How often a text is changed before its count is taken as it is. Each change meets the joints anew; with a proven
/// vocabulary one in two or better fits, with tokens that reach over spaces about one in ten.
const REPAIRS: u32 = 128;
/// Words of synthetic text that are encoded together with the text beside them.
const MARGIN: usize = 2;

impl Piece {
    pub(crate) fn synthetic(seed: Seed, tokens: u32) -> Piece {
        Piece::Synthetic(Run::new(seed, tokens))
    }
}

/// Writes the pieces so that the whole has as many tokens as the synthetic pieces ask for and the texts have on their own.
///
/// Joints can cost or save tokens (`...end` + `ing...`). Then the last synthetic piece gets that many words less or more,
/// and another last word, until the whole counts right. A message without synthetic pieces is counted only.
pub(crate) fn compose(
    tokenizer: &Tokenizer,
    words: &Words,
    mut pieces: Vec<Piece>,
) -> Result<Composed, PromptError> {
    let mut target = 0i64;
    for piece in &pieces {
        target += match piece {
            Piece::Text(text) => i64::from(tokenizer.try_count(text)?),
            Piece::Synthetic(run) => i64::from(run.words),
        };
    }
    let mut turn = 0;
    loop {
        let built = build(words, &pieces);
        let tokens = count(tokenizer, words, &built)?;
        let missing = target - i64::from(tokens);
        turn += 1;
        if missing == 0 || turn > REPAIRS || !repair(&mut pieces, missing, turn) {
            return Ok(Composed {
                text: built.text,
                target: target as u32,
                tokens,
            });
        }
    }
}

/// Gives the last synthetic piece that can take it another last word, and more or fewer words: as many as are missing, half
/// of them, or none, in turn. The turns keep two lengths that both miss from being tried for ever.
fn repair(pieces: &mut [Piece], missing: i64, turn: u32) -> bool {
    let run = pieces.iter_mut().rev().find_map(|piece| match piece {
        Piece::Synthetic(run) if missing > 0 || run.words > 0 => Some(run),
        _ => None,
    });
    let Some(run) = run else { return false };
    let change = match turn % 3 {
        1 => missing,
        2 => missing / 2,
        _ => 0,
    };
    run.words = (i64::from(run.words) + change).clamp(0, i64::from(u32::MAX)) as u32;
    run.alternative = turn;
    true
}

/// A text and where its synthetic stretches lie.
struct Built {
    text: String,
    /// Byte ranges of neighbouring synthetic pieces, taken together.
    stretches: Vec<(usize, usize)>,
}

fn build(words: &Words, pieces: &[Piece]) -> Built {
    let mut text = String::new();
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    for piece in pieces {
        let start = text.len();
        match piece {
            Piece::Text(verbatim) => text.push_str(verbatim),
            Piece::Synthetic(run) => {
                run.write(words, &mut text);
                match stretches.last_mut() {
                    Some((_, end)) if *end == start => *end = text.len(),
                    _ if text.len() > start => stretches.push((start, text.len())),
                    _ => {}
                }
            }
        }
    }
    Built { text, stretches }
}

/// Counts the tokens of a text.
///
/// Where the words are proven boundaries, only the texts and two words on either side of them are encoded; the words between
/// are a token each. A part that begins in the middle of the text gets a word before it, so that it does not begin with a
/// space that was not at a beginning.
fn count(tokenizer: &Tokenizer, words: &Words, built: &Built) -> Result<u32, PromptError> {
    let text = built.text.as_str();
    if words.guarantee == Guarantee::Checked {
        return tokenizer.try_count(text);
    }
    let mut tokens = 0;
    let mut counted = 0;
    for &(start, end) in &built.stretches {
        let Some((left, inner, right)) = inner_words(text, start, end) else {
            continue;
        };
        tokens += inner + count_part(tokenizer, words, text, counted, left)?;
        counted = right;
    }
    Ok(tokens + count_part(tokenizer, words, text, counted, text.len())?)
}

fn count_part(
    tokenizer: &Tokenizer,
    words: &Words,
    text: &str,
    start: usize,
    end: usize,
) -> Result<u32, PromptError> {
    match (start, end) {
        _ if start == end => Ok(0),
        (0, _) => tokenizer.try_count(&text[..end]),
        _ => {
            let part = format!("{}{}", words.anchor(), &text[start..end]);
            Ok(tokenizer.try_count(&part)?.saturating_sub(1))
        }
    }
}

/// The words of a stretch that no text touches: where they begin, how many they are, and where they end. `None` if there are
/// none.
fn inner_words(text: &str, start: usize, end: usize) -> Option<(usize, u32, usize)> {
    let stretch = &text[start..end];
    let left = match start {
        0 => 0,
        _ => start + stretch.match_indices(' ').nth(MARGIN)?.0,
    };
    let right = match end == text.len() {
        true => end,
        false => start + stretch.rmatch_indices(' ').nth(MARGIN - 1)?.0,
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
