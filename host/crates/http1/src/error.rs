//! Errors of the decoder.

use std::fmt;

/// Reason why an answer could not be decoded. Nothing after it on this connection can be trusted:
/// close the connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The connection was closed before the answer ended.
    #[error("the connection was closed in {place} of the answer")]
    Truncated {
        /// Last position in the answer.
        place: DecodePosition,
    },
    /// The head exceeds [`crate::DecoderLimits::head_bytes`].
    #[error("the answer's head is larger than {limit} bytes")]
    HeadTooLarge {
        /// The limit.
        limit: usize,
    },
    /// The head exceeds [`crate::DecoderLimits::headers`].
    #[error("the answer's head has more than {limit} header fields")]
    TooManyHeaders {
        /// The limit.
        limit: usize,
    },
    /// The answer is not HTTP, or uses another version of it.
    #[error("the answer does not begin with HTTP/1.1 or HTTP/1.0 but with `{found}`")]
    NotHttp {
        /// Beginning of the answer.
        found: String,
    },
    /// The status is not a number from 100 to 999, or the line has forbidden bytes.
    #[error("the answer's status line `{line}` cannot be understood")]
    StatusLine {
        /// Beginning of the line.
        line: String,
    },
    /// A line of the head is not a header field: its name or its value has forbidden bytes.
    #[error("the answer's header field `{line}` cannot be understood")]
    Header {
        /// Beginning of the line.
        line: String,
    },
    /// Status 101.
    #[error("the server switches to another protocol (status 101), which the request did not ask for")]
    SwitchingProtocols,
    /// The length is not a valid number.
    #[error("the answer's Content-Length `{value}` is not a number of bytes")]
    ContentLength {
        /// The value as sent.
        value: String,
    },
    /// Contradictory lengths.
    #[error("the answer has both Content-Length {first} and Content-Length {second}")]
    ContentLengths {
        /// The first length.
        first: u64,
        /// The length that contradicts it.
        second: u64,
    },
    /// An unsupported transfer coding, or an unsupported order of codings.
    #[error("the answer's Transfer-Encoding is `{value}`; only `chunked` is understood")]
    TransferEncoding {
        /// The complete value as sent.
        value: String,
    },
    /// HTTP/1.0 has no transfer codings, so the end of the body is unknown (RFC 9112, section 6.1).
    #[error(
        "the answer is HTTP/1.0 and has the Transfer-Encoding `{value}`, which that version does not know"
    )]
    TransferEncodingInHttp10 {
        /// The complete value as sent.
        value: String,
    },
    /// The size line of a chunk is malformed.
    #[error("a chunk's size `{found}` is not hexadecimal")]
    ChunkSize {
        /// Excerpt from the beginning of the line or of its last piece.
        found: String,
    },
    /// A size of 2^64 or more.
    #[error("a chunk's size does not fit in 64 bits")]
    ChunkSizeOverflow,
    /// The size line of a chunk does not end with CR LF.
    #[error("the line of a chunk's size does not end with CR LF but has `{found}`")]
    ChunkLineEnd {
        /// The bytes in place of CR LF.
        found: String,
    },
    /// A size line exceeds [`crate::DecoderLimits::chunk_line_bytes`].
    #[error("the line of a chunk's size is longer than {limit} bytes")]
    ChunkLineTooLong {
        /// The limit.
        limit: usize,
    },
    /// A chunk is longer than its declared size, or its size was wrong.
    #[error("a chunk does not end with CR LF after its size but has `{found}`")]
    ChunkEnd {
        /// The bytes in place of CR LF.
        found: String,
    },
    /// The trailers exceed [`crate::DecoderLimits::trailer_bytes`].
    #[error("the answer's trailers are larger than {limit} bytes")]
    TrailersTooLarge {
        /// The limit.
        limit: usize,
    },
    /// The trailers exceed [`crate::DecoderLimits::headers`].
    #[error("the answer has more than {limit} trailers")]
    TooManyTrailers {
        /// The limit.
        limit: usize,
    },
    /// The bytes after the last chunk are not a list of fields.
    #[error("the answer's trailers `{found}` cannot be understood")]
    Trailers {
        /// Beginning of those bytes.
        found: String,
    },
    /// The decoder was called again after an error, without [`crate::Decoder::restart`].
    #[error("the answer was refused already")]
    Refused,
}

impl DecodeError {
    /// Returns true if the answer was cut off rather than malformed: the received part was valid.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        matches!(self, Self::Truncated { .. })
    }
}

/// Position in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodePosition {
    /// In the status line or the header fields, or between an interim answer and the final one.
    Head,
    /// In the body: announced bytes are missing, or the last chunk is.
    Body,
    /// After the last chunk: the body is complete, but the empty line that ends the answer is
    /// missing.
    Trailers,
}

impl fmt::Display for DecodePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head => "the head",
            Self::Body => "the body",
            Self::Trailers => "the trailers",
        })
    }
}

/// Maximum number of bytes that an error quotes.
const EXCERPT_BYTES: usize = 48;

/// Returns the first line of `bytes`, or its beginning, escaped so that it is readable and harmless
/// to a terminal.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    let line = match memchr::memchr2(b'\r', b'\n', bytes) {
        // If the first byte is a line end, only that byte is shown.
        Some(0) => &bytes[..1],
        Some(end) => &bytes[..end],
        None => bytes,
    };
    let shown = &line[..line.len().min(EXCERPT_BYTES)];
    let mut text = String::new();
    for char in String::from_utf8_lossy(shown).chars() {
        match char {
            '"' | '\'' => text.push(char),
            _ => text.extend(char.escape_debug()),
        }
    }
    if shown.len() < line.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_one_short_readable_line() {
        assert_eq!(excerpt(b"xyz\r\nabc"), "xyz");
        assert_eq!(excerpt(b"\nabc"), "\\n");
        assert_eq!(excerpt(b"\x1b[2Jq\""), "\\u{1b}[2Jq\"");
        assert_eq!(excerpt(b"\xff"), "\u{fffd}");
        let long = excerpt(&[b'a'; 100]);
        assert_eq!(long, format!("{}…", "a".repeat(48)));
    }

    #[test]
    fn only_a_cut_is_truncated() {
        assert!(
            DecodeError::Truncated {
                place: DecodePosition::Body
            }
            .is_truncated()
        );
        assert!(!DecodeError::HeadTooLarge { limit: 1 }.is_truncated());
        assert_eq!(
            DecodeError::Truncated {
                place: DecodePosition::Trailers
            }
            .to_string(),
            "the connection was closed in the trailers of the answer"
        );
    }
}
