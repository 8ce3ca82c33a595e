//! A trace in another format.

mod error;
mod format;
mod lengths;
mod losses;
mod mooncake;
mod words;

use std::collections::HashMap;

use veeksha_model::{HistoryMode, Nanos, Request, Segment, Session};
use veeksha_prefix::{Piece, PrefixLedger};

pub use error::CannotConvert;
pub use format::{Format, UnknownFormat};
pub use losses::Loss;

use crate::blocks::Block;
use crate::conversation::Conversation;
use losses::Losses;

/// Tokens of a block where nothing else is said, as in Mooncake's traces.
pub const BLOCK_SIZE: u32 = 512;

/// Writes sessions as rows of a format, and counts what the format cannot hold. Sessions must come in order, each once: hash ids
/// are numbered from 0 as they appear. Memory grows with the number of different blocks (about 40 bytes each) and pieces of
/// prompts ([`PrefixLedger`]).
#[derive(Clone, Debug)]
pub struct Converter {
    to: Format,
    block_size: u32,
    ids: HashMap<u64, u64>,
    losses: Losses,
    /// What of the prompts begins an earlier one; and what of them still does in the new format.
    seen: PrefixLedger,
    kept: PrefixLedger,
    answers: u64,
}

impl Converter {
    /// A converter to a format.
    pub fn new(to: Format) -> Self {
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

    /// Another size of hash blocks than 512 (at least 1). The flavor that reads the file must be told the same.
    pub fn block_size(mut self, tokens: u32) -> Self {
        self.block_size = tokens.max(1);
        self
    }

    /// The rows of a session, without line ends. `index` is the session's number and becomes its id; `count` gives the tokens of a
    /// verbatim text.
    pub fn rows(
        &mut self,
        session: &Session,
        index: u64,
        count: &dyn Fn(&str) -> u32,
    ) -> Result<Vec<String>, CannotConvert> {
        let conversation = Conversation::of(session, &mut self.answers, count);
        let source = Source {
            session,
            conversation: &conversation,
            index,
            format: self.to.name(),
            count,
        };
        let rows = match self.to {
            Format::RequestLog | Format::RequestLogCsv => self.request_log(&source),
            Format::TimedSyntheticSession => self.timed_synthetic_session(&source),
            Format::Mooncake => self.mooncake(&source),
            Format::SharedPrefix => self.shared_prefix(&source),
            Format::MultiTurn => self.multi_turn(&source),
            Format::SingleTurn => self.single_turn(&source),
            Format::UntimedContentMultiTurn => self.untimed(&source),
        }?;
        self.losses.add(losses::LABELS, !session.labels.is_empty());
        for request in &session.requests {
            self.losses.add(losses::LABELS, !request.labels.is_empty());
            let latency = request.replay.as_ref().and_then(|replay| replay.recorded.latency);
            self.losses.add(losses::LATENCY, latency.is_some());
        }
        Ok(rows)
    }

    /// What the sessions so far had that the format does not hold, with how often; those that could not be converted do not
    /// count.
    pub fn losses(&self) -> Vec<Loss> {
        self.losses.list()
    }

    /// The hash ids of a prompt: equal for equal blocks, numbered as they appear.
    fn hash_ids(&mut self, blocks: &[Block]) -> Vec<u64> {
        let mut id = |block: &Block| {
            let next = self.ids.len() as u64;
            *self.ids.entry(block.key).or_insert(next)
        };
        blocks.iter().map(&mut id).collect()
    }

    /// What every format of lengths loses of a request.
    fn lose_content(&mut self, request: &Request) {
        let mut segments = request.messages.iter().flat_map(|message| &message.content);
        let words = segments
            .clone()
            .any(|segment| matches!(segment, Segment::Text(_)));
        let media = segments.any(|segment| matches!(segment, Segment::Media { .. }));
        let plain = matches!(request.messages.as_slice(), [only] if only.role == veeksha_model::Role::User);
        let answer = request.replay.as_ref().and_then(|replay| replay.answer.as_ref());
        let recorded = request.history_mode() == HistoryMode::Recorded && request.history_parent.is_some();
        for (what, lost) in [
            (losses::WORDS, words),
            (losses::MEDIA, media),
            (losses::MESSAGES, !plain),
            (losses::BODY, request.body.is_some()),
            (losses::ANSWER_WORDS, answer.is_some()),
            (losses::ANSWERS, recorded),
        ] {
            self.losses.add(what, lost);
        }
    }

    /// What formats that need the length of every answer lose of a request.
    fn lose_empty_answer(&mut self, source: &Source<'_>, request: &Request) {
        let tokens = crate::conversation::output_tokens(request, source.count);
        self.losses.add(losses::EMPTY_ANSWERS, tokens == Some(0));
    }

    /// Counts a request whose prompt begins like an earlier one for more tokens than what is written of it does.
    fn lose_sharing(&mut self, what: &'static str, prompt: &[Piece], written: &[Piece]) {
        let (before, after) = (self.seen.see(prompt), self.kept.see(written));
        self.losses.add(what, after < before);
    }
}

/// A session to be written.
struct Source<'a> {
    session: &'a Session,
    conversation: &'a Conversation<'a>,
    index: u64,
    format: &'static str,
    count: &'a dyn Fn(&str) -> u32,
}

