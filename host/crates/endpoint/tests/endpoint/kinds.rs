//! Endpoints other than OpenAI's first two: recorded and constructed answers. The expected values
//! were derived from the files by hand.

use std::sync::Arc;

use serde_json::json;
use veeksha_endpoint::{AnswerOutcome, EndpointKind, EndpointTemplate, Pointers, TemplateSpec, whole_answer};
use veeksha_model::{ErrorClass, Framing, Response, ToolCall, Usage};

use crate::support::{bytes_of, letters, parse_as, stamp};

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    }
}

/// Parses the whole answer and checks that any read boundaries give the same result.
fn parse(endpoint: &EndpointKind, name: &str) -> AnswerOutcome {
    let bytes = bytes_of(name);
    let whole = parse_as(endpoint, [&bytes[..]]);
    for at in 0..=bytes.len() {
        let cut = parse_as(endpoint, [&bytes[..at], &bytes[at..]]);
        assert_eq!(cut.result, whole.result, "{name} cut at {at}");
        assert_eq!(letters(&cut), letters(&whole), "{name} cut at {at}");
        let bytes_of =
            |verdict: &AnswerOutcome| verdict.chunks.iter().map(|chunk| chunk.bytes).collect::<Vec<_>>();
        assert_eq!(bytes_of(&cut), bytes_of(&whole), "{name} cut at {at}");
        for pair in cut.chunks.windows(2) {
            assert_eq!(pair[1].merged, pair[0].at == pair[1].at, "{name} cut at {at}");
        }
    }
    whole
}

fn good(endpoint: &EndpointKind, name: &str, expected_letters: &str) -> Response {
    let verdict = parse(endpoint, name);
    assert_eq!(letters(&verdict), expected_letters, "{name}");
    verdict
        .result
        .unwrap_or_else(|failure| panic!("{name}: {failure:?}"))
}

fn usage(prompt: u32, completion: u32, cached: Option<u32>, reasoning: Option<u32>) -> Option<Usage> {
    Some(Usage {
        prompt,
        completion,
        cached,
        reasoning,
    })
}

/// Returns a template of llama.cpp's native `/completion`.
pub(crate) fn llama_completion() -> EndpointKind {
    template(
        Framing::EventStream,
        Pointers {
            text: Some("/content".into()),
            finish_reason: Some("/stop_type".into()),
            prompt_tokens: Some("/tokens_evaluated".into()),
            output_tokens: Some("/tokens_predicted".into()),
            ..Pointers::default()
        },
    )
}

pub(crate) fn ollama() -> EndpointKind {
    template(
        Framing::Lines,
        Pointers {
            text: Some("/message/content".into()),
            reasoning: Some("/message/thinking".into()),
            finish_reason: Some("/done_reason".into()),
            prompt_tokens: Some("/prompt_eval_count".into()),
            output_tokens: Some("/eval_count".into()),
            ..Pointers::default()
        },
    )
}

pub(crate) fn template(framing: Framing, answer: Pointers) -> EndpointKind {
    let spec = TemplateSpec {
        path: "generate".into(),
        request: json!({"prompt": "{{prompt}}"}),
        framing,
        answer,
        ..TemplateSpec::default()
    };
    EndpointKind::Template(Arc::new(EndpointTemplate::new(spec).unwrap()))
}

#[test]
fn anthropic_as_llamacpp_speaks_it() {
    let response = good(
        &EndpointKind::AnthropicMessages,
        "sse/llamacpp-messages-stream.sse",
        "rrccccccrfD",
    );
    assert_eq!(response.text, "altbufferick falselinedoc");
    assert_eq!(response.finish_reason, "max_tokens");
    assert_eq!(response.usage, usage(14, 6, Some(0), None));
    assert_eq!(response.output_tokens, 6);

    let whole = whole_answer(
        &EndpointKind::AnthropicMessages,
        stamp(3),
        &bytes_of("sse/llamacpp-messages.json"),
    );
    assert_eq!(letters(&whole), "f");
    let response = whole.result.unwrap();
    assert_eq!(response.text, "ekhandler\u{fffd}om save Se");
    // One token was new, thirteen came from the cache.
    assert_eq!(response.usage, usage(14, 6, Some(13), None));
}

