//! Writes pieces as text and counts it, with caches of earlier texts.

use std::sync::{Arc, Mutex, PoisonError};

use veeksha_model::Seed;

use crate::cache::TextCache;
use crate::compose::{Composed, PromptPiece, build, repaired};
use crate::count::{BuiltText, TokenCounter, count};
use crate::error::PromptError;
use crate::synthetic::SyntheticRun;
use crate::tokenizer::Tokenizer;
use crate::words::{Guarantee, Lead, Words};

/// Maximum number of synthetic tokens of one request.
pub const MAX_TOKENS: u32 = veeksha_model::MAX_SYNTHETIC_TOKENS;

/// Maximum size of cached shared text.
const CACHE_BYTES: usize = 64 << 20;

/// A tokenizer, its words, and caches of texts and counts.
#[derive(Debug)]
pub(crate) struct MessageWriter {
    pub(crate) tokenizer: Tokenizer,
    pub(crate) words: Words,
    counted: TokenCounter,
    /// Synthetic text by (seed, tokens), as at the beginning of a message.
    texts: Mutex<TextCache<(Seed, u32)>>,
}

impl MessageWriter {
    pub(crate) fn new(tokenizer: Tokenizer) -> Result<Self, PromptError> {
        Ok(MessageWriter {
            words: Words::of(&tokenizer)?,
            counted: TokenCounter::of(&tokenizer),
            tokenizer,
            texts: Mutex::new(TextCache::new(CACHE_BYTES)),
        })
    }

    pub(crate) fn is_proven(&self) -> bool {
        self.words.guarantee == Guarantee::Proven
    }

    /// Returns synthetic text as at the beginning of a message.
    pub(crate) fn text(&self, seed: Seed, tokens: u32) -> Arc<str> {
        match self.compose(vec![PromptPiece::synthetic(seed, tokens)]) {
            Ok(composed) => composed.built.text,
            // A tokenizer that refuses its words has no count that could be exact.
            Err(_) => self.shared(seed, tokens),
        }
    }

    /// Returns the pieces of every message as text.
    pub(crate) fn compose_all(&self, pieces: Vec<Vec<PromptPiece>>) -> Result<Vec<Composed>, PromptError> {
        pieces.into_iter().map(|pieces| self.compose(pieces)).collect()
    }

    /// Composes the pieces so that the whole has the requested number of tokens.
    pub(crate) fn compose(&self, mut pieces: Vec<PromptPiece>) -> Result<Composed, PromptError> {
        let target = self.asked(&pieces)?;
        if let Some(built) = self.proven(&pieces) {
            return Ok(Composed {
                built,
                target,
                tokens: target,
            });
        }
        let (built, tokens) = repaired(
            &mut pieces,
            target,
            |pieces| self.build(pieces),
            |built| self.count(built),
        )?;
        Ok(Composed {
            built,
            target,
            tokens,
        })
    }

    /// Returns the number of tokens that the synthetic pieces request, plus those of the texts.
    pub(crate) fn asked(&self, pieces: &[PromptPiece]) -> Result<u32, PromptError> {
        let mut asked = 0u32;
        for piece in pieces {
            asked = asked.saturating_add(match piece {
                PromptPiece::Text(text) => self.tokenizer.try_count(text)?,
                PromptPiece::Synthetic(run) => run.words,
            });
        }
        Ok(asked)
    }

    pub(crate) fn count(&self, built: &BuiltText) -> Result<u32, PromptError> {
        count(&self.tokenizer, &self.words, &self.counted, built)
    }

    pub(crate) fn build(&self, pieces: &[PromptPiece]) -> BuiltText {
        self.proven(pieces).unwrap_or_else(|| build(&self.words, pieces))
    }

    /// Returns entirely synthetic, unrepaired pieces from the cache; they have as many tokens as
    /// words.
    fn proven(&self, pieces: &[PromptPiece]) -> Option<BuiltText> {
        if !self.is_proven() {
            return None;
        }
        let runs: Option<Vec<SyntheticRun>> = pieces
            .iter()
            .map(|piece| match piece {
                PromptPiece::Synthetic(run) => Some(*run).filter(|run| run.alternative == 0),
                PromptPiece::Text(_) => None,
            })
            .collect();
        Some(BuiltText::synthetic(self.joined(&runs?)))
    }

    /// Concatenates synthetic texts.
    fn joined(&self, runs: &[SyntheticRun]) -> Arc<str> {
        match runs {
            [] => Arc::from(""),
            [run] => self.shared(run.seed, run.words),
            _ => {
                let mut text = String::new();
                for run in runs.iter().filter(|run| run.words > 0) {
                    if !text.is_empty() && self.words.lead == Lead::Bare {
                        text.push(' ');
                    }
                    text.push_str(&self.shared(run.seed, run.words));
                }
                text.into()
            }
        }
    }

    /// Returns words of a seed, from the cache if possible.
    fn shared(&self, seed: Seed, tokens: u32) -> Arc<str> {
        let key = (seed, tokens);
        // A panic with the lock held leaves at worst an incomplete cache.
        if let Some(text) = self.texts.lock().unwrap_or_else(PoisonError::into_inner).get(key) {
            return text;
        }
        let mut text = String::new();
        SyntheticRun::new(seed, tokens).write(&self.words, &mut text);
        let text: Arc<str> = text.into();
        self.texts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .offer(key, &text);
        text
    }
}