impl Source<'_> {
    /// The recorded instant of a request: its own, or for one that waits for none the session's.
    fn instant(&self, request: &Request) -> Option<Nanos> {
        let recorded = request.replay.as_ref().and_then(|replay| replay.recorded.at);
        recorded.or(self.session.arrives_at.filter(|_| request.parents.is_empty()))
    }

    /// Tokens of a request's answer, at least one.
    fn output(&self, request: &Request) -> Result<u32, CannotConvert> {
        let tokens = crate::conversation::output_tokens(request, self.count);
        let tokens = tokens.ok_or(CannotConvert::UnknownOutput {
            session: self.index,
            node: request.node,
            format: self.format,
        })?;
        Ok(tokens.max(1))
    }

    /// Tokens of a prompt, at least one.
    fn tokens(&self, request: &Request, prompt: &[Piece]) -> Result<u64, CannotConvert> {
        match crate::conversation::length(prompt) {
            0 => Err(CannotConvert::NothingToSend {
                session: self.index,
                node: request.node,
                format: self.format,
            }),
            tokens => Ok(tokens),
        }
    }

    /// That each request waits for the one before it, and for nothing else; and, where `history` is asked for, continues it.
    fn check_line(&self, history: Line) -> Result<(), CannotConvert> {
        let requests = &self.session.requests;
        let follows = |place: usize| {
            let request = &requests[place];
            let Some(before) = place.checked_sub(1).map(|place| requests[place].node) else {
                return request.parents.is_empty();
            };
            request.parents == [before]
                && (history == Line::OfRequests
                    || (request.history_parent == Some(before)
                        && request.history_mode() != HistoryMode::Fresh))
        };
        let Some(place) = (0..requests.len()).find(|place| !follows(*place)) else {
            return Ok(());
        };
        let (session, node, format) = (self.index, requests[place].node, self.format);
        Err(match history {
            Line::OfRequests => CannotConvert::NotALine {
                session,
                node,
                format,
            },
            Line::OfTurns => CannotConvert::NotAConversation {
                session,
                node,
                format,
            },
        })
    }
}

/// What a line of requests must be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Each waits for the one before it.
    OfRequests,
    /// Each continues the conversation of the one before it.
    OfTurns,
}

/// Nanoseconds as seconds, as JSON writes them.
fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / 1e9
}

/// Nanoseconds as milliseconds; a whole number where it is one.
fn milliseconds(nanos: Nanos) -> serde_json::Number {
    match nanos % 1_000_000 {
        0 => (nanos / 1_000_000).into(),
        _ => serde_json::Number::from_f64(nanos as f64 / 1e6).unwrap_or_else(|| 0.into()),
    }
}

/// A prompt as its blocks, to see what of it begins an earlier one.
fn as_pieces(blocks: &[Block]) -> Vec<Piece> {
    let piece = |block: &Block| Piece {
        identity: block.key,
        tokens: block.tokens,
    };
    blocks.iter().map(piece).collect()
}

#[cfg(test)]
mod tests;
