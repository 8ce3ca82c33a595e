//! Raw events for a plugin: split and timestamped like those of an answer, interpreted in one call.

use std::convert::Infallible;

use proptest::prelude::*;
use veeksha_endpoint::{AnswerOutcome, BodyEnd, EndpointKind, Failure, RawStream};
use veeksha_model::{AnswerPart, ChunkKind, ErrorClass, Framing, TokenProbabilities, Usage};

use crate::skeletons::cut;
use crate::support::{bytes_of, letters, parse_as, stamp};

/// Decodes chat completions as far as the recordings require: slow, and independent of the crate's
/// implementation.
fn decode(events: &[&[u8]]) -> Result<Vec<Vec<AnswerPart>>, Infallible> {
    Ok(events.iter().map(|event| parts(event)).collect())
}

fn parts(event: &[u8]) -> Vec<AnswerPart> {
    if event == b"[DONE]" {
        return vec![AnswerPart::Done];
    }
    let value: serde_json::Value = serde_json::from_slice(event).unwrap();
    let mut parts = Vec::new();
    if let Some(message) = value["error"]["message"].as_str() {
        let code = value["error"]["code"]
            .as_u64()
            .and_then(|code| u16::try_from(code).ok());
        parts.push(AnswerPart::Error {
            message: message.to_owned(),
            code,
        });
    }
    for choice in value["choices"].as_array().into_iter().flatten() {
        parts.push(AnswerPart::Role);
        if choice["index"] == 0 {
            if let Some(text) = choice["delta"]["content"].as_str().or(choice["text"].as_str()) {
                parts.push(AnswerPart::Content(text.to_owned()));
            }
            if let Some(text) = choice["delta"]["reasoning"].as_str() {
                parts.push(AnswerPart::Reasoning(text.to_owned()));
            }
            if let Some(reason) = choice["finish_reason"].as_str() {
                parts.push(AnswerPart::Finish(reason.to_owned()));
            }
        }
    }
    if let Some(usage) = value["usage"].as_object() {
        let count = |name: &str| usage[name].as_u64().unwrap() as u32;
        let detail = |name: &str, member: &str| {
            let count = usage.get(name)?.get(member)?.as_u64()?;
            Some(count as u32)
        };
        parts.push(AnswerPart::Usage(Usage {
            prompt: count("prompt_tokens"),
            completion: count("completion_tokens"),
            cached: detail("prompt_tokens_details", "cached_tokens"),
            reasoning: detail("completion_tokens_details", "reasoning_tokens"),
        }));
    }
    parts
}

fn raw<'a>(framing: Framing, limit: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> AnswerOutcome {
    let mut stream = RawStream::new(framing, limit);
    let mut read = 0;
    for piece in pieces {
        read += 1;
        if !stream.on_bytes(stamp(read), piece) {
            break;
        }
    }
    let Ok(verdict) = stream.finish(stamp(read), Some("text/event-stream"), BodyEnd::Complete, decode);
    verdict
}

const RECORDINGS: [&str; 7] = [
    "sse/vllm-chat-stream.sse",
    "sse/vllm-chat-stream-n2.sse",
    "sse/vllm-reasoning.sse",
    "sse/dynamo-worker-killed.sse",
    "sse/llamacpp-cmpl-stream.sse",
    "sse/vllm-cancel.sse",
    "sse/dynamo-chat-stream.sse",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// A plugin with the crate's interpretation of an API gives the same result, including
    /// timestamps and merged marks.
    #[test]
    fn codec_plugin_equals_built_in_endpoint(which in 0..RECORDINGS.len(), sizes in prop::collection::vec(1usize..600, 1..20)) {
        let bytes = bytes_of(RECORDINGS[which]);
        let own = parse_as(&EndpointKind::ChatCompletions, cut(&bytes, &sizes));
        let by_plugin = raw(Framing::EventStream, 1 << 20, cut(&bytes, &sizes));
        match (&by_plugin.result, &own.result) {
            // The message contains the endpoint's marker.
            (Err(one), Err(two)) => prop_assert_eq!((one.class, one.status), (two.class, two.status)),
            _ => prop_assert_eq!(&by_plugin.result, &own.result),
        }
        prop_assert_eq!(by_plugin.chunks, own.chunks);
        prop_assert_eq!(by_plugin.completed_at, own.completed_at);
    }
}

