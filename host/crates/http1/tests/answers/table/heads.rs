//! Heads: interim, uncommon and invalid ones.

use veeksha_http1::{BodyFraming, DecodeError, DecoderLimits};

use super::{refused, seen};
use crate::decoding::{Outcome, decode};

#[test]
fn interim_answers() {
    let seen = seen(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: close\r\nContent-Length: 9\r\n\r\n\
         \r\nHTTP/1.1 199\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
    );
    assert_eq!(seen.interim, [100, 103, 199]);
    let head = seen.head.unwrap();
    assert_eq!(
        (head.status, head.headers.len(), head.framing),
        (200, 1, BodyFraming::Length(1))
    );
    assert_eq!((seen.body.as_slice(), seen.reusable), (&b"a"[..], true));
    assert_eq!(
        refused("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"),
        DecodeError::SwitchingProtocols
    );
}

#[test]
fn heads_with_uncommon_lines() {
    for start in [
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200\r\n",
        "HTTP/1.1 200 \r\n",
        "HTTP/1.1 200 caf\u{e9}\t!\r\n",
        "HTTP/1.1 200 OK\n",
        "\r\nHTTP/1.1 200 OK\r\n",
        "\n\r\n\nHTTP/1.1 200 OK\r\n",
    ] {
        for fields in [
            "a: b\r\nContent-Length: 1\r\n\r\n",
            "a: b\nContent-Length: 1\n\n",
            "a:b \r\nContent-Length:\r\n 1\r\n\r\n",
            "Content-Length: 1\r\na:\t b\t\r\n\n",
        ] {
            let seen = seen(format!("{start}{fields}z"));
            assert_eq!(
                (seen.outcome, seen.body.as_slice(), seen.reusable),
                (Outcome::Ended, &b"z"[..], true)
            );
            let head = seen.head.unwrap();
            assert_eq!(
                (head.status, head.headers.get_str("A")),
                (200, Some("b")),
                "{start:?} {fields:?}"
            );
        }
    }
    let folded =
        seen("HTTP/1.1 200 OK\r\nx: one \r\n  two\r\n\t\r\n three \r\ny: z\r\ncontent-length: 0\r\n\r\n");
    let headers = folded.head.unwrap().headers;
    assert_eq!(
        (headers.get_str("x"), headers.get_str("y")),
        (Some("one two  three"), Some("z"))
    );
}

#[test]
fn heads_that_are_none() {
    let fits = |wanted: &str, bytes: &str| {
        let name = format!("{:?}", refused(bytes));
        assert!(name.starts_with(wanted), "{bytes:?}: {name}");
    };
    for bytes in [
        "SSH-2.0-OpenSSH\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.2 200 OK\r\n\r\n",
        "http/1.1 200 OK\r\n\r\n",
        "HTTP/1.1\t200 OK\r\n\r\n",
        "\x15\x03\x01\0\x02\x02F",
        "{\"error\": 1}\n",
        " HTTP/1.1 200 OK\r\n\r\n",
        "\rHTTP/1.1 200 OK\r\n\r\n",
        "GARBAGE",
    ] {
        fits("NotHttp", bytes);
    }
    for line in [
        "HTTP/1.1 2xx OK",
        "HTTP/1.1 20 OK",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1  200 OK",
        "HTTP/1.1 200 O\0K",
        "HTTP/1.1 099 X",
        "HTTP/1.1 200 O\rK",
    ] {
        fits("StatusLine", &format!("{line}\r\n\r\n"));
    }
    for line in [
        "a",
        ": b",
        "a b: c",
        "a : b",
        "a: \0",
        "a: b\rc",
        "\u{e4}: b",
        "\rx",
        " folded: nothing",
    ] {
        fits(
            "Header",
            &format!("HTTP/1.1 200 OK\r\nright: 1\r\n{line}\r\nlater: 1\r\n\r\n")
                .replace("right: 1\r\n folded", " folded"),
        );
    }
    assert_eq!(
        refused("HTTP/1.1 200 OK\r\na: b\r\nc d: e\r\nf: g\r\n\r\n").to_string(),
        "the answer's header field `c d: e` cannot be understood"
    );
}

#[test]
fn more_fields_than_fit_the_stack() {
    let fields: String = (0..300).map(|n| format!("x-{n}: {n}\r\n")).collect();
    let bytes = format!("HTTP/1.1 204 X\r\n{fields}\r\n");
    let limits = DecoderLimits {
        headers: 300,
        ..DecoderLimits::default()
    };
    let head = decode(limits, [bytes.as_bytes()]).head.unwrap();
    assert_eq!(
        (head.headers.len(), head.headers.get_str("x-299")),
        (300, Some("299"))
    );
    let limits = DecoderLimits {
        headers: 299,
        ..DecoderLimits::default()
    };
    let outcome = decode(limits, [bytes.as_bytes()]).outcome;
    assert_eq!(
        outcome,
        Outcome::Refused(DecodeError::TooManyHeaders { limit: 299 })
    );
}
