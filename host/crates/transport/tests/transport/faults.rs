//! Servers that break, stall, stop in the middle or never stop. Each request has one outcome, of
//! the right class.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use veeksha_model::{ChunkKind, ErrorClass};
use veeksha_ports::{RequestOutcome, Transport};
use veeksha_transport::TransportConfig;

use crate::support::*;

/// Answers on one connection and then calls `deed` with it.
fn then(answer: String, deed: impl Fn(TcpStream) + Send + Sync + 'static) -> Server {
    Server::start(move |_, mut stream, _| {
        read_request(&mut stream);
        stream.write_all(answer.as_bytes()).unwrap();
        deed(stream);
    })
}

/// Closes with a reset instead of an end.
fn reset(stream: TcpStream) {
    // The client has read the earlier bytes by now; a reset discards unread ones.
    std::thread::sleep(Duration::from_millis(100));
    let hard = nix::libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    setsockopt(&stream, sockopt::Linger, &hard).unwrap();
}

/// Closes the sending side and keeps receiving.
fn half_close(stream: TcpStream) {
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    std::thread::sleep(Duration::from_millis(300));
}

fn ask(server: &Server) -> RequestOutcome {
    Client::new(target(&server.base())).ask(0)
}

fn stages() -> Vec<(
    &'static str,
    String,
    Result<&'static str, ErrorClass>,
    &'static str,
)> {
    let begun = format!("{STREAM_HEAD}{}", chunk(&text_event("a")));
    let unended = format!("{STREAM_HEAD}{}", chunk(&(text_event("a") + FINISH)));
    let event = text_event("b");
    let lost = "lost in the middle of the answer";
    vec![
        (
            "nothing",
            String::new(),
            Err(ErrorClass::Truncated),
            "without an answer",
        ),
        (
            "half a head",
            STREAM_HEAD[..40].to_owned(),
            Err(ErrorClass::Truncated),
            "in the middle of the answer's head",
        ),
        ("a head", STREAM_HEAD.to_owned(), Err(ErrorClass::Truncated), lost),
        ("an event", begun.clone(), Err(ErrorClass::Truncated), lost),
        (
            "half an event",
            format!("{begun}{:x}\r\n{}", event.len(), &event[..20]),
            Err(ErrorClass::Truncated),
            lost,
        ),
        (
            "half a size",
            format!("{begun}f"),
            Err(ErrorClass::Truncated),
            lost,
        ),
        // A finish reason completes the answer, regardless of the connection afterwards.
        ("everything but the end", unended.clone(), Ok("a"), ""),
        ("half the end", format!("{unended}0\r\n"), Ok("a"), ""),
    ]
}

#[test]
fn a_connection_that_ends_at_any_stage_is_classified() {
    for deed in [reset as fn(TcpStream), half_close, drop] {
        for (stage, answer, expected, words) in stages() {
            let outcome = ask(&then(answer, deed));
            match expected {
                Ok(text) => assert_eq!(outcome.result.as_ref().unwrap().text, text, "{stage}"),
                Err(expected) => {
                    assert_eq!(class(&outcome), expected, "{stage}");
                    assert!(
                        message(&outcome).contains(words),
                        "{stage}: {}",
                        message(&outcome)
                    );
                }
            }
        }
    }
}

#[test]
fn a_connection_that_dies_before_the_request_is_sent_is_a_failure_to_connect() {
    let server = Server::start(|_, stream, _| {
        std::thread::sleep(Duration::from_millis(50));
        reset(stream);
    });
    let client = Client::new(target(&server.base()));
    // More than the socket buffers hold, so that the request is still being sent.
    client.transport.submit(job(0, &"x".repeat(32 << 20)));
    let outcome = client.outcome();
    assert_eq!(class(&outcome), ErrorClass::Connect);
    assert!(
        message(&outcome).contains("before the request was sent"),
        "{}",
        message(&outcome)
    );
    assert_eq!(outcome.timings.sent_at, None);
}

