//! Conversion of a response body into chunks and a response.
//!
//! Pure: the caller passes bytes with the read they came from; [`AnswerStream::finish`] returns the
//! result. Rules that are not obvious:
//!
//! * **Success requires a finish reason.** `[DONE]` alone is not sufficient (vLLM and dynamo send
//!   it after an error). An answer with a finish reason is complete even if the connection is lost
//!   afterwards. A template without a pointer to a finish reason marks the end by its marker, else
//!   by the end of the body.
//! * **An error wins**, even after a finish reason, in the shapes of [`crate::error_in`] or by its
//!   name (`event: error`).
//! * **Only choice 0 counts.** With `n = 2` the events of the other choices are recorded with kind
//!   `role` (nothing was generated for this answer). Servers disagree on whether usage counts one
//!   choice or all; the reported value is used unchanged.
//! * **Chunks are not tokens.** [`veeksha_model::Response::output_tokens`] is the server's count,
//!   else 0. The caller counts with the tokenizer where [`veeksha_model::Response::usage`] is
//!   `None`.
//! * **The last usage wins**, wherever it appears: in a separate event, in the finish event, or in
//!   every event.
//! * **Input after the end marker is ignored.** The body is still read to its end so that the
//!   connection can be reused.
//!
//! Events that differ from an earlier one only in their text are interpreted without a parser: see
//! `skeleton.rs`.

use veeksha_model::{Chunk, ChunkKind, ErrorClass, Framing, Nanos};

use crate::answer::{Answer, EndRule};
use crate::answer_failure::named_error;
use crate::answer_outcome::{AnswerOutcome, BodyEnd, QUOTED_CHARS, ReadStamp};
use crate::cut::{Cutter, Item, MAX_EVENT_BYTES};
use crate::echo::EchoedPrompt;
use crate::endpoint_kind::EndpointKind;
use crate::events::EventReader;
use crate::failure::{Failure, shorten};
use crate::skeleton::{PlainEvent, Skeleton};

/// Maximum bytes of text in an answer: about four million tokens.
pub const MAX_TEXT_BYTES: usize = 16 << 20;

/// Maximum number of events in a response, 24 MB of chunks. The longest outputs have about 100,000
/// tokens.
pub const MAX_EVENTS: usize = 1_000_000;

/// The state of one streamed answer.
#[derive(Debug)]
pub struct AnswerStream {
    reader: EventReader,
    cutter: Cutter,
    skeleton: Skeleton,
    answer: Answer,
    /// True if no event is incomplete and the answer is not over: the next event may fit the
    /// skeleton.
    ready: bool,
    /// The read that completed the last event.
    last_read: Option<u64>,
    /// The first bytes of the body, quoted in the error for a body that is not an event stream.
    beginning: Vec<u8>,
}

impl AnswerStream {
    /// Returns the state before the first byte.
    pub fn new(endpoint: &EndpointKind) -> Self {
        AnswerStream {
            reader: EventReader::new(endpoint),
            cutter: Cutter::with_limit(endpoint.framing(), MAX_EVENT_BYTES),
            skeleton: Skeleton::default(),
            answer: Answer::new(endpoint.framing() == Framing::Whole),
            ready: false,
            last_read: None,
            beginning: Vec::new(),
        }
    }

    /// Expects the prompt before the answer; `None`: the answer alone.
    pub fn with_echo(mut self, prompt: Option<EchoedPrompt>) -> Self {
        self.answer.expect_echo(prompt);
        self
    }

    /// Parses every event. The result is the same and takes longer. For tests and benchmarks of
    /// skeletons.
    pub fn without_skeletons(mut self) -> Self {
        self.skeleton.turn_off();
        self
    }

    /// Returns the number of events so far that were interpreted without a parser.
    pub fn fitted_events(&self) -> u64 {
        self.skeleton.fitted()
    }

    /// Processes the next bytes of the body. Returns false once the rest is useless: the answer
    /// cannot be interpreted, and the connection should be closed.
    pub fn on_bytes(&mut self, stamp: ReadStamp, bytes: &[u8]) -> bool {
        let rest = if self.ready {
            self.fit_events(stamp, bytes)
        } else {
            bytes
        };
        (rest.is_empty() || self.parse_events(stamp, rest)) && self.is_bounded(stamp)
    }

    /// Returns true below the limits, else fails the answer. An endless answer would exhaust the
    /// memory and occupy the tokenizer for minutes.
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

    /// Processes the leading events that fit the skeleton. Returns the remaining input.
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

    /// Returns the arrival time of the first generated chunk.
    pub fn first_generated_at(&self) -> Option<Nanos> {
        self.answer.first_generated_at
    }

    /// Returns true after the endpoint's end marker, although the body may continue. Later input is
    /// ignored.
    pub fn is_done(&self) -> bool {
        self.answer.done
    }

    /// Returns true if the answer is complete although the body has not ended.
    pub fn is_answered(&self) -> bool {
        let (rule, _) = self.reader.end_rule();
        let complete = self.answer.finished || (rule == EndRule::Marker && self.answer.done);
        complete && self.answer.failure.is_none()
    }

    /// Returns the number of generated chunks so far.
    pub fn generated_chunks(&self) -> usize {
        self.answer.generated_chunks()
    }

    /// Returns the events so far.
    pub fn chunks(&self) -> &[Chunk] {
        &self.answer.chunks
    }

    /// Ends the body and returns the result. `stamp` is the connection's last read.
    pub fn finish(mut self, stamp: ReadStamp, content_type: Option<&str>, end: BodyEnd) -> AnswerOutcome {
        if end == BodyEnd::Complete {
            let whole_body = matches!(self.cutter, Cutter::Whole { .. });
            // Handles a server that omits the final blank line; an incomplete event is not an
            // event. The remaining input was within the limits when it was accepted, so they are
            // not checked here.
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

/// Interprets one item. Returns the input for a skeleton if the item contained one text and nothing
/// else.
fn take_in(
    reader: &mut EventReader,
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
                // A server may split a character. The standard requires U+FFFD in that case, not an
                // error.
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

/// Reads a response that was not streamed: a single chunk of kind [`ChunkKind::Finish`] at the time
/// of the last read. The time of the first token is unknown, so the response has no generated chunk
/// and no time to first token.
pub fn whole_answer(endpoint: &EndpointKind, stamp: ReadStamp, body: &[u8]) -> AnswerOutcome {
    whole_answer_after_echo(endpoint, None, stamp, body)
}

/// Reads a response like [`whole_answer`], which contains `prompt` before its answer.
pub fn whole_answer_after_echo(
    endpoint: &EndpointKind,
    prompt: Option<EchoedPrompt>,
    stamp: ReadStamp,
    body: &[u8],
) -> AnswerOutcome {
    let mut reader = EventReader::new(endpoint);
    let mut answer = Answer::new(true);
    answer.expect_echo(prompt);
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
