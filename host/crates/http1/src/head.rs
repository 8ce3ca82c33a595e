//! The head of an answer: status line and header fields.

use std::mem::MaybeUninit;

use crate::error::{DecodeError, excerpt};
use crate::framing::{BodyFraming, Terms, Version, terms};
use crate::headers::Headers;
use crate::limits::DecoderLimits;

/// The head of the final answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// 200 to 999. Statuses from 600 on have no defined meaning and are returned unchanged.
    pub status: u16,
    /// The header fields.
    pub headers: Headers,
    /// Method to find the end of the body.
    pub framing: BodyFraming,
}

/// A parsed head.
#[derive(Debug)]
pub(crate) struct ParsedHead {
    /// Number of bytes of the head, including the empty lines before it.
    pub(crate) bytes: usize,
    pub(crate) kind: HeadKind,
}

#[derive(Debug)]
pub(crate) enum HeadKind {
    /// 1xx: another head follows.
    Interim(u16),
    Final(Head, Terms),
}

/// Number of header fields up to which a head is parsed on the stack.
const ON_STACK: usize = 128;

/// Parses the head at the beginning of `bytes`. Returns `None` if it is incomplete.
pub(crate) fn parse(bytes: &[u8], limits: &DecoderLimits) -> Result<Option<ParsedHead>, DecodeError> {
    if limits.headers <= ON_STACK {
        let mut fields = [const { MaybeUninit::uninit() }; ON_STACK];
        parse_into(bytes, limits, &mut fields[..limits.headers])
    } else {
        parse_into(bytes, limits, &mut vec![MaybeUninit::uninit(); limits.headers])
    }
}

fn parse_into<'b>(
    bytes: &'b [u8],
    limits: &DecoderLimits,
    fields: &mut [MaybeUninit<httparse::Header<'b>>],
) -> Result<Option<ParsedHead>, DecodeError> {
    let mut response = httparse::Response::new(&mut []);
    let parsed = config().parse_response_with_uninit_headers(&mut response, bytes, fields);
    let size = match parsed {
        Ok(httparse::Status::Complete(size)) => size,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(refusal(error, bytes, limits)),
    };
    let version = if response.version == Some(0) {
        Version::Http10
    } else {
        Version::Http11
    };
    let kind = match response.code.unwrap_or_default() {
        0..100 => {
            return Err(DecodeError::StatusLine {
                line: excerpt(trim_start(bytes)),
            });
        }
        101 => return Err(DecodeError::SwitchingProtocols),
        interim @ 100..200 => HeadKind::Interim(interim),
        status => {
            let headers = Headers::collect(response.headers);
            let terms = terms(version, status, &headers)?;
            HeadKind::Final(
                Head {
                    status,
                    headers,
                    framing: terms.framing,
                },
                terms,
            )
        }
    };
    Ok(Some(ParsedHead { bytes: size, kind }))
}

fn config() -> httparse::ParserConfig {
    let mut config = httparse::ParserConfig::default();
    // RFC 9112, section 5.2: a user agent must accept folded lines.
    config.allow_obsolete_multiline_headers_in_responses(true);
    config
}

fn refusal(error: httparse::Error, bytes: &[u8], limits: &DecoderLimits) -> DecodeError {
    let head = trim_start(bytes);
    match error {
        httparse::Error::TooManyHeaders => DecodeError::TooManyHeaders {
            limit: limits.headers,
        },
        httparse::Error::Version => DecodeError::NotHttp { found: excerpt(head) },
        httparse::Error::Status => DecodeError::StatusLine { line: excerpt(head) },
        httparse::Error::NewLine if head.is_empty() || head[0] == b'\r' => {
            DecodeError::NotHttp { found: excerpt(head) }
        }
        httparse::Error::NewLine
        | httparse::Error::HeaderName
        | httparse::Error::HeaderValue
        | httparse::Error::Token => DecodeError::Header {
            line: excerpt(offending_line(bytes)),
        },
    }
}

/// Returns the first line that makes the head invalid. The parser does not report it, but if it
/// rejects a beginning of the head, it also rejects every longer one.
fn offending_line(bytes: &[u8]) -> &[u8] {
    let ends: Vec<usize> = memchr::memchr_iter(b'\n', bytes).collect();
    let right = ends.partition_point(|end| {
        let mut fields = vec![MaybeUninit::uninit(); ends.len()];
        let mut response = httparse::Response::new(&mut []);
        config()
            .parse_response_with_uninit_headers(&mut response, &bytes[..=*end], &mut fields)
            .is_ok()
    });
    let begin = right.checked_sub(1).map_or(0, |last| ends[last] + 1);
    &bytes[begin..]
}

/// Removes the empty lines that may precede a status line.
fn trim_start(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let Some(after) = rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n")) {
        rest = after;
    }
    rest
}

/// Returns true if there is anything but the empty lines that may precede a status line.
pub(crate) fn has_begun(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| !matches!(byte, b'\r' | b'\n'))
}
