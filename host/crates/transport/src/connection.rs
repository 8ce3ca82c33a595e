//! One HTTP/1.1 connection: opening it, sending one request at a time, telling whether it can be used again.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;
use veeksha_clock::RunClock;
use veeksha_model::ErrorClass;
use veeksha_ports::ConnectionUse;

use crate::stamped_io::{StampedSocket, Stamps, WatchedIo, Wire};
use crate::tls::handshake_message;
use crate::url::Endpoint;
use veeksha_dialect::Failure;

/// The largest read buffer of a connection; also the bound on an answer's head. The buffer starts at 8 KiB, which holds a head
/// and dozens of events.
const MAX_BUFFER_BYTES: usize = 16 * 1024;

/// What moves a connection's bytes when it is polled.
type Driver = Pin<Box<http1::Connection<TokioIo<WatchedIo>, RequestBody>>>;

/// A connection that has no request in flight, or exactly one.
pub(crate) struct Connection {
    sender: http1::SendRequest<RequestBody>,
    /// `None` once the connection is over. It is polled by whoever waits for an answer, so that a read and
    /// the work on what it brought happen in one go.
    driver: Option<Driver>,
    socket: Rc<RefCell<TcpStream>>,
    stamps: Rc<Stamps>,
}

impl Connection {
    /// Opens a connection and writes down how long that took.
    pub(crate) async fn open(
        endpoint: &Endpoint,
        tls: Option<&TlsConnector>,
        clock: RunClock,
        used: &mut ConnectionUse,
    ) -> Result<Self, Failure> {
        let started = clock.now();
        let socket = connect(endpoint).await?;
        let connected = clock.now();
        used.connect = Some(connected - started);
        let stamps = Stamps::new(clock);
        let socket = Rc::new(RefCell::new(socket));
        let stamped = StampedSocket {
            socket: Rc::clone(&socket),
            stamps: Rc::clone(&stamps),
        };
        let wire = match tls {
            None => Wire::Plain(stamped),
            Some(connector) => {
                let stream = handshake(endpoint, connector, stamped).await?;
                used.tls = Some(clock.now() - connected);
                Wire::Tls(Box::new(stream))
            }
        };
        let io = TokioIo::new(WatchedIo {
            wire,
            stamps: Rc::clone(&stamps),
        });
        let (sender, driver) = http1::Builder::new()
            .max_buf_size(MAX_BUFFER_BYTES)
            .handshake(io)
            .await
            .map_err(|error| Failure::new(ErrorClass::Connect, format!("{}: {error}", endpoint.place())))?;
        Ok(Connection {
            sender,
            driver: Some(Box::pin(driver)),
            socket,
            stamps,
        })
    }

    /// The connection's timestamps.
    pub(crate) fn stamps(&self) -> &Rc<Stamps> {
        &self.stamps
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, hyper::Error> {
        let answer = self.sender.send_request(request);
        drive(&mut self.driver, answer).await
    }

    /// The next piece of a body; `None` at its end.
    pub(crate) async fn next_piece(&mut self, body: &mut Incoming) -> Option<Result<Bytes, hyper::Error>> {
        loop {
            let frame = drive(
                &mut self.driver,
                poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)),
            )
            .await?;
            match frame.map(Frame::into_data) {
                Ok(Ok(data)) => return Some(Ok(data)),
                // Trailers.
                Ok(Err(_)) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Whether another request can be sent, after a body was read to its end.
    pub(crate) async fn settle(&mut self) -> bool {
        // The driver needs a turn to see that the answer has ended.
        poll_fn(|cx| {
            poll_driver(&mut self.driver, cx);
            Poll::Ready(())
        })
        .await;
        self.driver.is_some() && self.sender.is_ready()
    }

    /// Whether an idle connection looks alive: the server has neither closed it nor sent anything unasked. Between this look
    /// and the request it may still die.
    pub(crate) fn looks_alive(&self) -> bool {
        let mut byte = [0u8; 1];
        let flags = rustix::net::RecvFlags::PEEK | rustix::net::RecvFlags::DONTWAIT;
        let seen = rustix::net::recv(&*self.socket.borrow(), &mut byte[..], flags);
        matches!(seen, Err(Errno::AGAIN)) && self.sender.is_ready()
    }
}

/// Moves the connection's bytes while it waits for `future`. The driver goes first: what it reads is there when the future
/// is asked.
async fn drive<F: Future>(driver: &mut Option<Driver>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        poll_driver(driver, cx);
        future.as_mut().poll(cx)
    })
    .await
}

