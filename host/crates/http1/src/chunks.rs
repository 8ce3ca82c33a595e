//! Chunked bodies (RFC 9112, section 7.1) and their trailers.
//!
//! Size lines and the ends of chunks must end with CR LF. A lone LF is rejected, as other parsers
//! do, because two parties that disagree on the start of a chunk disagree on everything after it.

use crate::error::{DecodeError, DecodePosition, excerpt};
use crate::limits::DecoderLimits;

/// Decoding state of a chunked body.
#[derive(Debug)]
pub(crate) struct Chunks {
    state: ChunkState,
    /// The part of the size that was read; then the number of bytes of the chunk still to come.
    left: u64,
    /// Bytes of the current size line so far.
    line: usize,
    /// The trailers so far, held until they are complete and can be checked.
    trailers: Vec<u8>,
    trailer_lines: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkState {
    /// Before the first digit of a size.
    Start,
    /// After a digit.
    Size,
    /// In white space after the size.
    Space,
    /// After a semicolon.
    Extension,
    /// After the CR of the size line.
    SizeLf,
    Data,
    /// After the data of a chunk.
    DataCr,
    DataLf,
    /// At the beginning of a line after the last chunk.
    TrailerStart,
    Trailer,
    TrailerLf,
    /// After the CR of the empty line that ends the answer.
    EndLf,
}

/// The next element of a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyElement<'a> {
    Data(&'a [u8]),
    End,
    /// The input is used up.
    More,
}

impl Chunks {
    pub(crate) fn new() -> Self {
        Self {
            state: ChunkState::Start,
            left: 0,
            line: 0,
            trailers: Vec::new(),
            trailer_lines: 0,
        }
    }

    pub(crate) fn place(&self) -> DecodePosition {
        match self.state {
            ChunkState::TrailerStart | ChunkState::Trailer | ChunkState::TrailerLf | ChunkState::EndLf => {
                DecodePosition::Trailers
            }
            _ => DecodePosition::Body,
        }
    }

