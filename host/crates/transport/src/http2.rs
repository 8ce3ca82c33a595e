//! HTTP/2, based on hyper: many concurrent requests on one connection of a client thread to a
//! server. Another connection is opened when the server allows no more streams on the first.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http2;
use hyper::{Method, Request, Response, Version};
use hyper_util::rt::TokioIo;
use tokio::sync::Notify;
use veeksha_endpoint::{Failure, one_line};
use veeksha_model::ErrorClass;

use crate::client_context::ClientContext;
use crate::connecting;
use crate::connection::Lost;
use crate::exchange::Requested;
use crate::flight::Flight;
use crate::h2_io::{H2Io, Outbox, Sending};
use crate::pool::Owner;
use crate::prepared_server::PreparedServer;
use crate::receiver::Newest;
use crate::wire::Wire;

/// Maximum number of owners that one thread remembers. Only sessions with separate connections can
/// reach it.
const MAX_OWNERS: usize = 8 * 1024;

/// Bytes of a body that are passed on at once: one frame of the default size.
const PIECE_BYTES: usize = 16 * 1024;

/// The connections of one client thread.
#[derive(Default)]
pub(crate) struct Http2Connections {
    groups: HashMap<Owner, Rc<ConnectionGroup>>,
}

/// Connections that the same requests may use.
#[derive(Default)]
struct ConnectionGroup {
    connections: RefCell<Vec<Rc<Http2Connection>>>,
    /// Locked while a connection is opened, so that simultaneous requests share it.
    opening: tokio::sync::Mutex<()>,
}

/// The part of a connection that assigns requests to streams, separate from the socket.
type Http2Driver = Pin<Box<http2::Connection<TokioIo<H2Io>, RequestBody, ThisThread>>>;

struct Http2Connection {
    sender: http2::SendRequest<RequestBody>,
    newest: Rc<Newest>,
    outbox: Rc<Outbox>,
    /// Holds the number of concurrent streams that the server allows. Dropped with the connection,
    /// together with the requests that wait in it.
    driver: Rc<RefCell<Option<Http2Driver>>>,
    /// The error that ended the connection, if any.
    ended_by: Rc<RefCell<Option<hyper::Error>>>,
    streams: Cell<usize>,
    used: Cell<bool>,
}

impl Http2Connection {
    /// Returns the stream limit. A server that currently allows no stream gets one request, which
    /// waits in the connection.
    fn limit(&self) -> usize {
        match &*self.driver.borrow() {
            Some(driver) => driver.current_max_send_streams().max(1),
            None => 0,
        }
    }

    fn has_room(&self) -> bool {
        !self.sender.is_closed() && self.streams.get() < self.limit()
    }
}

/// A reserved stream on a connection.
struct ReservedStream {
    connection: Rc<Http2Connection>,
    reused: bool,
}

impl ReservedStream {
    fn on(connection: &Rc<Http2Connection>) -> Self {
        connection.streams.set(connection.streams.get() + 1);
        ReservedStream {
            connection: Rc::clone(connection),
            reused: connection.used.replace(true),
        }
    }
}

impl Drop for ReservedStream {
    fn drop(&mut self) {
        self.connection.streams.set(self.connection.streams.get() - 1);
    }
}

impl ConnectionGroup {
    fn with_room(&self) -> Option<ReservedStream> {
        let mut connections = self.connections.borrow_mut();
        connections.retain(|connection| !connection.sender.is_closed());
        connections
            .iter()
            .find(|connection| connection.has_room())
            .map(ReservedStream::on)
    }
}

impl Http2Connections {
    fn group(&mut self, owner: Owner) -> Rc<ConnectionGroup> {
        if self.groups.len() >= MAX_OWNERS && !self.groups.contains_key(&owner) {
            // Groups that no request uses now. Their connections close with them.
            self.groups.retain(|_, group| {
                Rc::strong_count(group) > 1
                    || group
                        .connections
                        .borrow()
                        .iter()
                        .any(|connection| connection.streams.get() > 0)
            });
        }
        Rc::clone(self.groups.entry(owner).or_default())
    }
}

