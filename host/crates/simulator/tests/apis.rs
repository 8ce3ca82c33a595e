//! Every API over real sockets: the order of its events according to its published description, and
//! the truth log against the events that the project's client sees.
#![expect(
    clippy::unwrap_used,
    reason = "the functions that the tests share are tests too"
)]

#[path = "common/client.rs"]
mod client;
#[path = "common/server.rs"]
mod server;

use client::{Ended, RouteReply};
use serde_json::{Value, json};
use server::{Sim, profile};
use veeksha_endpoint::{AnswerOutcome, AnswerStream, BodyEnd, EndpointKind, ReadStamp, whole_answer};
use veeksha_model::ChunkKind;
use veeksha_simulator::{Faults, FinishReason, Profile, TruthOutcome, TruthRecord};

fn fast(faults: Faults, reasoning_tokens: u32) -> Profile {
    Profile {
        prefill_base_ms: 1.0,
        decode_base_ms: 1.0,
        reasoning_tokens,
        faults,
        ..profile()
    }
}

fn stamp() -> ReadStamp {
    ReadStamp {
        at: 1,
        lag: 0,
        read: 1,
    }
}

fn seen(endpoint: &EndpointKind, reply: &RouteReply) -> AnswerOutcome {
    let mut stream = AnswerStream::new(endpoint);
    stream.on_bytes(stamp(), reply.body.as_bytes());
    let kind = reply.header("content-type");
    stream.finish(stamp(), kind, BodyEnd::Complete)
}

fn kinds_of(truth: &TruthRecord) -> Vec<ChunkKind> {
    truth.chunks.iter().map(|(_, kind)| *kind).collect()
}

/// Returns the path, the client's endpoint kind, the body of a streamed request for `tokens`
/// tokens, and whether the API has reasoning.
fn apis(tokens: u32) -> [(&'static str, EndpointKind, Value, bool); 5] {
    let hi = json!([{ "role": "user", "content": "hi" }]);
    [
        (
            "/v1/chat/completions",
            EndpointKind::ChatCompletions,
            json!({ "messages": hi, "max_tokens": tokens, "ignore_eos": true, "stream": true,
                    "stream_options": { "include_usage": true } }),
            true,
        ),
        (
            "/v1/completions",
            EndpointKind::Completions,
            json!({ "prompt": "hi", "max_tokens": tokens, "ignore_eos": true, "stream": true,
                    "stream_options": { "include_usage": true } }),
            false,
        ),
        (
            "/v1/responses",
            EndpointKind::Responses,
            json!({ "input": "hi", "max_output_tokens": tokens, "ignore_eos": true, "stream": true }),
            true,
        ),
        (
            "/v1/messages",
            EndpointKind::AnthropicMessages,
            json!({ "messages": hi, "max_tokens": tokens, "ignore_eos": true, "stream": true }),
            true,
        ),
        (
            "/generate_stream",
            EndpointKind::TgiGenerateStream,
            json!({ "inputs": "hi", "parameters": { "max_new_tokens": tokens, "ignore_eos": true, "details": true } }),
            false,
        ),
    ]
}

#[test]
fn truth_has_the_kinds_that_a_client_sees() {
    for reasoning in [0, 2] {
        let sim = Sim::start(fast(Faults::default(), reasoning));
        let mut connection = sim.connect();
        for (ordinal, (path, endpoint, body, reasons)) in apis(5).into_iter().enumerate() {
            let reply = connection.post(path, "", &body.to_string());
            assert_eq!((reply.status, reply.ended), (200, Ended::Whole), "{path}");
            let truth = sim.truth(ordinal);
            assert_eq!((truth.path.as_str(), truth.fault), (path, None));
            assert_eq!(truth.outcome, TruthOutcome::Finished(FinishReason::Length));
            let verdict = seen(&endpoint, &reply);
            let kinds: Vec<ChunkKind> = verdict.chunks.iter().map(|chunk| chunk.kind).collect();
            assert_eq!(
                kinds_of(&truth),
                kinds,
                "{path}: truth, then what the client sees"
            );
            let answer = verdict
                .result
                .unwrap_or_else(|failure| panic!("{path}: {failure:?}"));
            let words = |text: &str| text.split(' ').filter(|word| !word.is_empty()).count();
            let expected = match (reasons, reasoning) {
                (true, 2) => (2, 3),
                _ => (0, 5),
            };
            assert_eq!(
                (words(&answer.reasoning), words(&answer.text)),
                expected,
                "{path}"
            );
            assert_eq!(answer.output_tokens, 5, "{path}");
            let usage = answer.usage.unwrap_or_else(|| panic!("{path}: no usage"));
            let recorded = truth.usage.unwrap();
            assert_eq!(
                (usage.prompt, usage.completion),
                (recorded.prompt, recorded.completion)
            );
            assert_eq!(recorded.completion, 5);
            if path != "/generate_stream" {
                assert_eq!(usage.cached, recorded.cached, "{path}");
            }
            let generated = kinds.iter().filter(|kind| kind.is_generated()).count();
            assert_eq!(generated, 5, "{path}: an event for each token");
        }
        sim.server.stop();
    }
}

#[test]
fn whole_answers_match_streams() {
    let sim = Sim::start(fast(Faults::default(), 0));
    let mut connection = sim.connect();
    for (path, endpoint, mut body, _) in apis(4) {
        body["stream"] = false.into();
        let path = path.replace("_stream", "");
        let reply = connection.post(&path, "", &body.to_string());
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (200, Some("application/json"))
        );
        let answer = whole_answer(&endpoint, stamp(), reply.body.as_bytes())
            .result
            .unwrap_or_else(|failure| panic!("{path}: {failure:?}"));
        assert_eq!(answer.text.split(' ').count(), 4, "{path}");
        assert_eq!(answer.output_tokens, 4, "{path}");
    }
    sim.server.stop();
}

