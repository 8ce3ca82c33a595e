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

/// A shared ring buffer of bytes.
#[derive(Clone, Debug)]
pub(crate) struct OutputRing {
    bytes: Arc<Mutex<VecDeque<u8>>>,
    capacity: usize,
}

impl OutputRing {
    pub(crate) fn new(capacity: usize) -> Self {
        OutputRing {
            bytes: Arc::default(),
            capacity,
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut ring = self.lock();
        let kept = &bytes[bytes.len().saturating_sub(self.capacity)..];
        let excess = (ring.len() + kept.len()).saturating_sub(self.capacity);
        ring.drain(..excess);
        ring.extend(kept);
    }

    /// Returns the last `lines` lines, if there is any output.
    pub(crate) fn tail(&self, lines: usize) -> Option<String> {
        let ring: Vec<u8> = self.lock().iter().copied().collect();
        let text = String::from_utf8_lossy(&ring);
        let all: Vec<&str> = text.trim_end().lines().collect();
        let tail = all[all.len().saturating_sub(lines)..].join("\n");
        (!tail.is_empty()).then_some(tail)
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
    use super::OutputRing;

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
        assert_eq!(ring.lock().len(), 1 << 10);
        assert!(ring.lock().capacity() <= 4 << 10);
    }

    #[test]
    fn bytes_that_are_not_text_are_shown_as_such() {
        let ring = OutputRing::new(16);
        ring.push(b"a\xFF");
        assert_eq!(ring.tail(1).as_deref(), Some("a\u{FFFD}"));
    }
}