/// Sends a flight's request over HTTP/2 and reads its answer to the end.
pub(crate) async fn exchange(
    context: &ClientContext,
    connections: &RefCell<Http2Connections>,
    flight: &RefCell<Flight>,
) -> Result<(), Failure> {
    let route = &context.route;
    let Some(of) = Requested::by(flight) else {
        return Ok(());
    };
    let server = &route.servers[usize::from(of.server)];
    let owner = Owner::of(route.connections, of.server, of.session);
    let group = owner.map(|owner| connections.borrow_mut().group(owner));
    let request = request(server, flight)?;
    let stream = match &group {
        Some(group) => shared(context, server, flight, group).await?,
        None => ReservedStream::on(&Box::pin(open(context, server, flight)).await?),
    };
    flight.borrow_mut().on_carried(stream.reused);
    if !stream.reused {
        return Ok(converse(flight, context, server, &stream, request).await?);
    }
    route.counters.reused.fetch_add(1, Ordering::Relaxed);
    match converse(flight, context, server, &stream, request.clone()).await {
        Ok(()) => return Ok(()),
        Err(Lost::Failed(failure)) => return Err(failure),
        Err(Lost::Unanswered(_)) => {}
    }
    drop(stream);
    flight.borrow_mut().on_lost_unanswered();
    route.counters.retried.fetch_add(1, Ordering::Relaxed);
    let fresh = Box::pin(open(context, server, flight)).await?;
    if let Some(group) = &group {
        group.connections.borrow_mut().push(Rc::clone(&fresh));
    }
    let stream = ReservedStream::on(&fresh);
    flight.borrow_mut().on_carried(false);
    Ok(converse(flight, context, server, &stream, request).await?)
}

/// Reserves a stream on a connection of the group. Opens a connection if all are full.
async fn shared(
    context: &ClientContext,
    server: &PreparedServer,
    flight: &RefCell<Flight>,
    group: &ConnectionGroup,
) -> Result<ReservedStream, Failure> {
    if let Some(stream) = group.with_room() {
        return Ok(stream);
    }
    let _opening = group.opening.lock().await;
    if let Some(stream) = group.with_room() {
        return Ok(stream);
    }
    let connection = Box::pin(open(context, server, flight)).await?;
    let stream = ReservedStream::on(&connection);
    group.connections.borrow_mut().push(connection);
    Ok(stream)
}

/// Opens a connection and waits for the server's preface.
async fn open(
    context: &ClientContext,
    server: &PreparedServer,
    flight: &RefCell<Flight>,
) -> Result<Rc<Http2Connection>, Failure> {
    let route = &context.route;
    let opening = Rc::clone(flight.borrow().opening());
    context.on_opening(&flight.borrow());
    let wire = connecting::open(route, server, &context.receiver, &opening.used, &opening.step).await?;
    if let Wire::Tls(stream) = &wire
        && stream.get_ref().1.alpn_protocol() != Some(b"h2")
    {
        let message = format!(
            "{} does not agree to HTTP/2; set client.http_version to http1",
            server.address.place()
        );
        return Err(Failure::new(ErrorClass::Protocol, message));
    }
    route.counters.opened.fetch_add(1, Ordering::Relaxed);
    let newest = Rc::clone(wire.newest());
    let outbox = Rc::new(Outbox::default());
    let begun = Rc::new(Notify::new());
    let io = TokioIo::new(H2Io::new(
        wire,
        route.clock,
        Rc::clone(&outbox),
        Rc::clone(&begun),
    ));
    let (sender, driver) = http2::Builder::new(ThisThread)
        .handshake(io)
        .await
        .map_err(|error| failure(server, &error, AnswerStage::Head))?;
    let driver = Rc::new(RefCell::new(Some(Box::pin(driver))));
    let moved = Rc::clone(&driver);
    let ended = Rc::clone(&begun);
    let ended_by = Rc::new(RefCell::new(None));
    let why = Rc::clone(&ended_by);
    tokio::task::spawn_local(async move {
        // Every task that waits for an answer is notified how the connection ended.
        let end = poll_fn(|cx| match moved.borrow_mut().as_mut() {
            Some(driver) => driver.as_mut().poll(cx),
            None => Poll::Ready(Ok(())),
        })
        .await;
        *why.borrow_mut() = end.err();
        *moved.borrow_mut() = None;
        ended.notify_one();
    });
    // The server's first frame contains its stream limit. Until it is processed, a second request
    // would wait inside the library, where this module cannot observe it.
    begun.notified().await;
    for _ in 0..4 {
        tokio::task::yield_now().await;
    }
    Ok(Rc::new(Http2Connection {
        sender,
        newest,
        outbox,
        driver,
        ended_by,
        streams: Cell::new(0),
        used: Cell::new(false),
    }))
}

/// Runs hyper's tasks on their client thread.
#[derive(Clone, Copy)]
struct ThisThread;

impl<F> hyper::rt::Executor<F> for ThisThread
where
    F: Future + 'static,
    F::Output: 'static,
{
    fn execute(&self, task: F) {
        tokio::task::spawn_local(task);
    }
}

fn request(server: &PreparedServer, flight: &RefCell<Flight>) -> Result<Request<Bytes>, Failure> {
    let body = flight.borrow_mut().build_body()?;
    let flight = flight.borrow();
    let mut request = Request::new(Bytes::from(body));
    *request.method_mut() = Method::POST;
    *request.version_mut() = Version::HTTP_2;
    *request.uri_mut() = server.uri.clone();
    if let Some(job) = flight.job() {
        *request.headers_mut() = server.headers.map_of(job)?;
    }
    Ok(request)
}

