//! Conversion of a trace into another format.

mod error;
mod format;
mod length_formats;
mod losses;
mod mooncake;
mod text_formats;

use std::collections::HashMap;

use veeksha_model::{Edge, HistoryMode, Nanos, Request, Segment, Session};
use veeksha_prefix::{PrefixLedger, PrefixPiece};

pub use error::ConvertError;
pub use format::{TargetFormat, UnknownFormat};
pub use losses::Loss;

use crate::blocks::PromptBlock;
use crate::conversation::SessionTurns;
use losses::Losses;

/// Default number of tokens per block, as in Mooncake's traces.
pub const BLOCK_SIZE: u32 = 512;

/// Writes sessions as rows of a format and counts what the format cannot represent. Sessions must
/// come in order, each once: hash ids are numbered by first appearance. Memory grows with the
/// number of distinct blocks (about 40 bytes each) and pieces of prompts ([`PrefixLedger`]).
#[derive(Clone, Debug)]
pub struct Converter {
    to: TargetFormat,
    block_size: u32,
    ids: HashMap<u64, u64>,
    losses: Losses,
    /// Common prefixes in the source, and in the target.
    seen: PrefixLedger,
    kept: PrefixLedger,
    answers: u64,
}

impl Converter {
    /// Creates a converter to a format.
    pub fn new(to: TargetFormat) -> Self {
        Converter {
            to,
            block_size: BLOCK_SIZE,
            ids: HashMap::new(),
            losses: Losses::default(),
            seen: PrefixLedger::new(),
            kept: PrefixLedger::new(),
            answers: 0,
        }
    }

    /// Sets the size of hash blocks (at least 1) instead of 512. The flavor that reads the file
    /// needs the same value.
    pub fn block_size(mut self, tokens: u32) -> Self {
        self.block_size = tokens.max(1);
        self
    }

    /// Converts a session to rows without line ends. `index` is the session's number and becomes
    /// its id; `count` tokenizes a text.
    pub fn rows(
        &mut self,
        session: &Session,
        index: u64,
        count: &dyn Fn(&str) -> u32,
    ) -> Result<Vec<String>, ConvertError> {
        let conversation = SessionTurns::of(session, &mut self.answers, count);
        let source = SourceSession {
            session,
            conversation: &conversation,
            index,
            format: self.to.name(),
            count,
        };
        let rows = match self.to {
            TargetFormat::RequestLog | TargetFormat::RequestLogCsv => self.request_log(&source),
            TargetFormat::TimedSyntheticSession => self.timed_synthetic_session(&source),
            TargetFormat::Mooncake => self.mooncake(&source),
            TargetFormat::SharedPrefix => self.shared_prefix(&source),
            TargetFormat::MultiTurn => self.multi_turn(&source),
            TargetFormat::SingleTurn => self.single_turn(&source),
            TargetFormat::UntimedContentMultiTurn => self.untimed(&source),
        }?;
        self.losses.add(losses::LABELS, !session.labels.is_empty());
        self.losses.add(losses::HEADERS, !session.headers.is_empty());
        self.losses.add(losses::TOOL_RUNS, !session.tool_runs.is_empty());
        for request in &session.requests {
            self.losses.add(losses::LABELS, !request.labels.is_empty());
            self.losses.add(losses::HEADERS, !request.headers.is_empty());
            let ended = |edge: &Edge| *edge == Edge::from(edge.parent);
            self.losses
                .add(losses::EVENTS, !request.parents.iter().all(ended));
            let latency = request.replay.as_ref().and_then(|replay| replay.recorded.latency);
            self.losses.add(losses::LATENCY, latency.is_some());
        }
        Ok(rows)
    }

    /// Returns the losses of the sessions converted so far; failed ones do not count.
    pub fn losses(&self) -> Vec<Loss> {
        self.losses.list()
    }

    /// Returns the hash ids of a prompt: equal for equal blocks, numbered by first appearance.
    fn hash_ids(&mut self, blocks: &[PromptBlock]) -> Vec<u64> {
        let mut id = |block: &PromptBlock| {
            let next = self.ids.len() as u64;
            *self.ids.entry(block.key).or_insert(next)
        };
        blocks.iter().map(&mut id).collect()
    }

