//! Robustness of all endpoints: any input gives a result, no panic, and the same result for any
//! read boundaries.

use proptest::prelude::*;
use veeksha_endpoint::{AnswerOutcome, AnswerStream, BodyEnd, EndpointKind, whole_answer};
use veeksha_model::ErrorClass;

use crate::skeletons::{cut, endpoints, fixtures};
use crate::support::{bytes_of, parse_as, stamp};

/// Checks the invariants of every result.
fn check(verdict: &AnswerOutcome) -> Result<(), TestCaseError> {
    for pair in verdict.chunks.windows(2) {
        prop_assert!(pair[0].at <= pair[1].at);
        prop_assert_eq!(pair[1].merged, pair[0].at == pair[1].at);
    }
    if let Some(first) = verdict.chunks.first() {
        prop_assert!(!first.merged);
    }
    if let Err(failure) = &verdict.result {
        prop_assert!(matches!(
            failure.class,
            ErrorClass::Protocol | ErrorClass::InStream | ErrorClass::Truncated
        ));
        prop_assert!(failure.message.chars().count() <= 501 && !failure.message.contains('\n'));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn damaged_fixtures_get_a_verdict(
        name in prop::sample::select(fixtures()),
        endpoint in 0usize..8,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0usize..4), 0..5),
        sizes in prop::collection::vec(1usize..900, 1..12),
    ) {
        let mut bytes = bytes_of(&name);
        prop_assume!(!bytes.is_empty());
        for (at, byte, what) in damage {
            let at = at.index(bytes.len());
            match what {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 if bytes.len() > 1 => { bytes.remove(at); }
                _ => bytes.truncate(at.max(1)),
            }
        }
        let endpoint = &endpoints()[endpoint];
        let one = parse_as(endpoint, [&bytes[..]]);
        let many = parse_as(endpoint, cut(&bytes, &sizes));
        check(&one)?;
        check(&many)?;
        // Two kinds of answer quote only the bytes of the first read.
        if !matches!(&one.result, Err(failure) if failure.class == ErrorClass::Protocol) {
            prop_assert_eq!(&one.result, &many.result);
        }
        prop_assert_eq!(one.chunks.len(), many.chunks.len());
        let whole = whole_answer(endpoint, stamp(1), &bytes);
        check(&whole)?;
    }
}

/// A line that never ends is aborted at the limit; earlier events are kept.
#[test]
fn an_endless_event_is_given_up() {
    for endpoint in endpoints() {
        let mut stream = AnswerStream::new(&endpoint);
        let piece = vec![b'x'; 1 << 20];
        let mut reads = 0;
        while stream.on_bytes(stamp(reads), &piece) {
            reads += 1;
            assert!(reads < 20);
        }
        // Sixteen pieces are the limit; the next exceeds it.
        assert_eq!(reads, 16);
        let verdict = stream.finish(stamp(reads), None, BodyEnd::Complete);
        assert_eq!(
            verdict.result.unwrap_err().message,
            "an event of the stream is larger than 16777216 bytes"
        );
    }
}

/// The first generated chunk is reported as soon as its event is complete, and not before.
#[test]
fn the_first_generated_chunk_is_known_at_once() {
    for (endpoint, name, first) in [
        // The role comes with the first read, the text with the second.
        (EndpointKind::ChatCompletions, "sse/vllm-chat-stream.sse", 2),
        (EndpointKind::ChatCompletions, "sse/dynamo-chat-stream.sse", 1),
        (EndpointKind::ChatCompletions, "sse/vllm-reasoning.sse", 2),
        (
            EndpointKind::AnthropicMessages,
            "sse/llamacpp-messages-stream.sse",
            3,
        ),
        (EndpointKind::Responses, "sse/llamacpp-responses-stream.sse", 5),
        (EndpointKind::TgiGenerateStream, "written/tgi-stream.sse", 1),
    ] {
        let text = String::from_utf8(bytes_of(name)).unwrap();
        let mut stream = AnswerStream::new(&endpoint);
        for (read, event) in (1..).zip(text.split_inclusive("\n\n")) {
            stream.on_bytes(stamp(read), event.as_bytes());
            let expected = (read >= first).then_some(first);
            assert_eq!(stream.first_generated_at(), expected, "{name} at read {read}");
        }
        let done = text.contains("[DONE]") || !matches!(endpoint, EndpointKind::ChatCompletions);
        assert_eq!((stream.is_done(), stream.is_answered()), (done, true), "{name}");
    }
}

/// Streams are sent between threads.
#[test]
fn streams_can_be_sent() {
    fn check<T: Send + 'static>() {}
    check::<AnswerStream>();
    check::<veeksha_endpoint::RawStream>();
    assert_eq!(size_of::<veeksha_model::Chunk>(), 24);
}
