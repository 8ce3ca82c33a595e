//! The decoder of one connection: its input is bytes, its output is parts of answers.

use crate::chunks::{BodyElement, Chunks, hold_bounded};
use crate::error::{DecodeError, DecodePosition};
use crate::framing::BodyFraming;
use crate::head::{self, Head, HeadKind};
use crate::limits::DecoderLimits;

/// A part of an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum DecodedPart<'a> {
    /// An interim answer (1xx other than 101), followed by the final one. Its header fields are
    /// dropped.
    Interim(u16),
    /// The head of the final answer.
    Head(Head),
    /// Bytes of the body, borrowed from the input, never empty. An ordinary chunk that is complete
    /// in the input is one part.
    Body(&'a [u8]),
    /// The end of the answer, after its trailers.
    End,
}

/// Meaning of a close by the server, where it is not an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// Between answers: before the first byte of one, or after [`DecodedPart::End`]. A request that
    /// was sent on a kept connection has not been answered and may be sent again on another.
    Clean,
    /// The close is the end of the body. The answer is complete; no [`DecodedPart::End`] follows.
    EndOfBody,
}

/// Decodes the answers of one connection, one at a time.
///
/// Call [`Decoder::next`] until it returns `None`; then more bytes have to be read, or the answer
/// has ended. After an error every further call returns [`DecodeError::Refused`], until
/// [`Decoder::restart`].
#[derive(Debug)]
pub struct Decoder {
    limits: DecoderLimits,
    state: BodyState,
    /// An unfinished head.
    held: Vec<u8>,
    begun: bool,
    /// True if the connection can carry another request, based on the bytes so far.
    keep_alive: bool,
}

#[derive(Debug)]
enum BodyState {
    Head,
    /// Number of bytes still to come. At 0, the end is still to be reported.
    Length(u64),
    Chunked(Chunks),
    UntilClose,
    Ended,
    Refused,
}

/// Number of bytes up to which an incomplete status line is checked for an invalid beginning.
const FIRST_LOOK: usize = 16;

impl Decoder {
    /// Creates a decoder for a new connection.
    #[must_use]
    pub fn new(limits: DecoderLimits) -> Self {
        // Positions in a head are stored in 32 bits.
        let head_bytes = limits.head_bytes.min(u32::MAX as usize);
        Self {
            limits: DecoderLimits { head_bytes, ..limits },
            state: BodyState::Head,
            held: Vec::new(),
            begun: false,
            keep_alive: false,
        }
    }

    /// Prepares for the answer to another request: on the same connection if
    /// [`Decoder::can_be_reused`] returned true, otherwise on a new one. The request must be
    /// neither HEAD nor CONNECT, whose answers are framed differently.
    pub fn restart(&mut self) {
        self.state = BodyState::Head;
        self.held.clear();
        self.begun = false;
        self.keep_alive = false;
    }

