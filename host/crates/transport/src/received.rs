//! The received part of an answer's body and its decoding.
//!
//! Until the first generated chunk every byte is decoded at once, because other components wait for
//! the notification. After that, bytes are only collected with their times and are decoded in bulk:
//! when they exceed the thread's budget for one answer, when the stream goes quiet (its data may
//! have ended without the end of the body), or, off the client thread, when the answer has ended.

use veeksha_endpoint::{
    AnswerOutcome, AnswerStream, BodyEnd, EchoedPrompt, Failure, MAX_EVENT_BYTES, RawStream, ReadStamp,
    whole_answer_after_echo,
};
use veeksha_model::{ErrorClass, Framing, Nanos};
use veeksha_ports::PluginFailure;

use crate::target::Target;
use crate::undecoded_bytes::UndecodedBytes;

/// Maximum number of bytes of an error body that are read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// Maximum number of bytes of an answer's events that are kept for a plugin.
const MAX_CODEC_BYTES: usize = 64 << 20;

/// Number of bytes of an answer that may always wait.
pub(crate) const MIN_BUDGET: usize = 1024;

/// Number of checks after which the bytes are decoded even though more keep arriving.
const MAX_LOOKS: u32 = 20;

/// Number of bytes at the end of the waiting data that are searched for the end marker.
const TAIL_BYTES: usize = 512;

/// The received part of an answer's body.
#[derive(Debug, Default)]
pub(crate) enum Received {
    /// No answer to the request, or only its head.
    #[default]
    Nothing,
    /// A stream of events.
    Stream(Box<DecodedStream>),
    /// A JSON object instead of the requested stream.
    Whole {
        /// The body so far.
        bytes: Vec<u8>,
        /// Stamp of its newest read.
        stamp: ReadStamp,
    },
    /// Body of an answer whose status is not 2xx.
    Refusal {
        /// The header `Location`.
        location: Option<String>,
        /// The header `Retry-After`, if it is a number of seconds.
        retry_after: Option<Nanos>,
        /// The body so far.
        bytes: Vec<u8>,
    },
}

/// A stream of events, decoded up to some point.
#[derive(Debug)]
pub(crate) struct DecodedStream {
    events: EventDecoder,
    raw: UndecodedBytes,
    /// Set once the first generated chunk has arrived.
    begun: bool,
    /// Set if the rest cannot be decoded.
    useless: bool,
    /// Arrival of bytes that a check considered the end of the data.
    end_suspected_at: Option<Nanos>,
    /// Number of checks for the end since the bytes were last decoded.
    looks: u32,
}

/// The decoder of the events.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "the large variant is the usual one, and a stream is on the heap as a whole"
)]
enum EventDecoder {
    /// The built-in decoder of the API.
    Understood(AnswerStream),
    /// A plugin, which is called once the answer has ended.
    Kept(RawStream),
}

impl EventDecoder {
    fn on_bytes(&mut self, stamp: ReadStamp, bytes: &[u8]) -> bool {
        match self {
            EventDecoder::Understood(stream) => stream.on_bytes(stamp, bytes),
            EventDecoder::Kept(stream) => stream.on_bytes(stamp, bytes),
        }
    }

    /// Returns the arrival of the first generated chunk. The content of a plugin's first event is
    /// not known in time, so the event counts as a generated chunk.
    fn first_at(&self) -> Option<Nanos> {
        match self {
            EventDecoder::Understood(stream) => stream.first_generated_at(),
            EventDecoder::Kept(stream) => stream.first_event_at(),
        }
    }
}

/// Result of adding a piece of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Nothing that other components wait for.
    More,
    /// The first generated chunk arrived at this time.
    First(Nanos),
    /// The rest of this body is not needed.
    Enough,
}

