//! Valid answers in unusual forms.

use std::io::Write;
use std::time::Duration;

use veeksha_model::ChunkKind;
use veeksha_ports::Transport;
use veeksha_transport::ApiKey;

use crate::support::*;
#[test]
fn a_streamed_answer_is_read_and_timed() {
    let server = Server::answering(good_answer());
    let mut target = target(&server.base());
    target.servers[0].api_key = Some(ApiKey::new("sk-1"));
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
    assert!(before <= picked && picked < sent && sent <= first, "{timings:?}");
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
fn answer_is_equal_if_received_byte_by_byte() {
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
fn reads_event_of_a_megabyte() {
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
fn ignores_bytes_after_done_and_reuses_the_connection() {
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
fn waits_for_late_end_of_body_without_measuring_it() {
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
fn timeout_after_the_finish_reason_keeps_the_answer() {
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
            (ChunkKind::Finish, body.len())
        );
        assert_eq!(outcome.result.unwrap().text, "all");
    }
    assert_eq!(server.connections(), 1);
}

#[test]
fn reads_stream_with_content_type_json() {
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
