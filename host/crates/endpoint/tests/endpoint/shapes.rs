//! Event shapes observed at other servers, which the recordings do not contain.

use veeksha_endpoint::{
    AnswerOutcome, AnswerStream, BodyEnd, EndpointKind, Failure, RawStream, ReadStamp, whole_answer,
};
use veeksha_model::{ErrorClass, Framing, ToolCall, Usage};

use crate::support::{parse_as, stamp};

/// Parses `data: ` lines, one read each.
fn parse(lines: &[&str]) -> AnswerOutcome {
    let mut stream = AnswerStream::new(&EndpointKind::ChatCompletions);
    for (read, line) in (1..).zip(lines) {
        stream.on_bytes(stamp(read), format!("data: {line}\n\n").as_bytes());
    }
    let last = lines.len() as u64;
    stream.finish(stamp(last), Some("text/event-stream"), BodyEnd::Complete)
}

fn kinds(verdict: &AnswerOutcome) -> Vec<&'static str> {
    verdict.chunks.iter().map(|chunk| chunk.kind.name()).collect()
}

/// transformers 5.17: a separate role event at admission, no `finish_reason` key before the end,
/// usage in the finish event regardless of the request, no `[DONE]`.
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

/// LiteLLM 1.106: `reasoning_content`, no `finish_reason` key before the end, usage after the
/// finish event in an event with a choice whose delta is empty; completions end with an event
/// without `text`.
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
        let mut stream = AnswerStream::new(&EndpointKind::ChatCompletions);
        let stamp = stamp(5);
        stream.on_bytes(stamp, format!("data: {event}\n\n").as_bytes());
        let verdict = stream.finish(stamp, None, BodyEnd::Broken(lost.clone()));
        assert_eq!(verdict.result.is_ok(), answered);
        assert_eq!(verdict.completed_at, answered.then_some(5));
        assert_eq!(verdict.chunks.len(), 1);
    }
}

#[test]
fn accepts_split_character_and_missing_blank_line() {
    let mut stream = AnswerStream::new(&EndpointKind::ChatCompletions);
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

/// An endless answer is aborted at 16 MiB of text, with and without skeletons.
#[test]
fn an_answer_without_an_end_is_given_up() {
    let line = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n",
        "x".repeat(1 << 16)
    );
    for stream in [
        AnswerStream::new(&EndpointKind::ChatCompletions),
        AnswerStream::new(&EndpointKind::ChatCompletions).without_skeletons(),
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

/// vLLM with `continuous_usage_stats`: each event has the running counts.
#[test]
fn running_usage_gives_tokens_per_chunk() {
    let event = |text: &str, tokens: u32| {
        format!(
            r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}],"usage":{{"prompt_tokens":5,"completion_tokens":{tokens}}}}}"#
        )
    };
    let finish = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":7}}"#;
    let tokens = |events: &[&str]| parse(events).chunk_tokens;
    assert_eq!(
        tokens(&[
            &event("", 0),
            &event("a", 1),
            &event("b", 4),
            &event("c", 6),
            finish
        ]),
        [1, 3, 2]
    );
    // Two tokens that form one character: the second event adds none.
    assert_eq!(tokens(&[&event("a", 2), &event("b", 2), finish]), [2, 0]);
    // Missing counts, decreasing counts, and counts that stay 0 give nothing.
    let without = r#"{"choices":[{"index":0,"delta":{"content":"x"}}]}"#;
    assert!(tokens(&[&event("a", 1), without, finish]).is_empty());
    assert!(tokens(&[without, &event("a", 1), finish]).is_empty());
    assert!(tokens(&[&event("a", 3), &event("b", 2), finish]).is_empty());
    assert!(tokens(&[&event("a", 0), &event("b", 0), finish]).is_empty());
    // With usage only at the end, the tokens per chunk are unknown.
    assert!(tokens(&[without, finish]).is_empty());
}

#[test]
fn recorded_running_usage_gives_tokens_per_chunk() {
    let bytes = crate::support::bytes_of("sse/vllm-chat-stream-contusage.sse");
    let outcome = crate::support::parse_as(&EndpointKind::ChatCompletions, [&bytes[..]]);
    assert_eq!(outcome.chunk_tokens, [1, 1, 1, 1]);
}

