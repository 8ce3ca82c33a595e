//! Chunked bodies and their trailers.

use veeksha_http1::{DecodeError, DecodePosition, DecoderLimits};

use super::{body, chunked, refused, seen};
use crate::decoding::{Outcome, decode};

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
    // Every number of digits, including those beyond the fast path. The largest possible size
    // announces a body that never ends.
    for digits in 1..=16 {
        let size = "f".repeat(digits);
        let seen = seen(chunked(&format!("{size}\r\nabc")));
        assert_eq!(seen.body, b"abc");
        assert_eq!(
            seen.outcome,
            Outcome::Refused(DecodeError::Truncated {
                place: DecodePosition::Body
            })
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
    // The fast path and the slow path agree on every byte that may follow a digit.
    for byte in 0..=u8::MAX {
        let mut bytes = chunked("3").into_bytes();
        bytes.extend_from_slice(&[byte, b'\r', b'\n']);
        let right = byte.is_ascii_hexdigit() || b" \t;".contains(&byte);
        let outcome = seen(bytes).outcome;
        let truncated = outcome
            == Outcome::Refused(DecodeError::Truncated {
                place: DecodePosition::Body,
            });
        assert_eq!(truncated, right, "{byte:#x}: {outcome:?}");
    }
}

#[test]
fn chunks_end_at_their_size() {
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
            assert_eq!(
                error,
                DecodeError::Truncated {
                    place: DecodePosition::Body
                }
            );
        } else {
            assert!(
                matches!(error, DecodeError::ChunkEnd { .. }),
                "{after:?}: {error:?}"
            );
            assert_eq!(seen.body, b"abc", "what came before is right");
        }
    }
    assert_eq!(
        decode(DecoderLimits::default(), [chunked("3\r\nabcd\r\n").as_bytes()]).outcome,
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
fn a_large_chunk_is_one_part_and_many_chunks_are_one_part_each() {
    let megabyte = "x".repeat(1 << 20);
    let bytes = chunked(&format!("100000\r\n{megabyte}\r\n0\r\n\r\n"));
    let whole = decode(DecoderLimits::default(), [bytes.as_bytes()]);
    assert_eq!((whole.parts, whole.reusable), (vec![1 << 20], true));
    let reads = decode(DecoderLimits::default(), bytes.as_bytes().chunks(1 << 16));
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
        DecoderLimits::default(),
        [chunked(&format!("{events}0\r\n\r\n")).as_bytes()],
    );
    assert_eq!(many.parts, (1..=500).collect::<Vec<_>>());
}
