//! HTTP/2: many requests on one connection, with the same answers at the same times.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::time::Sleep;
use veeksha_model::{ErrorClass, StampSource};
use veeksha_ports::Transport;
use veeksha_transport::{ConnectionPolicy, HttpProtocol, TransportConfig};

use crate::support::*;

/// A body in pieces, each after a pause.
pub(crate) struct Script {
    pieces: VecDeque<(Duration, Bytes)>,
    pause: Option<Pin<Box<Sleep>>>,
    on_drop: Option<Box<dyn Fn(usize)>>,
}

impl Drop for Script {
    fn drop(&mut self) {
        if let Some(on_drop) = &self.on_drop {
            on_drop(self.pieces.len());
        }
    }
}

impl Script {
    pub(crate) fn new(pieces: impl IntoIterator<Item = (u64, String)>) -> Self {
        let pieces = pieces.into_iter();
        Script {
            pieces: pieces
                .map(|(pause, piece)| (Duration::from_millis(pause), Bytes::from(piece)))
                .collect(),
            pause: None,
            on_drop: None,
        }
    }

    /// Calls this with the number of pieces that were not sent when the body is dropped.
    pub(crate) fn on_drop(mut self, act: impl Fn(usize) + 'static) -> Self {
        self.on_drop = Some(Box::new(act));
        self
    }
}

impl Body for Script {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some((pause, _)) = self.pieces.front() else {
            return Poll::Ready(None);
        };
        let pause = *pause;
        let sleep = self
            .pause
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(pause)));
        ready!(sleep.as_mut().poll(cx));
        self.pause = None;
        Poll::Ready(self.pieces.pop_front().map(|(_, piece)| Ok(Frame::data(piece))))
    }
}

/// A server that speaks HTTP/2 with prior knowledge.
pub(crate) struct H2Server {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    heads: Arc<Mutex<Vec<hyper::http::request::Parts>>>,
}

impl H2Server {
    /// Starts the server. `streams`: maximum number of concurrent streams.
    pub(crate) fn start(
        streams: u32,
        answer: impl Fn(usize) -> Response<Script> + Send + Sync + 'static,
    ) -> Self {
        let (sender, receiver) = std::sync::mpsc::channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (counted, seen) = (Arc::clone(&connections), Arc::clone(&heads));
        let (answer, number) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(tokio::task::LocalSet::new().run_until(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                sender.send(listener.local_addr().unwrap()).unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    stream.set_nodelay(true).unwrap();
                    counted.fetch_add(1, Ordering::SeqCst);
                    let (answer, number, seen) =
                        (Arc::clone(&answer), Arc::clone(&number), Arc::clone(&seen));
                    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
                        let (answer, number, seen) =
                            (Arc::clone(&answer), Arc::clone(&number), Arc::clone(&seen));
                        async move {
                            let (head, mut body) = request.into_parts();
                            while let Some(piece) =
                                std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await
                            {
                                let _ = piece;
                            }
                            seen.lock().unwrap().push(head);
                            Ok::<_, Infallible>(answer(number.fetch_add(1, Ordering::SeqCst)))
                        }
                    });
                    tokio::task::spawn_local(
                        hyper::server::conn::http2::Builder::new(Here)
                            .max_concurrent_streams(streams)
                            .serve_connection(TokioIo::new(stream), service),
                    );
                }
            }));
        });
        H2Server {
            address: receiver.recv().unwrap(),
            connections,
            heads,
        }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn config(&self) -> TransportConfig {
        TransportConfig {
            http: HttpProtocol::Http2,
            ..TransportConfig::new(target(&format!("http://{}/v1", self.address)))
        }
    }
}

#[derive(Clone)]
struct Here;

impl<F: Future + 'static> hyper::rt::Executor<F> for Here {
    fn execute(&self, task: F) {
        tokio::task::spawn_local(task);
    }
}

pub(crate) fn streamed(pieces: impl IntoIterator<Item = (u64, String)>) -> Response<Script> {
    let mut response = Response::new(Script::new(pieces));
    let headers = response.headers_mut();
    headers.insert("content-type", "text/event-stream".parse().unwrap());
    response
}

fn two_texts() -> Response<Script> {
    streamed([
        (20, text_event("a")),
        (150, text_event("b") + &text_event("c")),
        (20, FINISH.to_owned()),
    ])
}

#[test]
fn requests_share_a_connection_and_each_gets_its_answer() {
    let server = H2Server::start(100, |_| two_texts());
    let client = Client::of(server.config());
    for session in 0..20 {
        client.transport.submit(job(session, "hi"));
    }
    let outcomes: Vec<_> = (0..20).map(|_| client.outcome()).collect();
    for outcome in &outcomes {
        assert_eq!(outcome.result.as_ref().unwrap().text, "abc");
        assert_eq!(outcome.status, Some(200));
        let timings = outcome.timings;
        assert!(timings.picked_up_at <= timings.sent_at && timings.sent_at <= timings.first_byte_at);
        assert!(timings.first_byte_at <= Some(outcome.chunks[0].at));
        assert!(outcome.chunks[2].merged);
        for pair in outcome.chunks.windows(2) {
            assert_eq!(pair[1].merged, pair[1].at == pair[0].at, "{pair:?}");
        }
        // A client that did not read in time on a busy machine has only the time of the newest
        // segment.
        if outcome.chunks.iter().all(|chunk| chunk.lag < 10_000_000) {
            let gap = outcome.chunks[1].at - outcome.chunks[0].at;
            assert!((50_000_000..2_000_000_000).contains(&gap), "{gap}");
        }
        assert_eq!(timings.stamps, StampSource::Kernel);
    }
    let fresh = outcomes.iter().filter(|outcome| !outcome.connection.reused);
    assert_eq!(fresh.count(), 1);
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
    let stats = client.transport.connections();
    assert_eq!((stats.opened, stats.reused, stats.retried), (1, 19, 0));
    assert_eq!(stats.share(), Some(19.0 / 20.0));
    let heads = server.heads.lock().unwrap();
    assert_eq!(heads[0].uri.path(), "/v1/chat/completions");
    assert!(heads.iter().any(|head| head.headers["x-request-id"] == "7/0"));
    assert_eq!(heads[0].headers["accept-encoding"], "identity");
}

