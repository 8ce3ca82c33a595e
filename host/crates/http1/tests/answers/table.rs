//! Every case of framing that RFC 9112 and RFC 9110 tell apart, whole, byte by byte, and cut once at every place.

use veeksha_http1::{DecodeError, Decoder, Framing, Limits, Place};

use crate::decoding::{Outcome, Seen, cut, decode, decode_with};

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

#[test]
fn sizes_of_chunks() {
    let thirty = "0123456789abcdef0123456789ABCD";
    for size in [
        "1e",
        "1E",
        "001e",
        "00000000000000000000000000000001E",
        "1e ",
        "1e\t \t",
        "01E;",
        "1e;x",
    ] {
        assert_eq!(
            body(chunked(&format!("{size}\r\n{thirty}\r\n0\r\n\r\n"))),
            thirty,
            "{size:?}"
        );
    }
    for end in ["0", "000", "00000000000000000", "0;x=y", "0 "] {
        assert_eq!(body(chunked(&format!("1\r\na\r\n{end}\r\n\r\n"))), "a", "{end:?}");
        assert_eq!(body(chunked(&format!("{end}\r\n\r\n"))), "", "{end:?}");
    }
    // Every number of digits, also those beyond the fast way; the largest size there is announces a body that never ends.
    for digits in 1..=16 {
        let size = "f".repeat(digits);
        let seen = seen(chunked(&format!("{size}\r\nabc")));
        assert_eq!(seen.body, b"abc");
        assert_eq!(
            seen.outcome,
            Outcome::Refused(DecodeError::Truncated { place: Place::Body })
        );
    }
}

#[test]
fn chunk_extensions_are_skipped() {
    for extension in [
        ";a",
        ";a=b",
        "; a = b ; c",
        " ;a",
        "\t;a=\"q;u\\\"o ted\"",
        ";a=\"\n\"".replace('\n', " ").as_str(),
        ";\u{e4}=\u{1}",
        ";;;",
    ] {
        assert_eq!(
            body(chunked(&format!("3{extension}\r\nabc\r\n0{extension}\r\n\r\n"))),
            "abc",
            "{extension:?}"
        );
    }
}

#[test]
fn lines_of_sizes_that_are_none() {
    for line in [
        "",
        " 3",
        "\t3",
        "g",
        "-3",
        "+3",
        "0x3",
        "3g",
        "\u{ff13}",
        "3 3",
        "3\x0b",
        ";a",
        "{\"message\"",
        "\n3",
    ] {
        let error = refused(chunked(&format!("{line}\r\nabc\r\n0\r\n\r\n")));
        assert!(
            matches!(error, DecodeError::ChunkSize { .. }),
            "{line:?}: {error:?}"
        );
    }
    let error = refused(chunked("xyz\r\nabc\r\n0\r\n\r\n"));
    assert_eq!(error.to_string(), "a chunk's size `xyz` is not hexadecimal");
    for size in [
        "10000000000000000",
        "ffffffffffffffff0",
        "fffffffffffffffffffffffff",
        "0ffffffffffffffff1",
    ] {
        assert_eq!(
            refused(chunked(&format!("{size}\r\nabc"))),
            DecodeError::ChunkSizeOverflow,
            "{size}"
        );
    }
    for line in ["3\n", "3;x\n", "3 \n", "3\r", "3\rx", "3\r\r\n", "3;x\r;\r\n"] {
        let error = refused(chunked(&format!("{line}abc\r\n0\r\n\r\n")));
        assert!(
            matches!(error, DecodeError::ChunkLineEnd { .. }),
            "{line:?}: {error:?}"
        );
    }
    // The fast way and the slow one agree on every byte that may follow a digit.
    for byte in 0..=u8::MAX {
        let mut bytes = chunked("3").into_bytes();
        bytes.extend_from_slice(&[byte, b'\r', b'\n']);
        let right = byte.is_ascii_hexdigit() || b" \t;".contains(&byte);
        let outcome = seen(bytes).outcome;
        let truncated = outcome == Outcome::Refused(DecodeError::Truncated { place: Place::Body });
        assert_eq!(truncated, right, "{byte:#x}: {outcome:?}");
    }
}

