//! Input and output of HTTP/2, arranged so that each event gets the time of the read that completed
//! it.
//!
//! Many streams share a connection, and a separate task reads it. After each read that task
//! therefore pauses until the tasks that the read woke have run. Tasks run in the order in which
//! they were woken, so until then [`Newest`](crate::receiver::Newest) describes the read that woke
//! them. The head of an answer passes through one task more than its body, hence two pauses.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use veeksha_clock::RunClock;
use veeksha_model::Nanos;

use crate::wire::Wire;

/// Turns of the other tasks between two reads.
const PAUSES: u8 = 2;

/// The requests of a connection that are being sent.
#[derive(Default)]
pub(crate) struct Outbox(RefCell<Vec<Rc<Sending>>>);

/// A request that is being sent.
#[derive(Default)]
pub(crate) struct Sending {
    /// Set once the last piece of the body was taken.
    taken: Cell<bool>,
    sent_at: Cell<Option<Nanos>>,
}

impl Sending {
    /// Records that the last piece of the body was taken.
    pub(crate) fn on_taken(&self) {
        self.taken.set(true);
    }

    /// Returns the time at which the last byte of the request was passed to the socket, or `None`
    /// before that.
    pub(crate) fn sent_at(&self) -> Option<Nanos> {
        self.sent_at.get()
    }
}

impl Outbox {
    /// Adds a request that is about to be sent.
    pub(crate) fn begin(&self) -> Rc<Sending> {
        let sending = Rc::new(Sending::default());
        self.0.borrow_mut().push(Rc::clone(&sending));
        sending
    }

    /// Records that everything taken so far was flushed at this time. Drops requests whose flights
    /// have ended.
    fn on_flushed(&self, at: Nanos) {
        self.0.borrow_mut().retain(|sending| {
            if sending.taken.get() {
                sending.sent_at.set(Some(at));
            }
            !sending.taken.get() && Rc::strong_count(sending) > 1
        });
    }
}

/// The socket of an HTTP/2 connection; see the module documentation for its pauses.
pub(crate) struct H2Io {
    wire: Wire,
    clock: RunClock,
    outbox: Rc<Outbox>,
    /// Notified of the first read.
    begun: Rc<Notify>,
    /// Number of pauses still due.
    pauses: u8,
}

impl H2Io {
    pub(crate) fn new(wire: Wire, clock: RunClock, outbox: Rc<Outbox>, begun: Rc<Notify>) -> Self {
        H2Io {
            wire,
            clock,
            outbox,
            begun,
            pauses: 0,
        }
    }
}

impl AsyncRead for H2Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.pauses > 0 {
            self.pauses -= 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let size = ready!(self.wire.poll_receive(cx, buffer.initialize_unfilled()))?;
        buffer.advance(size);
        self.pauses = PAUSES;
        if self.wire.newest().stamp().read > 0 {
            self.begun.notify_one();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for H2Io {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.wire.poll_send(cx, [bytes, &[]])
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.wire.poll_flush(cx))?;
        self.outbox.on_flushed(self.clock.now());
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.wire {
            Wire::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Wire::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
        }
    }
}
