//! Notes when bytes came from and went to the socket.
//!
//! Two layers, because of TLS: [`StampedSocket`] lies directly on the TCP stream and stamps each read that returned bytes and
//! each write; [`WatchedIo`] lies directly below the HTTP client and knows which of those reads brought the first byte of an
//! answer (not of a TLS session ticket) and which write carried the last byte of the request.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use veeksha_clock::RunClock;
use veeksha_model::Nanos;

use veeksha_dialect::stream::ReadStamp;

/// What a connection's two layers write down; shared by everything on the client thread that handles the connection.
#[derive(Debug)]
pub(crate) struct Stamps {
    clock: RunClock,
    reads: Cell<u64>,
    last_read: Cell<Nanos>,
    last_write: Cell<Nanos>,
    first_byte: Cell<Option<Nanos>>,
    body_taken: Cell<bool>,
    sent: Cell<Option<Nanos>>,
}

impl Stamps {
    pub(crate) fn new(clock: RunClock) -> Rc<Self> {
        Rc::new(Stamps {
            clock,
            reads: Cell::new(0),
            last_read: Cell::new(0),
            last_write: Cell::new(0),
            first_byte: Cell::new(None),
            body_taken: Cell::new(false),
            sent: Cell::new(None),
        })
    }

    /// Another request begins on the connection.
    pub(crate) fn begin_request(&self) {
        self.first_byte.set(None);
        self.body_taken.set(false);
        self.sent.set(None);
    }

    /// The HTTP client has taken the last bytes of the request.
    pub(crate) fn request_body_taken(&self) {
        self.body_taken.set(true);
    }

    /// The last read that returned bytes.
    pub(crate) fn last_read(&self) -> ReadStamp {
        ReadStamp {
            at: self.last_read.get(),
            read: self.reads.get(),
            lag: 0,
        }
    }

    /// The first read after [`Stamps::begin_request`].
    pub(crate) fn first_byte_at(&self) -> Option<Nanos> {
        self.first_byte.get()
    }

    /// When the request's last byte was handed to the socket, once that has happened.
    pub(crate) fn sent_at(&self) -> Option<Nanos> {
        self.sent.get()
    }

    fn on_read(&self) {
        self.reads.set(self.reads.get() + 1);
        self.last_read.set(self.clock.now());
    }

    fn on_answer_bytes(&self) {
        if self.first_byte.get().is_none() {
            self.first_byte.set(Some(self.last_read.get()));
        }
    }

    fn on_write(&self) {
        self.last_write.set(self.clock.now());
    }

    fn on_flushed(&self) {
        if self.body_taken.get() && self.sent.get().is_none() {
            self.sent.set(Some(self.last_write.get()));
        }
    }
}

/// A TCP stream whose reads and writes are stamped. The pool keeps the other handle, to look at an idle connection; all of
/// them live on one thread and no borrow outlives a poll.
#[derive(Debug)]
pub(crate) struct StampedSocket {
    pub(crate) socket: Rc<RefCell<TcpStream>>,
    pub(crate) stamps: Rc<Stamps>,
}

impl AsyncRead for StampedSocket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut *self.socket.borrow_mut()).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.stamps.on_read();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for StampedSocket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut *self.socket.borrow_mut()).poll_write(cx, buf))?;
        self.stamps.on_write();
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut *self.socket.borrow_mut()).poll_write_vectored(cx, bufs))?;
        self.stamps.on_write();
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.borrow().is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.socket.borrow_mut()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.socket.borrow_mut()).poll_shutdown(cx)
    }
}

/// With or without TLS.
#[derive(Debug)]
pub(crate) enum Wire {
    /// `http`.
    Plain(StampedSocket),
    /// `https`.
    Tls(Box<TlsStream<StampedSocket>>),
}

/// What the HTTP client reads from and writes to. The client flushes only after it has written all it had, so the first
/// flush after it took the request's body means that the whole request is out.
#[derive(Debug)]
pub(crate) struct WatchedIo {
    pub(crate) wire: Wire,
    pub(crate) stamps: Rc<Stamps>,
}

/// Calls a method of whichever stream it is.
macro_rules! on_wire {
    ($io:expr, $stream:ident => $call:expr) => {
        match &mut $io.wire {
            Wire::Plain(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            Wire::Tls(stream) => {
                let $stream = Pin::new(stream.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for WatchedIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(on_wire!(self, stream => stream.poll_read(cx, buf)))?;
        if buf.filled().len() > before {
            self.stamps.on_answer_bytes();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WatchedIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        on_wire!(self, stream => stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        on_wire!(self, stream => stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.wire {
            Wire::Plain(stream) => stream.is_write_vectored(),
            Wire::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(on_wire!(self, stream => stream.poll_flush(cx)))?;
        self.stamps.on_flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_wire!(self, stream => stream.poll_shutdown(cx))
    }
}
