//! Every case of framing that RFC 9112 and RFC 9110 tell apart, whole, byte by byte, and cut once at every place.

mod chunks;
mod framing;
mod heads;
mod limits;

use veeksha_http1::{DecodeError, Limits};

use crate::decoding::{Outcome, Seen, cut, decode};

/// Decodes whole, checks that no cut changes anything, and returns what was seen.
#[track_caller]
fn seen_with(limits: Limits, bytes: &[u8]) -> Seen {
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
    seen_with(Limits::default(), bytes.as_ref())
}

#[track_caller]
fn refused(bytes: impl AsRef<[u8]>) -> DecodeError {
    match seen(bytes).outcome {
        Outcome::Refused(error) => error,
        other => panic!("not refused but {other:?}"),
    }
}

/// An answer in chunks whose body is given as it is sent.
fn chunked(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}")
}

/// The body, of an answer that ended and leaves the connection fit for another.
#[track_caller]
fn body(bytes: impl AsRef<[u8]>) -> String {
    let seen = seen(bytes);
    assert_eq!(
        (&seen.outcome, seen.unread, seen.reusable),
        (&Outcome::Ended, 0, true)
    );
    String::from_utf8(seen.body).unwrap()
}