async fn converse(
    flight: &RefCell<Flight>,
    context: &ClientContext,
    server: &PreparedServer,
    stream: &ReservedStream,
    request: Request<Bytes>,
) -> Result<(), Lost> {
    let connection = &stream.connection;
    let sending = connection.outbox.begin();
    flight.borrow_mut().on_sending(Rc::clone(&sending));
    let (head, body) = request.into_parts();
    let request = Request::from_parts(head, RequestBody::new(body, sending));
    let answer = connection.sender.clone().send_request(request).await;
    let mut response = match answer {
        Ok(response) => response,
        Err(error) => {
            let ended_by = connection.ended_by.borrow();
            // A request that found the connection closed does not carry the cause.
            let error = ended_by
                .as_ref()
                .filter(|_| error.is_canceled())
                .unwrap_or(&error);
            let failure = failure(server, error, AnswerStage::Head);
            // Only requests lost with the connection are retried, not those that the server
            // refused.
            let lost = failure.class == ErrorClass::Truncated && !failure.message.contains("stream error");
            return Err(if stream.reused && lost {
                Lost::Unanswered(failure)
            } else {
                Lost::Failed(failure)
            });
        }
    };
    let fail = Lost::Failed;
    take_head(flight, connection, &response).map_err(fail)?;
    let body = response.body_mut();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
        let frame = frame.map_err(|error| fail(failure(server, &error, AnswerStage::Body)))?;
        if let Ok(bytes) = frame.into_data()
            && !bytes.is_empty()
            && !take_body(flight, context, connection, &bytes).map_err(fail)?
        {
            break;
        }
    }
    Ok(())
}

fn take_head(
    flight: &RefCell<Flight>,
    connection: &Http2Connection,
    response: &Response<Incoming>,
) -> Result<(), Failure> {
    let mut flight = flight.borrow_mut();
    flight.on_read(connection.newest.stamp(), connection.newest.all_kernel());
    flight.on_head_fields(response.status().as_u16(), |name| {
        let value = response.headers().get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    })
}

fn take_body(
    flight: &RefCell<Flight>,
    context: &ClientContext,
    connection: &Http2Connection,
    bytes: &[u8],
) -> Result<bool, Failure> {
    let stamp = connection.newest.stamp();
    let mut flight = flight.borrow_mut();
    flight.on_read(stamp, connection.newest.all_kernel());
    let wanted = flight.on_body(stamp, bytes, || context.budget())?;
    flight.after_read(|| context.budget())?;
    Ok(wanted)
}

/// Progress of an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnswerStage {
    Head,
    Body,
}

fn failure(server: &PreparedServer, error: &hyper::Error, at: AnswerStage) -> Failure {
    let place = server.address.place();
    let cause = causes(error);
    let lost_or_reset = error.is_canceled()
        || error.is_closed()
        || error.is_incomplete_message()
        || has_io(error)
        // The text with which h2 marks an error of the peer: a stream reset or a GOAWAY.
        || cause.contains("error received");
    let (class, message) = match (lost_or_reset, at) {
        (true, AnswerStage::Head) => (
            ErrorClass::Truncated,
            format!("{place} closed the connection without an answer: {cause}"),
        ),
        (true, AnswerStage::Body) => (
            ErrorClass::Truncated,
            format!("the connection was lost in the middle of the answer: {cause}"),
        ),
        (false, AnswerStage::Head) => (
            ErrorClass::Protocol,
            format!("{place} does not answer in HTTP/2: {cause}"),
        ),
        (false, AnswerStage::Body) => (
            ErrorClass::Protocol,
            format!("the answer is not what HTTP/2 describes: {cause}"),
        ),
    };
    Failure::new(class, one_line(&message))
}

/// Returns true if an I/O error is among the causes.
fn has_io(error: &hyper::Error) -> bool {
    let mut next = std::error::Error::source(error);
    while let Some(source) = next {
        if source.is::<std::io::Error>() {
            return true;
        }
        next = source.source();
    }
    false
}

/// Returns an error and its causes as text.
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

/// An in-memory body that is passed on in pieces, the next one only when the server has
/// flow-control capacity for it. The last piece is thus taken when all earlier ones are on their
/// way.
struct RequestBody {
    rest: Bytes,
    sending: Rc<Sending>,
}

impl RequestBody {
    fn new(rest: Bytes, sending: Rc<Sending>) -> Self {
        if rest.is_empty() {
            sending.on_taken();
        }
        RequestBody { rest, sending }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let size = self.rest.len().min(PIECE_BYTES);
        let piece = self.rest.split_to(size);
        if self.rest.is_empty() {
            self.sending.on_taken();
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
