//! The byte stream of a connection, with or without TLS.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use crate::receiver::{Newest, StampedSocket};

/// The byte stream of a connection, with or without TLS.
pub(crate) enum Wire {
    /// `http`.
    Plain(StampedSocket),
    /// `https`.
    Tls(Box<TlsStream<StampedSocket>>),
}

impl Wire {
    fn stamped(&self) -> &StampedSocket {
        match self {
            Wire::Plain(socket) => socket,
            Wire::Tls(stream) => stream.get_ref().0,
        }
    }

    /// Returns the stamps of the reads.
    pub(crate) fn newest(&self) -> &std::rc::Rc<Newest> {
        self.stamped().newest()
    }

    /// Returns true if the idle connection appears to be alive: the server has neither closed it
    /// nor sent unsolicited bytes. The connection may still fail between this check and the next
    /// request.
    pub(crate) fn looks_alive(&self) -> bool {
        let mut byte = [0u8; 1];
        let flags = rustix::net::RecvFlags::PEEK | rustix::net::RecvFlags::DONTWAIT;
        let seen = rustix::net::recv(self.stamped().socket(), &mut byte[..], flags);
        matches!(seen, Err(rustix::io::Errno::AGAIN))
    }

    /// Waits for bytes and reads them once; 0 is the end.
    pub(crate) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Wire::Plain(socket) => socket.poll_receive(cx, buffer),
            Wire::Tls(stream) => {
                let mut buffer = ReadBuf::new(buffer);
                ready!(Pin::new(stream.as_mut()).poll_read(cx, &mut buffer))?;
                Poll::Ready(Ok(buffer.filled().len()))
            }
        }
    }

    /// Writes as much as the socket accepts. Tries before it waits.
    pub(crate) fn poll_send(&mut self, cx: &mut Context<'_>, parts: [&[u8]; 2]) -> Poll<io::Result<usize>> {
        let slices = parts.map(IoSlice::new);
        match self {
            Wire::Plain(socket) => Pin::new(socket).poll_write_vectored(cx, &slices),
            // Uses one TLS record for data that fit into one record.
            Wire::Tls(stream) => Pin::new(stream.as_mut()).poll_write_vectored(cx, &slices),
        }
    }

    /// Waits until all written bytes have left this process.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Wire::Plain(_) => Poll::Ready(Ok(())),
            Wire::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }
}