#[test]
fn chunks_end_where_they_say() {
    for after in [
        "ab",
        "abcd\r\n",
        "abc\n0\r\n\r\n",
        "abc\r0\r\n\r\n",
        "abc0\r\n\r\n",
    ] {
        let seen = seen(chunked(&format!("3\r\n{after}")));
        let Outcome::Refused(error) = seen.outcome else {
            panic!("{after:?} was understood")
        };
        if after == "ab" {
            assert_eq!(error, DecodeError::Truncated { place: Place::Body });
        } else {
            assert!(
                matches!(error, DecodeError::ChunkEnd { .. }),
                "{after:?}: {error:?}"
            );
            assert_eq!(seen.body, b"abc", "what came before is right");
        }
    }
    assert_eq!(
        decode(Limits::default(), [chunked("3\r\nabcd\r\n").as_bytes()]).outcome,
        Outcome::Refused(DecodeError::ChunkEnd {
            found: "d".to_owned()
        })
    );
}

#[test]
fn trailers_are_checked_and_dropped() {
    for trailers in ["a: b\r\n", "A:\r\nb: c\r\n", "x-checksum: \u{e9}\t1\r\n"] {
        assert_eq!(
            body(chunked(&format!("3\r\nabc\r\n0\r\n{trailers}\r\n"))),
            "abc",
            "{trailers:?}"
        );
    }
    for trailers in [
        "a\r\n",
        ": b\r\n",
        "a b: c\r\n",
        " a: b\r\n",
        "a: b\r\n c\r\n",
        "a: \0\r\n",
        "a: b\nc: d\r\n",
    ] {
        let error = refused(chunked(&format!("0\r\n{trailers}\r\n")));
        assert!(
            matches!(error, DecodeError::Trailers { .. }),
            "{trailers:?}: {error:?}"
        );
    }
    for end in ["\rx", "a: b\rx", "a: b\r\n\rx"] {
        let error = refused(chunked(&format!("0\r\n{end}")));
        assert!(
            matches!(error, DecodeError::Trailers { .. }),
            "{end:?}: {error:?}"
        );
    }
}

#[test]
fn cuts_tell_how_far_the_answer_had_come() {
    let whole = chunked("3;x\r\nabc\r\n0\r\na: b\r\n\r\n");
    let place = |text: &str| match decode(Limits::default(), [text.as_bytes()]).outcome {
        Outcome::Refused(DecodeError::Truncated { place }) => Some(place),
        Outcome::Ended => None,
        other => panic!("{text:?}: {other:?}"),
    };
    let head = whole.find("\r\n\r\n").unwrap() + 4;
    let last = whole.find("0\r\n").unwrap() + 3;
    for end in 1..=whole.len() {
        let expected = match end {
            _ if end < head => Some(Place::Head),
            _ if end < last => Some(Place::Body),
            _ if end < whole.len() => Some(Place::Trailers),
            _ => None,
        };
        assert_eq!(place(&whole[..end]), expected, "{end}");
    }
    assert_eq!(
        place("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab"),
        Some(Place::Body)
    );
    // An interim answer is a beginning.
    assert_eq!(place("HTTP/1.1 100 Continue\r\n\r\n"), Some(Place::Head));
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
    assert_eq!(endless.head.unwrap().framing, Framing::Length(u64::MAX));
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
            assert_eq!(seen.head.unwrap().framing, Framing::UntilClose);
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
            assert_eq!(seen.head.unwrap().framing, Framing::None);
            assert_eq!((seen.outcome, seen.body.len()), (Outcome::Ended, 0));
            // A 304 may tell of the body that it leaves out; a 204 that does is in doubt.
            let doubt = status == 204 && !matches!(fields, "" | "content-length: 0\r\n");
            assert_eq!(seen.reusable, !doubt, "{status} {fields}");
        }
    }
}

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
        (200, 1, Framing::Length(1))
    );
    assert_eq!((seen.body.as_slice(), seen.reusable), (&b"a"[..], true));
    assert_eq!(
        refused("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"),
        DecodeError::SwitchingProtocols
    );
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
fn every_limit_is_exact() {
    let limits = Limits {
        head_bytes: 60,
        headers: 2,
        chunk_line_bytes: 8,
        trailer_bytes: 12,
    };
    let outcome = |bytes: &str| seen_with(limits, bytes.as_bytes()).outcome;
    let refusal = |bytes: &str| match outcome(bytes) {
        Outcome::Refused(error) => error.to_string(),
        other => panic!("{bytes:?}: {other:?}"),
    };
    let head = |size: usize| {
        let start = "HTTP/1.1 204 X\r\na: ";
        format!("{start}{}\r\n\r\n", "b".repeat(size - start.len() - 4))
    };
    assert_eq!(head(60).len(), 60);
    assert_eq!(outcome(&head(60)), Outcome::Ended);
    assert_eq!(
        outcome(&format!(
            "{}HTTP/1.1 204 X\r\n\r\n",
            head(60).replace("204", "100")
        )),
        Outcome::Ended
    );
    assert_eq!(refusal(&head(61)), "the answer's head is larger than 60 bytes");
    assert_eq!(
        refusal(&format!("\r\n{}", head(59))),
        "the answer's head is larger than 60 bytes"
    );
    assert_eq!(
        refusal(&"\r\n".repeat(31)),
        "the answer's head is larger than 60 bytes"
    );

    assert_eq!(outcome("HTTP/1.1 204 X\r\na: b\r\nc: d\r\n\r\n"), Outcome::Ended);
    assert_eq!(
        refusal("HTTP/1.1 204 X\r\na: b\r\nc: d\r\ne: f\r\n\r\n"),
        "the answer's head has more than 2 header fields"
    );

    for line in ["1;abcd\r\n", "000001\r\n"] {
        assert_eq!(
            outcome(&chunked(&format!("{line}a\r\n0\r\n\r\n"))),
            Outcome::Ended,
            "{line}"
        );
    }
    for line in [
        "1;abcde\r\n",
        "0000001\r\n",
        "00000000001",
        "1        ",
        "1;aaaaaaaaaaaaaaaaa",
    ] {
        assert_eq!(
            refusal(&chunked(&format!("{line}a\r\n0\r\n\r\n"))),
            "the line of a chunk's size is longer than 8 bytes",
            "{line}"
        );
    }

    assert_eq!(outcome(&chunked("0\r\na: 45678\r\n\r\n")), Outcome::Ended);
    assert_eq!(outcome(&chunked("0\r\na:\r\nb:\r\n\r\n")), Outcome::Ended);
    assert_eq!(
        refusal(&chunked("0\r\na: 456789\r\n\r\n")),
        "the answer's trailers are larger than 12 bytes"
    );
    assert_eq!(
        refusal(&chunked("0\r\naaaaaaaaaaaaaaaaaaaaa")),
        "the answer's trailers are larger than 12 bytes"
    );
    let limits = Limits {
        trailer_bytes: 100,
        ..limits
    };
    assert_eq!(
        seen_with(limits, chunked("0\r\na:\r\nb:\r\nc:\r\n\r\n").as_bytes()).outcome,
        Outcome::Refused(DecodeError::TooManyTrailers { limit: 2 })
    );
}

