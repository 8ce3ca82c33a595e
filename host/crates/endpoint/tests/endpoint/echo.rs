//! Log-probabilities of a prompt, which the server repeats before its answer.

use serde_json::{Value, json};
use veeksha_endpoint::{
    AnswerOutcome, AnswerStream, BodyEnd, EchoedPrompt, EndpointKind, check_request, whole_answer_after_echo,
};
use veeksha_model::{AnswerForm, ErrorClass, Request, Role};

use crate::openai_bodies::{Job, body, completions, job_of, message, written};
use crate::support::{letters, stamp};

const PROMPT: &str = "The cat";

fn job(form: AnswerForm, ids: &[u32]) -> Job {
    let messages = if ids.is_empty() {
        vec![message(Role::User, PROMPT)]
    } else {
        Vec::new()
    };
    job_of(messages, |request| {
        request.request.output.form = Some(Box::new(form));
        request.token_ids = ids.to_vec();
    })
}

fn of_prompt() -> AnswerForm {
    AnswerForm {
        prompt_log_probabilities: true,
        ..AnswerForm::default()
    }
}

/// Returns the event of one choice: its text, its tokens, and their values with an alternative of
/// -2.
fn event(text: &str, tokens: &[(&str, Option<f64>)]) -> Value {
    let best = |value: &Option<f64>| value.map(|_| json!({ "the": -2 }));
    json!({ "choices": [{ "index": 0, "text": text, "finish_reason": null, "logprobs": {
        "tokens": tokens.iter().map(|(token, _)| token).collect::<Vec<_>>(),
        "token_logprobs": tokens.iter().map(|(_, value)| value).collect::<Vec<_>>(),
        "top_logprobs": tokens.iter().map(|(_, value)| best(value)).collect::<Vec<_>>(),
    }}]})
}

fn end(prompt: u32, completion: u32) -> Value {
    json!({
        "choices": [{ "index": 0, "text": "", "logprobs": null, "finish_reason": "length" }],
        "usage": { "prompt_tokens": prompt, "completion_tokens": completion },
    })
}

fn streamed_until(prompt: &EchoedPrompt, events: &[Value], end: BodyEnd) -> AnswerOutcome {
    let mut stream = AnswerStream::new(&EndpointKind::Completions).with_echo(Some(prompt.clone()));
    for (read, event) in (1..).zip(events) {
        stream.on_bytes(stamp(read), format!("data: {event}\n\n").as_bytes());
    }
    stream.finish(stamp(events.len() as u64), Some("text/event-stream"), end)
}

fn streamed(prompt: &EchoedPrompt, events: &[Value]) -> AnswerOutcome {
    streamed_until(prompt, events, BodyEnd::Complete)
}

/// In vLLM's streams, the first event has the prompt and the first token.
fn vllm() -> [Value; 3] {
    let first = [("The", None), (" cat", Some(-1.5)), (" s", Some(-2.5))];
    [
        event("The cat s", &first),
        event("at", &[("at", Some(-2.0))]),
        end(2, 2),
    ]
}

fn of_text() -> EchoedPrompt {
    EchoedPrompt::Text(PROMPT.into())
}

#[test]
fn values_of_the_prompt_are_apart_from_those_of_the_answer() {
    // At OpenAI, tokens of the prompt have separate events.
    let one_by_one = [
        event("The", &[("The", None)]),
        event(" cat", &[(" cat", Some(-1.5))]),
        event(" s", &[(" s", Some(-2.5))]),
        event("at", &[("at", Some(-2.0))]),
        end(2, 2),
    ];
    for prompt in [of_text(), EchoedPrompt::TokenIds(2)] {
        for (events, kinds) in [(&vllm()[..], "ccf"), (&one_by_one, "rrccf")] {
            let outcome = streamed(&prompt, events);
            assert_eq!(letters(&outcome), kinds);
            assert_eq!(outcome.chunk_texts, [2, 2]);
            let response = outcome.result.unwrap();
            assert_eq!((&*response.text, response.output_tokens), (" sat", 2));
            let tokens = response.log_probabilities.unwrap();
            assert_eq!(tokens.prompt.logarithms, [-1.5]);
            assert_eq!(tokens.prompt.greedy, [true]);
            assert_eq!(tokens.answer.logarithms, [-2.5, -2.0]);
            assert_eq!(tokens.answer.greedy, [false, true]);
        }
    }
}