#[test]
fn another_connection_is_opened_when_the_server_allows_no_more_streams() {
    let server = H2Server::start(2, |_| two_texts());
    let client = Client::of(server.config());
    for session in 0..6 {
        client.transport.submit(job(session, "hi"));
    }
    for _ in 0..6 {
        let outcome = client.outcome();
        let waited = outcome.timings.first_byte_at.unwrap() - outcome.timings.picked_up_at.unwrap();
        assert!(outcome.result.is_ok());
        assert!(waited < 1_000_000_000, "{waited}");
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 3);
}

#[test]
fn connection_policies_apply_to_http2() {
    for (policy, expected) in [(ConnectionPolicy::PerSession, 2), (ConnectionPolicy::Never, 4)] {
        let server = H2Server::start(100, |_| streamed([(0, text_event("a") + FINISH)]));
        let client = Client::of(TransportConfig {
            connections: policy,
            ..server.config()
        });
        for session in [0, 1, 0, 1] {
            assert!(client.ask(session).result.is_ok());
        }
        assert_eq!(server.connections.load(Ordering::SeqCst), expected, "{policy:?}");
    }
}

#[test]
fn a_large_prompt_is_sent_within_the_servers_windows() {
    let server = H2Server::start(100, |_| streamed([(0, text_event("a") + FINISH)]));
    let client = Client::of(server.config());
    client.transport.submit(job(0, &"x".repeat(3 << 20)));
    let outcome = client.outcome();
    assert_eq!(outcome.result.unwrap().text, "a");
    assert!(outcome.timings.sent_at <= outcome.timings.first_byte_at);
}

#[test]
fn error_status_includes_the_servers_message() {
    let server = H2Server::start(100, |_| {
        let mut response = Response::new(Script::new([(
            0,
            r#"{"error":{"message":"no such model"}}"#.to_owned(),
        )]));
        *response.status_mut() = hyper::StatusCode::NOT_FOUND;
        response
    });
    let outcome = Client::of(server.config()).ask(0);
    assert_eq!((class(&outcome), outcome.status), (ErrorClass::Status, Some(404)));
    assert!(
        message(&outcome).contains("no such model"),
        "{}",
        message(&outcome)
    );
}

#[test]
fn reports_answers_that_are_not_http2() {
    let server = Server::start(|_, mut stream, _| {
        let _ = stream.read(&mut [0; 24]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
        std::thread::sleep(Duration::from_millis(200));
    });
    let outcome = Client::of(TransportConfig {
        http: HttpProtocol::Http2,
        request_timeout: Duration::from_secs(5),
        ..TransportConfig::new(target(&server.base()))
    })
    .ask(0);
    assert_eq!(class(&outcome), ErrorClass::Protocol, "{:?}", outcome.result);
    assert!(
        message(&outcome).contains("does not answer in HTTP/2"),
        "{}",
        message(&outcome)
    );
}

#[test]
fn timeout_names_the_phase_of_the_request() {
    let server = H2Server::start(100, |_| streamed([(20_000, String::new())]));
    let client = Client::of(TransportConfig {
        request_timeout: Duration::from_millis(300),
        ..server.config()
    });
    let outcome = client.ask(0);
    assert_eq!(class(&outcome), ErrorClass::Timeout);
    assert!(
        message(&outcome).contains("in the middle of the answer, after 0 events"),
        "{}",
        message(&outcome)
    );
    // The connection was not the cause.
    assert!(client.ask(1).connection.reused);
}

#[test]
fn a_connection_that_is_lost_ends_every_stream_on_it_once() {
    // A server that only begins: SETTINGS, and then the end.
    let server = Server::start(|number, mut stream, _| {
        let _ = stream.read(&mut [0; 24]);
        let _ = stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
        std::thread::sleep(Duration::from_millis(200 + number as u64));
    });
    let client = Client::of(TransportConfig {
        http: HttpProtocol::Http2,
        ..TransportConfig::new(target(&server.base()))
    });
    for session in 0..5 {
        client.transport.submit(job(session, "hi"));
    }
    let outcomes: Vec<_> = (0..5).map(|_| client.outcome()).collect();
    assert!(
        outcomes
            .iter()
            .all(|outcome| class(outcome) == ErrorClass::Truncated)
    );
    // The first request failed on its new connection; the others had one retry.
    let retried = outcomes.iter().filter(|outcome| outcome.connection.retried);
    assert_eq!(retried.count(), 4);
    client.transport.stop();
    assert!(client.outcomes.try_recv().is_err());
}