#[test]
fn anthropic_with_thinking_and_calls() {
    let response = good(
        &EndpointKind::AnthropicMessages,
        "written/anthropic-thinking-tools.sse",
        "rr:RRrrRrrccrtrttrttrfD",
    );
    assert_eq!(response.reasoning, "Let me see.");
    // A part of the reasoning is redacted, so the signature of the rest proves nothing.
    assert_eq!(response.reasoning_signature, None);
    assert_eq!(response.text, "Okay, \"one\" moment\n");
    assert_eq!(
        response.tool_calls,
        [
            call("toolu_01", "get_weather", "{\"location\": \"Zürich\"}"),
            call("toolu_02", "get_time", "{}")
        ]
    );
    assert_eq!(response.finish_reason, "tool_use");
    // 25 new, 100 written to the cache, 1000 read from it.
    assert_eq!(response.usage, usage(1125, 89, Some(1000), None));

    let whole = whole_answer(
        &EndpointKind::AnthropicMessages,
        stamp(3),
        &bytes_of("written/anthropic-message.json"),
    );
    let response = whole.result.unwrap();
    assert_eq!((&*response.reasoning, &*response.text), ("Hm.", "Look: "));
    assert_eq!(response.tool_calls, [call("toolu_03", "look", "{\"q\": [1, 2]}")]);
    assert_eq!(response.usage, usage(15, 20, Some(5), None));
}

/// The count at the start is a placeholder: without one at the end, the answer has no counts.
#[test]
fn anthropic_counts_come_with_the_end() {
    let answer = |usage: &str| {
        let text = format!(
            "data: {{\"type\":\"message_start\",\"message\":{{\"usage\":{{\"input_tokens\":3,\"output_tokens\":1}}}}}}\n\n\
             data: {{\"type\":\"content_block_delta\",\"delta\":{{\"text\":\"a\"}}}}\n\n\
             data: {{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"end_turn\"}}{usage}}}\n\n"
        );
        parse_as(&EndpointKind::AnthropicMessages, [text.as_bytes()])
            .result
            .unwrap()
            .usage
    };
    assert_eq!(answer(""), None);
    assert_eq!(answer(",\"usage\":{\"input_tokens\":3}"), None);
    assert_eq!(
        answer(",\"usage\":{\"output_tokens\":5}"),
        usage(3, 5, None, None)
    );
    assert_eq!(
        answer(",\"usage\":{\"input_tokens\":4,\"cache_read_input_tokens\":2,\"output_tokens\":5}"),
        usage(6, 5, Some(2), None)
    );
}

#[test]
fn responses_as_llamacpp_speaks_it() {
    let response = good(
        &EndpointKind::Responses,
        "sse/llamacpp-responses-stream.sse",
        "rrrrccccccrrrf",
    );
    assert_eq!(response.text, "ericlass so soick\u{fffd}");
    assert_eq!(response.finish_reason, "completed");
    assert_eq!(response.usage, usage(14, 6, Some(13), None));

    let whole = whole_answer(
        &EndpointKind::Responses,
        stamp(3),
        &bytes_of("sse/llamacpp-responses.json"),
    );
    assert_eq!(letters(&whole), "f");
    assert_eq!(whole.result.unwrap().text, "riteeric string prog '%os");
}

