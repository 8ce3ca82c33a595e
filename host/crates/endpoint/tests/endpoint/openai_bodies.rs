//! Request bodies of OpenAI's endpoints, as JSON.

use std::sync::Arc;

use serde_json::{Value, json};
use veeksha_endpoint::{Api, EndpointKind, Failure, request_body};
use veeksha_model::{
    ErrorClass, History, MediaKind, NodeId, OutputSpec, Prepared, PreparedMessage, Request, Response, Role,
    ToolCall,
};

/// A request and the conversation before it.
pub(crate) struct Job {
    pub(crate) request: Prepared,
    pub(crate) history: Option<Arc<History<Prepared>>>,
}

pub(crate) fn chat() -> Api {
    Api {
        model: "tiny".into(),
        ..Api::default()
    }
}

pub(crate) fn completions() -> Api {
    Api {
        endpoint: EndpointKind::Completions,
        max_tokens_param: Some("max_tokens".into()),
        ..chat()
    }
}

pub(crate) fn written(api: &Api, job: &Job) -> Result<Vec<u8>, Failure> {
    request_body(api, &job.request, &job.history)
}

pub(crate) fn body(api: &Api, job: &Job) -> Value {
    let bytes = written(api, job).unwrap();
    serde_json::from_slice(&bytes)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&bytes)))
}

pub(crate) fn message(role: Role, text: &str) -> PreparedMessage {
    PreparedMessage::new(role, text)
}

/// Returns a job with these messages and an answer of two tokens; `change` may alter the rest.
pub(crate) fn job_of(messages: Vec<PreparedMessage>, change: impl FnOnce(&mut Prepared)) -> Job {
    let mut request = Prepared {
        request: Request {
            node: NodeId(0),
            output: OutputSpec {
                target_tokens: Some(2),
                exact: false,
                form: None,
            },
            ..Request::default()
        },
        messages,
        ..Prepared::default()
    };
    change(&mut request);
    Job {
        request,
        history: None,
    }
}

pub(crate) fn turn(
    before: Option<Arc<History<Prepared>>>,
    messages: Vec<PreparedMessage>,
    response: Option<Response>,
) -> Option<Arc<History<Prepared>>> {
    let request = Arc::new(job_of(messages, |_| ()).request);
    Some(Arc::new(History {
        before,
        request,
        response: response.map(Arc::new),
    }))
}

pub(crate) fn text_answer(text: &str) -> Option<Response> {
    Some(Response {
        text: text.to_owned(),
        reasoning: "not sent back".to_owned(),
        ..Response::default()
    })
}

#[test]
fn sends_the_actual_conversation() {
    let calls = Response {
        tool_calls: vec![ToolCall {
            id: "c1".into(),
            name: "look".into(),
            arguments: "{\"q\":\"a\"}".into(),
        }],
        ..Response::default()
    };
    let first = turn(
        None,
        vec![
            message(Role::System, "be \"brief\"\n"),
            message(Role::User, "one"),
        ],
        text_answer("eins"),
    );
    let failed = turn(first, vec![message(Role::User, "two")], None);
    let called = turn(failed.clone(), vec![message(Role::User, "three")], Some(calls));
    let result = PreparedMessage {
        tool_call_id: Some("c1".into()),
        ..message(Role::Tool, "found \u{1}ü😀")
    };
    let mut job = job_of(vec![result], |_| ());
    job.history = called;
    assert_eq!(
        body(&chat(), &job)["messages"],
        json!([
            {"role": "system", "content": "be \"brief\"\n"},
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "eins"},
            {"role": "user", "content": "two"},
            {"role": "user", "content": "three"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"q\":\"a\"}"}},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "found \u{1}ü😀"},
        ])
    );
    // A prompt of plain text would lose the call.
    assert!(
        written(&completions(), &job)
            .unwrap_err()
            .message
            .starts_with("the endpoint `completions` cannot send tool calls of the assistant")
    );
    job.history = turn(failed, vec![message(Role::User, "three")], text_answer("drei"));
    assert_eq!(
        body(&completions(), &job)["prompt"],
        "be \"brief\"\n\none\neins\ntwo\nthree\ndrei\nfound \u{1}ü😀"
    );
}

