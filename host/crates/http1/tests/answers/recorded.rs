//! Recorded answers of inference servers.

use veeksha_http1::{BodyFraming, DecodeError, DecoderLimits};

use crate::decoding::{Outcome, cut, decode};

/// The bytes as sent.
const LENGTH_AND_KEPT: &[u8] = include_bytes!("../fixtures/vllm-err-ctx.http");
/// The bytes as sent; the server closes the connection.
const LENGTH_AND_CLOSE: &[u8] = include_bytes!("../fixtures/llamacpp-err-ctx.http");
/// The head announces chunks; the recorder removed the chunk framing.
const CHUNKED: [&[u8]; 2] = [
    include_bytes!("../fixtures/dynamo-noworker.http"),
    include_bytes!("../fixtures/dynamo-toolong.http"),
];

fn split_head(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    bytes.split_at(end)
}

#[test]
fn answers_with_a_length() {
    for (bytes, server, size, reusable) in [
        (LENGTH_AND_KEPT, "uvicorn", 332, true),
        (LENGTH_AND_CLOSE, "llama.cpp", 197, false),
    ] {
        for at in 0..bytes.len() {
            let seen = decode(DecoderLimits::default(), cut(bytes, &[at]));
            let head = seen.head.unwrap();
            assert_eq!((head.status, head.framing), (400, BodyFraming::Length(size)));
            assert_eq!(head.headers.get_str("server"), Some(server));
            assert_eq!(seen.body, split_head(bytes).1);
            assert_eq!((seen.outcome, seen.reusable), (Outcome::Ended, reusable));
        }
    }
}

#[test]
fn an_empty_field_of_a_real_server() {
    let head = decode(DecoderLimits::default(), [LENGTH_AND_CLOSE]).head.unwrap();
    assert_eq!(head.headers.get("access-control-allow-origin"), Some(&b""[..]));
}

/// Each event is one chunk, as these servers send them.
#[test]
fn answers_in_chunks() {
    for bytes in CHUNKED {
        let (head, body) = split_head(bytes);
        let mut sent = head.to_vec();
        let events: Vec<&[u8]> = body.split_inclusive(|byte| *byte == b'\n').collect();
        for event in &events {
            sent.extend_from_slice(format!("{:x}\r\n", event.len()).as_bytes());
            sent.extend_from_slice(event);
            sent.extend_from_slice(b"\r\n");
        }
        sent.extend_from_slice(b"0\r\n\r\n");
        let whole = decode(DecoderLimits::default(), [sent.as_slice()]);
        assert_eq!(
            whole.parts,
            events.iter().map(|event| event.len()).collect::<Vec<_>>()
        );
        for size in [1, 7, 64, 1448] {
            let seen = decode(DecoderLimits::default(), sent.chunks(size));
            assert_eq!(seen.body, body);
            assert_eq!((seen.outcome, seen.reusable), (Outcome::Ended, true));
        }
    }
}

/// The unmodified files: the body lacks the chunks that its head announces.
#[test]
fn a_body_that_is_not_in_the_chunks_it_announces() {
    let refusals = CHUNKED.map(|bytes| match decode(DecoderLimits::default(), [bytes]).outcome {
        Outcome::Refused(error @ DecodeError::ChunkSize { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    });
    assert_eq!(
        refusals[0],
        "a chunk's size `{\"message\":\"Service temporarily unavailable\",\"ty…` is not hexadecimal"
    );
    assert!(
        refusals[1].starts_with("a chunk's size `data: {"),
        "{}",
        refusals[1]
    );
}