#[test]
fn usage_without_output_tokens_is_not_believed() {
    let usage = |completion: u32| {
        let usage = format!(
            r#"{{"choices":[{{"delta":{{"content":"a"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":0,"completion_tokens":{completion}}}}}"#
        );
        parse(&[&usage]).result.unwrap().usage
    };
    assert_eq!(usage(0), None);
    assert_eq!(usage(1).map(|usage| usage.completion), Some(1));
    // An empty answer has 0 tokens.
    let empty = parse(&[
        r#"{"choices":[{"delta":{"content":""},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":0}}"#,
    ]);
    assert_eq!(empty.result.unwrap().usage.map(|usage| usage.prompt), Some(3));
}

#[test]
fn finish_reasons_abort_and_error_are_failures() {
    for reason in ["abort", "error"] {
        let event = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{reason}"}}]}}"#);
        let outcome = parse(&[
            r#"{"choices":[{"delta":{"content":"a"}}]}"#,
            &event,
            r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#,
            "[DONE]",
        ]);
        let failure = outcome.result.unwrap_err();
        assert_eq!(
            (failure.class, failure.message),
            (
                ErrorClass::InStream,
                format!("the server ended the response with the finish reason `{reason}`")
            )
        );
        assert_eq!(outcome.completed_at, Some(2));
    }
}

/// Mistral's reasoning models: a list of parts, in streams and in whole answers.
#[test]
fn list_content_is_read_part_by_part() {
    let outcome = parse(&[
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm \"x\""}]}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":[{"type":"reference","reference_ids":[1]}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":[]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"c"},"finish_reason":"stop"}]}"#,
    ]);
    assert_eq!(
        kinds(&outcome),
        ["reasoning", "content", "role", "role", "content"]
    );
    let response = outcome.result.unwrap();
    assert_eq!((&*response.reasoning, &*response.text), ("hm \"x\"", "abc"));
    let body = br#"{"choices":[{"index":0,"finish_reason":"stop","message":{"content":[{"type":"text","text":"abc"}]}}]}"#;
    let whole = whole_answer(&EndpointKind::ChatCompletions, stamp(1), body);
    assert_eq!(whole.result.unwrap().text, "abc");
}

#[test]
fn legacy_function_call_is_a_tool_call() {
    let outcome = parse(&[
        r#"{"choices":[{"delta":{"function_call":{"name":"look","arguments":""}}}]}"#,
        r#"{"choices":[{"delta":{"function_call":{"arguments":"{\"q\":"}}}]}"#,
        r#"{"choices":[{"delta":{"function_call":{"arguments":"1}"}}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"function_call"}]}"#,
    ]);
    assert_eq!(kinds(&outcome), ["tool", "tool", "tool", "finish"]);
    let call = ToolCall {
        id: String::new(),
        name: "look".into(),
        arguments: r#"{"q":1}"#.into(),
    };
    assert_eq!(outcome.result.unwrap().tool_calls, [call]);
}

#[test]
fn usage_is_read_from_vendor_extensions() {
    let usage = |event: &str| {
        let finish = r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
        parse(&[finish, event]).result.unwrap().usage
    };
    let expected = |cached| {
        Some(Usage {
            prompt: 9,
            completion: 2,
            cached,
            reasoning: None,
        })
    };
    // DeepSeek.
    assert_eq!(
        usage(
            r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":1}}"#
        ),
        expected(Some(8))
    );
    // Groq, in an event with and without choices.
    for choices in [r#""choices":[{"delta":{}}],"#, ""] {
        let event = format!(
            r#"{{{choices}"x_groq":{{"id":"r","usage":{{"prompt_tokens":9,"completion_tokens":2}}}}}}"#
        );
        assert_eq!(usage(&event), expected(None), "{event}");
    }
}

/// Half of an emoji in each of two events, as serialized by Python servers.
#[test]
fn lone_surrogates_become_replacement_characters() {
    for stream in [
        AnswerStream::new(&EndpointKind::ChatCompletions),
        AnswerStream::new(&EndpointKind::ChatCompletions).without_skeletons(),
    ] {
        let mut stream = stream;
        for (read, text) in (1..).zip(["a", "\\ud83d", "\\ude00b", "\\ud83d\\ude00"]) {
            let event = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
            assert!(stream.on_bytes(stamp(read), event.as_bytes()));
        }
        stream.on_bytes(
            stamp(9),
            b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        );
        let outcome = stream.finish(stamp(9), Some("text/event-stream"), BodyEnd::Complete);
        assert_eq!(outcome.result.unwrap().text, "a\u{fffd}\u{fffd}b😀");
    }
}

/// `reasoning_content` may be empty while `reasoning` has the text, and vice versa.
#[test]
fn empty_reasoning_content_does_not_hide_reasoning() {
    let outcome = parse(&[
        r#"{"choices":[{"delta":{"reasoning_content":"","reasoning":"a"}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_content":"b","reasoning":""}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
    ]);
    assert_eq!(outcome.result.unwrap().reasoning, "ab");
}

