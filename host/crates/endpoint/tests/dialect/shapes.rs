//! The shapes of events that the recordings do not show, as they were seen at other servers.

use veeksha_endpoint::{AnswerStream, BodyEnd, Dialect, Failure, ReadStamp, Verdict};
use veeksha_model::{ErrorClass, ToolCall, Usage};

use crate::support::stamp;

/// Parses `data: ` lines, one read each.
fn parse(lines: &[&str]) -> Verdict {
    let mut stream = AnswerStream::new(&Dialect::ChatCompletions);
    for (read, line) in (1..).zip(lines) {
        stream.on_bytes(stamp(read), format!("data: {line}\n\n").as_bytes());
    }
    let last = lines.len() as u64;
    stream.finish(stamp(last), Some("text/event-stream"), BodyEnd::Complete)
}

fn kinds(verdict: &Verdict) -> Vec<&'static str> {
    verdict.chunks.iter().map(|chunk| chunk.kind.name()).collect()
}

/// transformers 5.17: the role alone at admission, no `finish_reason` key before the end, usage in the finish event whatever
/// was asked, no `[DONE]`.
#[test]
fn transformers_ends_without_done() {
    let verdict = parse(&[
        r#"{"choices":[{"delta":{"role":"assistant"},"index":0}]}"#,
        r#"{"choices":[{"delta":{"content":"a"},"index":0}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop","index":0}],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#,
    ]);
    assert_eq!(kinds(&verdict), ["role", "content", "finish"]);
    assert_eq!(verdict.completed_at, Some(3));
    let response = verdict.result.unwrap();
    assert_eq!((response.text.as_str(), response.output_tokens), ("a", 1));
}

/// LiteLLM 1.106: `reasoning_content`, no `finish_reason` key before the end, usage after the finish event in an event
/// with a choice whose delta is empty; completions end with an event without `text`.
#[test]
fn litellm_sends_usage_with_an_empty_delta() {
    let verdict = parse(&[
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"reasoning_content":"hm","reasoning":"hm"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#,
        r#"{"choices":[{"finish_reason":"stop","index":0,"delta":{}}]}"#,
        r#"{"choices":[{"index":0,"delta":{}}],"usage":{"prompt_tokens":5,"completion_tokens":2,"completion_tokens_details":{"reasoning_tokens":1}}}"#,
        "[DONE]",
    ]);
    assert_eq!(
        kinds(&verdict),
        ["role", "reasoning", "content", "finish", "usage", "done"]
    );
    let response = verdict.result.unwrap();
    assert_eq!((response.reasoning.as_str(), response.text.as_str()), ("hm", "a"));
    assert_eq!(
        response.usage,
        Some(Usage {
            prompt: 5,
            completion: 2,
            cached: None,
            reasoning: Some(1)
        })
    );

    let verdict = parse(&[
        r#"{"choices":[{"index":0,"text":"a"}]}"#,
        r#"{"choices":[{"index":0,"finish_reason":"length"}]}"#,
        r#"{"choices":[{"index":0}],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#,
        "[DONE]",
    ]);
    assert_eq!(kinds(&verdict), ["content", "finish", "usage", "done"]);
    assert_eq!(verdict.result.unwrap().text, "a");
}

#[test]
fn tool_calls_are_put_together_by_index() {
    let verdict = parse(&[
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"look","arguments":""}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"q\":"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"ask","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"look","arguments":"1}"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
    ]);
    assert_eq!(kinds(&verdict), ["tool", "tool", "tool", "tool", "finish"]);
    let call = |id: &str, name: &str, arguments: &str| ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    };
    assert_eq!(
        verdict.result.unwrap().tool_calls,
        [call("a", "look", r#"{"q":1}"#), call("b", "ask", "{}")]
    );

    let without_index = parse(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"1"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"2"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"id":"b","function":{"name":"g","arguments":"3"}}]},"finish_reason":"tool_calls"}]}"#,
    ]);
    assert_eq!(
        without_index.result.unwrap().tool_calls,
        [call("a", "f", "12"), call("b", "g", "3")]
    );
}

#[test]
fn an_empty_text_is_not_generated_and_a_refusal_is() {
    let verdict = parse(&[
        r#"{"choices":[{"delta":{"content":""}}]}"#,
        r#"{"choices":[{"delta":{"refusal":"no"}}]}"#,
        r#"{"choices":[{"delta":{"content":"","reasoning":"","tool_calls":[]},"finish_reason":"stop"}]}"#,
    ]);
    assert_eq!(kinds(&verdict), ["role", "content", "finish"]);
    assert_eq!(verdict.result.unwrap().text, "no");
}