#[test]
fn reports_first_event_before_it_is_decoded() {
    let mut stream = RawStream::new(Framing::EventStream, 100);
    assert!(stream.on_bytes(stamp(1), b": ping\n\ndata: {\"choices\""));
    assert_eq!(stream.first_event_at(), None);
    assert!(stream.on_bytes(stamp(2), b":[]}\n\n"));
    assert_eq!(stream.first_event_at(), Some(2));
    let broken = Failure::new(ErrorClass::Truncated, "lost");
    let Ok(verdict) = stream.finish(stamp(2), None, BodyEnd::Broken(broken.clone()), decode);
    assert_eq!(verdict.result, Err(broken));
    assert_eq!(verdict.chunks[0].kind, ChunkKind::Comment);
    assert_eq!(letters(&verdict), ":r");
}

/// The alternatives of one token are missing, so it is not known of the answer which of its tokens
/// were the most probable ones.
#[test]
fn codec_plugin_returns_signature_log_probabilities_and_id() {
    let answer = |greedy: &[&[bool]]| {
        let mut stream = RawStream::new(Framing::Lines, 1 << 10);
        assert!(stream.on_bytes(stamp(1), &b"event\n".repeat(greedy.len())));
        let decode = |events: &[&[u8]]| {
            let parts = greedy.iter().zip(events).map(|(greedy, _)| {
                vec![
                    AnswerPart::Content("x".to_owned()),
                    AnswerPart::Signature("ab".to_owned()),
                    AnswerPart::LogProbabilities(TokenProbabilities {
                        logarithms: vec![-0.5, f64::NEG_INFINITY],
                        greedy: greedy.to_vec(),
                    }),
                    AnswerPart::ResponseId(format!("id-{}", greedy.len())),
                    AnswerPart::Finish("stop".to_owned()),
                ]
            });
            Ok::<_, Infallible>(parts.collect())
        };
        let Ok(outcome) = stream.finish(stamp(2), None, BodyEnd::Complete, decode);
        let response = outcome.result.unwrap();
        assert_eq!(response.reasoning_signature, Some("ab".repeat(greedy.len())));
        (
            outcome.response_id.unwrap(),
            response.log_probabilities.unwrap().answer,
        )
    };
    let (id, tokens) = answer(&[&[true, false], &[]]);
    assert_eq!(id, "id-2");
    assert_eq!(tokens.logarithms, [-0.5, f64::MIN, -0.5, f64::MIN]);
    assert!(tokens.greedy.is_empty());
    assert_eq!(answer(&[&[true, false]]).1.greedy, [true, false]);
}

#[test]
fn stored_bytes_are_bounded() {
    // An event that does not end.
    let mut stream = RawStream::new(Framing::EventStream, 50);
    assert!(stream.on_bytes(stamp(1), b"data: x"));
    assert!(!stream.on_bytes(stamp(2), &[b'x'; 200]));
    let event = b"data: {\"choices\":[]}\n\n";
    for framing in [Framing::EventStream, Framing::Lines, Framing::Whole] {
        let mut stream = RawStream::new(framing, 50);
        let taken = (1..100)
            .take_while(|read| stream.on_bytes(stamp(*read), event))
            .count();
        // An event has 14 bytes of data, a line 20, and the body 22.
        let expected = match framing {
            Framing::EventStream => 3,
            _ => 2,
        };
        assert_eq!(taken, expected, "{framing:?}");
        let Ok(verdict) = stream.finish(stamp(9), None, BodyEnd::Complete, |events: &[&[u8]]| {
            Ok::<_, Infallible>(vec![vec![AnswerPart::Role]; events.len()])
        });
        let failure = verdict.result.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Protocol);
        assert!(
            failure.message.contains("larger than 50 bytes"),
            "{}",
            failure.message
        );
    }
}

#[test]
fn failed_or_silent_plugin_gives_no_answer() {
    let mut stream = RawStream::new(Framing::Whole, 100);
    assert!(stream.on_bytes(stamp(1), b"xyz"));
    let failed = stream.finish(stamp(1), None, BodyEnd::Complete, |events| {
        assert_eq!(events, [b"xyz"]);
        Err("trap")
    });
    assert_eq!(failed, Err("trap"));
    let mut stream = RawStream::new(Framing::Lines, 100);
    assert!(stream.on_bytes(stamp(1), b"x\ny"));
    let Ok(verdict) = stream.finish(stamp(1), None, BodyEnd::Complete, |_| {
        Ok::<_, Infallible>(Vec::new())
    });
    assert_eq!(verdict.chunks.len(), 2);
    assert_eq!(verdict.result.unwrap_err().class, ErrorClass::Truncated);
    // `decode` is called only with events.
    let stream = RawStream::new(Framing::EventStream, 100);
    let Ok(verdict) = stream.finish(stamp(1), None, BodyEnd::Complete, |_| -> Result<_, Infallible> {
        unreachable!("no event came")
    });
    assert_eq!(verdict.result.unwrap_err().class, ErrorClass::Protocol);
}