#[test]
fn tool_call_has_the_shape_of_the_api() {
    let sim = Sim::start(fast(Faults::default(), 0));
    let mut connection = sim.connect();
    let named = json!({ "name": "look_up", "input_schema": {} });
    let function = json!({ "type": "function", "function": { "name": "look_up" } });
    let flat = json!({ "type": "function", "name": "look_up" });
    let mut ordinal = 0;
    for (path, endpoint, mut body, has_tools) in apis(4) {
        if !has_tools {
            continue;
        }
        let (tool, choice) = match path {
            "/v1/messages" => (&named, json!({ "type": "any" })),
            "/v1/responses" => (&flat, json!("required")),
            _ => (&function, json!("required")),
        };
        body["tools"] = json!([tool]);
        body["tool_choice"] = choice;
        let reply = connection.post(path, "", &body.to_string());
        let verdict = seen(&endpoint, &reply);
        let kinds: Vec<ChunkKind> = verdict.chunks.iter().map(|chunk| chunk.kind).collect();
        assert_eq!(kinds_of(&sim.truth(ordinal)), kinds, "{path}");
        body["stream"] = false.into();
        let whole = connection.post(path, "", &body.to_string());
        let whole = whole_answer(&endpoint, stamp(), whole.body.as_bytes());
        ordinal += 2;
        for answer in [verdict.result, whole.result] {
            let answer = answer.unwrap_or_else(|failure| panic!("{path}: {failure:?}"));
            assert_eq!((answer.text.as_str(), answer.tool_calls.len()), ("", 1), "{path}");
            let call = &answer.tool_calls[0];
            assert_eq!(call.name, "look_up", "{path}");
            assert!(!call.id.is_empty(), "{path}");
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
            assert_eq!(
                arguments["text"].as_str().unwrap().split(' ').count(),
                4,
                "{path}"
            );
        }
    }
    sim.server.stop();
}

/// Returns the data of each event with a name, and the name.
fn named(reply: &RouteReply) -> Vec<(String, Value)> {
    reply
        .body
        .split_terminator("\n\n")
        .map(|event| {
            let (name, data) = event.split_once('\n').unwrap();
            let name = name.strip_prefix("event: ").unwrap();
            let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!(data["type"], name, "the name is the type");
            (name.to_owned(), data)
        })
        .collect()
}