    /// Returns the next part of the answer in `input`, which is advanced past the decoded bytes.
    ///
    /// `None`: either more bytes are needed, and `input` is empty, since the available bytes of a
    /// head or of a size line have been consumed. Or the answer has ended: then `input` is
    /// unchanged, and any bytes in it, which are unsolicited, make the connection unfit for reuse.
    ///
    /// Call until `None`, not until `input` is empty: the end of a body of known length, which may
    /// be 0, is a part that consumes no byte.
    ///
    /// # Errors
    /// If the answer is malformed or exceeds the limits. The position of `input` is then
    /// unspecified.
    #[inline]
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<DecodedPart<'a>>, DecodeError> {
        if let BodyState::Chunked(chunks) = &mut self.state {
            if input.is_empty() {
                return Ok(None);
            }
            match chunks.next(input, &self.limits) {
                Ok(BodyElement::Data(data)) => return Ok(Some(DecodedPart::Body(data))),
                Ok(BodyElement::More) => return Ok(None),
                Ok(BodyElement::End) => return Ok(Some(self.end(input))),
                Err(error) => return self.refuse(error),
            }
        }
        self.next_other(input)
    }

    fn next_other<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<DecodedPart<'a>>, DecodeError> {
        match &mut self.state {
            BodyState::Head => match self.head(input) {
                Ok(part) => Ok(part),
                Err(error) => self.refuse(error),
            },
            BodyState::Length(0) => Ok(Some(self.end(input))),
            BodyState::Length(left) => {
                let here = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                *left -= here as u64;
                Ok(take(input, here))
            }
            BodyState::UntilClose => Ok(take(input, input.len())),
            BodyState::Ended => {
                self.keep_alive &= input.is_empty();
                Ok(None)
            }
            BodyState::Chunked(_) | BodyState::Refused => Err(DecodeError::Refused),
        }
    }

    /// Processes the close of the connection by the server. It carries no further request, whatever
    /// the result.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if the answer had begun and had not ended; the error of the head
    /// if the received part of it was malformed.
    pub fn closed(&mut self) -> Result<Closed, DecodeError> {
        self.keep_alive = false;
        let place = match &self.state {
            BodyState::Head if !self.begun => return Ok(Closed::Clean),
            BodyState::Head => match head::parse(&self.held, &self.limits) {
                Err(error) => return self.refuse(error),
                Ok(_) => DecodePosition::Head,
            },
            BodyState::Length(0) | BodyState::UntilClose => {
                self.state = BodyState::Ended;
                return Ok(Closed::EndOfBody);
            }
            BodyState::Length(_) => DecodePosition::Body,
            BodyState::Chunked(chunks) => chunks.place(),
            BodyState::Ended => return Ok(Closed::Clean),
            BodyState::Refused => return Err(DecodeError::Refused),
        };
        self.refuse(DecodeError::Truncated { place })
    }

    /// Returns true if the connection can carry another request now: the answer has ended, the
    /// server keeps the connection open, the end of the answer is unambiguous, and no bytes
    /// followed it.
    #[must_use]
    pub fn can_be_reused(&self) -> bool {
        self.is_ended() && self.keep_alive
    }

    /// Returns true if any byte of an answer has arrived, including an interim one. Empty lines
    /// before a status line do not count.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Returns true if the answer has ended: [`DecodedPart::End`] was returned, or the close of the
    /// connection was the end.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        matches!(self.state, BodyState::Ended)
    }

    fn end<'a>(&mut self, input: &[u8]) -> DecodedPart<'a> {
        self.state = BodyState::Ended;
        self.keep_alive &= input.is_empty();
        DecodedPart::End
    }

    #[cold]
    fn refuse<T>(&mut self, error: DecodeError) -> Result<T, DecodeError> {
        self.state = BodyState::Refused;
        self.held = Vec::new();
        self.keep_alive = false;
        Err(error)
    }

    /// Returns the next head, parsed from the input alone if it is complete there.
    fn head<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<DecodedPart<'a>>, DecodeError> {
        if input.is_empty() {
            return Ok(None);
        }
        self.begun = self.begun || head::has_begun(input);
        let limit = self.limits.head_bytes;
        let before = self.held.len();
        let piece = &input[..input.len().min(limit.saturating_sub(before))];
        let full = before + piece.len() >= limit;
        let parsed = if before == 0 {
            head::parse(piece, &self.limits)?
        } else {
            // Each parse starts from the beginning, so it is not done for every byte: only a line
            // end can complete a head. A head that fills the limit is also parsed, so that a
            // malformed head is rejected with the same error at any cuts.
            let look = full || before < FIRST_LOOK || memchr::memchr(b'\n', piece).is_some();
            hold_bounded(&mut self.held, piece, limit);
            if look {
                head::parse(&self.held, &self.limits)?
            } else {
                None
            }
        };
        let Some(parsed) = parsed else {
            if full {
                return Err(DecodeError::HeadTooLarge { limit });
            }
            if before == 0 {
                hold_bounded(&mut self.held, piece, limit);
            }
            *input = &input[piece.len()..];
            return Ok(None);
        };
        // The held bytes are not a complete head without this piece, so the head ends in this
        // piece.
        *input = &input[parsed.bytes.saturating_sub(before).min(input.len())..];
        // Heads rarely arrive in pieces; thousands of connections need not keep the memory for it.
        self.held = Vec::new();
        Ok(Some(match parsed.kind {
            HeadKind::Interim(status) => DecodedPart::Interim(status),
            HeadKind::Final(head, terms) => {
                self.keep_alive = terms.keep_alive;
                self.state = match terms.framing {
                    BodyFraming::Length(length) => BodyState::Length(length),
                    BodyFraming::Chunked => BodyState::Chunked(Chunks::new()),
                    BodyFraming::UntilClose => BodyState::UntilClose,
                    BodyFraming::None => BodyState::Length(0),
                };
                DecodedPart::Head(head)
            }
        }))
    }
}

