//! One request and its answer on a connection, from the pool or fresh, and the one retry that is safe.
//!
//! A server may close an idle connection at the very moment a request is written to it (llama.cpp does so after every
//! streamed reply). If a *reused* connection dies before any byte of an answer, the request is sent once more on a fresh
//! one, and the outcome says so. A fresh connection is never retried: that failure is the server's.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use hyper::{Method, Request, Response};
use tokio_rustls::TlsConnector;
use veeksha_clock::RunClock;
use veeksha_model::ErrorClass;
use veeksha_ports::{ConnectionUse, Job};

use crate::connection::{Connection, RequestBody};
use crate::pool::Pool;
use crate::stamped_io::Stamps;
use crate::status::status_failure;
use crate::target::{Server, Target};
use crate::url::Endpoint;
use veeksha_dialect::Failure;
use veeksha_dialect::one_line;
use veeksha_dialect::request_body;
use veeksha_dialect::sse::MAX_EVENT_BYTES;
use veeksha_dialect::stream::{AnswerStream, BodyEnd, ReadStamp, Verdict, whole_answer};

/// Bytes of an error's body that are read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// Connections counted over all client threads.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) opened: AtomicU64,
    pub(crate) reused: AtomicU64,
    pub(crate) retried: AtomicU64,
}

/// What all requests share.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) target: Arc<Target>,
    pub(crate) server: Arc<Server>,
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) headers: HeaderMap,
    pub(crate) tls: Option<TlsConnector>,
    pub(crate) clock: RunClock,
    pub(crate) counters: Arc<Counters>,
}

/// How far a request has come. It outlives the exchange when a deadline or a cancellation ends that.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) connection: ConnectionUse,
    pub(crate) status: Option<u16>,
    pub(crate) stamps: Option<Rc<Stamps>>,
    stream: AnswerStream,
    content_type: Option<String>,
    whole: Option<Verdict>,
}

impl Progress {
    /// What a person wants to know about a request that was given up.
    pub(crate) fn phase(&self) -> String {
        let chunks = self.stream.chunks().len();
        match &self.stamps {
            None => "while connecting".to_owned(),
            Some(stamps) if stamps.first_byte_at().is_none() && stamps.sent_at().is_none() => {
                "while sending the request".to_owned()
            }
            Some(stamps) if stamps.first_byte_at().is_none() => "while waiting for the answer".to_owned(),
            Some(_) => format!("in the middle of the answer, after {chunks} events"),
        }
    }

    /// The verdict, after the exchange has ended in the given way.
    pub(crate) fn verdict(self, end: Result<(), Failure>) -> Verdict {
        let last_read = self.stamps.as_ref().map_or(
            ReadStamp {
                at: 0,
                lag: 0,
                read: 0,
            },
            |stamps| stamps.last_read(),
        );
        let end = match (self.whole, end) {
            (Some(verdict), Ok(())) => return verdict,
            (_, Ok(())) => BodyEnd::Complete,
            (_, Err(failure)) => BodyEnd::Broken(failure),
        };
        self.stream.finish(last_read, self.content_type.as_deref(), end)
    }
}

/// Sends a job's request and reads its answer to the end.
pub(crate) async fn exchange(
    route: &Route,
    pool: &RefCell<Pool>,
    job: &Job,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let body = Bytes::from(request_body(&route.target.api, &job.request, &job.history)?);
    // Digits and a slash: always a valid header.
    let id = HeaderValue::from_str(&job.id.to_string()).unwrap_or(HeaderValue::from_static("unknown"));
    let pooled = pool.borrow_mut().take();
    if let Some(connection) = pooled {
        progress.connection.reused = true;
        route.counters.reused.fetch_add(1, Ordering::Relaxed);
        match send(route, connection, &body, &id, progress).await {
            Ok((connection, response)) => return receive(route, pool, connection, response, progress).await,
            Err((_, Answered::No)) => {
                progress.connection = ConnectionUse {
                    retried: true,
                    ..ConnectionUse::default()
                };
                progress.stamps = None;
                route.counters.retried.fetch_add(1, Ordering::Relaxed);
            }
            Err((failure, Answered::Begun)) => return Err(failure),
        }
    }
    let opened = Connection::open(
        &route.endpoint,
        route.tls.as_ref(),
        route.clock,
        &mut progress.connection,
    )
    .await?;
    route.counters.opened.fetch_add(1, Ordering::Relaxed);
    let (connection, response) = send(route, opened, &body, &id, progress)
        .await
        .map_err(|(failure, _)| failure)?;
    receive(route, pool, connection, response, progress).await
}

/// Names the request in the server's logs: `session/node`, as in the run's own files.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Whether any byte of an answer had come when a request failed.
enum Answered {
    No,
    Begun,
}

async fn send(
    route: &Route,
    mut connection: Connection,
    body: &Bytes,
    id: &HeaderValue,
    progress: &mut Progress,
) -> Result<(Connection, Response<Incoming>), (Failure, Answered)> {
    let stamps = Rc::clone(connection.stamps());
    stamps.begin_request();
    progress.stamps = Some(Rc::clone(&stamps));
    let mut request = Request::new(RequestBody::new(body.clone(), Rc::clone(&stamps)));
    *request.method_mut() = Method::POST;
    *request.headers_mut() = route.headers.clone();
    // A name of the user's own wins.
    request
        .headers_mut()
        .entry(REQUEST_ID)
        .or_insert_with(|| id.clone());
    match route.endpoint.path_and_query.parse() {
        Ok(uri) => *request.uri_mut() = uri,
        Err(error) => {
            let message = format!(
                "the path `{}` cannot be sent: {error}",
                route.endpoint.path_and_query
            );
            return Err((Failure::new(ErrorClass::Protocol, message), Answered::Begun));
        }
    }
    match connection.send(request).await {
        Ok(response) => Ok((connection, response)),
        Err(error) => {
            let answered = if stamps.first_byte_at().is_none() {
                Answered::No
            } else {
                Answered::Begun
            };
            Err((head_failure(&route.endpoint, &stamps, &error), answered))
        }
    }
}

