//! Request bodies of endpoints other than OpenAI's first two, compared with the published API
//! descriptions.

use std::sync::Arc;

use serde_json::{Value, json};
use veeksha_endpoint::{
    Api, EndpointKind, EndpointTemplate, KeyHeader, Pointers, TemplateError, TemplateSpec,
};
use veeksha_model::{ErrorClass, Framing, MediaKind, OutputSpec, PreparedMessage, Response, Role, ToolCall};

use crate::openai_bodies::{Job, body, chat, job_of, message, text_answer, turn, written};

fn api(endpoint: EndpointKind) -> Api {
    Api {
        max_tokens_param: endpoint.default_max_tokens_param().map(str::to_owned),
        endpoint,
        ..chat()
    }
}

fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: id.into(),
        name: "look".into(),
        arguments: arguments.into(),
    }
}

fn result(id: &str, text: &str) -> PreparedMessage {
    PreparedMessage {
        tool_call_id: Some(id.into()),
        ..message(Role::Tool, text)
    }
}

fn with_media(kind: MediaKind, url: &str) -> Job {
    let message = PreparedMessage {
        media: vec![(kind, url.into())],
        ..message(Role::User, "look")
    };
    job_of(vec![message], |_| ())
}

/// Returns a system message, a question, an answer with text and two calls, their results and a
/// reminder, a failed turn, a question.
fn conversation() -> Job {
    conversation_with(vec![call("a", "{\"q\": 1}"), call("b", "cut off {")])
}

/// The same with other calls of the first answer.
fn conversation_with(tool_calls: Vec<ToolCall>) -> Job {
    let first = turn(
        None,
        vec![message(Role::System, "brief"), message(Role::User, "one")],
        Some(Response {
            text: "Looking.".into(),
            reasoning: "not sent back".into(),
            tool_calls,
            ..Response::default()
        }),
    );
    let second = turn(
        first,
        vec![
            result("a", "found"),
            result("b", ""),
            message(Role::System, "remember"),
        ],
        text_answer("eins"),
    );
    let failed = turn(second, vec![message(Role::User, "two")], None);
    let mut job = job_of(vec![message(Role::User, "three")], |_| ());
    job.history = failed;
    job
}

#[test]
fn responses_have_items() {
    assert_eq!(
        body(&api(EndpointKind::Responses), &conversation()),
        json!({
            "model": "tiny", "stream": true, "max_output_tokens": 2,
            "input": [
                {"type": "message", "role": "system", "content": "brief"},
                {"type": "message", "role": "user", "content": "one"},
                {"type": "message", "role": "assistant", "content": "Looking."},
                {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{\"q\": 1}"},
                {"type": "function_call", "call_id": "b", "name": "look", "arguments": "cut off {"},
                {"type": "function_call_output", "call_id": "a", "output": "found"},
                {"type": "function_call_output", "call_id": "b", "output": ""},
                {"type": "message", "role": "system", "content": "remember"},
                {"type": "message", "role": "assistant", "content": "eins"},
                {"type": "message", "role": "user", "content": "two"},
                {"type": "message", "role": "user", "content": "three"},
            ],
        })
    );
}

#[test]
fn anthropic_has_two_sides_and_blocks() {
    assert_eq!(
        body(&api(EndpointKind::AnthropicMessages), &conversation()),
        json!({
            "model": "tiny", "stream": true, "max_tokens": 2,
            "system": [{"type": "text", "text": "brief"}, {"type": "text", "text": "remember"}],
            "messages": [
                {"role": "user", "content": "one"},
                {"role": "assistant", "content": [
                    {"type": "text", "text": "Looking."},
                    {"type": "tool_use", "id": "a", "name": "look", "input": {"q": 1}},
                    {"type": "tool_use", "id": "b", "name": "look", "input": {"arguments": "cut off {"}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "found"},
                    {"type": "tool_result", "tool_use_id": "b", "content": ""},
                ]},
                {"role": "assistant", "content": "eins"},
                {"role": "user", "content": [{"type": "text", "text": "two"}, {"type": "text", "text": "three"}]},
            ],
        })
    );
    // One system message is a string; a length is always present; an empty answer is omitted.
    let mut job = job_of(
        vec![message(Role::System, "s"), message(Role::User, "x")],
        |request| {
            request.request.output = OutputSpec::default();
        },
    );
    job.history = turn(None, vec![message(Role::User, "w")], Some(Response::default()));
    assert_eq!(
        body(&api(EndpointKind::AnthropicMessages), &job),
        json!({
            "model": "tiny", "stream": true, "max_tokens": 4096, "system": "s",
            "messages": [{"role": "user", "content": [{"type": "text", "text": "w"}, {"type": "text", "text": "x"}]}],
        })
    );
    // No system message, no `system`; calls without arguments have an empty object.
    let mut job = job_of(vec![result("c", "r")], |_| ());
    let calls = Response {
        tool_calls: vec![call("c", ""), call("d", "[1]")],
        ..Response::default()
    };
    job.history = turn(None, vec![message(Role::User, "w")], Some(calls));
    let value = body(&api(EndpointKind::AnthropicMessages), &job);
    assert_eq!(value.get("system"), None);
    assert_eq!(
        value["messages"][1]["content"],
        json!([
            {"type": "tool_use", "id": "c", "name": "look", "input": {}},
            {"type": "tool_use", "id": "d", "name": "look", "input": {"arguments": "[1]"}},
        ])
    );
}

#[test]
fn media_go_where_an_api_has_a_place_for_them() {
    let block = |endpoint: EndpointKind, kind, url: &str| {
        let value = body(&api(endpoint), &with_media(kind, url));
        let messages = value.get("messages").or(value.get("input")).unwrap();
        assert_eq!(messages[0]["content"][0]["text"], "look");
        messages[0]["content"][1].clone()
    };
    let (png, jpg) = ("data:image/png;base64,AAAA", "https://h/a.jpg");
    assert_eq!(
        block(EndpointKind::Responses, MediaKind::Image, png),
        json!({"type": "input_image", "image_url": png})
    );
    assert_eq!(
        block(
            EndpointKind::Responses,
            MediaKind::Audio,
            "data:audio/wav;base64,BB"
        ),
        json!({"type": "input_audio", "input_audio": {"data": "BB", "format": "wav"}})
    );
    assert_eq!(
        block(EndpointKind::AnthropicMessages, MediaKind::Image, png),
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}})
    );
    assert_eq!(
        block(EndpointKind::AnthropicMessages, MediaKind::Image, jpg),
        json!({"type": "image", "source": {"type": "url", "url": jpg}})
    );
    for (endpoint, kind, url, message) in [
        (
            EndpointKind::Responses,
            MediaKind::Audio,
            "https://h/a.mp3",
            "the responses API cannot carry audio; use chat completions",
        ),
        (
            EndpointKind::Responses,
            MediaKind::Video,
            "https://h/v.mp4",
            "the responses API cannot carry video; use chat completions",
        ),
        (
            EndpointKind::AnthropicMessages,
            MediaKind::Audio,
            "data:audio/wav;base64,BB",
            "the messages API cannot carry audio; use chat completions",
        ),
        (
            EndpointKind::TgiGenerateStream,
            MediaKind::Image,
            png,
            "the generate_stream API cannot carry image; use chat completions",
        ),
        (
            EndpointKind::AnthropicMessages,
            MediaKind::Image,
            "cat.png",
            "the image `cat.png` is neither a URL nor a `data:` URL, and servers accept nothing else",
        ),
    ] {
        let failure = written(&api(endpoint), &with_media(kind, url)).unwrap_err();
        assert_eq!(
            (failure.class, &*failure.message),
            (ErrorClass::Protocol, message)
        );
    }
}