/// <https://developers.openai.com/api/reference/resources/responses/streaming-events>
#[test]
fn responses_follow_the_documented_order() {
    // A mean of one token: answers end by themselves, if not immediately then soon.
    let sim = Sim::start(Profile {
        mean_output_tokens: 1.0,
        ..fast(Faults::default(), 0)
    });
    let mut connection = sim.connect();
    let reply = connection.post("/v1/responses", "", r#"{"model":"x","input":"hi","stream":true}"#);
    let events = named(&reply);
    let tokens = events
        .iter()
        .filter(|(name, _)| name == "response.output_text.delta")
        .count();
    let mut expected = vec![
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ];
    expected.extend(vec!["response.output_text.delta"; tokens]);
    expected.extend([
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]);
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, expected);
    for (number, (_, data)) in events.iter().enumerate() {
        assert_eq!(data["sequence_number"], number);
    }
    let text: String = events
        .iter()
        .filter_map(|(_, data)| data["delta"].as_str())
        .collect();
    let (_, end) = events.last().unwrap();
    let response = &end["response"];
    assert_eq!(
        (&response["status"], &response["model"]),
        (&json!("completed"), &json!("x"))
    );
    assert_eq!(response["output"][0]["content"][0]["text"], text);
    // "<|user|>\nhi\n<|assistant|>\n": 9 + 3 + 14 bytes, each a token here.
    assert_eq!(response["usage"]["input_tokens"], 26);
    assert_eq!(response["usage"]["output_tokens"], tokens);
    assert_eq!(response["usage"]["total_tokens"], 26 + tokens);
    // The same prompt again: six full blocks of 4 tokens are cached.
    let reply = connection.post(
        "/v1/responses",
        "",
        r#"{"input":"hi","stream":true,"max_output_tokens":1,"ignore_eos":true}"#,
    );
    let (name, end) = named(&reply).pop().unwrap();
    assert_eq!(name, "response.incomplete");
    assert_eq!(
        end["response"]["incomplete_details"]["reason"],
        "max_output_tokens"
    );
    assert_eq!(
        end["response"]["usage"]["input_tokens_details"]["cached_tokens"],
        24
    );
    sim.server.stop();
}

/// <https://platform.claude.com/docs/en/build-with-claude/streaming>
#[test]
fn messages_follow_the_documented_order() {
    // Prompts take 400 ms: the announcements come before the first text.
    let sim = Sim::start(Profile {
        prefill_base_ms: 400.0,
        ..fast(Faults::default(), 0)
    });
    let mut connection = sim.connect();
    let body = r#"{"model":"x","max_tokens":3,"ignore_eos":true,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    for cached in [0, 24] {
        let reply = connection.post("/v1/messages", "", body);
        let events = named(&reply);
        let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "message_start",
                "content_block_start",
                "ping",
                "content_block_delta",
                "content_block_delta",
                "content_block_delta",
                "content_block_stop",
                "message_delta",
                "message_stop"
            ]
        );
        let usage = &events[0].1["message"]["usage"];
        assert_eq!(
            (&usage["input_tokens"], &usage["cache_read_input_tokens"]),
            (&json!(26 - cached), &json!(cached)),
            "what was cached is not counted twice"
        );
        assert_eq!(events[3].1["delta"]["type"], "text_delta");
        assert_eq!(events[7].1["delta"]["stop_reason"], "max_tokens");
        assert_eq!(events[7].1["usage"]["output_tokens"], 3);
    }
    let truth = sim.truth(0);
    assert!(
        truth.chunks[0].0 + 100_000_000 < truth.chunks[3].0,
        "announced at admission"
    );
    sim.server.stop();
}

#[test]
fn tgi_streams_tokens_and_ends_with_the_text() {
    let sim = Sim::start(fast(Faults::default(), 0));
    for (path, details) in [("/generate_stream", true), ("/v1/generate_stream", false)] {
        let body = json!({ "inputs": "hi there", "parameters":
            { "max_new_tokens": 3, "ignore_eos": true, "details": details } });
        let reply = sim.connect().post(path, "", &body.to_string());
        let events: Vec<Value> = reply
            .body
            .split_terminator("\n\n")
            .map(|event| serde_json::from_str(event.strip_prefix("data:").unwrap()).unwrap())
            .collect();
        assert_eq!(events.len(), 3);
        let text: String = events
            .iter()
            .map(|event| event["token"]["text"].as_str().unwrap())
            .collect();
        for (index, event) in events.iter().enumerate() {
            assert_eq!(event["index"], index + 1);
            assert!(event["token"]["id"].is_u64() && event["token"]["logprob"].is_f64());
            assert_eq!(event["token"]["special"], false);
        }
        assert!(events[..2].iter().all(|event| event["generated_text"].is_null()));
        assert_eq!(events[2]["generated_text"], text);
        let expected = if details {
            json!({ "finish_reason": "length", "generated_tokens": 3, "seed": null, "input_length": 8 })
        } else {
            Value::Null
        };
        assert_eq!(events[2]["details"], expected);
    }
    sim.server.stop();
}

