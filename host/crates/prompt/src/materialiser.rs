//! Requests to prepared requests.

use std::sync::{Arc, Mutex, PoisonError};

use veeksha_model::{Answer, Message, Prepared, PreparedMessage, Request, Response, Seed, Segment};

use crate::cache::TextCache;
use crate::compose::{Composed, Piece, compose};
use crate::salt::Salt;
use crate::synthetic::Run;
use crate::words::{Guarantee, Lead, Words};
use crate::{PromptError, Tokenizer};

/// Synthetic tokens that one request may ask for: far above any model's context, far below what fills a machine's memory.
pub const MAX_TOKENS: u32 = 1 << 24;

/// Bytes of shared text that are kept.
const CACHE_BYTES: usize = 64 << 20;

/// Makes text of segments. Threads may share one.
#[derive(Debug)]
pub struct Materialiser {
    tokenizer: Tokenizer,
    words: Words,
    salt: Salt,
    /// Synthetic text by (seed, tokens), as it stands at the beginning of a message.
    texts: Mutex<TextCache<(Seed, u32)>>,
}

impl Materialiser {
    /// Finds the words of the tokenizer; some milliseconds.
    pub fn new(tokenizer: Tokenizer) -> Result<Self, PromptError> {
        let words = Words::find(&tokenizer)?;
        Ok(Materialiser {
            tokenizer,
            words,
            salt: Salt::default(),
            texts: Mutex::new(TextCache::new(CACHE_BYTES)),
        })
    }

    /// Mixes a run's salt into every synthetic seed: another salt gives other text, while equal seeds still give equal text and
    /// shorter texts are still beginnings of longer ones. `None` leaves seeds as they are.
    #[must_use]
    pub fn salted(self, salt: Option<u64>) -> Self {
        Materialiser {
            salt: Salt::new(salt),
            texts: Mutex::new(TextCache::new(CACHE_BYTES)),
            ..self
        }
    }

    /// Makes the text of every message. Media parts are passed on; what they cost a model in tokens is not known here and
    /// not counted.
    ///
    /// `target_tokens` is what was asked for: the tokens of synthetic segments, and those of each verbatim text on its own.
    /// `prompt_tokens` is what the finished messages have.
    pub fn prepare(&self, request: Request) -> Result<Prepared, PromptError> {
        let content = request.messages.iter().flat_map(|message| &message.content);
        if let Some(tokens) = too_long(content) {
            return Err(PromptError::TooLong {
                node: request.node,
                tokens,
                limit: MAX_TOKENS,
            });
        }
        let answer = request.replay.as_ref().and_then(|replay| replay.answer.as_ref());
        let recorded_answer = answer
            .map(|answer| self.answer(answer))
            .transpose()?
            .map(Arc::new);
        let mut messages = Vec::with_capacity(request.messages.len());
        let (mut target_tokens, mut prompt_tokens) = (0u32, 0u32);
        for message in &request.messages {
            let (text, target, tokens) = self.compose(&message.content)?;
            target_tokens = target_tokens.saturating_add(target);
            prompt_tokens = prompt_tokens.saturating_add(tokens);
            messages.push(PreparedMessage {
                role: message.role,
                text,
                media: media(message),
                tool_call_id: message.tool_call_id.clone(),
            });
        }
        Ok(Prepared {
            request,
            messages,
            target_tokens,
            prompt_tokens,
            template_tokens: 0,
            recorded_answer,
        })
    }

    /// A recorded answer as if the model had given it now: its text, its tool calls, and its tokens as the tokenizer counts the
    /// text. Media are refused: no API takes them back from an assistant.
    pub fn answer(&self, answer: &Answer) -> Result<Response, PromptError> {
        if let Some(tokens) = too_long(&answer.content) {
            return Err(PromptError::AnswerTooLong {
                tokens,
                limit: MAX_TOKENS,
            });
        }
        if let Some(Segment::Media { kind, .. }) = answer
            .content
            .iter()
            .find(|segment| matches!(segment, Segment::Media { .. }))
        {
            return Err(PromptError::AnswerMedia { kind: kind.name() });
        }
        let (text, _, output_tokens) = self.compose(&answer.content)?;
        Ok(Response {
            text: text.to_string(),
            tool_calls: answer.tool_calls.clone(),
            finish_reason: "stop".to_string(),
            output_tokens,
            ..Response::default()
        })
    }

