//! Conversations that change their endpoint: what the next one cannot express is refused.

use std::sync::Arc;

use serde_json::json;
use veeksha_endpoint::{Api, ConversationContent, EndpointKind, EndpointTemplate, Pointers, TemplateSpec};
use veeksha_model::{
    AnswerForm, HistoryMode, Message, NodeId, PreparedMessage, PreparedReasoning, ReasoningContent,
    ReasoningTarget, RecordedAnswer, Replay, Request, Response, Role, Segment, ToolCall, ToolChoice,
    ToolDefinitions,
};

use crate::openai_bodies::{job_of, message, turn, written};

/// Endpoints by letter: chat completions, responses, Anthropic, completions, TGI, a template with a
/// prompt, and one with messages and tools.
fn endpoints() -> [(char, EndpointKind); 7] {
    let template = |request| {
        let template = EndpointTemplate::new(TemplateSpec {
            path: "generate".into(),
            request,
            answer: Pointers {
                text: Some("/text".into()),
                ..Pointers::default()
            },
            ..TemplateSpec::default()
        });
        EndpointKind::Template(Arc::new(template.unwrap()))
    };
    [
        ('C', EndpointKind::ChatCompletions),
        ('R', EndpointKind::Responses),
        ('A', EndpointKind::AnthropicMessages),
        ('T', EndpointKind::Completions),
        ('G', EndpointKind::TgiGenerateStream),
        ('1', template(json!({"p": "{{prompt}}"}))),
        (
            '2',
            template(json!({"m": "{{messages}}", "t": "{{tools}}", "i": "{{token_ids}}"})),
        ),
    ]
}

/// The endpoints whose bodies have calls, functions and reasoning.
const MESSAGES: &str = "CRA2";
/// The endpoints whose answers have calls that are read.
const READ: &str = "CRA";

fn first() -> Request {
    Request {
        node: NodeId(1),
        messages: vec![Message::new(Role::User, vec![Segment::Text("x".into())])],
        ..Request::default()
    }
}

fn second() -> Request {
    Request {
        node: NodeId(2),
        history_parent: Some(NodeId(1)),
        ..first()
    }
}

fn definitions(text: &str) -> Option<Box<ToolDefinitions>> {
    Some(Box::new(ToolDefinitions::Definitions(text.into())))
}

