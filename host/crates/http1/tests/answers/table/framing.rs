//! The ends of bodies and the state of the connection after them.

use veeksha_http1::{BodyFraming, DecodeError, DecodePosition, Decoder, DecoderLimits};

use super::{body, chunked, refused, seen};
use crate::decoding::{Outcome, decode, decode_with};

#[test]
fn truncation_error_names_the_part() {
    let whole = chunked("3;x\r\nabc\r\n0\r\na: b\r\n\r\n");
    let place = |text: &str| match decode(DecoderLimits::default(), [text.as_bytes()]).outcome {
        Outcome::Refused(DecodeError::Truncated { place }) => Some(place),
        Outcome::Ended => None,
        other => panic!("{text:?}: {other:?}"),
    };
    let head = whole.find("\r\n\r\n").unwrap() + 4;
    let last = whole.find("0\r\n").unwrap() + 3;
    for end in 1..=whole.len() {
        let expected = match end {
            _ if end < head => Some(DecodePosition::Head),
            _ if end < last => Some(DecodePosition::Body),
            _ if end < whole.len() => Some(DecodePosition::Trailers),
            _ => None,
        };
        assert_eq!(place(&whole[..end]), expected, "{end}");
    }
    assert_eq!(
        place("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab"),
        Some(DecodePosition::Body)
    );
    // An interim answer counts as a beginning.
    assert_eq!(place("HTTP/1.1 100 Continue\r\n\r\n"), Some(DecodePosition::Head));
}

#[test]
fn nothing_is_no_truncated_answer() {
    assert_eq!(seen("").outcome, Outcome::Nothing);
    assert_eq!(seen("\r\n\n").outcome, Outcome::Nothing);
}

#[test]
fn lengths() {
    let with = |fields: &str, body: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{body}");
    for fields in [
        "Content-Length: 3",
        "content-length:003",
        "CONTENT-LENGTH: \t3 \t",
        "Content-Length: 3\r\nContent-Length: 3",
        "Content-Length: 3, 3\r\nX: y\r\nContent-Length: 03",
    ] {
        assert_eq!(body(with(fields, "abc")), "abc", "{fields}");
    }
    let empty = seen(with("Content-Length: 0", ""));
    assert_eq!(
        (empty.outcome, empty.reusable, empty.parts.len()),
        (Outcome::Ended, true, 0)
    );
    for (value, refusal) in [
        ("", "the answer's Content-Length `` is not a number of bytes"),
        ("+3", "the answer's Content-Length `+3` is not a number of bytes"),
        ("3,", "the answer's Content-Length `3,` is not a number of bytes"),
        (
            "3 3",
            "the answer's Content-Length `3 3` is not a number of bytes",
        ),
        (
            "0x3",
            "the answer's Content-Length `0x3` is not a number of bytes",
        ),
        (
            "18446744073709551616",
            "the answer's Content-Length `18446744073709551616` is not a number of bytes",
        ),
        (
            "3, 4",
            "the answer has both Content-Length 3 and Content-Length 4",
        ),
        (
            "3\r\nContent-Length: 4",
            "the answer has both Content-Length 3 and Content-Length 4",
        ),
    ] {
        assert_eq!(
            refused(with(&format!("Content-Length: {value}"), "abc")).to_string(),
            refusal
        );
    }
    let endless = seen(with("Content-Length: 18446744073709551615", "abc"));
    assert_eq!(endless.head.unwrap().framing, BodyFraming::Length(u64::MAX));
    assert_eq!(endless.body, b"abc");
}

#[test]
fn transfer_codings() {
    let with = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    for fields in [
        "Transfer-Encoding: chunked",
        "transfer-encoding:\tCHUNKED ",
        "Transfer-Encoding: , chunked,",
    ] {
        assert_eq!(body(with(fields)), "abc", "{fields}");
    }
    for fields in [
        "Transfer-Encoding: chunked\r\nContent-Length: 3",
        "Content-Length: x\r\nTransfer-Encoding: chunked",
    ] {
        let both = seen(with(fields));
        assert_eq!(
            (both.outcome, both.body.as_slice()),
            (Outcome::Ended, &b"abc"[..])
        );
        assert!(!both.reusable, "two framings: {fields}");
    }
    for (fields, named) in [
        ("Transfer-Encoding: gzip", "gzip"),
        ("Transfer-Encoding: gzip, chunked", "gzip, chunked"),
        (
            "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
            "gzip, chunked",
        ),
        ("Transfer-Encoding: chunked, chunked", "chunked, chunked"),
        ("Transfer-Encoding: chunked, identity", "chunked, identity"),
        ("Transfer-Encoding: chunked;q=1", "chunked;q=1"),
        ("Transfer-Encoding: xchunked", "xchunked"),
    ] {
        assert_eq!(
            refused(with(fields)),
            DecodeError::TransferEncoding {
                value: named.to_owned()
            }
        );
    }
    for nothing in ["identity", "Identity, identity", "", ","] {
        let close = seen(with(&format!("Transfer-Encoding: {nothing}")));
        assert_eq!(close.outcome, Outcome::EndedByClose);
        assert_eq!(close.body, b"3\r\nabc\r\n0\r\n\r\n");
        let length = seen(with(&format!(
            "Transfer-Encoding: {nothing}\r\nContent-Length: 13"
        )));
        assert_eq!(
            (length.outcome, length.body.len(), length.reusable),
            (Outcome::Ended, 13, false)
        );
    }
    assert_eq!(
        refused("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        DecodeError::TransferEncodingInHttp10 {
            value: "chunked".to_owned()
        }
    );
}