#[test]
fn ollama_lines_are_json_with_counts_at_the_end() {
    let sim = Sim::start(fast(Faults::default(), 1));
    let body = r#"{"model":"x","prompt":"hi","options":{"num_predict":3,"ignore_eos":true}}"#;
    let reply = sim.connect().post("/api/generate", "", body);
    assert_eq!(reply.header("content-type"), Some("application/x-ndjson"));
    let lines: Vec<Value> = reply
        .body
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 4);
    assert!(lines.iter().all(|line| line["model"] == "x"));
    assert!(lines[..3].iter().all(|line| line["done"] == false));
    assert!(!lines[0]["thinking"].as_str().unwrap().is_empty());
    assert!(!lines[1]["response"].as_str().unwrap().is_empty());
    let end = &lines[3];
    assert_eq!(
        (&end["done"], &end["done_reason"], &end["response"]),
        (&json!(true), &json!("length"), &json!(""))
    );
    assert_eq!(
        (&end["prompt_eval_count"], &end["eval_count"]),
        (&json!(2), &json!(3))
    );
    use ChunkKind::{Content, Finish, Reasoning};
    assert_eq!(kinds_of(&sim.truth(0)), [Reasoning, Content, Content, Finish]);
    sim.server.stop();
}

#[test]
fn midstream_error_has_the_shape_of_the_api() {
    let sim = Sim::start(fast(
        Faults {
            midstream_error_probability: 1.0,
            after_tokens: Some(2),
            ..Faults::default()
        },
        0,
    ));
    let mut connection = sim.connect();
    for (ordinal, (path, endpoint, body, _)) in apis(5).into_iter().enumerate() {
        let reply = connection.post(path, "", &body.to_string());
        assert_eq!((reply.status, reply.ended), (200, Ended::Whole), "{path}");
        let verdict = seen(&endpoint, &reply);
        let failure = verdict.result.unwrap_err();
        assert!(
            failure.message.contains("failed while answering"),
            "{path}: {failure:?}"
        );
        let truth = sim.truth(ordinal);
        assert_eq!(truth.outcome, TruthOutcome::MidStreamError);
        // Anything after the error is ignored by the client: vLLM's `[DONE]` is in the truth only.
        let seen: Vec<ChunkKind> = verdict.chunks.iter().map(|chunk| chunk.kind).collect();
        let sent: Vec<ChunkKind> = kinds_of(&truth)
            .into_iter()
            .filter(|kind| *kind != ChunkKind::Done)
            .collect();
        assert_eq!(sent, seen, "{path}");
    }
    let reply = connection.post(
        "/api/generate",
        "",
        r#"{"prompt":"hi","options":{"num_predict":5}}"#,
    );
    let last: Value = serde_json::from_str(reply.body.lines().last().unwrap()).unwrap();
    assert!(last["error"].is_string());
    sim.server.stop();
}

#[test]
fn error_statuses_have_the_shape_of_the_api() {
    let sim = Sim::start(fast(
        Faults {
            api_key: Some("secret".into()),
            ..Faults::default()
        },
        0,
    ));
    let mut connection = sim.connect();
    for (path, _, body, _) in apis(1) {
        let refused = connection.post(path, "", &body.to_string());
        assert_eq!(refused.status, 401, "{path}");
        let json = refused.json();
        match path {
            "/v1/messages" => assert_eq!(
                (&json["type"], &json["error"]["type"]),
                (&json!("error"), &json!("authentication_error"))
            ),
            "/generate_stream" => assert!(json["error"].is_string() && json["error_type"].is_string()),
            _ => assert_eq!(json["error"]["code"], 401),
        }
        for key in ["authorization: Bearer secret\r\n", "x-api-key: secret\r\n"] {
            assert_eq!(
                connection.post(path, key, &body.to_string()).status,
                200,
                "{path}"
            );
        }
    }
    let key = "x-api-key: secret\r\n";
    let bad = connection.post("/generate", key, r#"{"parameters":{}}"#);
    assert_eq!(
        (bad.status, &bad.json()["error_type"]),
        (422, &json!("validation"))
    );
    let bad = connection.post("/v1/messages", key, r#"{"messages":[]}"#);
    assert_eq!(
        (bad.status, &bad.json()["error"]["type"]),
        (400, &json!("invalid_request_error"))
    );
    sim.server.stop();
}