async fn receive(
    route: &Route,
    pool: &RefCell<Pool>,
    mut connection: Connection,
    response: Response<Incoming>,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let (head, mut body) = response.into_parts();
    let status = head.status.as_u16();
    progress.status = Some(status);
    let header = |name| {
        head.headers
            .get(name)
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    if !head.status.is_success() {
        let (bytes, whole) = collect(&mut connection, &mut body, MAX_ERROR_BYTES).await;
        if whole {
            release(pool, connection).await;
        }
        return Err(status_failure(
            &route.target,
            &route.server,
            status,
            header(LOCATION).as_deref(),
            &bytes,
        ));
    }
    if let Some(encoding) =
        header(CONTENT_ENCODING).filter(|encoding| !encoding.eq_ignore_ascii_case("identity"))
    {
        let message =
            format!("the answer is compressed ({encoding}) although `Accept-Encoding: identity` was sent");
        return Err(Failure::with_status(
            ErrorClass::Protocol,
            Some(status),
            one_line(&message),
        ));
    }
    progress.content_type = header(CONTENT_TYPE).map(|kind| kind.to_ascii_lowercase());
    read_answer(&mut connection, &mut body, progress).await?;
    release(pool, connection).await;
    Ok(())
}

/// Reads a 2xx body to its very end: never only to `[DONE]`, or the connection could not be used again.
async fn read_answer(
    connection: &mut Connection,
    body: &mut Incoming,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let stamps = Rc::clone(connection.stamps());
    let is_json = progress
        .content_type
        .as_deref()
        .is_some_and(|kind| kind.starts_with("application/json"));
    let mut whole: Option<Vec<u8>> = None;
    let mut first = true;
    while let Some(piece) = connection.next_piece(body).await {
        let piece = piece.map_err(|error| body_failure(&error))?;
        if piece.is_empty() {
            continue;
        }
        // A server that was asked for a stream and says JSON may mean either; the first byte tells.
        if std::mem::take(&mut first) && is_json && piece.trim_ascii_start().starts_with(b"{") {
            whole = Some(Vec::new());
        }
        match &mut whole {
            Some(bytes) if bytes.len() + piece.len() > MAX_EVENT_BYTES => {
                let message = format!("the JSON answer is larger than {MAX_EVENT_BYTES} bytes");
                return Err(Failure::new(ErrorClass::Protocol, message));
            }
            Some(bytes) => bytes.extend_from_slice(&piece),
            None if progress.stream.on_bytes(stamps.last_read(), &piece) => {}
            None => {
                return Err(Failure::new(
                    ErrorClass::Protocol,
                    "the rest of the answer was not read",
                ));
            }
        }
    }
    progress.whole = whole.map(|bytes| whole_answer(stamps.last_read(), &bytes));
    Ok(())
}

/// A body of limited interest; also whether it was read to its end.
async fn collect(connection: &mut Connection, body: &mut Incoming, limit: usize) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    loop {
        match connection.next_piece(body).await {
            None => return (bytes, true),
            Some(Ok(piece)) if bytes.len() + piece.len() <= limit => bytes.extend_from_slice(&piece),
            Some(_) => return (bytes, false),
        }
    }
}

async fn release(pool: &RefCell<Pool>, mut connection: Connection) {
    if connection.settle().await {
        pool.borrow_mut().give_back(connection);
    }
}

/// Why no head of an answer came.
fn head_failure(endpoint: &Endpoint, stamps: &Stamps, error: &hyper::Error) -> Failure {
    let place = endpoint.place();
    let cause = causes(error);
    if error.is_parse() {
        return Failure::new(
            ErrorClass::Protocol,
            one_line(&format!("{place} does not answer in HTTP/1.1: {cause}")),
        );
    }
    if stamps.first_byte_at().is_some() {
        let message = format!("{place} closed the connection in the middle of the answer's head: {cause}");
        return Failure::new(ErrorClass::Truncated, one_line(&message));
    }
    if stamps.sent_at().is_none() {
        let message = format!("{place} closed the connection before the request was sent: {cause}");
        return Failure::new(ErrorClass::Connect, one_line(&message));
    }
    let message = format!("{place} closed the connection without an answer: {cause}");
    Failure::new(ErrorClass::Truncated, one_line(&message))
}

/// Why a body did not come to its end.
fn body_failure(error: &hyper::Error) -> Failure {
    let io = std::error::Error::source(error).and_then(|source| source.downcast_ref::<std::io::Error>());
    let invalid = io.is_some_and(|io| {
        matches!(
            io.kind(),
            std::io::ErrorKind::InvalidInput | std::io::ErrorKind::InvalidData
        )
    });
    let cause = causes(error);
    if invalid {
        let message = format!("the answer's body is not what HTTP/1.1 describes: {cause}");
        return Failure::new(ErrorClass::Protocol, one_line(&message));
    }
    let message = format!("the connection was lost in the middle of the answer: {cause}");
    Failure::new(ErrorClass::Truncated, one_line(&message))
}

/// An error and what lies below it.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let words = source.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        next = source.source();
    }
    text
}
