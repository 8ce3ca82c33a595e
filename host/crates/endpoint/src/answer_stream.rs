//! Makes chunks and a response of an answer's body.
//!
//! Pure: the caller passes bytes with the read they came from; [`AnswerStream::finish`] gives the verdict. Rules that are not
//! obvious:
//!
//! * **Success needs a finish reason.** `[DONE]` alone proves nothing (vLLM and dynamo send it after an error); an answer with a
//!   finish reason is complete, even if the connection is lost afterwards. A template that has no place for a finish reason says
//!   the end otherwise: by its marker, else by the end of the body.
//! * **An error wins**, even after a finish reason: in the shapes of [`crate::error_in`], or by its name (`event: error`).
//! * **Only choice 0 counts.** With `n = 2` the events of the other choices are recorded with kind `role` (nothing was
//!   generated for this answer). Servers do not agree whether usage counts one choice or all; what they say is taken as it is.
//! * **Chunks are not tokens.** [`veeksha_model::Response::output_tokens`] is the server's count, else 0; the caller counts with
//!   the tokenizer where [`veeksha_model::Response::usage`] is `None`.
//! * **The last usage wins**, wherever it stands: in an event of its own, in the finish event, in every event.
//! * **After the end marker nothing counts.** The body is still read to its end, because the connection is to be used again.
//!
//! Events that differ from an earlier one only in their text are understood without a parser: see `skeleton.rs`.

use veeksha_model::{Chunk, ChunkKind, ErrorClass, Framing, Nanos};

use crate::answer::{Answer, EndRule, named_error};
use crate::answer_outcome::{AnswerOutcome, BodyEnd, QUOTED_CHARS, ReadStamp};
use crate::cut::{Cutter, Item, MAX_EVENT_BYTES};
use crate::endpoint_kind::EndpointKind;
use crate::events::Reader;
use crate::failure::{Failure, shorten};
use crate::skeleton::{PlainEvent, Skeleton};

/// The most text that an answer may have: some four million tokens.
pub const MAX_TEXT_BYTES: usize = 16 << 20;

/// Limit of the events of a response, 24 MB of chunks. The longest outputs have some 100,000 tokens.
pub const MAX_EVENTS: usize = 1_000_000;

/// The state of one streamed answer.
#[derive(Debug)]
pub struct AnswerStream {
    reader: Reader,
    cutter: Cutter,
    skeleton: Skeleton,
    answer: Answer,
    /// Nothing is half read and nothing is over: the next event may fit the skeleton.
    ready: bool,
    /// The read that completed the last event.
    last_read: Option<u64>,
    /// The first bytes, for the message about an answer that is no event stream.
    beginning: Vec<u8>,
}

impl AnswerStream {
    /// The state before the first byte.
    pub fn new(endpoint: &EndpointKind) -> Self {
        AnswerStream {
            reader: Reader::new(endpoint),
            cutter: Cutter::with_limit(endpoint.framing(), MAX_EVENT_BYTES),
            skeleton: Skeleton::default(),
            answer: Answer::new(endpoint.framing() == Framing::Whole),
            ready: false,
            last_read: None,
            beginning: Vec::new(),
        }
    }

    /// Parses every event. It gives the same verdict and takes longer: for tests and measurements of just that.
    pub fn without_skeletons(mut self) -> Self {
        self.skeleton.turn_off();
        self
    }

    /// How many of the events seen so far were understood without a parser.
    pub fn fitted_events(&self) -> u64 {
        self.skeleton.fitted()
    }

    /// Takes the next bytes of the body. Returns false once the rest is of no use: the answer cannot be understood and the
    /// connection is better given up.
    pub fn on_bytes(&mut self, stamp: ReadStamp, bytes: &[u8]) -> bool {
        let rest = match self.ready {
            true => self.fit_events(stamp, bytes),
            false => bytes,
        };
        (rest.is_empty() || self.parse_events(stamp, rest)) && self.is_bounded(stamp)
    }

    /// An answer without an end must not fill the memory, nor keep the tokenizer busy for minutes.
    fn is_bounded(&mut self, stamp: ReadStamp) -> bool {
        let refuse = |what: String| Failure::new(ErrorClass::Protocol, what);
        let failure = if self.answer.text_bytes() > MAX_TEXT_BYTES {
            refuse(format!(
                "the answer has more than {} MiB of text",
                MAX_TEXT_BYTES >> 20
            ))
        } else if self.answer.events > MAX_EVENTS {
            refuse(format!("the answer has more than {MAX_EVENTS} events"))
        } else {
            return true;
        };
        self.answer.fail(stamp.at, failure);
        false
    }