impl Received {
    /// Adds the next bytes of a 2xx body or of an error body.
    ///
    /// `echo` is the prompt that the answer contains before its own text, if any. `budget` returns
    /// the number of bytes that may wait, and is called when the first generated
    /// chunk arrives; `None` if everything is to be decoded at once.
    pub(crate) fn take(
        &mut self,
        (target, echo): (&Target, Option<&EchoedPrompt>),
        stamp: ReadStamp,
        bytes: &[u8],
        content_type: Option<&str>,
        budget: Option<impl FnOnce() -> usize>,
    ) -> Result<Taken, Failure> {
        if let Received::Nothing = self {
            *self = begin(target, echo, (stamp, bytes), content_type);
        }
        match self {
            Received::Stream(stream) => stream.take(stamp, bytes, budget),
            Received::Whole {
                bytes: whole,
                stamp: newest,
            } => {
                if whole.len() + bytes.len() > MAX_EVENT_BYTES {
                    let message = format!("the JSON answer is larger than {MAX_EVENT_BYTES} bytes");
                    return Err(Failure::new(ErrorClass::Protocol, message));
                }
                whole.extend_from_slice(bytes);
                *newest = stamp;
                Ok(Taken::More)
            }
            Received::Refusal { bytes: body, .. } => {
                let room = MAX_ERROR_BYTES - body.len().min(MAX_ERROR_BYTES);
                body.extend_from_slice(&bytes[..bytes.len().min(room)]);
                Ok(if bytes.len() > room {
                    Taken::Enough
                } else {
                    Taken::More
                })
            }
            Received::Nothing => Ok(Taken::More),
        }
    }