fn take<'a>(input: &mut &'a [u8], size: usize) -> Option<DecodedPart<'a>> {
    let (data, rest) = input.split_at(size);
    *input = rest;
    (!data.is_empty()).then_some(DecodedPart::Body(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: DecoderLimits = DecoderLimits {
        head_bytes: 1000,
        headers: 8,
        chunk_line_bytes: 50,
        trailer_bytes: 700,
    };

    impl Decoder {
        /// Returns the memory that is held between two calls, in bytes.
        fn held_bytes(&self) -> usize {
            let trailers = match &self.state {
                BodyState::Chunked(chunks) => chunks.held_bytes(),
                _ => 0,
            };
            self.held.capacity() + trailers
        }
    }

    /// Feeds `step` bytes of an endless piece at a time and returns the maximum of the held bytes.
    fn most_held(start: &str, endless: &str, step: usize) -> usize {
        let mut decoder = Decoder::new(LIMITS);
        let bytes = format!("{start}{}", endless.repeat(5000));
        let mut most = 0;
        for mut piece in bytes.as_bytes().chunks(step) {
            while let Ok(Some(_)) = decoder.next(&mut piece) {}
            most = most.max(decoder.held_bytes());
        }
        most
    }

    #[test]
    fn memory_stays_within_the_limits() {
        let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        for step in [1, 3, 64, 999, 5000] {
            for (start, endless, limit) in [
                ("HTTP/1.1 200 OK\r\n", "x", LIMITS.head_bytes),
                ("HTTP/1.1 200 OK\r\nx: y", "\r\n z", LIMITS.head_bytes),
                ("", "\r\n", LIMITS.head_bytes),
                ("", "HTTP/1.1 100 Continue\r\nx: y\r\n\r\n", LIMITS.head_bytes),
                (&format!("{chunked}0\r\n"), "x", LIMITS.trailer_bytes),
                (&format!("{chunked}0\r\n"), "x: y\r\n", LIMITS.trailer_bytes),
                (&format!("{chunked}1;"), "x", 0),
                (&format!("{chunked}fffffff\r\n"), "x", 0),
                (chunked, "1;x\r\ny\r\n", 0),
                ("HTTP/1.1 200 OK\r\n\r\n", "x", 0),
                ("HTTP/1.1 200 OK\r\ncontent-length: 9999999\r\n\r\n", "x", 0),
            ] {
                let most = most_held(start, endless, step);
                // A head that arrives in pieces may be held before the body, which holds nothing.
                let head = if limit == 0 && step < start.len() { 256 } else { 0 };
                assert!(most <= limit.max(head), "{start:?} {endless:?} by {step}: {most}");
            }
        }
    }

    #[test]
    fn a_head_that_came_in_pieces_is_not_kept() {
        let mut decoder = Decoder::new(LIMITS);
        let head = b"HTTP/1.1 200 OK\r\nx: y\r\n\r\n";
        assert_eq!(decoder.next(&mut &head[..9]), Ok(None));
        assert!(decoder.held_bytes() >= 9);
        assert!(matches!(
            decoder.next(&mut &head[9..]),
            Ok(Some(DecodedPart::Head(_)))
        ));
        assert_eq!(decoder.held_bytes(), 0);
    }

    #[test]
    fn rejects_invalid_beginning_immediately() {
        for beginning in ["S", "HTTP/2", "\x16\x03\x01", "HTTP/1.1\0"] {
            let mut decoder = Decoder::new(LIMITS);
            let error = beginning
                .as_bytes()
                .chunks(1)
                .find_map(|mut byte| decoder.next(&mut byte).err());
            assert!(
                matches!(error, Some(DecodeError::NotHttp { .. })),
                "{beginning:?}: {error:?}"
            );
        }
    }
}