    /// Synthetic text as it stands at the beginning of a message: exactly `tokens` tokens. Shorter texts of a seed are
    /// beginnings of longer ones.
    pub fn text(&self, seed: Seed, tokens: u32) -> Arc<str> {
        let seed = self.salt.apply(seed);
        if self.words.guarantee == Guarantee::Checked
            && let Ok(composed) = compose(&self.tokenizer, &self.words, vec![Piece::synthetic(seed, tokens)])
        {
            return composed.text.into();
        }
        self.shared(seed, tokens)
    }

    /// How many different words synthetic text is made of.
    pub fn words(&self) -> usize {
        self.words.len()
    }

    /// Whether lengths are exact without encoding each text again; see the crate's documentation.
    pub fn is_proven(&self) -> bool {
        self.words.guarantee == Guarantee::Proven
    }

    /// The text of some segments, the tokens asked for, and the tokens it has.
    fn compose(&self, content: &[Segment]) -> Result<(Arc<str>, u32, u32), PromptError> {
        let pieces = self.pieces(content);
        if self.words.guarantee == Guarantee::Proven
            && let Some(runs) = all_synthetic(&pieces)
        {
            let tokens = runs.iter().map(|run| run.words).sum();
            return Ok((self.joined(&runs), tokens, tokens));
        }
        let Composed { text, target, tokens } = compose(&self.tokenizer, &self.words, pieces)?;
        Ok((text.into(), target, tokens))
    }

    /// The text pieces of some segments; neighbouring texts are one.
    fn pieces(&self, content: &[Segment]) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::with_capacity(content.len());
        for segment in content {
            match (segment, pieces.last_mut()) {
                (Segment::Text(text), Some(Piece::Text(before))) => before.push_str(text),
                (Segment::Text(text), _) => pieces.push(Piece::Text(text.clone())),
                (Segment::Synthetic { seed, tokens }, _) => {
                    pieces.push(Piece::synthetic(self.salt.apply(*seed), *tokens));
                }
                (Segment::Media { .. }, _) => {}
            }
        }
        pieces
    }

    /// Synthetic texts one after the other.
    fn joined(&self, runs: &[Run]) -> Arc<str> {
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

    /// Words of a seed, from the cache if they are there.
    fn shared(&self, seed: Seed, tokens: u32) -> Arc<str> {
        let key = (seed, tokens);
        // A panic while the lock was held leaves a cache that is at worst incomplete.
        if let Some(text) = self.texts.lock().unwrap_or_else(PoisonError::into_inner).get(key) {
            return text;
        }
        let mut text = String::new();
        Run::new(seed, tokens).write(&self.words, &mut text);
        let text: Arc<str> = text.into();
        self.texts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .offer(key, &text);
        text
    }
}

/// The synthetic tokens that the segments ask for, if they are too many.
fn too_long<'a>(content: impl IntoIterator<Item = &'a Segment>) -> Option<u64> {
    let tokens = content
        .into_iter()
        .map(|segment| match segment {
            Segment::Synthetic { tokens, .. } => u64::from(*tokens),
            _ => 0,
        })
        .sum();
    (tokens > u64::from(MAX_TOKENS)).then_some(tokens)
}

fn all_synthetic(pieces: &[Piece]) -> Option<Vec<Run>> {
    pieces
        .iter()
        .map(|piece| match piece {
            Piece::Synthetic(run) => Some(*run),
            Piece::Text(_) => None,
        })
        .collect()
}

fn media(message: &Message) -> Vec<(veeksha_model::MediaKind, String)> {
    let parts = message.content.iter().filter_map(|segment| match segment {
        Segment::Media { kind, source } => Some((*kind, source.clone())),
        _ => None,
    });
    parts.collect()
}