    /// Returns the time after which the server asked for another attempt.
    pub(crate) fn retry_after(&self) -> Option<Nanos> {
        match self {
            Received::Refusal { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns the number of generated chunks that have been decoded. The content of a plugin's
    /// events is not known in time, so each counts as one.
    pub(crate) fn generated_chunks(&self) -> usize {
        match self {
            Received::Stream(stream) => match &stream.events {
                EventDecoder::Understood(answer) => answer.generated_chunks(),
                EventDecoder::Kept(events) => events.events(),
            },
            Received::Nothing | Received::Whole { .. } | Received::Refusal { .. } => 0,
        }
    }

    /// Completes a read: decodes the waiting bytes if there are more than `budget`.
    #[inline]
    pub(crate) fn after_read(&mut self, budget: impl FnOnce() -> usize) -> Result<(), Failure> {
        match self {
            Received::Stream(stream) if stream.raw.bytes().len() > MIN_BUDGET => {
                let budget = budget();
                if stream.raw.bytes().len() > budget {
                    return stream.understand(budget);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Checks periodically for the end of the data: returns true if they ended at least `linger`
    /// ago although the body has not ended. `newest` is the newest read.
    pub(crate) fn poll_lingering(
        &mut self,
        target: &Target,
        now: Nanos,
        newest: ReadStamp,
        linger: Nanos,
    ) -> bool {
        let Received::Stream(stream) = self else {
            return false;
        };
        stream.looks += 1;
        let waiting = stream.raw.bytes();
        if !waiting.is_empty() {
            let tail = &waiting[waiting.len().saturating_sub(TAIL_BYTES)..];
            let ends = match &stream.events {
                EventDecoder::Understood(_) => target.api.endpoint.ends_with(tail),
                EventDecoder::Kept(_) => ends_as_usual(tail),
            };
            stream.end_suspected_at = ends.then_some(newest.at);
            let quiet_since = newest.at.saturating_add(u64::from(newest.lag));
            let quiet = now.saturating_sub(quiet_since) >= linger;
            // Failures are part of the final result, when the answer ends.
            if (quiet || ends || stream.looks >= MAX_LOOKS) && stream.understand(MIN_BUDGET).is_err() {
                return false;
            }
        }
        let ended_at = match &stream.events {
            EventDecoder::Understood(answer) if answer.is_done() => {
                answer.chunks().last().map(|last| last.at)
            }
            EventDecoder::Understood(_) => None,
            // Nothing has arrived since, or it would be waiting.
            EventDecoder::Kept(_) if stream.raw.is_empty() => stream.end_suspected_at,
            EventDecoder::Kept(_) => None,
        };
        ended_at.is_some_and(|at| now.saturating_sub(at) >= linger)
    }

    /// Decodes the rest and returns the final result. `newest` is the newest read of the
    /// connection.
    ///
    /// # Errors
    /// If the plugin that decodes the events fails.
    pub(crate) fn verdict(
        self,
        (target, echo): (&Target, Option<EchoedPrompt>),
        newest: ReadStamp,
        content_type: Option<&str>,
        end: BodyEnd,
    ) -> Result<AnswerOutcome, PluginFailure> {
        let mut stream = match (self, &end) {
            (Received::Stream(stream), _) => *stream,
            (Received::Whole { bytes, stamp }, BodyEnd::Complete) => {
                return Ok(whole_answer_after_echo(&target.api.endpoint, echo, stamp, &bytes));
            }
            _ => DecodedStream::new(target, echo.as_ref()),
        };
        // A failure that is found too late to close the connection is still part of the final
        // result.
        let _ = stream.understand(0);
        match (stream.events, &target.codec) {
            (EventDecoder::Understood(answer), _) => Ok(answer.finish(newest, content_type, end)),
            (EventDecoder::Kept(events), codec) => {
                events.finish(newest, content_type, end, |events| match codec {
                    Some((codec, _)) => codec.decode(events),
                    // Events are kept only for a plugin.
                    None => Ok(Vec::new()),
                })
            }
        }
    }
}

/// Returns true if the last line contains `[DONE]`. The end marker of a plugin's server is not
/// known here, but an event that consists of exactly this text marks the end.
fn ends_as_usual(tail: &[u8]) -> bool {
    let line = tail.trim_ascii_end();
    let Some(before) = line
        .strip_suffix(b"data: [DONE]")
        .or(line.strip_suffix(b"data:[DONE]"))
    else {
        return false;
    };
    tail.len() > line.len() && before.last().is_none_or(|byte| matches!(byte, b'\n' | b'\r'))
}

/// Determines the kind of a body by its head and its first bytes.
fn begin(
    target: &Target,
    echo: Option<&EchoedPrompt>,
    (stamp, bytes): (ReadStamp, &[u8]),
    content_type: Option<&str>,
) -> Received {
    // A server that was asked for a stream and declares JSON may send either. The first byte
    // decides.
    let is_json = content_type.is_some_and(|kind| kind.starts_with("application/json"))
        && target.codec.is_none()
        && target.api.endpoint.framing() == Framing::EventStream;
    if is_json && bytes.trim_ascii_start().starts_with(b"{") {
        return Received::Whole {
            bytes: Vec::new(),
            stamp,
        };
    }
    Received::Stream(Box::new(DecodedStream::new(target, echo)))
}

impl DecodedStream {
    fn new(target: &Target, echo: Option<&EchoedPrompt>) -> Self {
        DecodedStream {
            events: match &target.codec {
                Some((_, framing)) => EventDecoder::Kept(RawStream::new(*framing, MAX_CODEC_BYTES)),
                None => {
                    EventDecoder::Understood(AnswerStream::new(&target.api.endpoint).with_echo(echo.cloned()))
                }
            },
            raw: UndecodedBytes::default(),
            begun: false,
            useless: false,
            end_suspected_at: None,
            looks: 0,
        }
    }

    #[inline]
    fn take(
        &mut self,
        stamp: ReadStamp,
        bytes: &[u8],
        budget: Option<impl FnOnce() -> usize>,
    ) -> Result<Taken, Failure> {
        if self.begun && budget.is_some() {
            self.raw.push(stamp, bytes);
            return Ok(Taken::More);
        }
        if !self.events.on_bytes(stamp, bytes) {
            self.useless = true;
            return Err(useless());
        }
        if self.begun {
            self.end_suspected_at = ends_as_usual(bytes).then_some(stamp.at);
            return Ok(Taken::More);
        }
        let first = self.events.first_at();
        self.begun = first.is_some();
        if let Some(budget) = budget.filter(|_| self.begun) {
            // Leaves room for the chunk that exceeds the budget, if it has the usual size.
            self.raw.reserve(budget() + MIN_BUDGET / 2);
        }
        Ok(first.map_or(Taken::More, Taken::First))
    }

    fn understand(&mut self, room: usize) -> Result<(), Failure> {
        for (stamp, piece) in self.raw.pieces() {
            if self.useless {
                break;
            }
            self.useless = !self.events.on_bytes(stamp, piece);
        }
        self.raw.clear(room);
        self.looks = 0;
        if self.useless { Err(useless()) } else { Ok(()) }
    }
}

/// Returns a placeholder failure: the stream itself holds the reason.
fn useless() -> Failure {
    Failure::new(ErrorClass::Protocol, "the rest of the answer was not read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_marker_is_a_complete_last_line() {
        for end in [
            "data: [DONE]\n\n",
            "\ndata:[DONE]\r\n\r\n",
            "data: x\n\ndata: [DONE]\n",
        ] {
            assert!(ends_as_usual(end.as_bytes()), "{end}");
        }
        for other in [
            "data: [DONE]",
            "data: \"data: [DONE]\n",
            "data: [DONE]\n\ndata: x\n\n",
            "[DONE]\n",
            "",
        ] {
            assert!(!ends_as_usual(other.as_bytes()), "{other}");
        }
    }
}
