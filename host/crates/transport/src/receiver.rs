//! Socket reads, each with the time at which the kernel received the returned data.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use nix::sys::time::TimeSpec;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use veeksha_clock::RunClock;
use veeksha_endpoint::ReadStamp;

use crate::kernel_time::{KernelTime, ReceiveTime, TimeSource};
use crate::receive_stats::{ThreadCounters, count};

/// State that all reads of one client thread share.
pub(crate) struct Receiver {
    clock: RunClock,
    realtime: fn() -> u64,
    time: Cell<KernelTime>,
    /// Buffer for the control message with the stamp.
    control: RefCell<Vec<u8>>,
    counters: Arc<ThreadCounters>,
}

impl Receiver {
    /// Creates a receiver. `realtime` reads `CLOCK_REALTIME`.
    pub(crate) fn new(clock: RunClock, realtime: fn() -> u64, counters: Arc<ThreadCounters>) -> Rc<Self> {
        Rc::new(Receiver {
            clock,
            realtime,
            time: Cell::new(KernelTime::default()),
            control: RefCell::new(nix::cmsg_space!(TimeSpec)),
            counters,
        })
    }

    /// Returns the arrival time of the data that a read has just returned.
    fn arrival(&self, stamp: Option<u64>) -> ReceiveTime {
        let now = self.clock.now();
        count(&self.counters.reads);
        let Some(stamp) = stamp else {
            return ReceiveTime::of_read(now, TimeSource::Read);
        };
        let mut sample = (self.realtime)() as i64 - now as i64;
        let mut time = self.time.get();
        if time.jumps(sample) {
            // The thread may only have been preempted between the two readings.
            let again = self.clock.now();
            sample = (self.realtime)() as i64 - again as i64;
        }
        let arrival = time.arrival(now, sample, stamp);
        self.time.set(time);
        match arrival.source {
            TimeSource::Kernel => count(&self.counters.kernel_stamped),
            TimeSource::Refused => count(&self.counters.stamps_refused),
            TimeSource::Read => {}
        }
        arrival
    }

    /// Reads once without waiting. Also returns the kernel's stamp in nanoseconds of realtime, if
    /// there is one.
    fn receive(&self, socket: &TcpStream, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
        let mut control = self.control.borrow_mut();
        let mut parts = [IoSliceMut::new(buffer)];
        let message = recvmsg::<()>(
            socket.as_raw_fd(),
            &mut parts,
            Some(&mut control),
            MsgFlags::empty(),
        )?;
        // Without a stamp, or if another control message has filled the buffer, the time of the
        // read is used.
        let stamp = message
            .cmsgs()
            .ok()
            .and_then(|mut messages| messages.find_map(nanos_of));
        Ok((message.bytes, stamp))
    }
}

fn nanos_of(message: ControlMessageOwned) -> Option<u64> {
    match message {
        ControlMessageOwned::ScmTimestampns(time) => {
            let seconds = u64::try_from(time.tv_sec()).ok()?;
            let nanos = u64::try_from(time.tv_nsec()).ok()?;
            seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
        }
        _ => None,
    }
}

/// State of a connection's newest read, shared with the layers above the socket.
#[derive(Debug)]
pub(crate) struct Newest {
    stamp: Cell<ReadStamp>,
    /// Set if every read since [`Newest::begin`] had a kernel stamp.
    all_kernel: Cell<bool>,
}

impl Newest {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Newest {
            stamp: Cell::new(ReadStamp {
                at: 0,
                lag: 0,
                read: 0,
            }),
            all_kernel: Cell::new(true),
        })
    }

    /// Resets the state for another request.
    pub(crate) fn begin(&self) {
        self.all_kernel.set(true);
    }

    /// Returns the stamp of the newest read that returned bytes.
    pub(crate) fn stamp(&self) -> ReadStamp {
        self.stamp.get()
    }

    /// Returns true if the arrival times of this request's answer come from the kernel.
    pub(crate) fn all_kernel(&self) -> bool {
        self.all_kernel.get()
    }

    fn note(&self, arrival: ReceiveTime) {
        self.stamp.set(ReadStamp {
            at: arrival.at,
            lag: arrival.lag,
            read: self.stamp.get().read + 1,
        });
        if arrival.source != TimeSource::Kernel {
            self.all_kernel.set(false);
        }
    }
}

/// A TCP stream with stamped reads. A plain connection uses it directly; TLS and HTTP/2 are layered
/// on it.
pub(crate) struct StampedSocket {
    socket: TcpStream,
    receiver: Rc<Receiver>,
    newest: Rc<Newest>,
    /// Bytes that were read too early. They keep the stamp of their read.
    unread: Vec<u8>,
}

impl StampedSocket {
    pub(crate) fn new(socket: TcpStream, receiver: Rc<Receiver>) -> Self {
        StampedSocket {
            socket,
            receiver,
            newest: Newest::new(),
            unread: Vec::new(),
        }
    }

    pub(crate) fn newest(&self) -> &Rc<Newest> {
        &self.newest
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Takes back bytes of the newest read. The next read returns them.
    pub(crate) fn give_back(&mut self, bytes: Vec<u8>) {
        self.unread = bytes;
    }

    #[cold]
    fn take_unread(&mut self, buffer: &mut [u8]) -> usize {
        let size = self.unread.len().min(buffer.len());
        buffer[..size].copy_from_slice(&self.unread[..size]);
        self.unread.drain(..size);
        size
    }

    /// Waits for bytes and reads them once; 0 is the end.
    pub(crate) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if !self.unread.is_empty() {
            return Poll::Ready(Ok(self.take_unread(buffer)));
        }
        loop {
            ready!(self.socket.poll_read_ready(cx))?;
            let mut read = None;
            let outcome = self.socket.try_io(Interest::READABLE, || {
                let (size, stamp) = self.receiver.receive(&self.socket, buffer)?;
                read = Some((size, stamp));
                // A read that did not fill the buffer has drained the socket. Marking the socket as
                // not ready avoids a further read that would only return `WouldBlock`. A byte that
                // has arrived since wakes the task again.
                if size > 0 && size < buffer.len() {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                Ok(())
            });
            match (read, outcome) {
                (Some((size, stamp)), _) => {
                    if size > 0 {
                        self.newest.note(self.receiver.arrival(stamp));
                    }
                    return Poll::Ready(Ok(size));
                }
                (None, Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
                (None, Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                (None, Err(error)) => return Poll::Ready(Err(error)),
                (None, Ok(())) => {}
            }
        }
    }
}

impl AsyncRead for StampedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let size = ready!(self.poll_receive(cx, buffer.initialize_unfilled()))?;
        buffer.advance(size);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for StampedSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
