//! Calls, reasoning, definitions of functions and the form of the answer, in the body of each
//! endpoint.

use std::sync::Arc;

use serde_json::{Value, json};
use veeksha_endpoint::{
    Api, EndpointKind, EndpointTemplate, Pointers, TemplateSpec, check_request, whole_answer,
};
use veeksha_model::{
    AnswerForm, FunctionDefinition, HistoryMode, Message, NodeId, Prepared, PreparedMessage,
    PreparedReasoning, PreparedToolForm, PreparedTools, ReasoningContent, ReasoningSupport, RecordedAnswer,
    Replay, Request, Response, Role, Segment, ToolCall, ToolChoice, ToolDefinitions,
};

use crate::openai_bodies::{Job, body, job_of, message, turn, written};
use crate::support::{parse_as, stamp};

fn api(endpoint: EndpointKind) -> Api {
    Api {
        max_tokens_param: None,
        model: "tiny".into(),
        stream_options: false,
        endpoint,
        ..Api::default()
    }
}

fn call(id: &str) -> ToolCall {
    ToolCall {
        id: id.into(),
        name: "look".into(),
        arguments: r#"{"q":1}"#.into(),
    }
}

fn result(id: &str) -> PreparedMessage {
    PreparedMessage {
        tool_call_id: Some(id.into()),
        ..message(Role::Tool, "found")
    }
}

fn tools(form: PreparedToolForm) -> Option<Arc<PreparedTools>> {
    Some(Arc::new(PreparedTools { form, tokens: 9 }))
}

fn functions() -> Option<Arc<PreparedTools>> {
    tools(PreparedToolForm::Functions(vec![
        FunctionDefinition {
            name: "look".into(),
            description: Some("Finds \"it\".".into()),
            parameters: Some(r#"{"type":"object","properties":{"q":{"type":"integer"}}}"#.into()),
        },
        FunctionDefinition {
            name: "stop".into(),
            ..FunctionDefinition::default()
        },
    ]))
}

/// Three turns: a message of the assistant with reasoning and a call, its result, a live answer
/// with reasoning and a call, its result.
fn three_turns(keep_reasoning: bool) -> Job {
    let stated = PreparedMessage {
        tool_calls: vec![call("a")],
        reasoning: Some(PreparedReasoning {
            text: "stated".into(),
            signature: Some("S1".into()),
        }),
        ..message(Role::Assistant, "Looking.")
    };
    let first = turn(
        None,
        vec![message(Role::User, "one"), stated, result("a")],
        Some(Response {
            reasoning: "live".into(),
            reasoning_signature: Some("S2".into()),
            tool_calls: vec![call("b")],
            ..Response::default()
        }),
    );
    let second = turn(
        first,
        vec![result("b")],
        Some(Response {
            text: "eins".into(),
            reasoning: "unsigned".into(),
            ..Response::default()
        }),
    );
    let mut job = job_of(vec![message(Role::User, "two")], |request| {
        request.request.keep_reasoning = keep_reasoning;
    });
    job.history = second;
    job
}

#[test]
fn chat_has_calls_and_reasoning_in_messages() {
    let calls = |id: &str| json!([{"id": id, "type": "function", "function": {"name": "look", "arguments": "{\"q\":1}"}}]);
    for name in ["reasoning", "reasoning_content"] {
        let mut api = api(EndpointKind::ChatCompletions);
        api.reasoning_param = Some(name.into());
        assert_eq!(
            body(&api, &three_turns(true))["messages"],
            json!([
                {"role": "user", "content": "one"},
                {"role": "assistant", name: "stated", "content": "Looking.", "tool_calls": calls("a")},
                {"role": "tool", "tool_call_id": "a", "content": "found"},
                {"role": "assistant", name: "live", "content": null, "tool_calls": calls("b")},
                {"role": "tool", "tool_call_id": "b", "content": "found"},
                {"role": "assistant", name: "unsigned", "content": "eins"},
                {"role": "user", "content": "two"},
            ])
        );
        // Reasoning of answers is left out unless kept; that of messages is the workload's.
        let dropped = body(&api, &three_turns(false));
        assert_eq!(dropped["messages"][1][name], "stated");
        assert_eq!(dropped["messages"][3].get(name), None);
        assert_eq!(
            dropped["messages"][5],
            json!({"role": "assistant", "content": "eins"})
        );
        api.reasoning_param = None;
        let none = String::from_utf8(written(&api, &three_turns(true)).unwrap()).unwrap();
        assert!(!none.contains("reasoning"), "{none}");
    }
}

/// The host counts the reasoning that is sent by this predicate.
#[test]
fn bodies_have_the_reasoning_that_the_endpoint_supports() {
    let template = template(&json!({"m": "{{messages}}"}));
    for endpoint in [
        EndpointKind::ChatCompletions,
        EndpointKind::Responses,
        EndpointKind::AnthropicMessages,
        template,
    ] {
        for param in [Some("reasoning_content"), None] {
            for signature in [None, Some("S")] {
                let answer = Response {
                    text: "eins".into(),
                    reasoning: "live".into(),
                    reasoning_signature: signature.map(str::to_owned),
                    ..Response::default()
                };
                let support = endpoint.reasoning_support(param);
                let mut job = job_of(vec![message(Role::User, "two")], |request| {
                    request.request.keep_reasoning = true;
                    request.reasoning = support.into();
                });
                let is_sent = job.request.sends_reasoning_of(&job.request, &answer);
                job.history = turn(None, vec![message(Role::User, "one")], Some(answer));
                let mut api = api(endpoint.clone());
                api.reasoning_param = param.map(str::to_owned);
                let text = String::from_utf8(written(&api, &job).unwrap()).unwrap();
                assert_eq!(text.contains("live"), is_sent, "{text}");
                // The body has no other, even if the request was not prepared for the endpoint.
                job.request.reasoning = ReasoningSupport::All.into();
                assert_eq!(text.as_bytes(), written(&api, &job).unwrap());
            }
        }
    }
}

#[test]
fn anthropic_has_signed_thinking_before_text() {
    let thinking =
        |text: &str, signature: &str| json!({"type": "thinking", "thinking": text, "signature": signature});
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "look", "input": {"q": 1}});
    let result = |id: &str| {
        let block = json!({"type": "tool_result", "tool_use_id": id, "content": "found"});
        json!({"role": "user", "content": [block]})
    };
    assert_eq!(
        body(&api(EndpointKind::AnthropicMessages), &three_turns(true))["messages"],
        json!([
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": [
                thinking("stated", "S1"), {"type": "text", "text": "Looking."}, call("a"),
            ]},
            result("a"),
            {"role": "assistant", "content": [thinking("live", "S2"), call("b")]},
            result("b"),
            // The API refuses thinking without a signature.
            {"role": "assistant", "content": "eins"},
            {"role": "user", "content": "two"},
        ])
    );
    let dropped = body(&api(EndpointKind::AnthropicMessages), &three_turns(false));
    assert_eq!(dropped["messages"][3]["content"], json!([call("b")]));
}

