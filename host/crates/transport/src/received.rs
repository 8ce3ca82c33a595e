//! What has come of an answer's body, and how much of it is understood.
//!
//! Until the first generated chunk every byte is understood at once, because others wait to be told of it. After that
//! bytes only gather with their times, and are understood in bulk: when there are more than the thread's budget for one
//! answer, when the stream falls quiet (it may have ended without the body's end), or, off the client thread, when the
//! answer has ended.

use veeksha_endpoint::{AnswerOutcome, AnswerStream, BodyEnd, RawStream, ReadStamp, whole_answer};
use veeksha_endpoint::{Failure, MAX_EVENT_BYTES};
use veeksha_model::{ErrorClass, Framing, Nanos};
use veeksha_ports::PluginFailure;

use crate::raw::Raw;
use crate::target::Target;

/// Bytes of an error's body that are read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// Bytes of an answer's events that are kept for a plugin.
const MAX_CODEC_BYTES: usize = 64 << 20;

/// Up to this many bytes an answer may always wait.
pub(crate) const MIN_BUDGET: usize = 1024;

/// After so many looks the bytes are understood even though more keep coming.
const MAX_LOOKS: u32 = 20;

/// Bytes at the end of what waits in which the end marker is looked for.
const TAIL_BYTES: usize = 512;

/// What has come of an answer's body.
#[derive(Debug, Default)]
pub(crate) enum Received {
    /// No answer to the request, or only its head.
    #[default]
    Nothing,
    /// A stream of events.
    Stream(Box<Stream>),
    /// A JSON object instead of the stream that was asked for.
    Whole {
        /// The body so far.
        bytes: Vec<u8>,
        /// Its newest read.
        stamp: ReadStamp,
    },
    /// The body of an answer with another status than 2xx.
    Refusal {
        /// The header `Location`.
        location: Option<String>,
        /// The body so far.
        bytes: Vec<u8>,
    },
}

/// A stream of events, understood up to some point.
#[derive(Debug)]
pub(crate) struct Stream {
    events: Events,
    raw: Raw,
    /// Whether the first generated chunk has come.
    begun: bool,
    /// The rest cannot be understood.
    useless: bool,
    /// When bytes came that a look took for the end of the data.
    end_suspected_at: Option<Nanos>,
    /// Looks for the end since the bytes were last understood.
    looks: u32,
}

/// Who knows what the events mean.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "the large variant is the usual one, and a stream is on the heap as a whole"
)]
enum Events {
    /// The dialect.
    Understood(AnswerStream),
    /// A plugin, which is asked once the answer has ended.
    Kept(RawStream),
}

impl Events {
    fn on_bytes(&mut self, stamp: ReadStamp, bytes: &[u8]) -> bool {
        match self {
            Events::Understood(stream) => stream.on_bytes(stamp, bytes),
            Events::Kept(stream) => stream.on_bytes(stamp, bytes),
        }
    }

    /// When the first generated chunk arrived. What a plugin's first event says is not known in time: it counts as one.
    fn first_at(&self) -> Option<Nanos> {
        match self {
            Events::Understood(stream) => stream.first_generated_at(),
            Events::Kept(stream) => stream.first_event_at(),
        }
    }
}

/// What a piece of a body has brought about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Nothing that others wait for.
    More,
    /// The first generated chunk arrived at this time.
    First(Nanos),
    /// The rest of this body is not wanted.
    Enough,
}