#[test]
fn responses_with_reasoning_and_calls() {
    let response = good(
        &EndpointKind::Responses,
        "written/responses-reasoning-tools.sse",
        "rrrrRRrRrrrcccccccrrtttrrtt:f",
    );
    assert_eq!(response.reasoning, "First, think. Then look.");
    assert_eq!(response.text, "The solution\tis \"42\", naïve 😀");
    assert_eq!(
        response.tool_calls,
        [
            call("call_a", "get_weather", "{\"location\":1}"),
            call("call_b", "ask", "{}")
        ]
    );
    assert_eq!(response.finish_reason, "completed");
    assert_eq!(response.usage, usage(37, 31, Some(16), Some(12)));

    // Without `event:` lines, truncated by the limit; input after the end is ignored.
    let response = good(
        &EndpointKind::Responses,
        "written/responses-incomplete.sse",
        "rccf",
    );
    assert_eq!(
        (&*response.text, &*response.finish_reason),
        ("cut no", "max_output_tokens")
    );

    let whole = whole_answer(
        &EndpointKind::Responses,
        stamp(3),
        &bytes_of("written/responses-response.json"),
    );
    let response = whole.result.unwrap();
    assert_eq!((&*response.reasoning, &*response.text), ("Hm.", "Look no"));
    assert_eq!(response.tool_calls, [call("c", "f", "{}")]);
    assert_eq!(response.finish_reason, "max_output_tokens");
}

#[test]
fn tgi_sends_an_event_for_each_token() {
    let response = good(
        &EndpointKind::TgiGenerateStream,
        "written/tgi-stream.sse",
        "ccccccc",
    );
    // The special token is not text.
    assert_eq!(response.text, "Deep \"learning\" é");
    assert_eq!(response.finish_reason, "eos_token");
    assert_eq!(response.usage, usage(17, 7, None, None));

    let whole = whole_answer(
        &EndpointKind::TgiGenerateStream,
        stamp(3),
        &bytes_of("written/tgi-generate.json"),
    );
    let response = whole.result.unwrap();
    assert_eq!((&*response.text, &*response.finish_reason), (" text", "length"));
    assert_eq!(response.usage, usage(4, 3, None, None));
}

#[test]
fn errors_in_a_stream_are_failures_in_every_endpoint() {
    for (endpoint, name, events, message) in [
        (
            EndpointKind::AnthropicMessages,
            "anthropic-overloaded.sse",
            "rrc",
            "Overloaded",
        ),
        (
            EndpointKind::Responses,
            "responses-failed.sse",
            "rc",
            "The model failed to generate a response.",
        ),
        (
            EndpointKind::Responses,
            "responses-error.sse",
            "r",
            "Something went wrong",
        ),
        (
            EndpointKind::TgiGenerateStream,
            "tgi-overloaded.sse",
            "c",
            "Request failed during generation: Server error: CUDA out of memory",
        ),
    ] {
        let verdict = parse(&endpoint, &format!("written/{name}"));
        assert_eq!(letters(&verdict), events, "{name}");
        let failure = verdict.result.unwrap_err();
        assert_eq!(
            (failure.class, &*failure.message),
            (ErrorClass::InStream, message),
            "{name}"
        );
    }
    let killed = parse(&EndpointKind::Completions, "sse/vllm-engine-killed.sse");
    let failure = killed.result.clone().unwrap_err();
    assert_eq!((failure.class, failure.status), (ErrorClass::InStream, Some(500)));
    assert_eq!(
        failure.message,
        "EngineCore encountered an issue. See stack trace (above) for the root cause."
    );
    // Thirty-four texts were complete in the log, three of them empty.
    assert_eq!(letters(&killed).matches('c').count(), 31);
}

/// Events named `error` count as errors for any shape, also in chat completions.
#[test]
fn an_event_named_error_is_one() {
    for (data, message, status) in [
        ("overloaded", "overloaded", None),
        ("{\"message\":\"m\",\"code\":\"503\"}", "m", Some(503)),
        ("{\"choices\":[],\"why\":1}", "{\"choices\":[],\"why\":1}", None),
        ("\"text\"", "text", None),
    ] {
        for endpoint in [
            EndpointKind::ChatCompletions,
            EndpointKind::Responses,
            EndpointKind::AnthropicMessages,
            EndpointKind::TgiGenerateStream,
            llama_completion(),
        ] {
            let bytes = format!("event: error\ndata: {data}\n\n");
            let failure = parse_as(&endpoint, [bytes.as_bytes()]).result.unwrap_err();
            assert_eq!(
                (failure.class, failure.status, &*failure.message),
                (ErrorClass::InStream, status, message),
                "{endpoint:?}"
            );
        }
    }
}

