//! Composes the pieces of a message and repairs the text until its token count is the target.

use veeksha_model::Seed;

use crate::count::BuiltText;
use crate::error::PromptError;
use crate::synthetic::SyntheticRun;
use crate::words::Words;

/// A piece of a message's text. Adjacent texts have been joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PromptPiece {
    Text(String),
    Synthetic(SyntheticRun),
}

/// A finished text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Composed {
    pub(crate) built: BuiltText,
    /// Requested tokens.
    pub(crate) target: u32,
    /// Tokens of the text.
    pub(crate) tokens: u32,
}

/// Maximum number of changes before the count is accepted as it is. Each change creates new joints;
/// with a proven vocabulary at least one in two fits, with tokens that span spaces about one in
/// ten.
const REPAIRS: u32 = 128;

impl PromptPiece {
    pub(crate) fn synthetic(seed: Seed, tokens: u32) -> PromptPiece {
        PromptPiece::Synthetic(SyntheticRun::new(seed, tokens))
    }
}

/// Changes the last suitable synthetic piece repeatedly until the text has the requested number of
/// tokens.
///
/// Joints can cost or save tokens (`...end` + `ing...`). Then the last synthetic piece gets that
/// many words less or more, and another last word, until the count of the whole is right. Pieces
/// without synthetic text are only counted.
///
/// Returns the text and its count: the target, or another number if no change helped.
pub(crate) fn repaired(
    pieces: &mut [PromptPiece],
    target: u32,
    mut build: impl FnMut(&[PromptPiece]) -> BuiltText,
    mut measure: impl FnMut(&BuiltText) -> Result<u32, PromptError>,
) -> Result<(BuiltText, u32), PromptError> {
    let mut turn = 0;
    loop {
        let built = build(pieces);
        let tokens = measure(&built)?;
        let missing = i64::from(target) - i64::from(tokens);
        turn += 1;
        if missing == 0 || turn > REPAIRS || !repair(pieces, missing, turn) {
            return Ok((built, tokens));
        }
    }
}

/// Gives the last suitable synthetic piece another last word, and more or fewer words: all that are
/// missing, half of them, or none, in turn. The turns prevent alternating forever between two
/// lengths that both miss.
fn repair(pieces: &mut [PromptPiece], missing: i64, turn: u32) -> bool {
    let run = pieces.iter_mut().rev().find_map(|piece| match piece {
        PromptPiece::Synthetic(run) if missing > 0 || run.words > 0 => Some(run),
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

/// Removes words from the end of the synthetic pieces; `false` if they do not have that many and
/// one to spare.
pub(crate) fn shorten(pieces: &mut [PromptPiece], mut words: u32) -> bool {
    let runs = pieces.iter_mut().rev().filter_map(|piece| match piece {
        PromptPiece::Synthetic(run) => Some(run),
        PromptPiece::Text(_) => None,
    });
    let mut left = 0;
    for run in runs {
        let taken = words.min(run.words);
        run.words -= taken;
        words -= taken;
        left += run.words;
    }
    words == 0 && left > 0
}

/// Concatenates the pieces.
pub(crate) fn build(words: &Words, pieces: &[PromptPiece]) -> BuiltText {
    let mut text = String::new();
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    for piece in pieces {
        let start = text.len();
        match piece {
            PromptPiece::Text(verbatim) => text.push_str(verbatim),
            PromptPiece::Synthetic(run) => {
                run.write(words, &mut text);
                match stretches.last_mut() {
                    Some((_, end)) if *end == start => *end = text.len(),
                    _ if text.len() > start => stretches.push((start, text.len())),
                    _ => {}
                }
            }
        }
    }
    BuiltText {
        text: text.into(),
        stretches,
    }
}