fn poll_driver(driver: &mut Option<Driver>, cx: &mut Context<'_>) {
    // How the connection ended is told to whoever waits for the answer, so the result adds nothing.
    if driver
        .as_mut()
        .is_some_and(|driver| driver.as_mut().poll(cx).is_ready())
    {
        *driver = None;
    }
}

async fn connect(endpoint: &Endpoint) -> Result<TcpStream, Failure> {
    let place = endpoint.place();
    let addresses = lookup_host((endpoint.host.as_str(), endpoint.port))
        .await
        .map_err(|error| {
            let words =
                no_descriptor(&error).unwrap_or_else(|| format!("the host name does not resolve: {error}"));
            Failure::new(ErrorClass::Connect, format!("{place}: {words}"))
        })?;
    let mut last = None;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(socket) => {
                socket
                    .set_nodelay(true)
                    .map_err(|error| Failure::new(ErrorClass::Connect, format!("{place}: {error}")))?;
                return Ok(socket);
            }
            Err(error) => last = Some(error),
        }
    }
    let words = match last {
        Some(error) => no_descriptor(&error).unwrap_or_else(|| match Errno::from_io_error(&error) {
            Some(Errno::CONNREFUSED) => "the connection was refused; is the server running there?".to_owned(),
            Some(Errno::ADDRNOTAVAIL) => {
                "no local port is left; too many connections were opened in a short time".to_owned()
            }
            _ => format!("no connection: {error}"),
        }),
        None => "the host name has no address".to_owned(),
    };
    Err(Failure::new(ErrorClass::Connect, format!("{place}: {words}")))
}

/// The message for a process or a system that cannot open another file.
fn no_descriptor(error: &io::Error) -> Option<String> {
    match Errno::from_io_error(error)? {
        Errno::MFILE => {
            let limit = getrlimit(Resource::Nofile).current;
            let limit = limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
            Some(format!(
                "no file descriptor is left (the limit is {limit}); raise it with `ulimit -n`"
            ))
        }
        Errno::NFILE => Some("the system has no file descriptor left (fs.file-max)".to_owned()),
        _ => None,
    }
}

async fn handshake(
    endpoint: &Endpoint,
    connector: &TlsConnector,
    socket: StampedSocket,
) -> Result<tokio_rustls::client::TlsStream<StampedSocket>, Failure> {
    let place = endpoint.place();
    let name = ServerName::try_from(endpoint.host.clone()).map_err(|error| {
        Failure::new(
            ErrorClass::Tls,
            format!("{place}: not a name a certificate can have: {error}"),
        )
    })?;
    connector
        .connect(name, socket)
        .await
        .map_err(|error| Failure::new(ErrorClass::Tls, handshake_message(&place, &error)))
}

/// The connector for a configuration.
pub(crate) fn connector(config: rustls::ClientConfig) -> TlsConnector {
    TlsConnector::from(Arc::new(config))
}

/// A body that is in memory, and that tells when it was taken.
pub(crate) struct RequestBody {
    data: Option<Bytes>,
    stamps: Rc<Stamps>,
}

impl RequestBody {
    /// A body for a request on the connection with these stamps.
    pub(crate) fn new(data: Bytes, stamps: Rc<Stamps>) -> Self {
        RequestBody {
            data: Some(data),
            stamps,
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.data.take().map(|data| {
            self.stamps.request_body_taken();
            Ok(Frame::data(data))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.data.as_ref().map_or(0, |data| data.len() as u64))
    }
}