#[test]
fn more_fields_than_fit_the_stack() {
    let fields: String = (0..300).map(|n| format!("x-{n}: {n}\r\n")).collect();
    let bytes = format!("HTTP/1.1 204 X\r\n{fields}\r\n");
    let limits = Limits {
        headers: 300,
        ..Limits::default()
    };
    let head = decode(limits, [bytes.as_bytes()]).head.unwrap();
    assert_eq!(
        (head.headers.len(), head.headers.get_str("x-299")),
        (300, Some("299"))
    );
    let limits = Limits {
        headers: 299,
        ..Limits::default()
    };
    let outcome = decode(limits, [bytes.as_bytes()]).outcome;
    assert_eq!(
        outcome,
        Outcome::Refused(DecodeError::TooManyHeaders { limit: 299 })
    );
}

#[test]
fn a_large_chunk_is_one_part_and_many_chunks_are_one_part_each() {
    let megabyte = "x".repeat(1 << 20);
    let bytes = chunked(&format!("100000\r\n{megabyte}\r\n0\r\n\r\n"));
    let whole = decode(Limits::default(), [bytes.as_bytes()]);
    assert_eq!((whole.parts, whole.reusable), (vec![1 << 20], true));
    let reads = decode(Limits::default(), bytes.as_bytes().chunks(1 << 16));
    assert_eq!(reads.body.len(), 1 << 20);
    assert_eq!(
        reads.parts.len(),
        17,
        "one part for each read that has some of it"
    );

    let events: String = (1..=500)
        .map(|size| format!("{size:x}\r\n{}\r\n", "y".repeat(size)))
        .collect();
    let many = decode(
        Limits::default(),
        [chunked(&format!("{events}0\r\n\r\n")).as_bytes()],
    );
    assert_eq!(many.parts, (1..=500).collect::<Vec<_>>());
}

#[test]
fn one_decoder_serves_a_connection() {
    let mut decoder = Decoder::new(Limits::default());
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
        assert_eq!(again, decode(Limits::default(), bytes.as_bytes().chunks(5)));
        assert!(again.reusable);
    }
    // Also after an error, for a new connection; nothing of the old one is left.
    decoder.restart();
    let _ = decode_with(&mut decoder, [&b"HTTP/1.1 200 OK\r\nx"[..]]);
    decoder.restart();
    assert_eq!(decode_with(&mut decoder, [answers[1].as_bytes()]).body, b"de");
}