    #[inline]
    pub(crate) fn next<'a>(
        &mut self,
        input: &mut &'a [u8],
        limits: &DecoderLimits,
    ) -> Result<BodyElement<'a>, DecodeError> {
        if self.state == ChunkState::Start
            && let Some((line, size)) = plain_size(input)
            && line <= limits.chunk_line_bytes
        {
            let bytes = *input;
            // A plain line is short and its size has at most 28 bits, so no sum here can overflow.
            let end = line + size;
            if let [b'\r', b'\n', rest @ ..] = bytes.get(end..).unwrap_or_default() {
                *input = rest;
                return Ok(BodyElement::Data(&bytes[line..end]));
            }
            *input = &bytes[line..];
            self.left = size as u64;
            self.state = ChunkState::Data;
        }
        self.walk(input, limits)
    }

    /// Decodes byte by byte, except for data and trailers.
    fn walk<'a>(
        &mut self,
        input: &mut &'a [u8],
        limits: &DecoderLimits,
    ) -> Result<BodyElement<'a>, DecodeError> {
        let line_start = *input;
        while let Some((&byte, rest)) = input.split_first() {
            match self.state {
                ChunkState::Start
                | ChunkState::Size
                | ChunkState::Space
                | ChunkState::Extension
                | ChunkState::SizeLf => {
                    self.size_line(byte, line_start, input, limits)?;
                }
                ChunkState::Data => {
                    let here = usize::try_from(self.left).unwrap_or(usize::MAX).min(input.len());
                    let (data, rest) = input.split_at(here);
                    *input = rest;
                    self.left -= here as u64;
                    if self.left == 0 {
                        self.state = ChunkState::DataCr;
                    }
                    return Ok(BodyElement::Data(data));
                }
                ChunkState::DataCr if byte == b'\r' => self.state = ChunkState::DataLf,
                ChunkState::DataLf if byte == b'\n' => {
                    *input = rest;
                    self.state = ChunkState::Start;
                    // The next chunk may be a plain one again.
                    return self.next(input, limits);
                }
                ChunkState::DataCr | ChunkState::DataLf => {
                    return Err(DecodeError::ChunkEnd {
                        found: excerpt(input),
                    });
                }
                ChunkState::TrailerStart if byte == b'\r' => self.state = ChunkState::EndLf,
                ChunkState::TrailerStart | ChunkState::Trailer => {
                    let cr = memchr::memchr(b'\r', input);
                    let piece = &input[..cr.map_or(input.len(), |at| at + 1)];
                    self.hold(piece, limits)?;
                    *input = &input[piece.len()..];
                    self.state = if cr.is_some() {
                        ChunkState::TrailerLf
                    } else {
                        ChunkState::Trailer
                    };
                    continue;
                }
                ChunkState::TrailerLf if byte == b'\n' => {
                    self.trailer_lines += 1;
                    if self.trailer_lines > limits.headers {
                        return Err(DecodeError::TooManyTrailers {
                            limit: limits.headers,
                        });
                    }
                    self.hold(b"\n", limits)?;
                    self.state = ChunkState::TrailerStart;
                }
                ChunkState::EndLf if byte == b'\n' => {
                    *input = rest;
                    self.check_trailers(limits)?;
                    return Ok(BodyElement::End);
                }
                ChunkState::TrailerLf | ChunkState::EndLf => {
                    return Err(DecodeError::Trailers {
                        found: excerpt(&self.trailers),
                    });
                }
            }
            *input = rest;
        }
        Ok(BodyElement::More)
    }

    /// Processes one byte of the size line.
    #[inline]
    fn size_line(
        &mut self,
        byte: u8,
        line_start: &[u8],
        input: &[u8],
        limits: &DecoderLimits,
    ) -> Result<(), DecodeError> {
        self.line += 1;
        if self.line > limits.chunk_line_bytes {
            return Err(DecodeError::ChunkLineTooLong {
                limit: limits.chunk_line_bytes,
            });
        }
        self.state = match (self.state, byte) {
            (ChunkState::Start | ChunkState::Size, _) if digit(byte).is_some() => {
                let digit = u64::from(digit(byte).unwrap_or_default());
                let shifted = self.left.checked_mul(16).ok_or(DecodeError::ChunkSizeOverflow)?;
                self.left = shifted | digit;
                ChunkState::Size
            }
            (ChunkState::Size | ChunkState::Space, b' ' | b'\t') => ChunkState::Space,
            (ChunkState::Size | ChunkState::Space, b';') => ChunkState::Extension,
            (ChunkState::Size | ChunkState::Space | ChunkState::Extension, b'\r') => ChunkState::SizeLf,
            (ChunkState::SizeLf, b'\n') => {
                self.line = 0;
                if self.left == 0 {
                    ChunkState::TrailerStart
                } else {
                    ChunkState::Data
                }
            }
            (ChunkState::SizeLf, _)
            | (ChunkState::Size | ChunkState::Space | ChunkState::Extension, b'\n') => {
                return Err(DecodeError::ChunkLineEnd {
                    found: excerpt(input),
                });
            }
            // Also a quoted string: it cannot contain a CR.
            (ChunkState::Extension, _) => ChunkState::Extension,
            _ => {
                return Err(DecodeError::ChunkSize {
                    found: excerpt(line_start),
                });
            }
        };
        Ok(())
    }

    fn hold(&mut self, bytes: &[u8], limits: &DecoderLimits) -> Result<(), DecodeError> {
        let limit = limits.trailer_bytes;
        if self.trailers.len() + bytes.len() > limit {
            return Err(DecodeError::TrailersTooLarge { limit });
        }
        hold_bounded(&mut self.trailers, bytes, limit);
        Ok(())
    }

    /// Checks the trailers. They are not returned, but anything other than a list of fields
    /// indicates that the sizes were wrong.
    fn check_trailers(&mut self, limits: &DecoderLimits) -> Result<(), DecodeError> {
        if self.trailers.is_empty() {
            return Ok(());
        }
        self.hold(b"\r\n", limits)?;
        let trailers = std::mem::take(&mut self.trailers);
        let mut fields = vec![httparse::EMPTY_HEADER; self.trailer_lines];
        match httparse::parse_headers(&trailers, &mut fields) {
            Ok(httparse::Status::Complete((size, _))) if size == trailers.len() => Ok(()),
            _ => Err(DecodeError::Trailers {
                found: excerpt(&trailers),
            }),
        }
    }
}

