//! The transport against scripted servers on real sockets.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may panic, also in its functions"
)]

mod support;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use support::*;
use veeksha_model::{ChunkKind, ErrorClass, MediaKind};
use veeksha_ports::{Outcome, Timings, Transport};
use veeksha_transport::{ConnectionStats, HttpTransport, Secret, TransportConfig};

#[test]
fn a_streamed_answer_is_read_and_timed() {
    let server = Server::answering(good_answer());
    let mut target = target(&server.base());
    target.api_key = Some(Secret::new("sk-1"));
    let client = Client::new(target);
    let before = client.clock.now();
    let outcome = client.ask(0);
    let after = client.clock.now();

    let response = outcome.result.unwrap();
    assert_eq!(response.text, "Hello world");
    assert_eq!(response.finish_reason, "stop");
    assert_eq!(response.output_tokens, 2);
    assert_eq!(outcome.status, Some(200));
    let kinds: Vec<ChunkKind> = outcome.chunks.iter().map(|chunk| chunk.kind).collect();
    use ChunkKind::*;
    assert_eq!(kinds, [Content, Content, Finish, Usage, Done]);
    let data = text_event("Hello").len() - "data: \n\n".len();
    assert_eq!(outcome.chunks[0].bytes as usize, data);

    let timings = outcome.timings;
    let (picked, sent, first) = (
        timings.picked_up_at.unwrap(),
        timings.sent_at.unwrap(),
        timings.first_byte_at.unwrap(),
    );
    assert!(before <= picked && picked < sent && sent < first, "{timings:?}");
    assert!(first <= outcome.chunks[0].at && outcome.chunks.is_sorted_by_key(|chunk| chunk.at));
    assert_eq!(timings.completed_at, outcome.chunks.last().unwrap().at);
    assert!(timings.completed_at <= after);
    assert!(
        outcome.connection.connect.is_some()
            && !outcome.connection.reused
            && outcome.connection.tls.is_none()
    );

    let request = &server.requests()[0];
    assert!(
        request.head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"),
        "{}",
        request.head
    );
    assert_eq!(request.header("authorization").as_deref(), Some("Bearer sk-1"));
    assert_eq!(request.header("accept-encoding").as_deref(), Some("identity"));
    assert_eq!(request.header("host"), Some(server.address.to_string()));
    assert_eq!(
        request.json(),
        serde_json::json!({
            "model": "tiny",
            "messages": [{"role": "user", "content": "hi"}],
            "stream": true,
            "stream_options": {"include_usage": true},
            "max_completion_tokens": 2,
        })
    );
}

/// Connection, sessions, reuse.
mod connections {
    use super::*;

    #[test]
    fn one_connection_serves_requests_one_after_another() {
        let server = Server::answering(good_answer());
        let client = Client::new(target(&server.base()));
        for turn in 0..5 {
            let outcome = client.ask(turn);
            assert!(outcome.result.is_ok(), "{:?}", outcome.result);
            assert_eq!(outcome.connection.reused, turn > 0);
            assert_eq!(outcome.connection.connect.is_some(), turn == 0);
        }
        assert_eq!(server.connections(), 1);
        assert_eq!(
            client.transport.connections(),
            ConnectionStats {
                opened: 1,
                reused: 4,
                retried: 0
            }
        );
    }

    #[test]
    fn sessions_stay_on_their_thread_and_its_connections() {
        let server = Server::answering(good_answer());
        let client = Client::with(target(&server.base()), PATIENCE, 2);
        for session in [0, 1, 2, 3, 0, 1] {
            let outcome = client.ask(session);
            assert!(outcome.result.is_ok());
        }
        assert_eq!(server.connections(), 2);
        assert_eq!(client.transport.connections().reused, 4);
    }