/// Recorded answers of a trace as part of the history: text and calls together, several calls in
/// order.
#[test]
fn answers_with_text_and_calls_are_sent_whole() {
    let call = |id: &str, name: &str, arguments: &str| ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    };
    let recorded = Response {
        text: "Let me look.".into(),
        tool_calls: vec![
            call("a", "read", "{\"path\": \"x\\ny\"}"),
            call("b", "list", "{}"),
        ],
        finish_reason: "stop".into(),
        ..Response::default()
    };
    let result = |id: &str, text: &str| PreparedMessage {
        tool_call_id: Some(id.into()),
        ..message(Role::Tool, text)
    };
    let mut job = job_of(
        vec![
            result("a", "text"),
            result("b", ""),
            message(Role::System, "reminder"),
            message(Role::Assistant, "verbatim"),
            message(Role::User, "go on"),
        ],
        |_| (),
    );
    job.history = turn(None, vec![message(Role::User, "one")], Some(recorded));
    assert_eq!(
        body(&chat(), &job)["messages"],
        json!([
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "Let me look.", "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{\"path\": \"x\\ny\"}"}},
                {"id": "b", "type": "function", "function": {"name": "list", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "a", "content": "text"},
            {"role": "tool", "tool_call_id": "b", "content": ""},
            {"role": "system", "content": "reminder"},
            {"role": "assistant", "content": "verbatim"},
            {"role": "user", "content": "go on"},
        ])
    );
}

/// Returns an API with a template of four letters: enough to show the roles and the prompt for the
/// next answer.
fn templated() -> Api {
    let render = |messages: &[(Role, &str)]| {
        if messages.iter().any(|(_, text)| *text == "refuse") {
            return Err("the chat template tiny: no".to_owned());
        }
        let lines = messages
            .iter()
            .map(|(role, text)| format!("<{}>{text}", role.name()));
        Ok(lines.collect::<String>() + "<assistant>")
    };
    Api {
        render: Some(Arc::new(render)),
        ..completions()
    }
}