fn with_tools() -> Request {
    Request {
        tools: definitions(r#"[{"name":"look"}]"#),
        ..first()
    }
}

/// Checks each pair of endpoints of which the first one is in `from`: the second request is
/// accepted if `is_sent` holds for the pair, and otherwise refused with this feature.
fn check(from: &str, requests: [&Request; 2], what: &str, is_sent: impl Fn(char, char) -> bool) {
    for (one, before) in endpoints().iter().filter(|(letter, _)| from.contains(*letter)) {
        let content = ConversationContent::after(None, before, requests[0]);
        assert_eq!(content.check(before), Ok(()), "{what} {one}");
        for (other, next) in &endpoints() {
            let checked = ConversationContent::after(Some(&content), next, requests[1]).check(next);
            if is_sent(*one, *other) {
                assert_eq!(checked, Ok(()), "{what} {one}{other}");
            } else {
                let path = next.default_path();
                let expected = format!("the endpoint `{path}` cannot send {what}");
                let refused = checked.unwrap_err();
                assert!(refused.starts_with(&expected), "{one}{other}: {refused}");
            }
        }
    }
}

#[test]
fn text_goes_to_every_endpoint() {
    check("CRATG12", [&first(), &second()], "", |_, _| true);
    // The form of an answer belongs to its request.
    let mut formed = first();
    formed.output.form = Some(Box::new(AnswerForm {
        schema: Some("{}".into()),
        ..AnswerForm::default()
    }));
    check("CRA", [&formed, &second()], "", |_, _| true);
}

#[test]
fn inherited_functions_need_an_endpoint_with_functions() {
    check(
        MESSAGES,
        [&with_tools(), &second()],
        "tool definitions",
        |_, next| MESSAGES.contains(next),
    );
    // A conversation that is not continued has none.
    let fresh = Request {
        replay: Some(Box::new(Replay {
            history: HistoryMode::Fresh,
            ..Replay::default()
        })),
        ..second()
    };
    check(MESSAGES, [&with_tools(), &fresh], "", |_, _| true);
}

#[test]
fn verbatim_functions_stay_at_their_endpoint() {
    let verbatim = || Request {
        tools: Some(Box::new(ToolDefinitions::Verbatim("[{}]".into()))),
        ..first()
    };
    check("CRA2", [&verbatim(), &second()], "", |one, next| one == next);
    let content = ConversationContent::after(None, &EndpointKind::ChatCompletions, &verbatim());
    let next = EndpointKind::AnthropicMessages;
    assert_eq!(
        ConversationContent::after(Some(&content), &next, &second()).check(&next),
        Err("the endpoint `messages` cannot send verbatim tool definitions of the endpoint `chat/completions`; state them as \
             portable definitions, or state those of this endpoint in the request"
            .to_owned())
    );
    // The request's own definitions replace them.
    let own = Request {
        tools: definitions(r#"[{"name":"look"}]"#),
        ..second()
    };
    check("CRA2", [&verbatim(), &own], "", |_, next| MESSAGES.contains(next));
}

#[test]
fn calls_of_live_answers_need_an_endpoint_with_calls() {
    // The last request has no functions any more.
    let without = Request {
        tools: definitions("[]"),
        ..second()
    };
    let what = "tool calls of the assistant";
    check(MESSAGES, [&with_tools(), &without], what, |one, next| {
        MESSAGES.contains(next) || !READ.contains(one)
    });
    // An answer that may not call anything has no calls.
    let mut silent = with_tools();
    silent.output.form = Some(Box::new(AnswerForm {
        tool_choice: Some(ToolChoice::None),
        ..AnswerForm::default()
    }));
    check("CRA", [&silent, &without], what, |_, _| true);
}

#[test]
fn stated_and_recorded_calls_need_an_endpoint_with_calls() {
    let calls = || vec![ToolCall::default()];
    let mut stated = first();
    stated.messages.push(Message {
        tool_calls: calls(),
        ..Message::new(Role::Assistant, Vec::new())
    });
    let what = "tool calls of the assistant";
    check(MESSAGES, [&stated, &second()], what, |_, next| {
        MESSAGES.contains(next)
    });
    let replayed = |request: Request, history, tool_calls| Request {
        replay: Some(Box::new(Replay {
            history,
            answer: Some(RecordedAnswer {
                tool_calls,
                ..RecordedAnswer::default()
            }),
            ..Replay::default()
        })),
        ..request
    };
    let recorded = replayed(first(), HistoryMode::Live, calls());
    let next = replayed(second(), HistoryMode::Recorded, Vec::new());
    check(MESSAGES, [&recorded, &next], what, |_, next| {
        MESSAGES.contains(next)
    });
    // The recorded answer of a live conversation is not sent.
    check(MESSAGES, [&recorded, &second()], "", |_, _| true);
}

#[test]
fn stated_reasoning_needs_an_endpoint_with_reasoning() {
    let mut stated = first();
    stated.messages.push(Message {
        reasoning: Some(ReasoningContent::default()),
        ..Message::new(Role::Assistant, Vec::new())
    });
    check(MESSAGES, [&stated, &second()], "reasoning", |_, next| {
        MESSAGES.contains(next)
    });
}

#[test]
fn token_ids_need_an_endpoint_with_token_ids() {
    let mut ids = first();
    ids.messages[0].content = vec![Segment::TokenIds(vec![1])];
    check("T2", [&ids, &second()], "a prompt of token ids", |_, next| {
        "T2".contains(next)
    });
}

/// A plain prompt has the result alone; messages need the call, which the endpoint of the answer
/// must have read.
#[test]
fn results_of_live_calls_need_the_calls() {
    let result = Message {
        tool_call_id: Some("a".into()),
        ..Message::new(Role::Tool, vec![Segment::Text("found".into())])
    };
    let next = Request {
        messages: vec![result],
        ..second()
    };
    let what = "the result of a tool call after a live answer";
    check("CRATG12", [&first(), &next], what, |one, next| {
        READ.contains(one) || "TG1".contains(next)
    });
}

/// A signature reaches only the servers that made it; without one, Anthropic takes no reasoning.
#[test]
fn signatures_return_to_their_servers_only() {
    let of_messages = || {
        endpoints()
            .into_iter()
            .filter(|(letter, _)| MESSAGES.contains(*letter))
    };
    for ((one, before), (other, next)) in
        of_messages().flat_map(|one| of_messages().map(move |next| (one.clone(), next)))
    {
        for same in [true, false] {
            let target = |endpoint: &EndpointKind, servers| ReasoningTarget {
                support: endpoint.reasoning_support(Some("reasoning")),
                servers,
            };
            let stated = PreparedMessage {
                reasoning: Some(PreparedReasoning {
                    text: "stated".into(),
                    signature: Some("SIGNED-1".into()),
                }),
                ..message(Role::Assistant, "said")
            };
            let asked = job_of(vec![message(Role::User, "one"), stated], |request| {
                request.reasoning = target(&before, 3);
            });
            let answer = Response {
                text: "eins".into(),
                reasoning: "live".into(),
                reasoning_signature: Some("SIGNED-2".into()),
                ..Response::default()
            };
            let mut job = job_of(vec![message(Role::User, "two")], |request| {
                request.request.keep_reasoning = true;
                request.reasoning = target(&next, if same { 3 } else { 4 });
            });
            let is_sent = job.request.sends_reasoning_of(&asked.request, &answer);
            job.history = turn(None, Vec::new(), Some(answer)).map(|turn| {
                Arc::new(veeksha_model::History {
                    before: None,
                    request: Arc::new(asked.request),
                    response: turn.response.clone(),
                })
            });
            let api = Api {
                endpoint: next.clone(),
                reasoning_param: Some("reasoning".into()),
                ..Api::default()
            };
            let body = String::from_utf8(written(&api, &job).unwrap()).unwrap();
            let has = |text: &str| body.contains(text);
            let has_signatures = same && "RA".contains(other);
            let has_text = same || other != 'A';
            assert_eq!(
                [has("SIGNED-1"), has("SIGNED-2")],
                [has_signatures; 2],
                "{one}{other}: {body}"
            );
            assert_eq!(
                [has("stated"), has("live"), is_sent],
                [has_text; 3],
                "{one}{other}: {body}"
            );
        }
    }
}
