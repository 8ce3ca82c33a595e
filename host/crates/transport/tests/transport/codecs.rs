//! Answers that a plugin decodes.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use veeksha_model::{AnswerPart, ChunkKind, ErrorClass, Framing, Usage};
use veeksha_ports::{Codec, PluginFailure, PluginFailureKind, Sinks, Transport};
use veeksha_transport::{HttpTransport, Target, TransportConfig};

use crate::support::*;

/// A codec for the events `text:...`, `stop` and `usage`; it fails on all others. It records the
/// threads on which it is called.
#[derive(Default)]
struct Words {
    threads: Mutex<Vec<ThreadId>>,
}

impl Codec for Words {
    fn decode(&self, events: &[&[u8]]) -> Result<Vec<Vec<AnswerPart>>, PluginFailure> {
        self.threads.lock().unwrap().push(std::thread::current().id());
        events
            .iter()
            .map(|event| {
                let event = std::str::from_utf8(event).unwrap().trim();
                Ok(match event.split_once(':') {
                    Some(("text", text)) => vec![AnswerPart::Content(text.to_owned())],
                    _ if event == "stop" => vec![AnswerPart::Finish("stop".to_owned())],
                    _ if event == "usage" => vec![AnswerPart::Usage(Usage {
                        prompt: 3,
                        completion: 2,
                        ..Usage::default()
                    })],
                    _ => {
                        return Err(PluginFailure::new(
                            "words",
                            "codec.decode",
                            PluginFailureKind::Trap,
                            format!("cannot read\n`{event}`"),
                        ));
                    }
                })
            })
            .collect()
    }
}

fn with(server: &Server, codec: &Arc<Words>, framing: Framing) -> Target {
    let codec: Arc<dyn Codec> = Arc::clone(codec) as _;
    Target {
        codec: Some((codec, framing)),
        ..target(&server.base())
    }
}

fn lines(pieces: &[&str]) -> String {
    let body: String = pieces.iter().map(|piece| chunk(piece)).collect();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n{body}0\r\n\r\n"
    )
}

#[test]
fn reads_events_of_every_framing() {
    let cases = [
        (
            Framing::EventStream,
            lines(&[
                ": hello\n\n",
                "data: text:a\n\n",
                "data: text:b\n\ndata: stop\n\n",
                "data: usage\n\n",
            ]),
            5,
        ),
        (
            Framing::Lines,
            lines(&["text:a\n", "\ntext:b\nsto", "p\nusage\n"]),
            4,
        ),
    ];
    for (framing, answer, events) in cases {
        let server = Server::answering(answer);
        let codec = Arc::new(Words::default());
        let client = Client::new(with(&server, &codec, framing));
        for turn in 0..2 {
            let outcome = client.ask(0);
            let response = outcome.result.as_ref().unwrap();
            assert_eq!(
                (&*response.text, &*response.finish_reason),
                ("ab", "stop"),
                "{framing:?}"
            );
            assert_eq!(response.output_tokens, 2);
            assert_eq!(outcome.chunks.len(), events);
            assert!(outcome.codec_failure.is_none());
            assert_eq!(outcome.connection.reused, turn > 0);
        }
        assert_eq!(codec.threads.lock().unwrap().len(), 2, "once for each answer");
    }
    let whole = Server::answering(plain_answer("200 OK", "application/json", "text:all"));
    let codec = Arc::new(Words::default());
    let outcome = Client::new(with(&whole, &codec, Framing::Whole)).ask(0);
    assert_eq!(outcome.chunks.len(), 1);
    assert_eq!(outcome.chunks[0].kind, ChunkKind::Finish);
}

#[test]
fn failed_plugin_fails_the_request_and_is_reported() {
    let server = Server::answering(lines(&["text:a\n", "garble\n", "stop\n"]));
    let codec = Arc::new(Words::default());
    let client = Client::new(with(&server, &codec, Framing::Lines));
    for turn in 0..2 {
        let outcome = client.ask(0);
        assert_eq!(class(&outcome), ErrorClass::Codec);
        assert_eq!(message(&outcome), "cannot read `garble`");
        assert_eq!(outcome.codec_failure.as_ref().unwrap().plugin, "words");
        assert_eq!(outcome.status, Some(200));
        assert_eq!(outcome.connection.reused, turn > 0, "the server is not at fault");
    }
}

