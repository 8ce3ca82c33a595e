//! Standard output and standard error of a guest: the newest bytes, up to a limit.
//!
//! A full pipe would make a guest's `print` fail, which Python turns into an exception. A ring
//! discards old bytes instead.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

/// Maximum number of bytes per write.
const PERMIT: usize = 64 << 10;

/// Maximum bytes of one call that become lines of the log; later ones are counted.
const MAX_CALL_BYTES: usize = 64 << 10;

/// A shared ring buffer of bytes.
#[derive(Clone, Debug)]
pub(crate) struct OutputRing {
    output: Arc<Mutex<GuestOutput>>,
    capacity: usize,
}

#[derive(Debug, Default)]
struct GuestOutput {
    /// The newest bytes.
    newest: VecDeque<u8>,
    /// The first bytes of the running call.
    of_call: Vec<u8>,
    /// Line breaks of the running call after those bytes.
    lost_lines: u64,
}

impl OutputRing {
    pub(crate) fn new(capacity: usize) -> Self {
        OutputRing {
            output: Arc::default(),
            capacity,
        }
    }

    fn lock(&self) -> MutexGuard<'_, GuestOutput> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut output = self.lock();
        let room = MAX_CALL_BYTES - output.of_call.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        output.of_call.extend_from_slice(first);
        output.lost_lines += rest.iter().filter(|byte| **byte == b'\n').count() as u64;
        let ring = &mut output.newest;
        let kept = &bytes[bytes.len().saturating_sub(self.capacity)..];
        let excess = (ring.len() + kept.len()).saturating_sub(self.capacity);
        ring.drain(..excess);
        ring.extend(kept);
    }

    /// Returns the last `lines` lines, if there is any output.
    pub(crate) fn tail(&self, lines: usize) -> Option<String> {
        let ring: Vec<u8> = self.lock().newest.iter().copied().collect();
        let text = String::from_utf8_lossy(&ring);
        let all: Vec<&str> = text.trim_end().lines().collect();
        let tail = all[all.len().saturating_sub(lines)..].join("\n");
        (!tail.is_empty()).then_some(tail)
    }

    /// Takes the lines of the running call, and the number of further lines that were not kept.
    pub(crate) fn take_lines(&self) -> (Vec<String>, u64) {
        let mut output = self.lock();
        if output.of_call.is_empty() {
            return (Vec::new(), 0);
        }
        let text = String::from_utf8_lossy(&output.of_call);
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let lines = lines.map(str::to_owned).collect();
        output.of_call.clear();
        (lines, std::mem::take(&mut output.lost_lines))
    }
}

impl IsTerminal for OutputRing {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for OutputRing {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for OutputRing {
    async fn ready(&mut self) {}
}

impl OutputStream for OutputRing {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.push(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}

impl AsyncWrite for OutputRing {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.push(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_CALL_BYTES, OutputRing};

    #[test]
    fn keeps_the_newest_bytes_only() {
        let ring = OutputRing::new(8);
        assert_eq!(ring.tail(4), None);
        ring.push(b"abc\n");
        ring.push(b"defg\n");
        assert_eq!(ring.tail(4).as_deref(), Some("bc\ndefg"), "8 of 9 bytes are left");
        ring.push(b"0123456789ABCDEF");
        assert_eq!(ring.tail(4).as_deref(), Some("89ABCDEF"));
    }

    #[test]
    fn a_flood_does_not_grow_it() {
        let ring = OutputRing::new(1 << 10);
        for _ in 0..20_000 {
            ring.push(&[b'x'; 1000]);
        }
        assert_eq!(ring.lock().newest.len(), 1 << 10);
        assert!(ring.lock().newest.capacity() <= 4 << 10);
        assert_eq!(ring.lock().of_call.len(), MAX_CALL_BYTES);
    }

    #[test]
    fn lines_of_a_call_are_taken_once_and_bounded() {
        let ring = OutputRing::new(64);
        assert_eq!(ring.take_lines(), (Vec::new(), 0));
        ring.push(b"one\n\ntw");
        ring.push(b"o");
        assert_eq!(ring.take_lines(), (vec!["one".to_owned(), "two".to_owned()], 0));
        ring.push(&[b'x'; MAX_CALL_BYTES]);
        ring.push(b"a\nb\nc");
        let (lines, lost) = ring.take_lines();
        assert_eq!((lines.len(), lines[0].len(), lost), (1, MAX_CALL_BYTES, 2));
        assert_eq!(ring.take_lines(), (Vec::new(), 0));
    }

    #[test]
    fn bytes_that_are_not_text_are_shown_as_such() {
        let ring = OutputRing::new(16);
        ring.push(b"a\xFF");
        assert_eq!(ring.tail(1).as_deref(), Some("a\u{FFFD}"));
    }
}
