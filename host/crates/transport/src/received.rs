//! What has come of an answer's body, and how much of it is understood.
//!
//! Until the first generated chunk every byte is understood at once, because others wait to be told of it. After that
//! bytes only gather with their times, and are understood in bulk: when there are more than the thread's budget for one
//! answer, when the stream falls quiet (it may have ended without the body's end), or, off the client thread, when the
//! answer has ended.

use veeksha_dialect::Failure;
use veeksha_dialect::sse::MAX_EVENT_BYTES;
use veeksha_dialect::stream::{AnswerStream, BodyEnd, ReadStamp, Verdict, whole_answer};
use veeksha_model::{ChunkKind, ErrorClass, Nanos};

use crate::raw::Raw;

/// Bytes of an error's body that are read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// What has come of an answer's body.
#[derive(Debug, Default)]
pub(crate) enum Received {
    /// No answer to the request, or only its head.
    #[default]
    Nothing,
    /// An event stream.
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

/// An event stream, understood up to some point.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    answer: AnswerStream,
    raw: Raw,
    /// When the first generated chunk arrived.
    first: Option<Nanos>,
    /// Events that were looked at for the first generated one.
    looked_at: usize,
    /// The rest cannot be understood.
    useless: bool,
    /// When bytes came that look like the end of the data.
    end_suspected_at: Option<Nanos>,
    /// Looks for the end since the bytes were last understood.
    looks: u32,
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

/// After so many looks the bytes are understood even though more keep coming.
const MAX_LOOKS: u32 = 20;

impl Received {
    /// The next bytes of a 2xx body, or of a refusal's.
    pub(crate) fn take(
        &mut self,
        stamp: ReadStamp,
        bytes: &[u8],
        content_type: Option<&str>,
    ) -> Result<Taken, Failure> {
        if let Received::Nothing = self {
            // A server that was asked for a stream and says JSON may mean either; the first byte tells.
            let is_json = content_type.is_some_and(|kind| kind.starts_with("application/json"));
            *self = if is_json && bytes.trim_ascii_start().starts_with(b"{") {
                Received::Whole {
                    bytes: Vec::new(),
                    stamp,
                }
            } else {
                Received::Stream(Box::default())
            };
        }
        match self {
            Received::Stream(stream) => stream.take(stamp, bytes),
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

    /// Understands what waits, if that is more than `budget` bytes.
    pub(crate) fn keep_within(&mut self, budget: impl FnOnce() -> usize) -> Result<(), Failure> {
        match self {
            Received::Stream(stream) if stream.raw.bytes().len() > MIN_BUDGET => {
                let budget = budget();
                if stream.raw.bytes().len() > budget {
                    stream.understand(budget)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A look from time to time: whether the data ended at least `linger` ago although the body has not. `quiet_since` is when
    /// the newest bytes came.
    pub(crate) fn has_lingered(&mut self, now: Nanos, quiet_since: Nanos, linger: Nanos) -> bool {
        let Received::Stream(stream) = self else {
            return false;
        };
        stream.looks += 1;
        let quiet = now.saturating_sub(quiet_since) >= linger;
        if !stream.raw.is_empty()
            && (quiet || stream.end_suspected_at.is_some() || stream.looks >= MAX_LOOKS)
            && stream.understand(MIN_BUDGET).is_err()
        {
            return false;
        }
        stream.looks = if stream.raw.is_empty() { 0 } else { stream.looks };
        let last = stream.answer.chunks().last();
        last.is_some_and(|last| last.kind == ChunkKind::Done && now.saturating_sub(last.at) >= linger)
    }

    /// Understands the rest and concludes. `newest` is the connection's newest read.
    pub(crate) fn verdict(
        self,
        newest: ReadStamp,
        content_type: Option<&str>,
        end: Result<(), Failure>,
    ) -> Verdict {
        let (mut stream, newest) = match (self, &end) {
            (Received::Stream(stream), _) => (*stream, newest),
            (Received::Whole { bytes, stamp }, Ok(())) => return whole_answer(stamp, &bytes),
            _ => (Stream::default(), newest),
        };
        // What is understood too late to give the connection up is in the verdict all the same.
        let _ = stream.understand(0);
        let end = match end {
            Ok(()) => BodyEnd::Complete,
            Err(failure) => BodyEnd::Broken(failure),
        };
        stream.answer.finish(newest, content_type, end)
    }
}

/// Up to this many bytes an answer may always wait.
pub(crate) const MIN_BUDGET: usize = 1024;

impl Stream {
    fn take(&mut self, stamp: ReadStamp, bytes: &[u8]) -> Result<Taken, Failure> {
        if self.first.is_some() {
            self.raw.push(stamp, bytes);
            if looks_like_the_end(bytes) {
                self.end_suspected_at = Some(stamp.at);
            }
            return Ok(Taken::More);
        }
        if !self.answer.on_bytes(stamp, bytes) {
            return Err(useless());
        }
        let chunks = self.answer.chunks();
        let new = chunks.get(self.looked_at..).unwrap_or_default();
        self.first = new
            .iter()
            .find(|chunk| chunk.kind.is_generated())
            .map(|chunk| chunk.at);
        self.looked_at = chunks.len();
        Ok(self.first.map_or(Taken::More, Taken::First))
    }

    fn understand(&mut self, room: usize) -> Result<(), Failure> {
        for (stamp, piece) in self.raw.pieces() {
            if self.useless {
                break;
            }
            self.useless = !self.answer.on_bytes(stamp, piece);
        }
        self.raw.clear(room);
        self.looks = 0;
        self.end_suspected_at = None;
        if self.useless { Err(useless()) } else { Ok(()) }
    }
}

/// The stream itself knows why.
fn useless() -> Failure {
    Failure::new(ErrorClass::Protocol, "the rest of the answer was not read")
}

/// Whether the newest bytes end with the marker after which nothing counts. It is not proof (only understanding is), and its
/// absence proves nothing: it only makes the look for the end come at the right time.
fn looks_like_the_end(bytes: &[u8]) -> bool {
    bytes.trim_ascii_end().ends_with(b"[DONE]")
}