    /// Counts the losses of a request in every format of lengths.
    fn lose_content(&mut self, request: &Request) {
        let mut segments = request.messages.iter().flat_map(|message| &message.content);
        let text_formats = segments
            .clone()
            .any(|segment| matches!(segment, Segment::Text(_)));
        let media = segments.any(|segment| matches!(segment, Segment::Media { .. }));
        let plain = matches!(request.messages.as_slice(), [only] if only.role == veeksha_model::Role::User);
        let answer = request.replay.as_ref().and_then(|replay| replay.answer.as_ref());
        let recorded = request.history_mode() == HistoryMode::Recorded && request.history_parent.is_some();
        for (what, lost) in [
            (losses::WORDS, text_formats),
            (losses::MEDIA, media),
            (losses::MESSAGES, !plain),
            (losses::BODY, request.body.is_some()),
            (losses::ANSWER_WORDS, answer.is_some()),
            (losses::ANSWERS, recorded),
        ] {
            self.losses.add(what, lost);
        }
    }

    /// Counts the loss of an empty answer in formats that need a length.
    fn lose_empty_answer(&mut self, source: &SourceSession<'_>, request: &Request) {
        let tokens = crate::conversation::output_tokens(request, source.count);
        self.losses.add(losses::EMPTY_ANSWERS, tokens == Some(0));
    }

    /// Counts a request whose common prefix with an earlier prompt becomes shorter in the target.
    fn lose_sharing(&mut self, what: &'static str, prompt: &[PrefixPiece], written: &[PrefixPiece]) {
        let (before, after) = (self.seen.see(prompt), self.kept.see(written));
        self.losses.add(what, after < before);
    }
}

/// A session to be written.
struct SourceSession<'a> {
    session: &'a Session,
    conversation: &'a SessionTurns<'a>,
    index: u64,
    format: &'static str,
    count: &'a dyn Fn(&str) -> u32,
}

impl SourceSession<'_> {
    /// Returns the recorded instant of a request: its own, or the session's if it waits for no
    /// other.
    fn instant(&self, request: &Request) -> Option<Nanos> {
        let recorded = request.replay.as_ref().and_then(|replay| replay.recorded.at);
        recorded.or(self.session.arrives_at.filter(|_| request.parents.is_empty()))
    }

    /// Returns the tokens of a request's answer, at least one.
    fn output(&self, request: &Request) -> Result<u32, ConvertError> {
        let tokens = crate::conversation::output_tokens(request, self.count);
        let tokens = tokens.ok_or(ConvertError::UnknownOutput {
            session: self.index,
            node: request.node,
            format: self.format,
        })?;
        Ok(tokens.max(1))
    }

    /// Returns the tokens of a prompt, at least one.
    fn tokens(&self, request: &Request, prompt: &[PrefixPiece]) -> Result<u64, ConvertError> {
        match crate::conversation::length(prompt) {
            0 => Err(ConvertError::NothingToSend {
                session: self.index,
                node: request.node,
                format: self.format,
            }),
            tokens => Ok(tokens),
        }
    }

    /// Checks that each request waits for exactly the preceding one and, if `history` requires it,
    /// continues it.
    fn check_chain(&self, history: Chain) -> Result<(), ConvertError> {
        let requests = &self.session.requests;
        let follows = |place: usize| {
            let request = &requests[place];
            let Some(before) = place.checked_sub(1).map(|place| requests[place].node) else {
                return request.parents.is_empty();
            };
            request.parents == [before.into()]
                && (history == Chain::OfRequests
                    || (request.history_parent == Some(before)
                        && request.history_mode() != HistoryMode::Fresh))
        };
        let Some(place) = (0..requests.len()).find(|place| !follows(*place)) else {
            return Ok(());
        };
        let (session, node, format) = (self.index, requests[place].node, self.format);
        Err(match history {
            Chain::OfRequests => ConvertError::NotALine {
                session,
                node,
                format,
            },
            Chain::OfTurns => ConvertError::NotAConversation {
                session,
                node,
                format,
            },
        })
    }
}

/// Required relation between successive requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chain {
    /// Each waits for the preceding one.
    OfRequests,
    /// Each continues the conversation of the preceding one.
    OfTurns,
}

/// Converts nanoseconds to milliseconds, as an integer if exact.
fn milliseconds(nanos: Nanos) -> serde_json::Number {
    match nanos % 1_000_000 {
        0 => (nanos / 1_000_000).into(),
        _ => serde_json::Number::from_f64(nanos as f64 / 1e6).unwrap_or_else(|| 0.into()),
    }
}

/// Converts blocks into pieces, to find common prefixes.
fn as_pieces(blocks: &[PromptBlock]) -> Vec<PrefixPiece> {
    let piece = |block: &PromptBlock| PrefixPiece {
        identity: block.key,
        tokens: block.tokens,
    };
    blocks.iter().map(piece).collect()
}

#[cfg(test)]
mod tests;