#[test]
fn a_completion_is_the_conversation_as_the_template_writes_it() {
    let mut job = job_of(
        vec![message(Role::Tool, "found"), message(Role::User, "three \"x\"\n")],
        |_| (),
    );
    assert_eq!(
        body(&templated(), &job)["prompt"],
        "<tool>found<user>three \"x\"\n<assistant>"
    );
    let first = turn(
        None,
        vec![message(Role::System, "brief"), message(Role::User, "one")],
        text_answer("eins"),
    );
    // A failed turn has no answer.
    job.history = turn(first, vec![message(Role::User, "two")], None);
    assert_eq!(
        body(&templated(), &job)["prompt"],
        "<system>brief<user>one<assistant>eins<user>two<tool>found<user>three \"x\"\n<assistant>"
    );
    // A single message is wrapped, too.
    let single = job_of(vec![message(Role::User, "x")], |_| ());
    assert_eq!(body(&templated(), &single)["prompt"], "<user>x<assistant>");
    // Chat completions are wrapped by the server.
    let chat = Api {
        endpoint: EndpointKind::ChatCompletions,
        ..templated()
    };
    assert_eq!(
        body(&chat, &single)["messages"],
        json!([{"role": "user", "content": "x"}])
    );
    // A request with a custom prompt does not need a template.
    let own = job_of(vec![message(Role::User, "refuse")], |request| {
        request.request.body = Some(r#"{"prompt": "mine"}"#.into());
    });
    assert_eq!(body(&templated(), &own)["prompt"], "mine");
}

#[test]
fn does_not_send_what_template_or_api_refuses() {
    let refused = job_of(vec![message(Role::User, "refuse")], |_| ());
    let failure = written(&templated(), &refused).unwrap_err();
    assert_eq!(failure.class, ErrorClass::Protocol);
    assert_eq!(failure.message, "the chat template tiny: no");
    let picture = PreparedMessage {
        media: vec![(MediaKind::Audio, "data:audio/wav;base64,AAAA".into())],
        ..message(Role::User, "listen")
    };
    let failure = written(&templated(), &job_of(vec![picture], |_| ())).unwrap_err();
    assert_eq!(
        failure.message,
        "the completions API cannot carry audio; use chat completions"
    );
}

#[test]
fn a_single_message_is_the_prompt_of_a_completion() {
    let value = body(
        &completions(),
        &job_of(vec![message(Role::User, " exactly this ")], |_| ()),
    );
    assert_eq!(
        value,
        json!({
            "model": "tiny", "prompt": " exactly this ", "stream": true,
            "stream_options": {"include_usage": true}, "max_tokens": 2,
        })
    );
}

#[test]
fn output_fields_follow_the_configuration() {
    let ask = |target: &Api, tokens, exact| {
        let job = job_of(vec![message(Role::User, "x")], |request| {
            request.request.output = OutputSpec {
                form: None,
                target_tokens: tokens,
                exact,
            };
        });
        let mut value = body(target, &job);
        let fields = value.as_object_mut().unwrap();
        for known in ["model", "messages", "prompt", "stream", "stream_options"] {
            fields.remove(known);
        }
        value
    };
    let configured = Api {
        min_tokens_param: Some("min_tokens".into()),
        ignore_eos: Some(true),
        ..chat()
    };
    assert_eq!(
        ask(&configured, Some(7), true),
        json!({"max_completion_tokens": 7, "min_tokens": 7, "ignore_eos": true})
    );
    assert_eq!(
        ask(&configured, Some(7), false),
        json!({"max_completion_tokens": 7})
    );
    assert_eq!(ask(&configured, Some(0), true), json!({"ignore_eos": true}));
    assert_eq!(ask(&configured, None, false), json!({}));
    assert_eq!(ask(&chat(), Some(7), true), json!({"max_completion_tokens": 7}));
    assert_eq!(ask(&completions(), Some(7), true), json!({"max_tokens": 7}));
    let omitted = Api {
        max_tokens_param: None,
        ..configured.clone()
    };
    assert_eq!(
        ask(&omitted, Some(7), true),
        json!({"min_tokens": 7, "ignore_eos": true})
    );
    // A field set in `sampling` is the user's responsibility.
    let own = Api {
        sampling: json!({"min_tokens": 1, "ignore_eos": false, "max_completion_tokens": 99})
            .as_object()
            .unwrap()
            .clone(),
        ..configured.clone()
    };
    assert_eq!(
        ask(&own, Some(7), true),
        json!({"max_completion_tokens": 99, "min_tokens": 1, "ignore_eos": false})
    );
    // Each field can be omitted without the others.
    let no_minimum = Api {
        min_tokens_param: None,
        ..configured.clone()
    };
    assert_eq!(
        ask(&no_minimum, Some(7), true),
        json!({"max_completion_tokens": 7, "ignore_eos": true})
    );
    let no_ignoring = Api {
        ignore_eos: None,
        ..configured.clone()
    };
    assert_eq!(
        ask(&no_ignoring, Some(7), true),
        json!({"max_completion_tokens": 7, "min_tokens": 7})
    );
    let nothing = Api {
        max_tokens_param: None,
        min_tokens_param: None,
        ignore_eos: None,
        ..configured.clone()
    };
    assert_eq!(ask(&nothing, Some(7), true), json!({}));
    // One field name for both is written once.
    let same = Api {
        min_tokens_param: Some("max_completion_tokens".into()),
        ..configured
    };
    assert_eq!(
        ask(&same, Some(7), true),
        json!({"max_completion_tokens": 7, "ignore_eos": true})
    );
    let named = Api {
        max_tokens_param: Some("n_predict".into()),
        ignore_eos: Some(false),
        ..completions()
    };
    assert_eq!(
        ask(&named, Some(7), true),
        json!({"n_predict": 7, "ignore_eos": false})
    );
}

#[test]
fn sampling_wins_over_the_host_and_the_request_wins_over_both() {
    let mut target = chat();
    target.stream_options = false;
    target.sampling = json!({"temperature": 0.5, "max_completion_tokens": 9, "top_p": 1})
        .as_object()
        .unwrap()
        .clone();
    let job = job_of(vec![message(Role::User, "x")], |request| {
        request.request.body =
            Some(r#" {"temperature": 0, "model": "other", "tools": [{"a": 1.0}], "big": 12345678901234567890123} "#.into());
    });
    let bytes = String::from_utf8(written(&target, &job).unwrap()).unwrap();
    // A number too large for any type is passed on unchanged.
    let bytes = bytes.replace("12345678901234567890123", "\"as written\"");
    assert_eq!(
        serde_json::from_str::<Value>(&bytes).unwrap(),
        json!({
            "messages": [{"role": "user", "content": "x"}], "stream": true, "max_completion_tokens": 9,
            "temperature": 0, "top_p": 1, "model": "other", "tools": [{"a": 1.0}], "big": "as written",
        })
    );
    for field in ["temperature", "model", "max_completion_tokens"] {
        assert_eq!(bytes.matches(&format!("\"{field}\":")).count(), 1, "{bytes}");
    }
    let all = job_of(vec![], |request| {
        request.request.body = Some(r#"{"messages": [], "stream": false, "stream_options": null}"#.into());
    });
    assert_eq!(body(&chat(), &all)["messages"], json!([]));
    assert_eq!(body(&chat(), &all)["stream"], json!(false));
}

#[test]
fn a_body_that_is_not_an_object_is_refused() {
    for text in ["[1]", "{", "3", "{} {}"] {
        let job = job_of(vec![message(Role::User, "x")], |request| {
            request.request.body = Some(text.into())
        });
        let failure = written(&chat(), &job).unwrap_err();
        assert_eq!(failure.class, ErrorClass::Protocol);
        assert!(
            failure.message.contains("not a JSON object"),
            "{}",
            failure.message
        );
    }
}

#[test]
fn media_become_blocks_after_the_text() {
    let media = vec![
        (MediaKind::Image, "https://h/cat.png".into()),
        (MediaKind::Image, "data:image/png;base64,AAAA".into()),
        (MediaKind::Audio, "data:audio/x-wav;base64,BBBB".into()),
        (MediaKind::Audio, "http://h/a.mp3".into()),
        (MediaKind::Video, "http://h/v.mp4".into()),
    ];
    let blocks = json!([
        {"type": "image_url", "image_url": {"url": "https://h/cat.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "input_audio", "input_audio": {"data": "BBBB", "format": "wav"}},
        {"type": "audio_url", "audio_url": {"url": "http://h/a.mp3"}},
        {"type": "video_url", "video_url": {"url": "http://h/v.mp4"}},
    ]);
    let with_text = PreparedMessage {
        media: media.clone(),
        ..message(Role::User, "look")
    };
    let content = &body(&chat(), &job_of(vec![with_text], |_| ()))["messages"][0]["content"];
    assert_eq!(content[0], json!({"type": "text", "text": "look"}));
    assert_eq!(content.as_array().unwrap()[1..], blocks.as_array().unwrap()[..]);
    let without_text = PreparedMessage {
        media,
        ..message(Role::User, "")
    };
    assert_eq!(
        body(&chat(), &job_of(vec![without_text], |_| ()))["messages"][0]["content"],
        blocks
    );
}

#[test]
fn media_that_cannot_be_sent_are_named() {
    let refused = |target: &Api, kind, source: &str| {
        let message = PreparedMessage {
            media: vec![(kind, source.into())],
            ..message(Role::User, "look")
        };
        let failure = written(target, &job_of(vec![message], |_| ())).unwrap_err();
        assert_eq!(failure.class, ErrorClass::Protocol);
        failure.message
    };
    assert!(refused(&chat(), MediaKind::Image, "pets/cat.png").contains("`pets/cat.png`"));
    assert!(refused(&chat(), MediaKind::Video, "file:///cat.mp4").contains("`file:///cat.mp4`"));
    assert!(refused(&chat(), MediaKind::Audio, "data:audio/wav,plain").contains("data:audio/wav;base64,"));
    assert!(refused(&completions(), MediaKind::Image, "https://h/cat.png").contains("use chat completions"));
}

#[test]
fn several_choices_are_refused() {
    let refused = "`n` = 2 is not supported: only one choice per request is measured; remove `n` and send more requests";
    for api in [chat(), completions()] {
        let own = |body: &str| {
            let job = job_of(vec![message(Role::User, "x")], |request| {
                request.request.body = Some(body.into());
            });
            written(&api, &job)
        };
        let failure = own(r#"{"n": 2}"#).unwrap_err();
        assert_eq!(
            (failure.class, &*failure.message),
            (ErrorClass::Protocol, refused)
        );
        for accepted in [r#"{"n": 1}"#, r#"{"n": null}"#, r#"{"seed": 2}"#] {
            assert!(own(accepted).is_ok(), "{accepted}");
        }
        let sampling = json!({"n": 2}).as_object().unwrap().clone();
        let configured = Api { sampling, ..api };
        assert_eq!(configured.check_sampling().unwrap_err(), refused);
        let job = job_of(vec![message(Role::User, "x")], |_| ());
        assert_eq!(written(&configured, &job).unwrap_err().message, refused);
    }
    // `best_of` has the server generate several choices, and count them.
    let refused = "`best_of` = 3 is not supported: only one choice per request is measured; remove `best_of` and send more requests";
    let sampling = json!({"best_of": 3}).as_object().unwrap().clone();
    let tgi = || Api {
        endpoint: EndpointKind::TgiGenerateStream,
        ..chat()
    };
    for api in [chat(), completions(), tgi()] {
        let configured = Api {
            sampling: sampling.clone(),
            ..api
        };
        assert_eq!(configured.check_sampling().unwrap_err(), refused);
    }
    let own = |api: &Api, body: &str| {
        let job = job_of(vec![message(Role::User, "x")], |request| {
            request.request.body = Some(body.into());
        });
        written(api, &job)
    };
    assert_eq!(
        own(&completions(), r#"{"best_of": 3}"#).unwrap_err().message,
        refused
    );
    let nested = r#"{"parameters": {"best_of": 3}}"#;
    assert_eq!(own(&tgi(), nested).unwrap_err().message, refused);
    assert!(own(&tgi(), r#"{"parameters": {"best_of": 1}}"#).is_ok());
    // `n` of another API may have another meaning.
    let template = Api {
        endpoint: EndpointKind::Responses,
        sampling: json!({"n": 2}).as_object().unwrap().clone(),
        ..chat()
    };
    assert_eq!(template.check_sampling(), Ok(()));
}
