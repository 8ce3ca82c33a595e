//! Invalid answers.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use veeksha_model::{ErrorClass, MediaKind};
use veeksha_ports::{RequestOutcome, Transport};
use veeksha_transport::ApiKey;

use crate::support::*;

/// Sends one request to a server that always sends this answer.
fn answered(answer: impl Into<Vec<u8>>) -> RequestOutcome {
    let server = Server::answering(answer);
    Client::new(target(&server.base())).ask(0)
}

#[test]
fn silence_ends_at_the_total_deadline() {
    let server = Server::start(|_, mut stream, _| {
        read_request(&mut stream);
        std::thread::sleep(PATIENCE);
    });
    let client = Client::with(target(&server.base()), Duration::from_millis(300), 1);
    let outcome = client.ask(0);
    assert_eq!(class(&outcome), ErrorClass::Timeout);
    assert_eq!(
        message(&outcome),
        "the total deadline of 300ms passed while waiting for the answer"
    );
    let taken = outcome.timings.completed_at - outcome.timings.picked_up_at.unwrap();
    assert!((300_000_000..5_000_000_000).contains(&taken), "{taken}");
    assert!(outcome.timings.sent_at.is_some() && outcome.timings.first_byte_at.is_none());
}

#[test]
fn trickling_does_not_extend_the_deadline() {
    let server = Server::start(|_, mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(STREAM_HEAD.as_bytes());
        while stream.write_all(chunk(&text_event("x")).as_bytes()).is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let client = Client::with(target(&server.base()), Duration::from_millis(500), 1);
    let outcome = client.ask(0);
    assert_eq!(class(&outcome), ErrorClass::Timeout);
    assert!(
        message(&outcome).contains("in the middle of the answer, after "),
        "{}",
        message(&outcome)
    );
    let taken = outcome.timings.completed_at - outcome.timings.picked_up_at.unwrap();
    assert!((500_000_000..5_000_000_000).contains(&taken), "{taken}");
    assert!(
        (1..=11).contains(&outcome.chunks.len()),
        "{}",
        outcome.chunks.len()
    );
    assert_eq!(outcome.status, Some(200));
}

#[test]
fn garbage_is_a_protocol_failure_that_shows_it() {
    let cases = [
        ("SSH-2.0-OpenSSH_9.6\r\n".to_owned(), "does not answer in HTTP"),
        (
            plain_answer("200 OK", "text/html", "<h1>It works!</h1>"),
            "not an event stream (text/html): <h1>It works!</h1>",
        ),
        (
            plain_answer("200 OK", "text/event-stream", "data: {broken\n\n"),
            "{broken",
        ),
        (
            plain_answer("200 OK", "text/event-stream", "hello\n\nworld\n\n"),
            "hello world",
        ),
        (
            plain_answer("200 OK", "application/json", r#"{"object":"list"}"#),
            r#"no choices: {"object":"list"}"#,
        ),
        (plain_answer("200 OK", "application/json", "{"), "{"),
        (plain_answer("200 OK", "text/plain", ""), "the answer is empty"),
        (format!("{STREAM_HEAD}xyz\r\n"), "not what HTTP/1.1 describes"),
        (
            plain_answer("200 OK", "text/event-stream\r\ncontent-encoding: gzip", "\u{1f}"),
            "compressed (gzip)",
        ),
    ];
    for (answer, expected) in cases {
        let outcome = answered(answer.clone());
        assert_eq!(
            class(&outcome),
            ErrorClass::Protocol,
            "{answer}: {:?}",
            outcome.result
        );
        assert!(
            message(&outcome).contains(expected),
            "{answer}: {}",
            message(&outcome)
        );
    }
}

#[test]
fn a_stream_without_a_finish_reason_is_truncated() {
    let broken = format!("{STREAM_HEAD}{}", chunk(&text_event("a")));
    let server = Server::start(move |_, mut stream, _| {
        read_request(&mut stream);
        stream.write_all(broken.as_bytes()).unwrap();
    });
    let outcome = Client::new(target(&server.base())).ask(0);
    assert_eq!(class(&outcome), ErrorClass::Truncated);
    assert!(
        message(&outcome).contains("lost in the middle of the answer"),
        "{}",
        message(&outcome)
    );
    assert_eq!(outcome.chunks.len(), 1);

    let done = text_event("a") + "data: [DONE]\n\n";
    let outcome = answered(plain_answer("200 OK", "text/event-stream", &done));
    assert_eq!(class(&outcome), ErrorClass::Truncated);
    assert!(
        message(&outcome).contains("although it sent [DONE]"),
        "{}",
        message(&outcome)
    );

    let outcome = answered(plain_answer("200 OK", "text/event-stream", ""));
    assert_eq!(class(&outcome), ErrorClass::Truncated);
}

#[test]
fn an_error_inside_a_200_is_a_failure_and_the_connection_lives_on() {
    let error = r#"{"error": {"message": "EngineCore encountered an issue.", "type": "InternalServerError", "param": null, "code": 500}}"#;
    let body = format!("{}data: {error}\n\ndata: [DONE]\n\n", text_event("a"));
    let server = Server::answering(format!("{STREAM_HEAD}{}0\r\n\r\n", chunk(&body)));
    let client = Client::new(target(&server.base()));
    for _ in 0..2 {
        let outcome = client.ask(0);
        assert_eq!(class(&outcome), ErrorClass::InStream);
        let failure = outcome.result.unwrap_err();
        assert_eq!(
            (failure.status, &*failure.message),
            (Some(500), "EngineCore encountered an issue.")
        );
        assert_eq!((outcome.status, outcome.chunks.len()), (Some(200), 1));
    }
    assert_eq!(server.connections(), 1);

    let outcome = answered(plain_answer("200 OK", "application/json", error));
    assert_eq!(class(&outcome), ErrorClass::InStream);
}

#[test]
fn recorded_refusals_keep_their_status_and_words() {
    let cases = [
        (
            "dynamo-err-badjson.json",
            400,
            "Failed to deserialize the JSON body into the target type",
        ),
        ("dynamo-err-model.json", 404, "Model not found"),
        (
            "dynamo-err-temp.json",
            400,
            "Validation: Temperature must be between 0 and 2, got -1",
        ),
        (
            "llamacpp-err-badjson.json",
            400,
            "parse error at line 1, column 10",
        ),
        (
            "vllm-err-badjson.json",
            400,
            "1 validation error: {'type': 'json_invalid'",
        ),
        (
            "vllm-err-model.json",
            404,
            "The model `nope` does not exist. Valid aliases: tiny.",
        ),
        (
            "vllm-err-temp.json",
            400,
            "temperature must be non-negative, got -1.0.",
        ),
        (
            "vllm-err-toolong.json",
            400,
            "max_tokens=1000000 cannot be greater than max_model_len=4096.",
        ),
    ];
    for (name, status, words) in cases {
        let head = String::from_utf8(fixture(&format!("{name}.headers"))).unwrap();
        let body = String::from_utf8(fixture(name)).unwrap();
        let answer = plain_answer(
            head.lines().next().unwrap().split_once(' ').unwrap().1,
            "application/json",
            &body,
        );
        let server = Server::answering(answer);
        let client = Client::new(target(&server.base()));
        for _ in 0..2 {
            let outcome = client.ask(0);
            assert_eq!(
                (class(&outcome), outcome.status),
                (ErrorClass::Status, Some(status)),
                "{name}"
            );
            assert!(message(&outcome).contains(words), "{name}: {}", message(&outcome));
        }
        assert_eq!(server.connections(), 1, "{name}: the connection is used again");
    }
}

#[test]
fn reads_recorded_refusals() {
    for (name, status, words) in [
        (
            "llamacpp-err-ctx.http",
            400,
            "request (15011 tokens) exceeds the available context size (8192 tokens)",
        ),
        (
            "vllm-err-ctx.http",
            400,
            "This model's maximum context length is 4096 tokens.",
        ),
    ] {
        let outcome = answered(fixture(name));
        assert_eq!(
            (class(&outcome), outcome.status),
            (ErrorClass::Status, Some(status)),
            "{name}"
        );
        assert!(message(&outcome).contains(words), "{name}: {}", message(&outcome));
    }
    // curl had removed the chunk framing, so it is restored.
    let recorded = String::from_utf8(fixture("dynamo-noworker.http")).unwrap();
    let (head, body) = recorded.split_once("\r\n\r\n").unwrap();
    let outcome = answered(format!("{head}\r\n\r\n{}0\r\n\r\n", chunk(body)));
    assert_eq!((class(&outcome), outcome.status), (ErrorClass::Status, Some(503)));
    assert_eq!(message(&outcome), "HTTP 503: Service temporarily unavailable");
}

/// RFC 9110, section 10.2.3: a number of seconds, or a date, which is not read.
#[test]
fn failure_states_when_the_server_wants_another_attempt() {
    let retry_after = |header: &str| {
        let head = format!("HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n{header}\r\n");
        answered(head).result.unwrap_err().retry_after
    };
    assert_eq!(retry_after("retry-after: 3\r\n"), Some(3_000_000_000));
    assert_eq!(
        retry_after("Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n"),
        None
    );
    assert_eq!(retry_after(""), None);
}

/// The finish reason is written to every file: a key that a server repeats there is redacted, and a
/// long text is truncated.
#[test]
fn finish_reason_is_shortened_and_redacted() {
    let ended = |reason: &str| {
        let body = format!(
            r#"{{"choices":[{{"index":0,"message":{{"role":"assistant","content":"all"}},"finish_reason":"{reason}"}}],"usage":{{"prompt_tokens":1,"completion_tokens":1}}}}"#
        );
        let server = Server::answering(plain_answer("200 OK", "application/json", &body));
        let mut target = target(&server.base());
        target.servers[0].api_key = Some(ApiKey::new("sk-hidden-7"));
        let outcome = Client::new(target).ask(0);
        outcome.result.expect("an answer").finish_reason
    };
    assert_eq!(ended("content_filter"), "content_filter");
    assert_eq!(ended("sk-hidden-7"), "***");
    assert_eq!(ended("it was sk-hidden-7,\\nSTOP"), "it was ***, STOP");
    assert_eq!(ended(&"x".repeat(100_000)), format!("{}…", "x".repeat(100)));
}

#[test]
fn refused_key_is_explained_and_redacted() {
    let body = r#"{"error":{"message":"Incorrect API key provided: sk-hidden-7."}}"#;
    let server = Server::answering(plain_answer("401 Unauthorized", "application/json", body));
    let mut target = target(&server.base());
    target.servers[0].api_key = Some(ApiKey::new("sk-hidden-7"));
    target.headers = vec![("x-team-token".to_owned(), "hush-hush".to_owned())];
    let shown = format!("{target:?}");
    assert!(!shown.contains("sk-hidden") && !shown.contains("hush"), "{shown}");
    let outcome = Client::new(target).ask(0);
    assert_eq!((class(&outcome), outcome.status), (ErrorClass::Status, Some(401)));
    let message = message(&outcome);
    assert!(
        message.contains("OPENAI_API_KEY") && message.contains("client.api_key"),
        "{message}"
    );
    assert!(message.contains("Incorrect API key provided: ***."), "{message}");
    assert!(!format!("{outcome:?}").contains("sk-hidden"));
    assert_eq!(
        server.requests()[0].header("x-team-token").as_deref(),
        Some("hush-hush")
    );
}

#[test]
fn redirect_is_reported_and_not_followed() {
    let answer =
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: https://elsewhere/v1/x\r\ncontent-length: 0\r\n\r\n";
    let server = Server::answering(answer);
    let outcome = Client::new(target(&server.base())).ask(0);
    assert_eq!((class(&outcome), outcome.status), (ErrorClass::Status, Some(307)));
    assert!(
        message(&outcome).contains("`https://elsewhere/v1/x`"),
        "{}",
        message(&outcome)
    );
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn does_not_read_endless_error_body_to_its_end() {
    let server = Server::start(|_, mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 500 Oops\r\n\r\n");
        while stream.write_all(&[b'e'; 4096]).is_ok() {}
    });
    let outcome = Client::new(target(&server.base())).ask(0);
    assert_eq!((class(&outcome), outcome.status), (ErrorClass::Status, Some(500)));
    assert!(message(&outcome).len() < 600);
}

#[test]
fn a_request_that_cannot_be_written_fails_without_a_connection() {
    let server = Server::answering(good_answer());
    let client = Client::new(target(&server.base()));
    let mut job = job(0, "hi");
    let mut prepared = prepared("hi");
    prepared.messages[0].media = vec![(MediaKind::Image, "cat.png".into())];
    job.request = Arc::new(prepared);
    client.transport.submit(job);
    let outcome = client.outcome();
    assert_eq!(class(&outcome), ErrorClass::Protocol);
    assert!(message(&outcome).contains("`cat.png`"), "{}", message(&outcome));
    assert_eq!(server.connections(), 0);
}