    /// llama.cpp: the connection is closed after each reply, while the head promises to keep it.
    #[test]
    fn a_server_that_closes_silently_after_each_reply_costs_no_request() {
        let server = Server::start(|_, mut stream, _| {
            if read_request(&mut stream).is_some() {
                let answer = good_answer().replace("\r\n\r\n", "\r\nKeep-Alive: timeout=5, max=100\r\n\r\n");
                let answer = answer.replacen("0\r\nKeep-Alive: timeout=5, max=100\r\n\r\n", "0\r\n\r\n", 1);
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let client = Client::new(target(&server.base()));
        for turn in 0..50 {
            let outcome = client.ask(turn);
            assert!(outcome.result.is_ok(), "{:?}", outcome.result);
        }
        assert_eq!(server.connections(), 50);
        let stats = client.transport.connections();
        assert_eq!((stats.opened, stats.reused), (50, stats.retried));
    }

    #[test]
    fn a_reused_connection_that_dies_before_an_answer_is_replaced_once() {
        let server = Server::start(|number, mut stream, _| {
            read_request(&mut stream);
            stream.write_all(good_answer().as_bytes()).unwrap();
            // The first connection takes another request and dies without a word.
            read_request(&mut stream);
            if number > 0 {
                stream.write_all(good_answer().as_bytes()).unwrap();
            }
        });
        let client = Client::new(target(&server.base()));
        assert!(!client.ask(0).connection.retried);
        let second = client.ask(0);
        assert!(second.result.is_ok(), "{:?}", second.result);
        assert!(
            second.connection.retried && !second.connection.reused && second.connection.connect.is_some()
        );
        assert!(second.timings.sent_at < second.timings.first_byte_at);
        let third = client.ask(0);
        assert!(third.connection.reused && !third.connection.retried);
        assert_eq!(
            client.transport.connections(),
            ConnectionStats {
                opened: 2,
                reused: 2,
                retried: 1
            }
        );
    }

    #[test]
    fn a_reused_connection_that_dies_within_an_answer_is_not_retried() {
        let server = Server::start(|_, mut stream, _| {
            read_request(&mut stream);
            stream.write_all(good_answer().as_bytes()).unwrap();
            read_request(&mut stream);
            stream.write_all(b"HTTP/1.1 2").unwrap();
        });
        let client = Client::new(target(&server.base()));
        client.ask(0);
        let outcome = client.ask(0);
        assert_eq!(class(&outcome), ErrorClass::Truncated);
        assert!(outcome.connection.reused && !outcome.connection.retried);
        assert_eq!(server.connections(), 1);
    }

    #[test]
    fn a_fresh_connection_is_never_retried() {
        let server = Server::start(|_, mut stream, _| {
            read_request(&mut stream);
        });
        let client = Client::new(target(&server.base()));
        let outcome = client.ask(0);
        assert_eq!(class(&outcome), ErrorClass::Truncated);
        assert!(
            message(&outcome).contains("without an answer"),
            "{}",
            message(&outcome)
        );
        assert!(!outcome.connection.retried && outcome.timings.sent_at.is_some());
        assert_eq!(server.connections(), 1);
    }

    #[test]
    fn connection_close_is_respected() {
        let answer = plain_answer("200 OK", "text/event-stream\r\nconnection: close", FINISH);
        let server = Server::start(move |_, mut stream, _| {
            read_request(&mut stream);
            stream.write_all(answer.as_bytes()).unwrap();
            // Left open: the client must not wait for the end, nor come again.
            std::thread::sleep(PATIENCE);
        });
        let client = Client::new(target(&server.base()));
        for _ in 0..3 {
            assert!(client.ask(0).result.is_ok());
        }
        assert_eq!(
            client.transport.connections(),
            ConnectionStats {
                opened: 3,
                reused: 0,
                retried: 0
            }
        );
    }

    #[test]
    fn a_body_that_ends_with_its_connection_is_whole() {
        let server = Server::start(|_, mut stream, _| {
            read_request(&mut stream);
            let answer = format!(
                "HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{}{FINISH}",
                text_event("x")
            );
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let client = Client::new(target(&server.base()));
        for _ in 0..2 {
            assert_eq!(client.ask(0).result.unwrap().text, "x");
        }
        assert_eq!(client.transport.connections().opened, 2);
    }

    #[test]
    fn nobody_listening_is_a_refusal_that_names_the_place() {
        let address = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let client = Client::new(target(&format!("http://{address}/v1")));
        let outcome = client.ask(0);
        assert_eq!(class(&outcome), ErrorClass::Connect);
        assert!(message(&outcome).contains(&address.to_string()) && message(&outcome).contains("refused"));
        assert_eq!(
            (
                outcome.timings.sent_at,
                outcome.timings.first_byte_at,
                outcome.status
            ),
            (None, None, None)
        );
        assert!(outcome.timings.picked_up_at.unwrap() <= outcome.timings.completed_at);
    }

    #[test]
    fn a_name_that_does_not_resolve_is_named() {
        // RFC 6761: `.invalid` never resolves. The deadline covers machines whose resolver waits for a network.
        let client = Client::with(
            target("http://no-such-host.invalid:81/v1"),
            Duration::from_secs(60),
            1,
        );
        client.transport.submit(job(0, "hi"));
        let outcome = client.outcomes.recv_timeout(Duration::from_secs(61)).unwrap();
        assert_eq!(class(&outcome), ErrorClass::Connect);
        assert!(
            message(&outcome).contains("no-such-host.invalid:81") && message(&outcome).contains("resolve")
        );
    }

    #[test]
    fn the_time_of_the_last_request_byte_is_not_that_of_the_first() {
        const PAUSE: Duration = Duration::from_millis(300);
        let server = Server::start(|_, mut stream, _| {
            // The prompt is larger than any socket's buffers, so its end waits for this reader.
            std::thread::sleep(PAUSE);
            read_request(&mut stream);
            stream.write_all(good_answer().as_bytes()).unwrap();
        });
        let client = Client::new(target(&server.base()));
        client.transport.submit(job(0, &"x".repeat(32 << 20)));
        let outcome = client.outcome();
        assert!(outcome.result.is_ok(), "{:?}", outcome.result);
        let Timings {
            picked_up_at,
            sent_at,
            first_byte_at,
            ..
        } = outcome.timings;
        let taken = Duration::from_nanos(sent_at.unwrap() - picked_up_at.unwrap());
        assert!(taken >= PAUSE - Duration::from_millis(50), "{taken:?}");
        assert!(sent_at < first_byte_at);
    }
}

/// Answers that are right, in odd forms.
mod answers {
    use super::*;

    #[test]
    fn upper_case_chunk_sizes_are_sizes() {
        let event = text_event(&"y".repeat(0xAB));
        let answer = format!(
            "{STREAM_HEAD}{:X}\r\n{event}\r\n{}0\r\n\r\n",
            event.len(),
            chunk(FINISH)
        );
        assert!(answer.contains(&format!("\r\n\r\n{:X}\r\n", event.len())));
        let server = Server::answering(answer);
        assert_eq!(
            Client::new(target(&server.base())).ask(0).result.unwrap().text,
            "y".repeat(0xAB)
        );
    }

    #[test]
    fn an_answer_that_drips_byte_by_byte_is_the_same_answer() {
        const PAUSE: Duration = Duration::from_millis(300);
        let server = Server::start(|_, mut stream, _| {
            read_request(&mut stream);
            let answer = good_answer();
            let second = answer.find(&text_event(" world")).unwrap();
            for (place, byte) in answer.as_bytes().iter().enumerate() {
                stream.write_all(&[*byte]).unwrap();
                let pause = if place == second {
                    PAUSE
                } else {
                    Duration::from_micros(50)
                };
                std::thread::sleep(pause);
            }
        });
        let outcome = Client::new(target(&server.base())).ask(0);
        assert_eq!(outcome.chunks.len(), 5);
        assert_eq!(outcome.result.unwrap().text, "Hello world");
        // The second event began before the pause and ended after it.
        let gap = outcome.chunks[1].at - outcome.chunks[0].at;
        assert!(Duration::from_nanos(gap) > PAUSE / 2, "{gap}");
        assert!(!outcome.chunks[1].merged);
    }

    #[test]
    fn an_event_of_a_megabyte_is_an_event() {
        let text = "z".repeat(1 << 20);
        let answer = format!(
            "{STREAM_HEAD}{}{}0\r\n\r\n",
            chunk(&text_event(&text)),
            chunk(FINISH)
        );
        let outcome = Client::new(target(&Server::answering(answer).base())).ask(0);
        assert!(outcome.chunks[0].bytes > 1 << 20);
        assert!(outcome.result.unwrap().text == text);
    }

    #[test]
    fn events_of_one_read_are_marked_and_events_of_another_are_not() {
        let server = Server::start(|_, mut stream, _| {
            read_request(&mut stream);
            let first = format!(
                "{STREAM_HEAD}{}{}",
                chunk(&text_event("a")),
                chunk(&(text_event("b") + &text_event("c")))
            );
            stream.write_all(first.as_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(300));
            stream
                .write_all(format!("{}0\r\n\r\n", chunk(&(text_event("d") + FINISH))).as_bytes())
                .unwrap();
        });
        let outcome = Client::new(target(&server.base())).ask(0);
        let merged: Vec<bool> = outcome.chunks.iter().map(|chunk| chunk.merged).collect();
        assert_eq!(merged, [false, true, true, false, true, true, true]);
        assert_eq!(outcome.chunks[0].at, outcome.chunks[2].at);
        let gap = outcome.chunks[3].at - outcome.chunks[2].at;
        assert!((150_000_000..5_000_000_000).contains(&gap), "{gap}");
        assert_eq!(outcome.timings.first_byte_at, Some(outcome.chunks[0].at));
    }

    #[test]
    fn what_follows_done_does_not_count_and_the_connection_lives_on() {
        let body = format!(
            "{}{FINISH}{}data: garbage\n\n",
            text_event("a"),
            text_event("late")
        );
        let server = Server::answering(format!("{STREAM_HEAD}{}0\r\n\r\n", chunk(&body)));
        let client = Client::new(target(&server.base()));
        for _ in 0..2 {
            let outcome = client.ask(0);
            assert_eq!(outcome.chunks.len(), 4);
            assert_eq!(outcome.result.unwrap().text, "a");
        }
        assert_eq!(server.connections(), 1);
    }

    #[test]
    fn a_late_end_of_the_body_is_waited_for_and_not_measured() {
        const PAUSE: Duration = Duration::from_millis(500);
        let server = Server::start(|_, mut stream, _| {
            while read_request(&mut stream).is_some() {
                stream
                    .write_all(format!("{STREAM_HEAD}{}", chunk(FINISH)).as_bytes())
                    .unwrap();
                std::thread::sleep(PAUSE);
                stream.write_all(b"0\r\n\r\n").unwrap();
            }
        });
        let client = Client::new(target(&server.base()));
        for turn in 0..2 {
            let outcome = client.ask(0);
            assert!(outcome.result.is_ok());
            assert_eq!(outcome.connection.reused, turn > 0);
            let answered = outcome.timings.completed_at - outcome.timings.sent_at.unwrap();
            assert!(Duration::from_nanos(answered) < PAUSE, "{answered}");
        }
    }

    #[test]
    fn a_deadline_after_the_finish_reason_does_not_undo_the_answer() {
        let server = Server::start(|_, mut stream, _| {
            read_request(&mut stream);
            let events = format!("{STREAM_HEAD}{}", chunk(&(text_event("a") + FINISH)));
            stream.write_all(events.as_bytes()).unwrap();
            std::thread::sleep(PATIENCE);
        });
        let client = Client::with(target(&server.base()), Duration::from_millis(300), 1);
        assert_eq!(client.ask(0).result.unwrap().text, "a");
        assert!(!client.ask(0).connection.reused);
    }

    #[test]
    fn json_instead_of_a_stream_is_one_chunk() {
        let body = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"all"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
        let server = Server::answering(plain_answer("200 OK", "application/json; charset=utf-8", body));
        let client = Client::new(target(&server.base()));
        for _ in 0..2 {
            let outcome = client.ask(0);
            assert_eq!(outcome.chunks.len(), 1);
            assert_eq!(
                (outcome.chunks[0].kind, outcome.chunks[0].bytes as usize),
                (ChunkKind::Content, body.len())
            );
            assert_eq!(outcome.result.unwrap().text, "all");
        }
        assert_eq!(server.connections(), 1);
    }

    #[test]
    fn a_stream_under_the_name_of_json_is_a_stream() {
        let server = Server::answering(plain_answer(
            "200 OK",
            "application/json",
            &(text_event("a") + FINISH),
        ));
        assert_eq!(
            Client::new(target(&server.base())).ask(0).result.unwrap().text,
            "a"
        );
    }

    #[test]
    fn a_hundred_streams_at_once_each_get_their_answer() {
        let server = Server::start(|_, mut stream, _| {
            while let Some(request) = read_request(&mut stream) {
                let prompt = request.json()["messages"][0]["content"]
                    .as_str()
                    .unwrap()
                    .to_owned();
                for part in [
                    STREAM_HEAD.to_owned(),
                    chunk(&text_event(&prompt)),
                    chunk(FINISH),
                    "0\r\n\r\n".to_owned(),
                ] {
                    stream.write_all(part.as_bytes()).unwrap();
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        });
        let client = Client::with(target(&server.base()), PATIENCE, 3);
        for session in 0..100 {
            client
                .transport
                .submit(job(session, &format!("prompt {session}")));
        }
        let mut sessions: Vec<u64> = (0..100)
            .map(|_| {
                let outcome = client.outcome();
                let session = outcome.job.id.session.0;
                assert_eq!(outcome.result.unwrap().text, format!("prompt {session}"));
                session
            })
            .collect();
        sessions.sort_unstable();
        assert_eq!(sessions, (0..100).collect::<Vec<_>>());
        let stats = client.transport.connections();
        assert_eq!(stats.opened + stats.reused, 100);
        assert_eq!(stats.retried, 0);
        client.transport.stop();
        assert!(client.outcomes.try_recv().is_err());
    }
}

/// Answers that are wrong.
mod failures {
    use super::*;

    /// Sends one request to a server that always answers so.
    fn answered(answer: impl Into<Vec<u8>>) -> Outcome {
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
    fn recorded_whole_refusals_are_understood_as_they_came() {
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
        // curl had removed the chunks, so they are put back.
        let recorded = String::from_utf8(fixture("dynamo-noworker.http")).unwrap();
        let (head, body) = recorded.split_once("\r\n\r\n").unwrap();
        let outcome = answered(format!("{head}\r\n\r\n{}0\r\n\r\n", chunk(body)));
        assert_eq!((class(&outcome), outcome.status), (ErrorClass::Status, Some(503)));
        assert_eq!(message(&outcome), "HTTP 503: Service temporarily unavailable");
    }

    #[test]
    fn a_refused_key_is_explained_and_never_shown() {
        let body = r#"{"error":{"message":"Incorrect API key provided: sk-hidden-7."}}"#;
        let server = Server::answering(plain_answer("401 Unauthorized", "application/json", body));
        let mut target = target(&server.base());
        target.api_key = Some(Secret::new("sk-hidden-7"));
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
    fn a_redirect_is_told_and_not_followed() {
        let answer = "HTTP/1.1 307 Temporary Redirect\r\nlocation: https://elsewhere/v1/x\r\ncontent-length: 0\r\n\r\n";
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
    fn an_endless_error_body_is_not_read_to_its_end() {
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
        prepared.messages[0].media = vec![(MediaKind::Image, "cat.png".to_owned())];
        job.request = Arc::new(prepared);
        client.transport.submit(job);
        let outcome = client.outcome();
        assert_eq!(class(&outcome), ErrorClass::Protocol);
        assert!(message(&outcome).contains("`cat.png`"), "{}", message(&outcome));
        assert_eq!(server.connections(), 0);
    }
}

/// Giving up.
mod endings {
    use super::*;

    fn hanging() -> Server {
        Server::start(|_, mut stream, _| {
            read_request(&mut stream);
            let _ = stream.write_all(format!("{STREAM_HEAD}{}", chunk(&text_event("a"))).as_bytes());
            std::thread::sleep(PATIENCE);
        })
    }

    fn sessions(outcomes: &[Outcome]) -> Vec<u64> {
        let mut sessions: Vec<u64> = outcomes.iter().map(|outcome| outcome.job.id.session.0).collect();
        sessions.sort_unstable();
        sessions
    }

    #[test]
    fn cancel_all_ends_everything_once_and_the_transport_goes_on() {
        let server = hanging();
        let client = Client::with(target(&server.base()), PATIENCE, 3);
        for session in 0..60 {
            client.transport.submit(job(session, "hi"));
            if session == 40 {
                // Some are in the middle of their answers by now, some have not begun.
                std::thread::sleep(Duration::from_millis(200));
            }
        }
        assert_eq!(client.transport.in_flight(), 60);
        client.transport.cancel_all();
        let outcomes: Vec<Outcome> = (0..60).map(|_| client.outcome()).collect();
        assert!(
            outcomes
                .iter()
                .all(|outcome| class(outcome) == ErrorClass::Cancelled)
        );
        assert!(
            outcomes
                .iter()
                .any(|outcome| outcome.chunks.len() == 1 && outcome.status == Some(200))
        );
        assert_eq!(sessions(&outcomes), (0..60).collect::<Vec<_>>());

        client.transport.submit(job(60, "hi"));
        client.transport.cancel_all();
        assert_eq!(class(&client.outcome()), ErrorClass::Cancelled);
        client.transport.stop();
        assert!(client.outcomes.try_recv().is_err());
    }

    #[test]
    fn stop_pays_every_outcome_before_it_returns() {
        let server = hanging();
        let client = Client::with(target(&server.base()), PATIENCE, 2);
        for session in 0..40 {
            client.transport.submit(job(session, "hi"));
        }
        client.transport.stop();
        let outcomes: Vec<Outcome> = client.outcomes.try_iter().collect();
        assert_eq!(sessions(&outcomes), (0..40).collect::<Vec<_>>());
        assert!(
            outcomes
                .iter()
                .all(|outcome| class(outcome) == ErrorClass::Cancelled)
        );
    }

    #[test]
    fn nothing_is_owed_after_the_last_outcome() {
        let server = Server::answering(good_answer());
        let client = Client::new(target(&server.base()));
        client.ask(0);
        let deadline = client.clock.now() + 5_000_000_000;
        while client.transport.in_flight() > 0 {
            assert!(client.clock.now() < deadline);
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_transport_that_cannot_work_does_not_start() {
        let start = |target, threads| {
            let config = TransportConfig {
                target,
                request_timeout: PATIENCE,
                threads,
            };
            let result =
                HttpTransport::start(config, veeksha_clock::RunClock::starting_now(), Arc::new(|_| ()));
            result.err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert!(start(target("http://h/v1"), 0).contains("at least 1"));
        assert!(start(target("h:80/v1"), 1).contains("scheme"));
        let mut with_header = target("http://h/v1");
        with_header.headers = vec![("x-key".to_owned(), "secret\nvalue".to_owned())];
        let message = start(with_header, 1);
        assert!(
            message.contains("x-key") && !message.contains("secret"),
            "{message}"
        );
        let mut with_ca = target("https://h/v1");
        with_ca.tls.ca_file = Some("/nowhere/ca.pem".into());
        assert!(start(with_ca, 1).contains("/nowhere/ca.pem"));
    }
}

fn class(outcome: &Outcome) -> ErrorClass {
    outcome.result.as_ref().expect_err("a failure").class
}

fn message(outcome: &Outcome) -> &str {
    &outcome.result.as_ref().expect_err("a failure").message
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!(
        "{}/tests/fixtures/sse/{name}",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap()
}