#[test]
fn connections_that_live_on() {
    let reusable = |version: &str, fields: &str| {
        let seen = seen(format!(
            "HTTP/{version} 200 OK\r\ncontent-length: 0{fields}\r\n\r\n"
        ));
        assert_eq!(seen.outcome, Outcome::Ended);
        seen.reusable
    };
    for fields in [
        "",
        "\r\nConnection: keep-alive",
        "\r\nConnection: Keep-Alive, Upgrade",
        "\r\nConnection: x-close",
    ] {
        assert!(reusable("1.1", fields), "{fields}");
    }
    for fields in [
        "close",
        "CLOSE",
        "keep-alive, Close",
        "a,close ,b",
        "keep-alive\r\nConnection: close",
        "close\r\nConnection: keep-alive",
    ] {
        assert!(!reusable("1.1", &format!("\r\nConnection: {fields}")), "{fields}");
        assert!(!reusable("1.0", &format!("\r\nConnection: {fields}")), "{fields}");
    }
    assert!(!reusable("1.0", ""));
    assert!(!reusable("1.0", "\r\nConnection: Upgrade"));
    assert!(reusable("1.0", "\r\nConnection: Keep-Alive"));
    assert!(reusable(
        "1.0",
        "\r\nConnection: x\r\nconnection: Upgrade, keep-alive"
    ));
}

#[test]
fn bodies_that_end_with_the_connection() {
    for head in [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n\r\n",
        "HTTP/1.1 500\r\n\r\n",
    ] {
        for body in ["", "a", "0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"] {
            let seen = seen(format!("{head}{body}"));
            assert_eq!(seen.head.unwrap().framing, BodyFraming::UntilClose);
            assert_eq!(seen.outcome, Outcome::EndedByClose);
            assert_eq!(seen.body, body.as_bytes());
        }
    }
}

#[test]
fn answers_without_a_body() {
    for status in [204, 304] {
        for fields in [
            "",
            "content-length: 0\r\n",
            "content-length: 3\r\n",
            "transfer-encoding: chunked\r\n",
        ] {
            let seen = seen(format!("HTTP/1.1 {status} X\r\n{fields}\r\n"));
            assert_eq!(seen.head.unwrap().framing, BodyFraming::None);
            assert_eq!((seen.outcome, seen.body.len()), (Outcome::Ended, 0));
            // A 304 may describe the body that it omits; a 204 that does so is ambiguous.
            let doubt = status == 204 && !matches!(fields, "" | "content-length: 0\r\n");
            assert_eq!(seen.reusable, !doubt, "{status} {fields}");
        }
    }
}

#[test]
fn bytes_after_the_end_are_left_and_spoil_the_connection() {
    for (answer, body) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc".to_owned(),
            "abc",
        ),
        (chunked("3\r\nabc\r\n0\r\n\r\n"), "abc"),
        ("HTTP/1.1 204 No Content\r\n\r\n".to_owned(), ""),
    ] {
        for extra in [
            "x",
            "\r\n",
            "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n",
        ] {
            let seen = seen(format!("{answer}{extra}"));
            assert_eq!((seen.outcome, seen.unread), (Outcome::Ended, extra.len()));
            assert_eq!(seen.body, body.as_bytes());
            assert!(!seen.reusable, "{extra:?}");
        }
    }
}

#[test]
fn one_decoder_serves_a_connection() {
    let mut decoder = Decoder::new(DecoderLimits::default());
    let answers = [
        chunked("3\r\nabc\r\n0\r\na: b\r\n\r\n"),
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nde".to_owned(),
        "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
        chunked("0\r\n\r\n"),
    ];
    for bytes in answers.iter().cycle().take(8) {
        decoder.restart();
        assert!(!decoder.has_begun() && !decoder.is_ended() && !decoder.can_be_reused());
        let again = decode_with(&mut decoder, bytes.as_bytes().chunks(5));
        assert_eq!(
            again,
            decode(DecoderLimits::default(), bytes.as_bytes().chunks(5))
        );
        assert!(again.reusable);
    }
    // Also after an error, for a new connection: nothing of the old one remains.
    decoder.restart();
    let _ = decode_with(&mut decoder, [&b"HTTP/1.1 200 OK\r\nx"[..]]);
    decoder.restart();
    assert_eq!(decode_with(&mut decoder, [answers[1].as_bytes()]).body, b"de");
}