#[test]
fn reads_answer_that_precedes_the_whole_request() {
    for (status, body) in [
        ("413 Content Too Large", r#"{"error":{"message":"too large"}}"#),
        ("400 Bad Request", r#"{"error":{"message":"no such thing"}}"#),
    ] {
        let answer = plain_answer(status, "application/json\r\nconnection: close", body);
        let server = Server::start(move |_, mut stream, _| {
            let mut beginning = [0; 1000];
            stream.read_exact(&mut beginning).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            // The rest of the request is never read.
            std::thread::sleep(Duration::from_millis(500));
        });
        let client = Client::new(target(&server.base()));
        client.transport.submit(job(0, &"x".repeat(32 << 20)));
        let outcome = client.outcome();
        assert_eq!(class(&outcome), ErrorClass::Status, "{:?}", outcome.result);
        assert_eq!(outcome.status, Some(status[..3].parse().unwrap()));
        assert!(outcome.timings.sent_at.is_none() && outcome.timings.first_byte_at.is_some());
        assert_eq!(client.transport.connections().retried, 0);
    }
}

#[test]
fn an_event_may_be_cut_at_every_byte() {
    let answer = good_answer();
    let server = Server::start(move |_, mut stream, _| {
        for cut in 1..answer.len() {
            if read_request(&mut stream).is_none() {
                return;
            }
            let (first, rest) = answer.as_bytes().split_at(cut);
            stream.write_all(first).unwrap();
            std::thread::sleep(Duration::from_micros(500));
            stream.write_all(rest).unwrap();
        }
    });
    let client = Client::new(target(&server.base()));
    let whole: Vec<(ChunkKind, u32)> = [
        (ChunkKind::Content, text_event("Hello").len() - 8),
        (ChunkKind::Content, text_event(" world").len() - 8),
    ]
    .map(|(kind, size)| (kind, size as u32))
    .to_vec();
    for cut in 1..good_answer().len() {
        let outcome = client.ask(0);
        let response = outcome.result.as_ref().unwrap();
        assert_eq!(
            (&*response.text, &*response.finish_reason),
            ("Hello world", "stop"),
            "{cut}"
        );
        let kinds: Vec<_> = outcome
            .chunks
            .iter()
            .map(|chunk| (chunk.kind, chunk.bytes))
            .collect();
        assert_eq!((&kinds[..2], kinds.len()), (&whole[..], 5), "{cut}");
    }
    assert_eq!(server.connections(), 1);
}

#[test]
fn an_answer_without_an_end_marker_is_an_answer() {
    let finish = FINISH.replace("data: [DONE]\n\n", "");
    let server = Server::answering(format!(
        "{STREAM_HEAD}{}0\r\n\r\n",
        chunk(&(text_event("a") + &finish))
    ));
    let client = Client::new(target(&server.base()));
    for turn in 0..2 {
        let outcome = client.ask(0);
        assert_eq!(outcome.result.as_ref().unwrap().text, "a");
        assert_eq!(outcome.chunks.last().unwrap().kind, ChunkKind::Usage);
        assert_eq!(outcome.connection.reused, turn > 0);
    }
}

#[test]
fn a_body_that_never_ends_after_its_data_is_given_up_and_the_answer_counts() {
    let server = Server::start(|_, mut stream, _| {
        read_request(&mut stream);
        let events = format!("{STREAM_HEAD}{}", chunk(&(text_event("a") + FINISH)));
        stream.write_all(events.as_bytes()).unwrap();
        std::thread::sleep(PATIENCE);
    });
    for linger in [Duration::from_millis(200), Duration::from_millis(600)] {
        let client = Client::of(TransportConfig {
            linger,
            ..TransportConfig::new(target(&server.base()))
        });
        let before = client.clock.now();
        let outcome = client.ask(0);
        let waited = Duration::from_nanos(client.clock.now() - before);
        assert_eq!(outcome.result.as_ref().unwrap().text, "a");
        assert!(
            waited >= linger && waited < linger * 2 + Duration::from_secs(2),
            "{waited:?}"
        );
        // The waiting time is not measured.
        let measured = outcome.timings.completed_at - outcome.timings.picked_up_at.unwrap();
        assert!(Duration::from_nanos(measured) < linger, "{measured}");
        assert!(!client.ask(1).connection.reused);
    }
}

#[test]
fn a_pause_longer_than_the_linger_within_an_answer_is_no_end() {
    let server = Server::start(|_, mut stream, _| {
        read_request(&mut stream);
        let begun = format!(
            "{STREAM_HEAD}{}{}",
            chunk(&text_event("a")),
            chunk(&text_event("[DONE]"))
        );
        stream.write_all(begun.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(400));
        stream
            .write_all(format!("{}0\r\n\r\n", chunk(&(text_event("b") + FINISH))).as_bytes())
            .unwrap();
    });
    let client = Client::of(TransportConfig {
        linger: Duration::from_millis(50),
        ..TransportConfig::new(target(&server.base()))
    });
    assert_eq!(client.ask(0).result.unwrap().text, "a[DONE]b");
}

#[test]
fn trailers_are_read_and_the_connection_lives_on() {
    let events = chunk(&(text_event("a") + FINISH));
    let server = Server::answering(format!(
        "{STREAM_HEAD}{events}0\r\nx-checksum: 1\r\nserver-timing: total;dur=3\r\n\r\n"
    ));
    let client = Client::new(target(&server.base()));
    for turn in 0..2 {
        let outcome = client.ask(0);
        assert_eq!(outcome.result.unwrap().text, "a");
        assert_eq!(outcome.connection.reused, turn > 0);
    }
}

#[test]
fn an_interim_answer_is_not_the_answer() {
    const PAUSE: Duration = Duration::from_millis(200);
    let server = Server::start(|_, mut stream, _| {
        while read_request(&mut stream).is_some() {
            stream
                .write_all(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n")
                .unwrap();
            std::thread::sleep(PAUSE);
            stream.write_all(good_answer().as_bytes()).unwrap();
        }
    });
    let client = Client::new(target(&server.base()));
    for turn in 0..2 {
        let outcome = client.ask(0);
        assert_eq!(outcome.status, Some(200));
        assert_eq!(outcome.result.as_ref().unwrap().text, "Hello world");
        let waited = outcome.timings.first_byte_at.unwrap() - outcome.timings.sent_at.unwrap();
        assert!(Duration::from_nanos(waited) > PAUSE / 2, "{waited}");
        assert_eq!(outcome.connection.reused, turn > 0);
    }
}

#[test]
fn refuses_answers_above_the_limits() {
    let huge = Server::start(|_, mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: ");
        while stream.write_all(&[b'x'; 1 << 16]).is_ok() {}
    });
    let outcome = ask(&huge);
    assert_eq!(class(&outcome), ErrorClass::Protocol);
    assert!(
        message(&outcome).contains("larger than 16777216 bytes"),
        "{}",
        message(&outcome)
    );

    let head = Server::start(|_, mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        while stream
            .write_all(b"x-padding: 0123456789012345678901234567890123456789\r\n")
            .is_ok()
        {}
    });
    let outcome = ask(&head);
    assert_eq!(class(&outcome), ErrorClass::Protocol);
    assert!(message(&outcome).contains("head"), "{}", message(&outcome));
}

#[test]
fn decodes_long_stream_in_parts() {
    let text: Vec<String> = (0..3_000).map(|number| format!("{number} ")).collect();
    let events: String = text.iter().map(|text| chunk(&text_event(text))).collect();
    let answer = format!("{STREAM_HEAD}{events}{}0\r\n\r\n", chunk(FINISH));
    let outcome = ask(&Server::answering(answer));
    assert_eq!(outcome.chunks.len(), 3_003);
    assert_eq!(outcome.result.unwrap().text, text.concat());
}

#[test]
fn finds_failure_in_undecoded_bytes() {
    let error = r#"data: {"error": {"message": "out of memory", "code": 500}}"#;
    let events = format!("{}{}{error}\n\n", text_event("a"), text_event("b"));
    let outcome = ask(&Server::answering(format!(
        "{STREAM_HEAD}{}0\r\n\r\n",
        chunk(&events)
    )));
    assert_eq!(class(&outcome), ErrorClass::InStream);
    assert_eq!(message(&outcome), "out of memory");
    assert_eq!(outcome.chunks.len(), 2);
}
