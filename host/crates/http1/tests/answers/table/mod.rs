//! Every case of framing that RFC 9112 and RFC 9110 distinguish: whole, byte by byte, and cut once
//! at every position.

mod chunks;
mod framing;
mod heads;
mod limits;

use veeksha_http1::{DecodeError, DecoderLimits};

use crate::decoding::{Outcome, Seen, cut, decode};

/// Decodes the whole input, checks that no cut changes the result, and returns it.
#[track_caller]
fn seen_with(limits: DecoderLimits, bytes: &[u8]) -> Seen {
    let whole = decode(limits, [bytes]);
    let single = decode(limits, bytes.chunks(1));
    assert_eq!(single.essence(), whole.essence(), "byte by byte");
    for at in 1..bytes.len().min(2000) {
        assert_eq!(
            decode(limits, cut(bytes, &[at])).essence(),
            whole.essence(),
            "cut at {at}"
        );
    }
    whole
}

#[track_caller]
fn seen(bytes: impl AsRef<[u8]>) -> Seen {
    seen_with(DecoderLimits::default(), bytes.as_ref())
}

#[track_caller]
fn refused(bytes: impl AsRef<[u8]>) -> DecodeError {
    match seen(bytes).outcome {
        Outcome::Refused(error) => error,
        other => panic!("not refused but {other:?}"),
    }
}

/// Returns a chunked answer; `body` is the body as sent.
fn chunked(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}")
}

/// Returns the body of an answer that ended and left the connection reusable.
#[track_caller]
fn body(bytes: impl AsRef<[u8]>) -> String {
    let seen = seen(bytes);
    assert_eq!(
        (&seen.outcome, seen.unread, seen.reusable),
        (&Outcome::Ended, 0, true)
    );
    String::from_utf8(seen.body).unwrap()
}