#[test]
fn an_error_event_counts_in_every_form_and_even_after_a_finish_reason() {
    let finish = r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
    for (event, status, message) in [
        (r#"{"error":{"message":"m","code":503}}"#, Some(503), "m"),
        (r#"{"error":{"message":"m","code":"500"}}"#, Some(500), "m"),
        (r#"{"error":"m"}"#, None, "m"),
        (r#"{"choices":[],"error":{"message":"m"}}"#, None, "m"),
        (r#"{"message":"m","type":"t","code":400}"#, Some(400), "m"),
        (
            r#"{"object":"error","message":"m","code":40303}"#,
            Some(40303),
            "m",
        ),
    ] {
        for events in [&[event, "[DONE]"][..], &[finish, event, "[DONE]"]] {
            let verdict = parse(events);
            let failure = verdict.result.unwrap_err();
            assert_eq!(
                (failure.class, failure.status),
                (ErrorClass::InStream, status),
                "{event}"
            );
            assert_eq!(failure.message, message, "{event}");
            assert_eq!(
                verdict.completed_at,
                Some(events.len() as u64 - 1),
                "when the error was known"
            );
        }
    }
    let no_error = parse(&[r#"{"error":null,"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#]);
    assert_eq!(no_error.result.unwrap().text, "a");
}

#[test]
fn usage_is_found_inside_a_choice_and_the_last_one_wins() {
    let verdict = parse(&[
        r#"{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":1,"completion_tokens":4,"prompt_tokens_details":null}}]}"#,
        r#"{"choices":[],"usage":null}"#,
    ]);
    assert_eq!(verdict.result.unwrap().output_tokens, 4);
}

#[test]
fn a_lost_connection_matters_only_before_the_finish_reason() {
    let lost = Failure {
        class: ErrorClass::Truncated,
        status: None,
        message: "lost".to_owned(),
    };
    for (event, answered) in [
        (
            r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#,
            true,
        ),
        (r#"{"choices":[{"delta":{"content":"a"}}]}"#, false),
    ] {
        let mut stream = AnswerStream::new(&Dialect::ChatCompletions);
        let stamp = stamp(5);
        stream.on_bytes(stamp, format!("data: {event}\n\n").as_bytes());
        let verdict = stream.finish(stamp, None, BodyEnd::Broken(lost.clone()));
        assert_eq!(verdict.result.is_ok(), answered);
        assert_eq!(verdict.completed_at, answered.then_some(5));
        assert_eq!(verdict.chunks.len(), 1);
    }
}

#[test]
fn a_split_character_and_a_missing_blank_line_are_forgiven() {
    let mut stream = AnswerStream::new(&Dialect::ChatCompletions);
    let stamp = stamp(1);
    stream.on_bytes(
        stamp,
        b"data: {\"choices\":[{\"delta\":{\"content\":\"a\xF0\x9F\"}}]}\n\n",
    );
    stream.on_bytes(
        stamp,
        b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}",
    );
    let verdict = stream.finish(stamp, Some("text/event-stream"), BodyEnd::Complete);
    assert_eq!(kinds(&verdict), ["content", "finish"]);
    assert_eq!(verdict.result.unwrap().text, "a\u{fffd}");
}

/// A server that does not stop: at 16 MiB of text the answer is given up, with and without skeletons.
#[test]
fn an_answer_without_an_end_is_given_up() {
    let line = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n",
        "x".repeat(1 << 16)
    );
    for stream in [
        AnswerStream::new(&Dialect::ChatCompletions),
        AnswerStream::new(&Dialect::ChatCompletions).without_skeletons(),
    ] {
        let mut stream = stream;
        let stamp = |read| ReadStamp {
            at: read,
            lag: 0,
            read,
        };
        let taken = (1..1000).take_while(|read| stream.on_bytes(stamp(*read), line.as_bytes()));
        // 256 pieces of 64 KiB are 16 MiB.
        assert_eq!(taken.count(), 256);
        let verdict = stream.finish(stamp(1000), Some("text/event-stream"), BodyEnd::Complete);
        let failure = verdict.result.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Protocol);
        assert_eq!(failure.message, "the answer has more than 16 MiB of text");
    }
}
