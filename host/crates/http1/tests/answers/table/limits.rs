//! Limits are exact, and each error names its limit.

use veeksha_http1::{DecodeError, DecoderLimits};

use super::{chunked, seen_with};
use crate::decoding::Outcome;

#[test]
fn every_limit_is_exact() {
    let limits = DecoderLimits {
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
    let limits = DecoderLimits {
        trailer_bytes: 100,
        ..limits
    };
    assert_eq!(
        seen_with(limits, chunked("0\r\na:\r\nb:\r\nc:\r\n\r\n").as_bytes()).outcome,
        Outcome::Refused(DecodeError::TooManyTrailers { limit: 2 })
    );
}