#[test]
fn plugin_is_not_called_on_a_client_thread_and_first_event_is_notified() {
    let server = Server::start(|_, mut stream, _| {
        read_request(&mut stream);
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        for part in [
            format!("{head}{}", chunk(": wait\n\n")),
            chunk("data: text:a\n\n"),
            format!("{}0\r\n\r\n", chunk("data: stop\n\n")),
        ] {
            stream.write_all(part.as_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let codec = Arc::new(Words::default());
    let (sender, returned) = std::sync::mpsc::channel();
    let sender = Mutex::new(sender);
    let first: Arc<Mutex<Vec<u64>>> = Arc::default();
    let notified = Arc::clone(&first);
    let sinks = Sinks {
        returned: Arc::new(move |returned| sender.lock().unwrap().send(returned).unwrap()),
        first_chunk: Arc::new(move |_, at| notified.lock().unwrap().push(at)),
    };
    let config = TransportConfig::new(with(&server, &codec, Framing::EventStream));
    let transport = HttpTransport::start(config, veeksha_clock::RunClock::starting_now(), sinks).unwrap();
    transport.submit(job(0, "hi"));
    let returned = returned.recv_timeout(PATIENCE).unwrap();
    assert!(
        codec.threads.lock().unwrap().is_empty(),
        "not before it is asked for"
    );
    let outcome = returned.outcome();
    assert_eq!(*codec.threads.lock().unwrap(), [std::thread::current().id()]);
    assert_eq!(outcome.result.unwrap().text, "a");
    assert_eq!(*first.lock().unwrap(), [outcome.chunks[1].at]);
}

#[test]
fn stops_reading_endless_body_after_the_end_marker() {
    let server = Server::start(|_, mut stream, _| {
        read_request(&mut stream);
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let events = chunk("data: text:a\n\ndata: stop\n\n");
        stream.write_all(format!("{head}{events}").as_bytes()).unwrap();
        // A separate read, so that it does not belong to the first event.
        std::thread::sleep(Duration::from_millis(50));
        stream.write_all(chunk("data: [DONE]\n\n").as_bytes()).unwrap();
        std::thread::sleep(PATIENCE);
    });
    /// Like [`Words`], with support for the end marker.
    struct Marked(Words);
    impl Codec for Marked {
        fn decode(&self, events: &[&[u8]]) -> Result<Vec<Vec<AnswerPart>>, PluginFailure> {
            let (last, rest) = events.split_last().unwrap();
            assert_eq!(*last, b"[DONE]");
            let mut parts = self.0.decode(rest)?;
            parts.push(vec![AnswerPart::Done]);
            Ok(parts)
        }
    }
    let codec: Arc<dyn Codec> = Arc::new(Marked(Words::default()));
    let client = Client::of(TransportConfig {
        linger: Duration::from_millis(100),
        ..TransportConfig::new(Target {
            codec: Some((codec, Framing::EventStream)),
            ..target(&server.base())
        })
    });
    let outcome = client.ask(0);
    assert_eq!(outcome.result.unwrap().text, "a");
}

#[test]
fn refuses_answer_above_the_memory_limit() {
    let server = Server::start(|_, mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        let line = format!("text:{}\n", "x".repeat(1 << 20));
        for _ in 0..80 {
            if stream.write_all(line.as_bytes()).is_err() {
                return;
            }
        }
    });
    let codec = Arc::new(Words::default());
    let outcome = Client::new(with(&server, &codec, Framing::Lines)).ask(0);
    assert_eq!(class(&outcome), ErrorClass::Protocol);
    assert!(message(&outcome).contains("67108864"), "{}", message(&outcome));
}