#[test]
fn whole_answers_are_divided_too() {
    let mut whole = event(
        "The cat sat",
        &[("The", None), (" cat", Some(-1.5)), (" sat", Some(-2.5))],
    );
    whole["choices"][0]["finish_reason"] = "length".into();
    whole["usage"] = json!({ "prompt_tokens": 2, "completion_tokens": 1 });
    for prompt in [of_text(), EchoedPrompt::TokenIds(2)] {
        let body = whole.to_string();
        let outcome = whole_answer_after_echo(
            &EndpointKind::Completions,
            Some(prompt),
            stamp(1),
            body.as_bytes(),
        );
        let response = outcome.result.unwrap();
        assert_eq!(response.text, " sat");
        let tokens = response.log_probabilities.unwrap();
        assert_eq!(
            (tokens.prompt.logarithms, tokens.answer.logarithms),
            (vec![-1.5], vec![-2.5])
        );
    }
}

/// The text of a token that is a part of a character is U+FFFD, so that the texts of the tokens are
/// not the text.
#[test]
fn prompt_of_token_ids_may_have_parts_of_characters() {
    let tokens = [("\u{fffd}", None), ("\u{fffd}", Some(-1.0)), (" x", Some(-2.0))];
    let outcome = streamed(&EchoedPrompt::TokenIds(2), &[event("é x", &tokens), end(2, 1)]);
    assert_eq!(outcome.result.unwrap().text, " x");
    // The server does not know the text of the ids.
    let outcome = streamed(&EchoedPrompt::TokenIds(2), &[event(" x", &tokens), end(2, 1)]);
    assert_eq!(outcome.result.unwrap().text, " x");
}

#[test]
fn incomplete_repetition_fails_the_request() {
    let without_usage = json!({ "choices": [{ "text": "", "finish_reason": "length" }] });
    let answer_alone = [event(" sat", &[(" sat", Some(-2.5))]), end(2, 1)];
    let [first, second, _] = vllm();
    for (prompt, events, message) in [
        (of_text(), &answer_alone[..], "did not repeat the prompt"),
        (
            EchoedPrompt::TokenIds(2),
            &answer_alone,
            "1 log-probabilities for a prompt of 2 tokens",
        ),
        (
            of_text(),
            &[first.clone(), second.clone(), without_usage],
            "no token counts",
        ),
        (
            EchoedPrompt::TokenIds(3),
            &[first, second, end(2, 2)],
            "2 tokens of a prompt of 3 token ids",
        ),
        // Values that were not sent.
        (
            of_text(),
            &[json!({ "choices": [{ "text": PROMPT }] }), end(2, 1)],
            "0 log-probabilities",
        ),
    ] {
        let failure = streamed(&prompt, events).result.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Protocol);
        assert!(failure.message.contains(message), "{}", failure.message);
    }
}

/// The part of an answer has no counts.
#[test]
fn cancelled_answers_have_the_part_that_arrived() {
    let [first, ..] = vllm();
    for (prompt, expected) in [(of_text(), None), (EchoedPrompt::TokenIds(2), Some((1, 1)))] {
        let outcome = streamed_until(&prompt, std::slice::from_ref(&first), BodyEnd::Cancelled);
        let part = outcome.result.unwrap();
        assert_eq!((&*part.text, part.cancelled), (" s", true));
        let counts = part
            .log_probabilities
            .map(|tokens| (tokens.prompt.logarithms.len(), tokens.answer.logarithms.len()));
        assert_eq!(counts, expected);
    }
}

#[test]
fn request_has_the_server_repeat_the_prompt() {
    let api = completions();
    let sent = body(&api, &job(of_prompt(), &[]));
    assert_eq!((&sent["echo"], &sent["logprobs"]), (&json!(true), &json!(1)));
    let with_alternatives = AnswerForm {
        log_probabilities: Some(0),
        ..of_prompt()
    };
    assert_eq!(body(&api, &job(with_alternatives, &[]))["logprobs"], 0);
    let expected = |job: &Job| EchoedPrompt::of(&job.request, &written(&api, job).unwrap());
    assert_eq!(expected(&job(of_prompt(), &[])), Some(of_text()));
    assert_eq!(
        expected(&job(of_prompt(), &[5, 6, 7])),
        Some(EchoedPrompt::TokenIds(3))
    );
    assert_eq!(expected(&job(AnswerForm::default(), &[])), None);
    // The request's own members count.
    let mut own = job(of_prompt(), &[]);
    own.request.request.body = Some(r#"{"prompt":"Other"}"#.into());
    assert_eq!(expected(&own), Some(EchoedPrompt::Text("Other".into())));
    own.request.request.body = Some(r#"{"echo":false}"#.into());
    assert_eq!(expected(&own), None);
}

#[test]
fn other_endpoints_refuse_it() {
    let mut request = Request::default();
    request.output.form = Some(Box::new(of_prompt()));
    assert_eq!(check_request(&EndpointKind::Completions, &request), Ok(()));
    assert_eq!(
        check_request(&EndpointKind::Responses, &request),
        Err(
            "the endpoint `responses` cannot send log-probabilities of the prompt; use `openai_completions`"
                .to_owned()
        )
    );
}