/// A stream that ends early is not an answer, in any endpoint.
#[test]
fn success_needs_the_end_marker_of_the_endpoint() {
    for (endpoint, name, marker) in [
        (
            EndpointKind::AnthropicMessages,
            "sse/llamacpp-messages-stream.sse",
            "\"type\":\"message_delta\"",
        ),
        (
            EndpointKind::Responses,
            "sse/llamacpp-responses-stream.sse",
            "event: response.completed",
        ),
        (
            EndpointKind::TgiGenerateStream,
            "written/tgi-stream.sse",
            "{\"index\":7",
        ),
        (
            llama_completion(),
            "sse/llamacpp-completion-stream.sse",
            "\"stop\":true",
        ),
        (ollama(), "written/ollama-chat.ndjson", "\"done_reason\""),
    ] {
        let text = String::from_utf8(bytes_of(name)).unwrap();
        let end = text.find(marker).unwrap();
        let failure = parse_as(&endpoint, [&text.as_bytes()[..end]]).result.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Truncated, "{name}: {failure:?}");
    }
    // Anthropic's end marker alone is not sufficient.
    let stop = b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    let failure = parse_as(&EndpointKind::AnthropicMessages, [&stop[..]])
        .result
        .unwrap_err();
    assert_eq!(
        failure.message,
        "the stream ended without a finish reason after 0 generated chunks, although it sent message_stop"
    );
}

#[test]
fn templates_describe_other_servers() {
    let response = good(
        &llama_completion(),
        "sse/llamacpp-completion-stream.sse",
        "ccccccf",
    );
    let text = String::from_utf8(bytes_of("sse/llamacpp-completion-stream.sse")).unwrap();
    assert!(text.contains("\"stop_type\":\"limit\""));
    assert_eq!(response.finish_reason, "limit");
    assert_eq!(response.usage, usage(4, 6, None, None));
    assert!(response.text.starts_with("qui\u{c}vents"), "{:?}", response.text);

    let response = good(&ollama(), "written/ollama-chat.ndjson", "Rccf");
    assert_eq!((&*response.reasoning, &*response.text), ("Hm", "One two"));
    assert_eq!(response.finish_reason, "stop");
    assert_eq!(response.usage, usage(26, 3, None, None));

    // The same bytes as one event are not JSON; a whole body is.
    let whole = whole_answer(
        &llama_completion(),
        stamp(1),
        &bytes_of("sse/llamacpp-completion.json"),
    );
    assert_eq!(whole.result.unwrap().text, "linessagebe norm httpper");
}

#[test]
fn template_defines_the_end_marker() {
    let text = |done: Option<&str>, finish: Option<&str>| Pointers {
        text: Some("/choices/*/t".into()),
        finish_reason: finish.map(str::to_owned),
        done: done.map(str::to_owned),
        ..Pointers::default()
    };
    let events = "{\"choices\":[{\"t\":\"a\"},{\"t\":\"b\"}]}\n";
    let run = |pointers, bytes: String| parse_as(&template(Framing::Lines, pointers), [bytes.as_bytes()]);
    // No end defined: the end of the body, if there was any text.
    assert_eq!(run(text(None, None), events.into()).result.unwrap().text, "ab");
    let failure = run(text(None, None), "{}\n".into()).result.unwrap_err();
    assert_eq!(
        (failure.class, &*failure.message),
        (
            ErrorClass::Truncated,
            "the stream ended without any text after 0 generated chunks"
        )
    );
    // End defined by a marker.
    let failure = run(text(Some("END"), None), events.into()).result.unwrap_err();
    assert_eq!(
        failure.message,
        "the stream ended without its end marker after 1 generated chunks"
    );
    let marked = run(text(Some("END"), None), format!("{events} END \n{events}"));
    assert_eq!(letters(&marked), "cD");
    assert_eq!(marked.result.unwrap().text, "ab");
    // End defined by a finish reason: a marker does not replace it.
    let failure = run(text(Some("END"), Some("/f")), format!("{events}END\n"))
        .result
        .unwrap_err();
    assert_eq!(
        failure.message,
        "the stream ended without a finish reason after 1 generated chunks, although it sent END"
    );
    // The body as one event.
    let whole = parse_as(
        &template(Framing::Whole, text(None, None)),
        [&events.as_bytes()[..9], &events.as_bytes()[9..]],
    );
    assert_eq!(letters(&whole), "f");
    assert_eq!(whole.chunks[0].at, 2);
    assert_eq!(whole.result.unwrap().text, "ab");
    // A marker that can equal an event with text is compared with every event.
    let odd = Pointers {
        text: Some("/t".into()),
        done: Some("{\"t\":\"end\"}".into()),
        ..Pointers::default()
    };
    let verdict = run(
        odd,
        "{\"t\":\"a\"}\n{\"t\":\"b\"}\n{\"t\":\"end\"}\n{\"t\":\"c\"}\n".into(),
    );
    assert_eq!(letters(&verdict), "ccD");
    assert_eq!(verdict.result.unwrap().text, "ab");
}

