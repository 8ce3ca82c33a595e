//! What HTTP/2 reads from and writes to, so that each event gets the time of the read that completed it.
//!
//! Many streams share a connection, and the task that reads it is none of theirs. After each read it therefore pauses, until the tasks
//! that the read has woken have run: tasks run in the order in which they were woken, so until then [`Newest`] tells of the
//! read that woke them. The head of an answer goes through one task more than its body, hence two pauses.

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
    /// The last piece of the body was taken.
    taken: Cell<bool>,
    sent_at: Cell<Option<Nanos>>,
}

impl Sending {
    /// The last piece of the body was taken.
    pub(crate) fn on_taken(&self) {
        self.taken.set(true);
    }

    /// When the request's last byte was handed to the socket, once that has happened.
    pub(crate) fn sent_at(&self) -> Option<Nanos> {
        self.sent_at.get()
    }
}

impl Outbox {
    /// Another request is about to be sent.
    pub(crate) fn begin(&self) -> Rc<Sending> {
        let sending = Rc::new(Sending::default());
        self.0.borrow_mut().push(Rc::clone(&sending));
        sending
    }

    /// Everything that was taken has left, at this time. Requests that nobody waits for any more are forgotten.
    fn on_flushed(&self, at: Nanos) {
        self.0.borrow_mut().retain(|sending| {
            if sending.taken.get() {
                sending.sent_at.set(Some(at));
            }
            !sending.taken.get() && Rc::strong_count(sending) > 1
        });
    }
}

/// See the module.
pub(crate) struct H2Io {
    wire: Wire,
    clock: RunClock,
    outbox: Rc<Outbox>,
    /// Told of the first read.
    begun: Rc<Notify>,
    /// Pauses that are still due.
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
