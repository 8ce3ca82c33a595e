//! The end of a body, and the state of the connection after it (RFC 9112, sections 6.3 and 9.3).

use crate::error::{DecodeError, excerpt};
use crate::headers::Headers;

/// Method to find the end of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFraming {
    /// After this number of bytes (`Content-Length`).
    Length(u64),
    /// In chunks (`Transfer-Encoding: chunked`).
    Chunked,
    /// When the server closes the connection.
    UntilClose,
    /// There is no body, regardless of the header fields (status 204 and 304).
    None,
}

/// The version of an answer; there are only two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Http10,
    Http11,
}

/// Framing of the body, and persistence of the connection after it, according to the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) framing: BodyFraming,
    /// Set if the server keeps the connection open after this answer, and the end of the answer is
    /// unambiguous.
    pub(crate) keep_alive: bool,
}

/// Returns the terms of the final answer to a request that was neither HEAD nor CONNECT.
pub(crate) fn terms(version: Version, status: u16, headers: &Headers) -> Result<Terms, DecodeError> {
    let keep_alive = keeps_alive(version, headers);
    let coded = headers.get("transfer-encoding").is_some();
    if matches!(status, 204 | 304) {
        // A 204 that announces a body may be followed by one, which could not be distinguished from
        // the next answer.
        let doubt =
            status == 204 && (coded || headers.get("content-length").is_some_and(|length| length != b"0"));
        return Ok(Terms {
            framing: BodyFraming::None,
            keep_alive: keep_alive && !doubt,
        });
    }
    if coded && transfer_coding(version, headers)? == TransferCoding::Chunked {
        // Two framings are typical of an attack on a proxy: chunks take precedence, and the
        // connection is not reused.
        let doubt = headers.get("content-length").is_some();
        return Ok(Terms {
            framing: BodyFraming::Chunked,
            keep_alive: keep_alive && !doubt,
        });
    }
    Ok(match content_length(headers)? {
        Some(length) => Terms {
            framing: BodyFraming::Length(length),
            keep_alive: keep_alive && !coded,
        },
        None => Terms {
            framing: BodyFraming::UntilClose,
            keep_alive: false,
        },
    })
}

/// Returns true if the connection stays open: `close` anywhere ends it, HTTP/1.0 needs a
/// `keep-alive`.
fn keeps_alive(version: Version, headers: &Headers) -> bool {
    let contains = |word: &[u8]| {
        headers
            .list("connection")
            .any(|option| option.eq_ignore_ascii_case(word))
    };
    !contains(b"close") && (version == Version::Http11 || contains(b"keep-alive"))
}

#[derive(Debug, PartialEq, Eq)]
enum TransferCoding {
    Nothing,
    Chunked,
}

fn transfer_coding(version: Version, headers: &Headers) -> Result<TransferCoding, DecodeError> {
    let value = || {
        let lines: Vec<_> = headers.get_all("transfer-encoding").collect();
        excerpt(&lines.join(&b", "[..]))
    };
    if version == Version::Http10 {
        return Err(DecodeError::TransferEncodingInHttp10 { value: value() });
    }
    let mut codings = headers
        .list("transfer-encoding")
        .filter(|coding| !coding.eq_ignore_ascii_case(b"identity"));
    match (codings.next(), codings.next()) {
        (None, _) => Ok(TransferCoding::Nothing),
        (Some(only), None)
            if only.eq_ignore_ascii_case(b"chunked") && headers.list("transfer-encoding").count() == 1 =>
        {
            Ok(TransferCoding::Chunked)
        }
        _ => Err(DecodeError::TransferEncoding { value: value() }),
    }
}

/// Returns the body length. Some proxies repeat it, on separate lines or in a list: equal values
/// count as one.
fn content_length(headers: &Headers) -> Result<Option<u64>, DecodeError> {
    let mut length = None;
    for line in headers.get_all("content-length") {
        for element in line.split(|byte| *byte == b',') {
            let value = decimal(element.trim_ascii())
                .ok_or_else(|| DecodeError::ContentLength { value: excerpt(line) })?;
            match length {
                Some(first) if first != value => {
                    return Err(DecodeError::ContentLengths { first, second: value });
                }
                _ => length = Some(value),
            }
        }
    }
    Ok(length)
}

/// Parses digits and nothing else; `str::parse` would accept a sign.
fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}