impl Received {
    /// The next bytes of a 2xx body, or of a refusal's.
    ///
    /// `budget` says how many bytes may wait; it is asked when the first generated chunk has come.
    pub(crate) fn take(
        &mut self,
        target: &Target,
        stamp: ReadStamp,
        bytes: &[u8],
        content_type: Option<&str>,
        budget: impl FnOnce() -> usize,
    ) -> Result<Taken, Failure> {
        if let Received::Nothing = self {
            *self = begin(target, stamp, bytes, content_type);
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

    /// After a read: understands what waits if that is more than `budget` bytes.
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

    /// A look from time to time: whether the data ended at least `linger` ago although the body has not. `newest` is the newest
    /// read.
    pub(crate) fn has_lingered(
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
                Events::Understood(_) => target.api.endpoint.ends_with(tail),
                Events::Kept(_) => ends_as_usual(tail),
            };
            stream.end_suspected_at = ends.then_some(newest.at);
            let quiet_since = newest.at.saturating_add(u64::from(newest.lag));
            let quiet = now.saturating_sub(quiet_since) >= linger;
            // Failures are in the verdict, when the answer ends.
            if (quiet || ends || stream.looks >= MAX_LOOKS) && stream.understand(MIN_BUDGET).is_err() {
                return false;
            }
        }
        let ended_at = match &stream.events {
            Events::Understood(answer) if answer.is_done() => answer.chunks().last().map(|last| last.at),
            Events::Understood(_) => None,
            // Nothing has come since, or it would wait.
            Events::Kept(_) if stream.raw.is_empty() => stream.end_suspected_at,
            Events::Kept(_) => None,
        };
        ended_at.is_some_and(|at| now.saturating_sub(at) >= linger)
    }

    /// Understands the rest and concludes. `newest` is the connection's newest read.
    ///
    /// # Errors
    /// If the plugin that knows the events fails.
    pub(crate) fn verdict(
        self,
        target: &Target,
        newest: ReadStamp,
        content_type: Option<&str>,
        end: Result<(), Failure>,
    ) -> Result<AnswerOutcome, PluginFailure> {
        let mut stream = match (self, &end) {
            (Received::Stream(stream), _) => *stream,
            (Received::Whole { bytes, stamp }, Ok(())) => {
                return Ok(whole_answer(&target.api.endpoint, stamp, &bytes));
            }
            _ => Stream::new(target),
        };
        // What is found too late to give the connection up is in the verdict all the same.
        let _ = stream.understand(0);
        let end = match end {
            Ok(()) => BodyEnd::Complete,
            Err(failure) => BodyEnd::Broken(failure),
        };
        match (stream.events, &target.codec) {
            (Events::Understood(answer), _) => Ok(answer.finish(newest, content_type, end)),
            (Events::Kept(events), codec) => events.finish(newest, content_type, end, |events| match codec {
                Some((codec, _)) => codec.decode(events),
                // Events are kept only for a plugin.
                None => Ok(Vec::new()),
            }),
        }
    }
}

/// Whether the last line says `[DONE]`. How a plugin's server ends its streams is not known here, but where an event is just
/// that, it means the end.
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

/// What a body is, by its head and its first bytes.
fn begin(target: &Target, stamp: ReadStamp, bytes: &[u8], content_type: Option<&str>) -> Received {
    // A server that was asked for a stream and says JSON may mean either; the first byte tells.
    let is_json = content_type.is_some_and(|kind| kind.starts_with("application/json"))
        && target.codec.is_none()
        && target.api.endpoint.framing() == Framing::EventStream;
    if is_json && bytes.trim_ascii_start().starts_with(b"{") {
        return Received::Whole {
            bytes: Vec::new(),
            stamp,
        };
    }
    Received::Stream(Box::new(Stream::new(target)))
}

impl Stream {
    fn new(target: &Target) -> Self {
        Stream {
            events: match &target.codec {
                Some((_, framing)) => Events::Kept(RawStream::new(*framing, MAX_CODEC_BYTES)),
                None => Events::Understood(AnswerStream::new(&target.api.endpoint)),
            },
            raw: Raw::default(),
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
        budget: impl FnOnce() -> usize,
    ) -> Result<Taken, Failure> {
        if self.begun {
            self.raw.push(stamp, bytes);
            return Ok(Taken::More);
        }
        if !self.events.on_bytes(stamp, bytes) {
            self.useless = true;
            return Err(useless());
        }
        let first = self.events.first_at();
        self.begun = first.is_some();
        if self.begun {
            // The chunk that exceeds the budget fits as well, if it is of the usual size.
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

/// The stream itself knows why.
fn useless() -> Failure {
    Failure::new(ErrorClass::Protocol, "the rest of the answer was not read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_end_is_a_whole_last_line() {
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