#[test]
fn a_template_finds_errors_by_its_pointer_and_in_the_usual_shapes() {
    let endpoint = template(
        Framing::Lines,
        Pointers {
            text: Some("/t".into()),
            error: Some("/status/fault".into()),
            ..Pointers::default()
        },
    );
    for (event, message, status) in [
        ("{\"t\":\"a\",\"status\":{\"fault\":\"bad\"}}", "bad", None),
        (
            "{\"status\":{\"fault\":{\"message\":\"m\",\"code\":500}}}",
            "m",
            Some(500),
        ),
        ("{\"status\":{\"fault\":[7]}}", "[7]", None),
        ("{\"error\":\"usual\"}", "usual", None),
    ] {
        let failure = parse_as(&endpoint, [format!("{event}\n").as_bytes()])
            .result
            .unwrap_err();
        assert_eq!(
            (failure.class, failure.status, &*failure.message),
            (ErrorClass::InStream, status, message)
        );
    }
    // An event with a part of the answer may have members that resemble an error's.
    let event = "{\"t\":\"a\",\"message\":\"m\",\"error\":\"usual\"}\n";
    assert_eq!(parse_as(&endpoint, [event.as_bytes()]).result.unwrap().text, "a");
}

#[test]
fn response_id_is_that_of_the_body() {
    for (endpoint, name, id) in [
        (
            EndpointKind::AnthropicMessages,
            "written/anthropic-thinking-tools.sse",
            "msg_01",
        ),
        (
            EndpointKind::Responses,
            "written/responses-reasoning-tools.sse",
            "resp_1",
        ),
    ] {
        assert_eq!(parse(&endpoint, name).response_id.as_deref(), Some(id), "{name}");
    }
    let chat = |events: &str| parse_as(&EndpointKind::ChatCompletions, [events.as_bytes()]).response_id;
    let event = |id: &str| format!("data: {{\"id\":{id},\"choices\":[]}}\n\n");
    // An unusable id does not make an event invalid.
    let events = [event("\"\""), event("{}"), event("\"a\""), event("\"b\"")].concat();
    assert_eq!(chat(&events).as_deref(), Some("a"));
    assert_eq!(chat(&event("7")).as_deref(), Some("7"));
    let long = chat(&event(&format!("\"{}\"", "ä".repeat(2_000))));
    assert_eq!(long.unwrap().len(), 1_024);
    let whole = |endpoint, body: &str| whole_answer(&endpoint, stamp(1), body.as_bytes()).response_id;
    let message =
        r#"{"id":"msg_2","type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"}"#;
    assert_eq!(
        whole(EndpointKind::AnthropicMessages, message).as_deref(),
        Some("msg_2")
    );
    let response = r#"{"id":"resp_2","status":"completed","output":[]}"#;
    assert_eq!(
        whole(EndpointKind::Responses, response).as_deref(),
        Some("resp_2")
    );
}
