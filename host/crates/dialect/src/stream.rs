//! Makes chunks and a response of an answer's body.
//!
//! Pure: the caller passes bytes with the read they came from; [`AnswerStream::finish`] gives the verdict. Rules that are not
//! obvious:
//!
//! * **Success needs a finish reason.** `[DONE]` alone proves nothing (vLLM and dynamo send it after an error); an answer with a
//!   finish reason is complete, even if the connection is lost afterwards.
//! * **Only choice 0 counts.** With `n = 2` the events of the other choices are recorded with kind `role` (nothing was
//!   generated for this answer). Servers do not agree whether usage counts one choice or all; what they say is taken as it is.
//! * **Chunks are not tokens.** [`veeksha_model::Response::output_tokens`] is the server's `completion_tokens`, else 0; the caller counts with
//!   the tokenizer where [`veeksha_model::Response::usage`] is `None`.
//! * **The last usage wins**, wherever it stands: in an event of its own, in the finish event, in every event.
//! * **After `[DONE]` nothing counts.** The body is still read to its end, because the connection is to be used again.

mod answer;

use veeksha_model::{Chunk, ErrorClass, Nanos, Response};

use self::answer::Answer;
use crate::Failure;
use crate::failure::shorten;
use crate::sse::{SseDecoder, SseItem};

/// Characters of an unreadable answer that are quoted.
const QUOTED_CHARS: usize = 200;

/// One read of the socket: bytes that came out of it share its time and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadStamp {
    /// When what it brought had arrived (see [`veeksha_model::Chunk::at`]).
    pub at: Nanos,
    /// How much later the read returned, in nanoseconds; 0 where that is not known.
    pub lag: u32,
    /// Its number on the connection.
    pub read: u64,
}

/// How a body ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    /// As HTTP says it ends.
    Complete,
    /// Before that, with the reason.
    Broken(Failure),
}

/// The state of one streamed answer.
#[derive(Debug, Default)]
pub struct AnswerStream {
    decoder: SseDecoder,
    answer: Answer,
    /// The read that completed the last event.
    last_read: Option<u64>,
    /// The first bytes, for the message about an answer that is no event stream.
    beginning: Vec<u8>,
}

/// What came of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Every event, in order.
    pub chunks: Vec<Chunk>,
    /// The answer, or why there is none.
    pub result: Result<Response, Failure>,
    /// When the last event was read or the failure was known; `None`: when the body ended.
    pub completed_at: Option<Nanos>,
}

impl AnswerStream {
    /// Takes the next bytes of the body. Returns false once the rest is of no use: the answer cannot be understood and the
    /// connection is better given up.
    pub fn on_bytes(&mut self, stamp: ReadStamp, bytes: &[u8]) -> bool {
        let room = (4 * QUOTED_CHARS).saturating_sub(self.beginning.len());
        if room > 0 && !self.answer.any_event {
            self.beginning.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        let AnswerStream {
            decoder,
            answer,
            last_read,
            ..
        } = self;
        let fed = decoder.feed(bytes, |item| {
            let merged = *last_read == Some(stamp.read);
            *last_read = Some(stamp.read);
            answer.on_item(stamp, merged, item);
        });
        if let Err(error) = fed {
            self.answer
                .fail(stamp.at, Failure::new(ErrorClass::Protocol, error.to_string()));
            return false;
        }
        !matches!(&self.answer.failure, Some((failure, _)) if failure.class == ErrorClass::Protocol)
    }

    /// Whether the answer is complete although the body has not ended.
    pub fn is_answered(&self) -> bool {
        self.answer.finished && self.answer.failure.is_none()
    }

    /// The events seen so far.
    pub fn chunks(&self) -> &[Chunk] {
        &self.answer.chunks
    }

    /// The body has ended. `stamp` is the connection's last read.
    pub fn finish(mut self, stamp: ReadStamp, content_type: Option<&str>, end: BodyEnd) -> Verdict {
        if end == BodyEnd::Complete {
            // A server that ends without the last blank line; half an event is no event.
            let AnswerStream {
                decoder,
                answer,
                last_read,
                ..
            } = &mut self;
            let mut items: Vec<Vec<u8>> = Vec::new();
            // What is left is at most what `feed` accepted.
            let _ = decoder.finish(|item| {
                if let SseItem::Data(data) = item {
                    items.push(data.to_vec());
                }
            });
            for data in items.iter().filter(|data| is_whole(data)) {
                let merged = *last_read == Some(stamp.read);
                answer.on_item(stamp, merged, SseItem::Data(data));
            }
        }
        self.answer.verdict(content_type, end, &self.beginning)
    }
}

/// Whether the data of an event without a blank line is a whole event.
fn is_whole(data: &[u8]) -> bool {
    data == b"[DONE]" || serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok()
}

/// Makes a response of an answer that was not streamed although a stream was asked for: one chunk of content, at the time
/// of the last read.
pub fn whole_answer(stamp: ReadStamp, body: &[u8]) -> Verdict {
    let mut answer = Answer::default();
    answer.on_item(stamp, false, SseItem::Data(body));
    if answer.failure.is_none() && !answer.finished && answer.response == Response::default() {
        let text = shorten(&String::from_utf8_lossy(body), QUOTED_CHARS);
        answer.fail(
            stamp.at,
            Failure::new(
                ErrorClass::Protocol,
                format!("the JSON answer has no choices: {text}"),
            ),
        );
    }
    answer.verdict(Some("application/json"), BodyEnd::Complete, body)
}