#[test]
fn repeated_tool_call_id_is_kept_once() {
    let outcome = parse(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"look","arguments":"{"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_1","function":{"arguments":"}"}}]},"finish_reason":"tool_calls"}]}"#,
    ]);
    assert_eq!(outcome.result.unwrap().tool_calls[0].id, "call_1");
}

/// The forms of OpenAI's reference: chat completions list the alternatives of each token,
/// completions have a map of them.
#[test]
fn log_probabilities_are_read_in_both_forms() {
    let tokens = |lines: &[&str]| parse(lines).result.unwrap().log_probabilities.unwrap().answer;
    let chat = tokens(&[
        r#"{"choices":[{"delta":{"content":"a"},"logprobs":{"content":[{"token":"a","logprob":-0.25,"top_logprobs":[{"token":"a","logprob":-0.25},{"token":"b","logprob":-2}]}]}}]}"#,
        r#"{"choices":[{"delta":{"content":"c"},"logprobs":{"content":[{"token":"c","logprob":-1.5,"top_logprobs":[{"token":"d","logprob":-0.5}]}]}}]}"#,
        r#"{"choices":[{"delta":{},"logprobs":null,"finish_reason":"stop"}]}"#,
    ]);
    assert_eq!(chat.logarithms, [-0.25, -1.5]);
    assert_eq!(chat.greedy, [true, false]);
    let completion = tokens(&[
        r#"{"choices":[{"text":"ab","logprobs":{"tokens":["a","b"],"token_logprobs":[null,-0.5],"top_logprobs":[null,{"b":-0.5}]}}]}"#,
        r#"{"choices":[{"text":"c","logprobs":{"token_logprobs":[-1e308],"top_logprobs":[{"x":-3.0}]},"finish_reason":"stop"}]}"#,
    ]);
    assert_eq!(completion.logarithms, [-0.5, -1e308]);
    assert_eq!(completion.greedy, [true, false]);
    let without_alternatives = tokens(&[
        r#"{"choices":[{"delta":{"content":"a"},"logprobs":{"content":[{"token":"a","logprob":-1}]},"finish_reason":"stop"}]}"#,
    ]);
    assert_eq!(
        (
            without_alternatives.logarithms.len(),
            without_alternatives.greedy.len()
        ),
        (1, 0)
    );
    let none = parse(&[r#"{"choices":[{"delta":{"content":"a"},"logprobs":null,"finish_reason":"stop"}]}"#]);
    assert_eq!(none.result.unwrap().log_probabilities, None);
}

/// The Responses API repeats them at the end of a text; a whole answer has them in its parts.
#[test]
fn log_probabilities_of_the_responses_api_are_read() {
    let token = |token: &str, logarithm: f64| {
        format!(
            r#"{{"token":"{token}","logprob":{logarithm:?},"bytes":[],"top_logprobs":[{{"token":"a","logprob":-0.5}}]}}"#
        )
    };
    let (first, second) = (token("a", -0.5), token("b", -1.5));
    let delta = |text: &str, tokens: &str| {
        format!(
            r#"{{"type":"response.output_text.delta","output_index":0,"delta":"{text}","logprobs":[{tokens}]}}"#
        )
    };
    let done = format!(r#"{{"type":"response.output_text.done","text":"ab","logprobs":[{first},{second}]}}"#);
    let end = r#"{"type":"response.completed","response":{"status":"completed"}}"#;
    let streamed = |events: &[&str]| {
        let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        let outcome = parse_as(&EndpointKind::Responses, [body.as_bytes()]);
        outcome.result.unwrap()
    };
    let part = format!(r#"{{"type":"output_text","text":"ab","logprobs":[{first},{second}]}}"#);
    let whole = format!(r#"{{"status":"completed","output":[{{"type":"message","content":[{part}]}}]}}"#);
    let whole = whole_answer(&EndpointKind::Responses, stamp(1), whole.as_bytes());
    for response in [
        streamed(&[&delta("a", &first), &delta("b", &second), &done, end]),
        whole.result.unwrap(),
    ] {
        assert_eq!(response.text, "ab");
        let tokens = response.log_probabilities.unwrap().answer;
        assert_eq!(tokens.logarithms, [-0.5, -1.5]);
        assert_eq!(tokens.greedy, [true, false]);
    }
    let without = streamed(&[&delta("a", ""), &delta("b", ""), end]);
    assert_eq!(without.log_probabilities, None);
}

/// Shapes that differ from OpenAI's reference: most requests did not ask for log-probabilities.
#[test]
fn unusable_log_probabilities_are_ignored() {
    let read = |logprobs: &str| {
        let event = format!(r#"{{"choices":[{{"text":"a","logprobs":{logprobs},"finish_reason":"stop"}}]}}"#);
        let response = parse(&[&event]).result.unwrap();
        assert_eq!(response.text, "a", "{logprobs}");
        response.log_probabilities.map(|tokens| tokens.answer.logarithms)
    };
    for nothing in [
        "null",
        "[]",
        "7",
        r#""x""#,
        "{}",
        r#"{"content":null}"#,
        r#"{"content":{}}"#,
        r#"{"content":[null,3,[]]}"#,
        r#"{"content":[{"token":"a"},{"logprob":null},{"logprob":"-1"},{"logprob":1e999}]}"#,
        r#"{"token_logprobs":{},"top_logprobs":[]}"#,
        r#"{"token_logprobs":["-1",null]}"#,
    ] {
        assert_eq!(read(nothing), None, "{nothing}");
    }
    for usable in [
        r#"{"content":[{"logprob":-1,"top_logprobs":null}]}"#,
        r#"{"content":[{"logprob":-1,"top_logprobs":{"a":-1}}]}"#,
        r#"{"content":[{"logprob":-1,"top_logprobs":[null,{"logprob":null},{}]}]}"#,
        r#"{"token_logprobs":[-1],"top_logprobs":{}}"#,
        r#"{"token_logprobs":[-1],"top_logprobs":[3]}"#,
        r#"{"token_logprobs":[-1],"top_logprobs":[{"a":null}],"content":7}"#,
    ] {
        assert_eq!(read(usable), Some(vec![-1.0]), "{usable}");
    }
}

#[test]
fn error_code_next_to_the_error_object_is_read() {
    let failure = parse(&[r#"{"error":{"message":"m"},"code":429}"#])
        .result
        .unwrap_err();
    assert_eq!((failure.status, &*failure.message), (Some(429), "m"));
}

#[test]
fn response_with_too_many_events_is_refused() {
    let event = b"data: {\"choices\":[]}\n\n".repeat(10_000);
    let mut stream = AnswerStream::new(&EndpointKind::ChatCompletions);
    let taken = (1..200).take_while(|read| stream.on_bytes(stamp(*read), &event));
    // 100 pieces of 10,000 events are the limit; the next one exceeds it.
    assert_eq!(taken.count(), 100);
    let failure = stream
        .finish(stamp(200), None, BodyEnd::Complete)
        .result
        .unwrap_err();
    assert_eq!(failure.message, "the answer has more than 1000000 events");
}

/// The number of stored keep-alives is limited, and they do not count as an answer.
#[test]
fn recorded_comments_are_limited() {
    let comments = b":\n".repeat(15_000);
    let mut stream = AnswerStream::new(&EndpointKind::ChatCompletions);
    assert!(stream.on_bytes(stamp(1), &comments));
    assert!(stream.on_bytes(
        stamp(2),
        b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n"
    ));
    assert_eq!(stream.chunks().len(), 10_001);
    let outcome = stream.finish(stamp(2), None, BodyEnd::Complete);
    assert_eq!(outcome.chunks.last().map(|chunk| chunk.at), Some(2));
    assert_eq!(outcome.result.unwrap().text, "a");
    let mut raw = RawStream::new(Framing::EventStream, 1_000);
    assert!(raw.on_bytes(stamp(1), &comments));
    let outcome = raw.finish(stamp(1), None, BodyEnd::Complete, |_| Ok::<_, ()>(Vec::new()));
    assert_eq!(outcome.unwrap().chunks.len(), 10_000);
}

/// A count that cannot be: the part is unknown, the whole is what the server reports.
#[test]
fn parts_of_a_usage_do_not_exceed_it() {
    let usage = |cached: u32, reasoning: u32| {
        let end = format!(
            r#"{{"choices":[{{"delta":{{"content":"a"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":{{"cached_tokens":{cached}}},"completion_tokens_details":{{"reasoning_tokens":{reasoning}}}}}}}"#
        );
        let usage = parse(&[&end]).result.unwrap().usage.unwrap();
        (usage.prompt, usage.completion, usage.cached, usage.reasoning)
    };
    assert_eq!(usage(7, 3), (7, 3, Some(7), Some(3)));
    assert_eq!(usage(8, 4), (7, 3, None, None));
}