    /// Takes in the events at the front that fit the skeleton; returns what is left.
    #[inline]
    fn fit_events<'a>(&mut self, stamp: ReadStamp, mut input: &'a [u8]) -> &'a [u8] {
        while !input.is_empty()
            && let Some(fit) = self.skeleton.fit(input)
        {
            let merged = self.last_read == Some(stamp.read);
            if !self.answer.fitted(stamp, merged, &fit) {
                break;
            }
            self.last_read = Some(stamp.read);
            input = input.get(fit.raw_bytes..).unwrap_or_default();
        }
        input
    }

    fn parse_events(&mut self, stamp: ReadStamp, bytes: &[u8]) -> bool {
        let mut input = bytes;
        while !input.is_empty() && !self.answer.is_over() {
            let begins = self.cutter.begins_event(input);
            let before = input;
            let item = match self.cutter.next(&mut input) {
                Ok(Some(item)) => item,
                Ok(None) => break,
                Err(error) => {
                    let failure = Failure::new(ErrorClass::Protocol, error.to_string());
                    self.answer.fail(stamp.at, failure);
                    break;
                }
            };
            let merged = self.last_read.replace(stamp.read) == Some(stamp.read);
            let plain = take_in(&mut self.reader, &mut self.answer, stamp, merged, item);
            let learnt = match (plain, item) {
                (Some(plain), Item::Data(data))
                    if begins && self.skeleton.learns() && self.reader.may_repeat(data) =>
                {
                    Some((plain, data.len()))
                }
                _ => None,
            };
            let between = self.cutter.is_between_events();
            if let Some((plain, data_bytes)) = learnt
                && between
            {
                let raw = before.get(..before.len() - input.len()).unwrap_or_default();
                self.skeleton.learn(raw, data_bytes, &plain);
            }
            if between && !self.answer.is_over() {
                input = self.fit_events(stamp, input);
            }
        }
        self.ready = self.cutter.is_between_events() && !self.answer.is_over();
        if !self.answer.any_event {
            let room = (4 * QUOTED_CHARS).saturating_sub(self.beginning.len());
            self.beginning.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        !matches!(&self.answer.failure, Some((failure, _)) if failure.class == ErrorClass::Protocol)
    }

    /// When the first generated chunk arrived.
    pub fn first_generated_at(&self) -> Option<Nanos> {
        self.answer.first_generated_at
    }

    /// Whether the endpoint's end was seen, although the body may go on: nothing that still comes counts.
    pub fn is_done(&self) -> bool {
        self.answer.done
    }

    /// Whether the answer is complete although the body has not ended.
    pub fn is_answered(&self) -> bool {
        let (rule, _) = self.reader.end_rule();
        let complete = self.answer.finished || (rule == EndRule::Marker && self.answer.done);
        complete && self.answer.failure.is_none()
    }

    /// The events seen so far.
    pub fn chunks(&self) -> &[Chunk] {
        &self.answer.chunks
    }

    /// The body has ended. `stamp` is the connection's last read.
    pub fn finish(mut self, stamp: ReadStamp, content_type: Option<&str>, end: BodyEnd) -> AnswerOutcome {
        if end == BodyEnd::Complete {
            let whole_body = matches!(self.cutter, Cutter::Whole { .. });
            // A server that ends without the last blank line; half an event is no event. What is left is at most what was
            // accepted, so the bound is not met here.
            while !self.answer.is_over()
                && let Ok(Some(item)) = self.cutter.finish()
            {
                if let Item::Data(data) | Item::Error(data) = item
                    && (whole_body || self.reader.is_whole(data))
                {
                    let merged = self.last_read == Some(stamp.read);
                    self.last_read = Some(stamp.read);
                    take_in(&mut self.reader, &mut self.answer, stamp, merged, item);
                }
            }
        }
        self.answer
            .verdict(self.reader.end_rule(), content_type, end, &self.beginning)
    }
}

/// Understands one item. It gives back what a skeleton needs, if the item said one text and nothing else.
fn take_in(
    reader: &mut Reader,
    answer: &mut Answer,
    stamp: ReadStamp,
    merged: bool,
    item: Item<'_>,
) -> Option<PlainEvent> {
    match item {
        Item::Comment(text) => {
            answer.push(stamp, merged, text.len(), ChunkKind::Comment);
            None
        }
        Item::Data(data) | Item::Error(data) if data.trim_ascii().is_empty() => {
            answer.push(stamp, merged, data.len(), ChunkKind::Comment);
            None
        }
        Item::Data(data) => {
            answer.any_event = true;
            match std::str::from_utf8(data) {
                Ok(data) => reader.read(data, answer),
                // A server may cut a character in two; the standard then wants U+FFFD, not an error.
                Err(_) => reader.read(&String::from_utf8_lossy(data), answer),
            }
            answer.end_event(stamp, merged, data.len())
        }
        Item::Error(data) => {
            answer.any_event = true;
            answer.refuse(named_error(&String::from_utf8_lossy(data)));
            answer.end_event(stamp, merged, data.len())
        }
    }
}

/// Reads a response that was not streamed: a single chunk of kind [`ChunkKind::Finish`] at the time of
/// the last read. When the server generated its first token is not known, so the response has no
/// generated chunk, and no time to the first one.
pub fn whole_answer(endpoint: &EndpointKind, stamp: ReadStamp, body: &[u8]) -> AnswerOutcome {
    let mut reader = Reader::new(endpoint);
    let mut answer = Answer::new(true);
    if body.trim_ascii().is_empty() {
        answer.push(stamp, false, body.len(), ChunkKind::Comment);
    } else {
        answer.any_event = true;
        reader.read_whole(&String::from_utf8_lossy(body), &mut answer);
        answer.end_event(stamp, false, body.len());
    }
    if answer.any_event && answer.failure.is_none() && !answer.finished && answer.is_empty() {
        let text = shorten(&String::from_utf8_lossy(body), QUOTED_CHARS);
        let missing = reader.whole_has();
        answer.fail(
            stamp.at,
            Failure::new(
                ErrorClass::Protocol,
                format!("the JSON answer has no {missing}: {text}"),
            ),
        );
    }
    answer.verdict(
        reader.end_rule(),
        Some("application/json"),
        BodyEnd::Complete,
        body,
    )
}