#[test]
fn tgi_has_its_parameters_inside() {
    let mut api = api(EndpointKind::TgiGenerateStream);
    api.sampling = json!({"temperature": 0.5, "seed": 7})
        .as_object()
        .unwrap()
        .clone();
    assert_eq!(
        body(&api, &job_of(vec![message(Role::User, " as it is ")], |_| ())),
        json!({
            "inputs": " as it is ",
            "parameters": {"details": true, "max_new_tokens": 2, "temperature": 0.5, "seed": 7},
        })
    );
    api.render = Some(Arc::new(|turns: &[(Role, &str)]| {
        Ok(format!("<{}>", turns.len()))
    }));
    api.sampling = json!({"max_new_tokens": 9, "details": false})
        .as_object()
        .unwrap()
        .clone();
    let value = body(&api, &conversation_with(Vec::new()));
    assert_eq!(
        value,
        json!({"inputs": "<9>", "parameters": {"max_new_tokens": 9, "details": false}})
    );
    api.sampling = json!({"inputs": 1}).as_object().unwrap().clone();
    assert_eq!(
        body(&api, &conversation_with(Vec::new())),
        json!({"inputs": "<9>", "parameters": {"details": true, "max_new_tokens": 2, "inputs": 1}})
    );
    api.sampling = json!({"max_new_tokens": 9, "details": false})
        .as_object()
        .unwrap()
        .clone();
    // The request's fields replace the others entirely.
    let own = job_of(vec![message(Role::User, "x")], |request| {
        request.request.body = Some(r#"{"parameters": {"a": 1}, "inputs": "mine"}"#.into());
    });
    assert_eq!(
        body(&api, &own),
        json!({"inputs": "mine", "parameters": {"a": 1}})
    );
    // Parameters of other server types are written where they were configured.
    api.sampling.clear();
    api.min_tokens_param = Some("min_new_tokens".into());
    api.ignore_eos = Some(true);
    let exact = job_of(vec![message(Role::User, "x")], |request| {
        request.request.output.exact = true
    });
    assert_eq!(
        body(&api, &exact)["parameters"],
        json!({"details": true, "max_new_tokens": 2, "min_new_tokens": 2, "ignore_eos": true})
    );
}

fn spec(request: Value) -> TemplateSpec {
    TemplateSpec {
        path: "v2/gen".into(),
        headers: vec![("x-team".into(), "blue".into())],
        request,
        framing: Framing::Lines,
        answer: Pointers {
            text: Some("/t".into()),
            ..Pointers::default()
        },
    }
}

#[test]
fn a_template_is_filled_and_overruled_like_any_body() {
    let template = EndpointTemplate::new(spec(json!({
        "model": "{{model}}", "input": {"text": "{{prompt}}", "system": "{{system}}"}, "chat": "{{messages}}",
        "limits": {"max": "{{max_tokens}}", "min": "{{min_tokens}}", "note": "at most {{max_tokens}} of {{model}}"},
        "stop": "{{ignore_eos}}", "fixed": [1, null], "temperature": 1,
    })))
    .unwrap();
    let mut api = api(EndpointKind::Template(Arc::new(template)));
    api.ignore_eos = Some(true);
    assert_eq!(api.endpoint.default_path(), "v2/gen");
    assert_eq!(api.endpoint.extra_headers(), [("x-team".into(), "blue".into())]);
    assert_eq!(api.endpoint.framing(), Framing::Lines);
    let short = job_of(vec![message(Role::User, "say \"x\"")], |_| ());
    assert_eq!(
        body(&api, &short),
        json!({
            "model": "tiny", "input": {"text": "say \"x\""}, "chat": [{"role": "user", "content": "say \"x\""}],
            "limits": {"max": 2, "note": "at most 2 of tiny"}, "fixed": [1, null], "temperature": 1,
        })
    );
    api.sampling = json!({"temperature": 0, "top": 5}).as_object().unwrap().clone();
    let exact = job_of(
        vec![message(Role::System, "s"), message(Role::User, "x")],
        |request| {
            request.request.output.exact = true;
            request.request.body = Some(r#"{"chat": null, "top": 6}"#.into());
        },
    );
    assert_eq!(
        body(&api, &exact),
        json!({
            "model": "tiny", "input": {"text": "s\nx", "system": "s"}, "chat": null,
            "limits": {"max": 2, "min": 2, "note": "at most 2 of tiny"}, "stop": true, "fixed": [1, null],
            "temperature": 0, "top": 6,
        })
    );
    let picture = with_media(MediaKind::Image, "https://h/a.png");
    let failure = written(&api, &picture).unwrap_err();
    assert!(
        failure.message.contains("cannot carry image"),
        "{}",
        failure.message
    );
    // Messages can represent it.
    let template = EndpointTemplate::new(spec(json!({"m": "{{messages}}"}))).unwrap();
    let value = body(&self::api(EndpointKind::Template(Arc::new(template))), &picture);
    assert_eq!(value["m"][0]["content"][1]["image_url"]["url"], "https://h/a.png");
}

#[test]
fn refuses_invalid_template() {
    let refused = |change: fn(&mut TemplateSpec)| {
        let mut spec = spec(json!({"p": "{{prompt}}"}));
        change(&mut spec);
        EndpointTemplate::new(spec).unwrap_err()
    };
    assert_eq!(
        refused(|spec| spec.answer.text = None),
        TemplateError::NothingGenerated
    );
    assert_eq!(
        refused(|spec| spec.answer.error = Some("error".into())).to_string(),
        "the answer's error `error` is not a JSON pointer: it does not begin with `/`; an example is `/choices/0/text`"
    );
    assert!(matches!(
        refused(|spec| spec.request = json!({"p": "{{prompt}} {{session}}"})),
        TemplateError::UnknownPlaceholder { name, .. } if name == "session"
    ));
    assert!(matches!(
        refused(|spec| spec.request = Value::Null),
        TemplateError::NotAnObject { kind: "null" }
    ));
}

#[test]
fn each_api_has_its_address_and_its_headers() {
    for (endpoint, path, limit, key) in [
        (
            EndpointKind::ChatCompletions,
            "chat/completions",
            "max_completion_tokens",
            KeyHeader::Bearer,
        ),
        (
            EndpointKind::Completions,
            "completions",
            "max_tokens",
            KeyHeader::Bearer,
        ),
        (
            EndpointKind::Responses,
            "responses",
            "max_output_tokens",
            KeyHeader::Bearer,
        ),
        (
            EndpointKind::AnthropicMessages,
            "messages",
            "max_tokens",
            KeyHeader::XApiKey,
        ),
        (
            EndpointKind::TgiGenerateStream,
            "generate_stream",
            "max_new_tokens",
            KeyHeader::Bearer,
        ),
    ] {
        assert_eq!(endpoint.default_path(), path);
        assert_eq!(endpoint.default_max_tokens_param(), Some(limit));
        assert_eq!(endpoint.auth(), key);
        assert_eq!(endpoint.framing(), Framing::EventStream);
        let version = [("anthropic-version".into(), "2023-06-01".into())];
        let expected = if key == KeyHeader::XApiKey {
            &version[..]
        } else {
            &[]
        };
        assert_eq!(endpoint.extra_headers(), expected);
    }
}