/// Appends without allocating more than `limit` bytes. The caller guarantees that `limit` suffices.
pub(crate) fn hold_bounded(held: &mut Vec<u8>, bytes: &[u8], limit: usize) {
    let size = held.len() + bytes.len();
    if size > held.capacity() {
        let wanted = size
            .max(held.capacity().saturating_mul(2))
            .max(256)
            .min(limit.max(size));
        held.reserve_exact(wanted - held.len());
    }
    held.extend_from_slice(bytes);
}

/// Returns the length of the size line and the size of the chunk if the line is complete in the
/// input and consists only of one to seven hexadecimal digits with a value other than zero.
#[inline]
fn plain_size(input: &[u8]) -> Option<(usize, usize)> {
    let mut size = 0;
    for (at, byte) in input.iter().enumerate().take(8) {
        let digit = DIGITS[usize::from(*byte)];
        if digit < 16 {
            size = size << 4 | usize::from(digit);
        } else {
            let ends = *byte == b'\r' && input.get(at + 1) == Some(&b'\n');
            return (ends && size != 0).then_some((at + 2, size));
        }
    }
    None
}

#[inline]
fn digit(byte: u8) -> Option<u8> {
    let digit = DIGITS[usize::from(byte)];
    (digit < 16).then_some(digit)
}

/// Value of each hexadecimal digit; 255 for any other byte.
const DIGITS: [u8; 256] = {
    let mut digits = [255; 256];
    let mut value = 0;
    while value < 16 {
        digits[b"0123456789abcdef"[value as usize] as usize] = value;
        digits[b"0123456789ABCDEF"[value as usize] as usize] = value;
        value += 1;
    }
    digits
};

#[cfg(test)]
mod tests {
    use super::*;

    impl Chunks {
        pub(crate) fn held_bytes(&self) -> usize {
            self.trailers.capacity()
        }
    }

    /// Returns the sizes of the parts, and the final step: input used up or end of the body.
    fn parts(chunks: &mut Chunks, mut input: &[u8]) -> (Vec<usize>, BodyElement<'static>) {
        let mut sizes = Vec::new();
        loop {
            match chunks.next(&mut input, &DecoderLimits::default()).unwrap() {
                BodyElement::Data(data) => sizes.push(data.len()),
                BodyElement::End => return (sizes, BodyElement::End),
                BodyElement::More => return (sizes, BodyElement::More),
            }
        }
    }

    #[test]
    fn a_chunk_that_goes_on_in_the_next_read_is_a_part_of_each() {
        let mut chunks = Chunks::new();
        assert_eq!(
            parts(&mut chunks, b"3\r\nabc\r\n5\r\nab"),
            (vec![3, 2], BodyElement::More)
        );
        assert_eq!(chunks.place(), DecodePosition::Body);
        assert_eq!(parts(&mut chunks, b"cde"), (vec![3], BodyElement::More));
        assert_eq!(parts(&mut chunks, b"\r"), (vec![], BodyElement::More));
        assert_eq!(parts(&mut chunks, b"\n1\r\na\r"), (vec![1], BodyElement::More));
        assert_eq!(
            parts(&mut chunks, b"\n2\r\nab\r\n0"),
            (vec![2], BodyElement::More)
        );
        assert_eq!(chunks.place(), DecodePosition::Body);
        assert_eq!(parts(&mut chunks, b"\r\n"), (vec![], BodyElement::More));
        assert_eq!(chunks.place(), DecodePosition::Trailers);
        assert_eq!(parts(&mut chunks, b"\r\n"), (vec![], BodyElement::End));
    }

    #[test]
    fn unusual_chunks_use_the_general_parser() {
        assert_eq!(plain_size(b"1aF\r\n"), Some((5, 0x1af)));
        assert_eq!(plain_size(b"fffffff\r\n"), Some((9, 0x0fff_ffff)));
        for long in [
            "",
            "1",
            "1\r",
            "\r\n",
            "0\r\n",
            "ffffffff\r\n",
            "1;x\r\n",
            "1\n",
            "g\r\n",
            "1\rx",
        ] {
            assert_eq!(plain_size(long.as_bytes()), None, "{long:?}");
        }
    }

    #[test]
    fn digits_are_those_of_the_standard_library() {
        for byte in 0..=u8::MAX {
            assert_eq!(
                digit(byte).map(u32::from),
                char::from(byte).to_digit(16),
                "{byte}"
            );
        }
    }
}
