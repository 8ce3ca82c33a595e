//! Scripted servers on real sockets, and jobs to send to them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use veeksha_clock::RunClock;
use veeksha_endpoint::Api;
use veeksha_model::{
    ErrorClass, Message, NodeId, OutputSpec, Prepared, PreparedMessage, Request, RequestId, Role, Segment,
    SessionId,
};
use veeksha_ports::{Job, RequestOutcome, Sinks, Transport};
use veeksha_transport::{HttpTransport, Target, TransportConfig};

/// Long enough for a busy machine, short enough to notice a hang.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A request as received by a server.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    }
}

/// Reads one request; `None` when the peer has closed.
pub(crate) fn read_request(stream: &mut impl Read) -> Option<Seen> {
    let mut bytes = Vec::new();
    let mut byte = [0u8; 1];
    while !bytes.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        bytes.push(byte[0]);
    }
    let mut seen = Seen {
        head: String::from_utf8(bytes).unwrap(),
        body: Vec::new(),
    };
    let length = seen
        .header("content-length")
        .map_or(0, |length| length.parse().unwrap());
    seen.body = vec![0; length];
    stream.read_exact(&mut seen.body).ok()?;
    Some(seen)
}

/// A server that runs a script for each connection, on a separate thread.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) accepted: Arc<AtomicUsize>,
    pub(crate) seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Starts the server. `script` gets the number of the connection (from 0), the stream, and a
    /// log for requests.
    pub(crate) fn start(
        script: impl Fn(usize, TcpStream, &Mutex<Vec<Seen>>) + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (script, count, log) = (Arc::new(script), Arc::clone(&accepted), Arc::clone(&seen));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // A test may have used every descriptor; it frees them later.
                let Ok(stream) = stream else {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    continue;
                };
                let number = count.fetch_add(1, Ordering::SeqCst);
                let (script, log) = (Arc::clone(&script), Arc::clone(&log));
                stream.set_nodelay(true).unwrap();
                std::thread::spawn(move || script(number, stream, &log));
            }
        });
        Server {
            address,
            accepted,
            seen,
        }
    }

    /// Returns a server that answers every request on every connection with the same bytes.
    pub(crate) fn answering(answer: impl Into<Vec<u8>>) -> Server {
        let answer = answer.into();
        Server::start(move |_, mut stream, log| {
            while let Some(request) = read_request(&mut stream) {
                log.lock().unwrap().push(request);
                if stream.write_all(&answer).is_err() {
                    return;
                }
            }
        })
    }

    pub(crate) fn base(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Waits until the script has logged a request.
    pub(crate) fn await_request(&self) {
        let is_logged = (0..2_000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            !self.requests().is_empty()
        });
        assert!(is_logged, "no request has arrived");
    }
}

/// The head of a streamed answer.
pub(crate) const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// Returns one HTTP chunk.
pub(crate) fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

/// Returns a text event of the chat API.
pub(crate) fn text_event(text: &str) -> String {
    let text = serde_json::to_string(text).unwrap();
    format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text}}},\"finish_reason\":null}}]}}\n\n"
    )
}

/// The event with the finish reason, usage, and the end marker.
pub(crate) const FINISH: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";

/// Returns a complete valid answer: two texts, each in a separate HTTP chunk.
pub(crate) fn good_answer() -> String {
    format!(
        "{STREAM_HEAD}{}{}{}0\r\n\r\n",
        chunk(&text_event("Hello")),
        chunk(&text_event(" world")),
        chunk(FINISH)
    )
}

/// Returns a complete answer with a length.
pub(crate) fn plain_answer(status: &str, content_type: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub(crate) fn target(base: &str) -> Target {
    let api = Api {
        model: "tiny".to_owned(),
        ..Api::default()
    };
    Target::single(veeksha_transport::Server::at(base), api)
}

pub(crate) fn prepared(text: &str) -> Prepared {
    Prepared {
        request: Request {
            node: NodeId(0),
            messages: vec![Message::new(Role::User, vec![Segment::Text(text.to_owned())])],
            output: OutputSpec {
                target_tokens: Some(2),
                exact: false,
                form: None,
            },
            ..Request::default()
        },
        messages: vec![PreparedMessage::new(Role::User, text)],
        target_tokens: 1,
        prompt_tokens: 1,
        ..Prepared::default()
    }
}

pub(crate) fn job(session: u64, text: &str) -> Job {
    Job {
        id: RequestId {
            session: SessionId(session),
            node: NodeId(0),
        },
        intended: 0,
        held: Default::default(),
        dispatched_at: 0,
        request: Arc::new(prepared(text)),
        history: None,
        measured: true,
        session_requests: 1,
        reports_first_chunk: true,
    }
}

/// A transport and its outcomes.
pub(crate) struct Client {
    pub(crate) transport: HttpTransport,
    pub(crate) outcomes: Receiver<RequestOutcome>,
    /// The requests whose first generated chunk has arrived.
    pub(crate) first_chunks: Receiver<RequestId>,
    pub(crate) clock: RunClock,
}

impl Client {
    pub(crate) fn new(target: Target) -> Client {
        Client::with(target, PATIENCE, 1)
    }

    pub(crate) fn with(target: Target, request_timeout: Duration, threads: usize) -> Client {
        Client::of(TransportConfig {
            request_timeout,
            threads,
            ..TransportConfig::new(target)
        })
    }

    pub(crate) fn of(config: TransportConfig) -> Client {
        let clock = RunClock::starting_now();
        let (sender, outcomes): (Sender<RequestOutcome>, _) = channel();
        let sender = Mutex::new(sender);
        let (chunk_sender, first_chunks): (Sender<RequestId>, _) = channel();
        let chunk_sender = Mutex::new(chunk_sender);
        let sinks = Sinks {
            first_chunk: Arc::new(move |id, _| {
                let _ = chunk_sender.lock().unwrap().send(id);
            }),
            ..Sinks::outcomes(move |outcome| {
                let _ = sender.lock().unwrap().send(outcome);
            })
        };
        Client {
            transport: HttpTransport::start(config, clock, sinks).unwrap(),
            outcomes,
            first_chunks,
            clock,
        }
    }

    pub(crate) fn outcome(&self) -> RequestOutcome {
        self.outcomes.recv_timeout(PATIENCE).expect("an outcome")
    }

    /// Waits for the first chunks of as many requests.
    pub(crate) fn await_first_chunks(&self, requests: usize) {
        for _ in 0..requests {
            self.first_chunks.recv_timeout(PATIENCE).expect("a first chunk");
        }
    }

    /// Sends one request and waits for its outcome.
    pub(crate) fn ask(&self, session: u64) -> RequestOutcome {
        self.transport.submit(job(session, "hi"));
        self.outcome()
    }
}

/// Returns the class of the outcome's failure.
pub(crate) fn class(outcome: &RequestOutcome) -> ErrorClass {
    outcome.result.as_ref().expect_err("a failure").class
}

/// Returns the message of the outcome's failure.
pub(crate) fn message(outcome: &RequestOutcome) -> &str {
    &outcome.result.as_ref().expect_err("a failure").message
}

/// Returns a recorded answer.
pub(crate) fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!(
        "{}/../endpoint/tests/fixtures/sse/{name}",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap()
}