#[test]
fn responses_have_reasoning_items() {
    let call =
        |id: &str| json!({"type": "function_call", "call_id": id, "name": "look", "arguments": "{\"q\":1}"});
    let result = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "found"});
    let signed = |text: &str, signature: &str| {
        let summary = json!([{"type": "summary_text", "text": text}]);
        json!({"type": "reasoning", "encrypted_content": signature, "summary": summary})
    };
    let mut input = body(&api(EndpointKind::Responses), &three_turns(true))["input"].take();
    // Some servers need an id of reasoning without a signature; its value is arbitrary.
    let id = input[8].as_object_mut().unwrap().remove("id").unwrap();
    assert!(id.as_str().unwrap().starts_with("rs_"), "{id}");
    assert_eq!(
        input,
        json!([
            {"type": "message", "role": "user", "content": "one"},
            signed("stated", "S1"),
            {"type": "message", "role": "assistant", "content": "Looking."},
            call("a"),
            result("a"),
            signed("live", "S2"),
            call("b"),
            result("b"),
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "unsigned"}]},
            {"type": "message", "role": "assistant", "content": "eins"},
            {"type": "message", "role": "user", "content": "two"},
        ])
    );
}

#[test]
fn definitions_have_the_form_of_the_endpoint() {
    let schema = json!({"type": "object", "properties": {"q": {"type": "integer"}}});
    let look = |name: &str| json!({"name": "look", "description": "Finds \"it\".", name: schema});
    let mut flat = [look("parameters"), json!({"name": "stop"})];
    let nested = flat
        .clone()
        .map(|function| json!({"type": "function", "function": function}));
    for function in &mut flat {
        function["type"] = "function".into();
    }
    let anthropic = json!([look("input_schema"), {"name": "stop", "input_schema": {"type": "object"}}]);
    for (endpoint, expected) in [
        (EndpointKind::ChatCompletions, json!(nested)),
        (EndpointKind::Responses, json!(flat)),
        (EndpointKind::AnthropicMessages, anthropic),
    ] {
        let mut job = job_of(vec![message(Role::User, "x")], |request| {
            request.tools = functions()
        });
        assert_eq!(
            body(&api(endpoint.clone()), &job)["tools"],
            expected,
            "{endpoint:?}"
        );
        // A request of the conversation without definitions has those of the turn before.
        let first = Arc::new(job.request);
        job.request = job_of(vec![message(Role::User, "y")], |_| ()).request;
        job.history = Some(Arc::new(veeksha_model::History {
            before: None,
            request: first,
            response: None,
        }));
        assert_eq!(
            body(&api(endpoint.clone()), &job)["tools"],
            expected,
            "{endpoint:?}"
        );
        // Its own ones replace them; an empty list is none.
        job.request.tools = tools(PreparedToolForm::Verbatim(r#"[ {"any": "form"} ]"#.into()));
        assert_eq!(
            body(&api(endpoint.clone()), &job)["tools"],
            json!([{"any": "form"}])
        );
        job.request.tools = tools(PreparedToolForm::Functions(Vec::new()));
        assert_eq!(body(&api(endpoint), &job).get("tools"), None);
    }
}

fn with_form(form: AnswerForm) -> Job {
    job_of(vec![message(Role::User, "x")], |request| {
        request.request.output.form = Some(Box::new(form));
    })
}

#[test]
fn tool_choice_has_the_form_of_the_endpoint() {
    use EndpointKind::{AnthropicMessages, ChatCompletions, Responses};
    let named = || ToolChoice::Function("look".into());
    for (endpoint, choice, expected) in [
        (ChatCompletions, ToolChoice::Automatic, json!("auto")),
        (ChatCompletions, ToolChoice::None, json!("none")),
        (ChatCompletions, ToolChoice::Required, json!("required")),
        (
            ChatCompletions,
            named(),
            json!({"type": "function", "function": {"name": "look"}}),
        ),
        (Responses, ToolChoice::Required, json!("required")),
        (Responses, named(), json!({"type": "function", "name": "look"})),
        (AnthropicMessages, ToolChoice::Automatic, json!({"type": "auto"})),
        (AnthropicMessages, ToolChoice::None, json!({"type": "none"})),
        (AnthropicMessages, ToolChoice::Required, json!({"type": "any"})),
        (
            AnthropicMessages,
            named(),
            json!({"type": "tool", "name": "look"}),
        ),
    ] {
        let mut job = with_form(AnswerForm {
            tool_choice: Some(choice),
            ..AnswerForm::default()
        });
        assert_eq!(body(&api(endpoint.clone()), &job)["tool_choice"], expected);
        // The request's body has precedence.
        job.request.request.body = Some(r#"{"tool_choice": 1}"#.into());
        assert_eq!(body(&api(endpoint), &job)["tool_choice"], 1);
    }
}

#[test]
fn schema_and_log_probabilities_have_the_form_of_the_endpoint() {
    let form = AnswerForm {
        schema: Some(r#"{"type":"array"}"#.into()),
        log_probabilities: Some(3),
        ..AnswerForm::default()
    };
    let schema = json!({"type": "array"});
    let named = json!({"name": "answer", "schema": schema});
    let chat = body(&api(EndpointKind::ChatCompletions), &with_form(form.clone()));
    assert_eq!(
        chat["response_format"],
        json!({"type": "json_schema", "json_schema": named})
    );
    assert_eq!(
        (&chat["logprobs"], &chat["top_logprobs"]),
        (&json!(true), &json!(3))
    );
    let responses = body(&api(EndpointKind::Responses), &with_form(form.clone()));
    let mut format = named;
    format["type"] = "json_schema".into();
    assert_eq!(responses["text"], json!({"format": format}));
    assert_eq!(responses["top_logprobs"], 3);
    assert_eq!(responses["include"], json!(["message.output_text.logprobs"]));
    let completions = body(
        &api(EndpointKind::Completions),
        &with_form(AnswerForm {
            schema: None,
            ..form.clone()
        }),
    );
    assert_eq!(completions["logprobs"], 3);
    let anthropic = body(
        &api(EndpointKind::AnthropicMessages),
        &with_form(AnswerForm {
            log_probabilities: None,
            ..form
        }),
    );
    assert_eq!(
        anthropic["output_config"],
        json!({"format": {"type": "json_schema", "schema": schema}})
    );
}

/// OpenAI refuses other schemas with `strict`.
#[test]
fn only_schemas_that_allow_it_are_strict() {
    let strict = r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}"#;
    for (schema, expected) in [(strict, json!(true)), (r#"{"type":"object"}"#, json!(null))] {
        let form = AnswerForm {
            schema: Some(schema.into()),
            ..AnswerForm::default()
        };
        let chat = body(&api(EndpointKind::ChatCompletions), &with_form(form.clone()));
        assert_eq!(chat["response_format"]["json_schema"]["strict"], expected);
        let responses = body(&api(EndpointKind::Responses), &with_form(form));
        assert_eq!(responses["text"]["format"]["strict"], expected);
    }
}

/// `include` is one list of several features, and the schema is one setting of several.
#[test]
fn configured_members_keep_their_settings_next_to_the_form() {
    let form = AnswerForm {
        schema: Some(r#"{"type":"array"}"#.into()),
        log_probabilities: Some(3),
        ..AnswerForm::default()
    };
    let with = |endpoint: &EndpointKind, configured: Value, of_request: Option<Value>| {
        let mut api = api(endpoint.clone());
        api.sampling = configured.as_object().unwrap().clone();
        let mut job = with_form(form.clone());
        job.request.request.body = of_request.map(|body| body.to_string());
        body(&api, &job)
    };
    let (encrypted, ours) = ("reasoning.encrypted_content", "message.output_text.logprobs");
    let responses = EndpointKind::Responses;
    let include = |configured| with(&responses, json!({ "include": configured }), None)["include"].take();
    assert_eq!(include(json!([encrypted])), json!([encrypted, ours]));
    assert_eq!(include(json!([ours, encrypted])), json!([ours, encrypted]));
    assert_eq!(include(json!([])), json!([ours]));
    assert_eq!(include(json!(null)), json!(null));
    // The request's own value replaces the configured one, and the host adds to it.
    let own = with(
        &responses,
        json!({ "include": [encrypted] }),
        Some(json!({ "include": ["x"] })),
    );
    assert_eq!(own["include"], json!(["x", ours]));

    let schema = json!({ "type": "array" });
    let text = with(&responses, json!({ "text": { "verbosity": "low" } }), None)["text"].take();
    assert_eq!(text["verbosity"], "low");
    assert_eq!(text["format"]["schema"], schema);
    let text = json!({ "format": { "type": "text" } });
    assert_eq!(with(&responses, json!({ "text": text }), None)["text"], text);
    let anthropic = EndpointKind::AnthropicMessages;
    let config = with(&anthropic, json!({ "output_config": { "effort": "low" } }), None);
    assert_eq!(config["output_config"]["effort"], "low");
    assert_eq!(config["output_config"]["format"]["schema"], schema);
}

fn template(request: &Value) -> EndpointKind {
    let template = EndpointTemplate::new(TemplateSpec {
        path: "generate".into(),
        request: request.clone(),
        answer: Pointers {
            text: Some("/text".into()),
            ..Pointers::default()
        },
        ..TemplateSpec::default()
    });
    EndpointKind::Template(Arc::new(template.unwrap()))
}

#[test]
fn template_has_placeholders_for_tools_and_token_ids() {
    let request = json!({
        "chat": "{{messages}}", "functions": "{{tools}}", "choice": "{{tool_choice}}",
        "guided": {"json": "{{schema}}"}, "prompt": "{{prompt}}", "ids": "{{token_ids}}",
    });
    let api = api(template(&request));
    let mut job = with_form(AnswerForm {
        tool_choice: Some(ToolChoice::Required),
        schema: Some("{}".into()),
        ..AnswerForm::default()
    });
    job.request.tools = tools(PreparedToolForm::Verbatim("[1]".into()));
    let hi = json!([{"role": "user", "content": "x"}]);
    assert_eq!(
        body(&api, &job),
        json!({"chat": hi, "functions": [1], "choice": "required", "guided": {"json": {}}, "prompt": "x"})
    );
    let ids = job_of(vec![message(Role::User, "")], |request| {
        request.token_ids = vec![7, 8]
    });
    let sent = body(&api, &ids);
    assert_eq!((&sent["ids"], sent.get("prompt")), (&json!([7, 8]), None));
}

#[test]
fn completions_send_token_ids_alone() {
    let api = api(EndpointKind::Completions);
    let mut job = job_of(vec![message(Role::User, "")], |request| {
        request.token_ids = vec![1, 2, 3]
    });
    assert_eq!(body(&api, &job)["prompt"], json!([1, 2, 3]));
    job.history = turn(None, vec![message(Role::User, "before")], None);
    let continued = written(&api, &job).unwrap_err().message;
    assert!(
        continued.starts_with("a prompt of token ids can be neither continued"),
        "{continued}"
    );
}

/// Every part of a request is sent or refused, by every endpoint.
#[test]
#[expect(clippy::too_many_lines, reason = "one case for each endpoint and field")]
fn what_an_endpoint_cannot_express_is_refused() {
    let plain = || Request {
        node: NodeId(0),
        messages: vec![Message::new(Role::User, vec![Segment::Text("x".into())])],
        ..Request::default()
    };
    let form = |form: AnswerForm| {
        let mut request = plain();
        request.output.form = Some(Box::new(form));
        request
    };
    let assistant = |change: fn(&mut Message)| {
        let mut request = plain();
        let mut message = Message::new(Role::Assistant, vec![Segment::Text("y".into())]);
        change(&mut message);
        request.messages.push(message);
        request
    };
    let mut ids = plain();
    ids.messages[0].content = vec![Segment::TokenIds(vec![1])];
    let mut defined = plain();
    defined.tools = Some(Box::new(ToolDefinitions::Definitions(r#"[{"name":"f"}]"#.into())));
    let mut keeps = plain();
    keeps.keep_reasoning = true;
    keeps.history_parent = Some(NodeId(9));
    let mut recorded = plain();
    recorded.replay = Some(Box::new(Replay {
        history: HistoryMode::Recorded,
        answer: Some(RecordedAnswer {
            tool_calls: vec![ToolCall::default()],
            ..RecordedAnswer::default()
        }),
        ..Replay::default()
    }));
    let default = AnswerForm::default;
    // C: chat completions, R: responses, A: Anthropic, T: completions, G: TGI, 1: a template with a
    // prompt, 2: a template with all placeholders.
    let cases = [
        ("", "CRATG12", plain()),
        ("a prompt of token ids", "T2", ids),
        (
            "tool calls of the assistant",
            "CRA2",
            assistant(|message| message.tool_calls = vec![ToolCall::default()]),
        ),
        ("tool calls of the assistant", "CRA2", recorded),
        (
            "reasoning",
            "CRA2",
            assistant(|message| message.reasoning = Some(ReasoningContent::default())),
        ),
        ("reasoning", "CRA2", keeps),
        ("tool definitions", "CRA2", defined),
        (
            "a tool choice",
            "CRA2",
            form(AnswerForm {
                tool_choice: Some(ToolChoice::None),
                ..default()
            }),
        ),
        (
            "a response schema",
            "CRA2",
            form(AnswerForm {
                schema: Some("{}".into()),
                ..default()
            }),
        ),
        (
            "log-probabilities",
            "CRT",
            form(AnswerForm {
                log_probabilities: Some(0),
                ..default()
            }),
        ),
        (
            "log-probabilities of the prompt",
            "T",
            form(AnswerForm {
                prompt_log_probabilities: true,
                ..default()
            }),
        ),
    ];
    let all = json!({
        "a": "{{messages}}", "b": "{{tools}}", "c": "{{tool_choice}}", "d": "{{schema}}", "e": "{{token_ids}}",
    });
    let endpoints = [
        ('C', EndpointKind::ChatCompletions),
        ('R', EndpointKind::Responses),
        ('A', EndpointKind::AnthropicMessages),
        ('T', EndpointKind::Completions),
        ('G', EndpointKind::TgiGenerateStream),
        ('1', template(&json!({"p": "{{prompt}}"}))),
        ('2', template(&all)),
    ];
    for (what, able, request) in &cases {
        for (letter, endpoint) in &endpoints {
            let checked = check_request(endpoint, request);
            if able.contains(*letter) {
                assert_eq!(checked, Ok(()), "{what} {letter}");
            } else {
                let message = checked.unwrap_err();
                let path = endpoint.default_path();
                let expected = format!("the endpoint `{path}` cannot send {what}");
                assert!(message.starts_with(&expected), "{message}");
            }
        }
    }
    assert_eq!(
        check_request(&endpoints[5].1, &cases[1].2).unwrap_err(),
        "the endpoint `generate` cannot send a prompt of token ids; put `{{token_ids}}` into its request"
    );
    assert_eq!(
        check_request(&endpoints[0].1, &cases[1].2).unwrap_err(),
        "the endpoint `chat/completions` cannot send a prompt of token ids; use `openai_completions`"
    );
}

fn streamed(endpoint: &EndpointKind, events: &[Value]) -> Response {
    let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    parse_as(endpoint, [stream.as_bytes()]).result.unwrap()
}

#[test]
fn anthropic_signature_is_kept_for_one_block() {
    let anthropic = EndpointKind::AnthropicMessages;
    let delta =
        |index: u32, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let thinking = |index, text: &str| delta(index, json!({"type": "thinking_delta", "thinking": text}));
    let signature = |index, text: &str| delta(index, json!({"type": "signature_delta", "signature": text}));
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}});
    let one = [
        thinking(0, "a"),
        signature(0, "c2"),
        signature(0, "ln"),
        end.clone(),
    ];
    let answer = streamed(&anthropic, &one);
    assert_eq!(
        (&*answer.reasoning, answer.reasoning_signature.as_deref()),
        ("a", Some("c2ln"))
    );
    // One text cannot be proved by the signatures of its parts.
    let two = [
        thinking(0, "a"),
        signature(0, "x"),
        thinking(1, "b"),
        signature(1, "y"),
        end.clone(),
    ];
    let answer = streamed(&anthropic, &two);
    assert_eq!((&*answer.reasoning, answer.reasoning_signature), ("ab", None));
    let hidden = json!({"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "z"}});
    let answer = streamed(&anthropic, &[thinking(0, "a"), signature(0, "x"), hidden, end]);
    assert_eq!(answer.reasoning_signature, None);
    let whole = json!({"content": [
        {"type": "thinking", "thinking": "a", "signature": "sig"}, {"type": "text", "text": "b"},
    ], "stop_reason": "end_turn"});
    let answer = whole_answer(&anthropic, stamp(0), whole.to_string().as_bytes())
        .result
        .unwrap();
    assert_eq!(answer.reasoning_signature.as_deref(), Some("sig"));
}

#[test]
fn responses_encrypted_content_is_the_signature() {
    let item = json!({"type": "reasoning", "summary": [], "encrypted_content": "gAAA"});
    let events = [
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "hm"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": "yes"}),
        json!({"type": "response.completed", "response": {"status": "completed"}}),
    ];
    let answer = streamed(&EndpointKind::Responses, &events);
    assert_eq!(answer.reasoning, "hm");
    assert_eq!(answer.reasoning_signature.as_deref(), Some("gAAA"));
    let whole = json!({"status": "completed", "output": [item]});
    let answer = whole_answer(&EndpointKind::Responses, stamp(0), whole.to_string().as_bytes());
    assert_eq!(
        answer.result.unwrap().reasoning_signature.as_deref(),
        Some("gAAA")
    );
}

/// A received answer, sent back, has the reasoning and the signature that the server sent.
#[test]
fn received_reasoning_is_sent_back_unchanged() {
    let thinking = json!({"type": "thinking", "thinking": "a \"b\"\n", "signature": "sig=="});
    let call = json!({"type": "tool_use", "id": "t", "name": "look", "input": {"q": 1}});
    let content = json!([thinking, {"type": "text", "text": "c"}, call]);
    let whole = json!({"content": content, "stop_reason": "tool_use"});
    let anthropic = EndpointKind::AnthropicMessages;
    let answer = whole_answer(&anthropic, stamp(0), whole.to_string().as_bytes())
        .result
        .unwrap();
    let mut job = job_of(vec![result("t")], |request: &mut Prepared| {
        request.request.keep_reasoning = true
    });
    job.history = turn(None, vec![message(Role::User, "x")], Some(answer));
    assert_eq!(body(&api(anthropic), &job)["messages"][1]["content"], content);
}
