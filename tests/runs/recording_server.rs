//! A server that records the bytes that it receives.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// The headers of a request, by lower-case name, and its path as `:path`.
pub(crate) type Head = BTreeMap<String, String>;

/// Received requests, in the order of their arrival: heads and bodies.
type Received = Arc<Mutex<Vec<(Head, Vec<u8>)>>>;

pub(crate) struct RecordingServer {
    pub(crate) api_base: String,
    received: Received,
}

impl RecordingServer {
    /// Starts a server that answers each request with `stream`, in which `ID` is the number of the
    /// answer.
    pub(crate) fn repeating(stream: &'static str) -> Self {
        RecordingServer::start(move |number| stream.replace("ID", &number.to_string()))
    }

    /// Starts a server that answers request `number`, from 1, with the events of `answer(number)`.
    /// The id of the response in its head is `of-the-head`, or, if the request has the header
    /// `x-repeat-id`, the one that the client sent.
    pub(crate) fn start(answer: impl Fn(usize) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let received = Received::default();
        let (of_server, answer) = (Arc::clone(&received), Arc::new(answer));
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (received, answer) = (Arc::clone(&of_server), Arc::clone(&answer));
                std::thread::spawn(move || while serve(&connection, &*answer, &received).is_some() {});
            }
        });
        RecordingServer {
            api_base: format!("http://{address}/v1"),
            received,
        }
    }

    pub(crate) fn heads(&self) -> Vec<Head> {
        let received = self.received.lock().expect("no test has failed");
        received.iter().map(|(head, _)| head.clone()).collect()
    }

    pub(crate) fn bodies(&self) -> Vec<Value> {
        let received = self.received.lock().expect("no test has failed");
        let bodies = received.iter().map(|(_, body)| serde_json::from_slice(body));
        bodies.collect::<Result<_, _>>().expect("JSON")
    }
}

/// Reads one request and answers it; `None` when the client has closed the connection.
fn serve(mut connection: &TcpStream, answer: &dyn Fn(usize) -> String, received: &Received) -> Option<()> {
    let mut reader = BufReader::new(connection);
    let mut head = Head::new();
    let mut line = String::new();
    while reader.read_line(&mut line).ok()? > 2 {
        if let Some((path, _)) = line.strip_prefix("POST ").and_then(|rest| rest.split_once(' ')) {
            head.insert(":path".to_owned(), path.to_owned());
        } else if let Some((name, value)) = line.split_once(": ") {
            let before = head.insert(name.to_ascii_lowercase(), value.trim_end().to_owned());
            assert_eq!(before, None, "{name} is sent once");
        }
        line.clear();
    }
    let mut body = vec![0; head.get("content-length")?.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    let repeats_id = head.contains_key("x-repeat-id");
    let id = if repeats_id {
        &*head["x-request-id"]
    } else {
        "of-the-head"
    };
    let id = id.to_owned();
    let mut received = received.lock().expect("no test has failed");
    received.push((head, body));
    let body = answer(received.len());
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-request-id: {id}");
    write!(connection, "{head}\r\ncontent-length: {length}\r\n\r\n{body}").ok()
}
