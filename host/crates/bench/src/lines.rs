//! JSON lines between this program and its children.

use std::io::{ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use serde::Serialize;

use crate::error::BenchError;

/// Reads lines from a file descriptor; each call blocks for one `read` at most.
#[derive(Debug)]
pub(crate) struct LineReader<F> {
    source: F,
    received: Vec<u8>,
}

impl<F: AsFd> AsFd for LineReader<F> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }
}

impl<F: AsFd> LineReader<F> {
    pub(crate) fn of(source: F) -> Self {
        LineReader {
            source,
            received: Vec::new(),
        }
    }

    /// Reads once; returns false at the end of input.
    pub(crate) fn fill(&mut self) -> Result<bool, BenchError> {
        let mut buffer = [0; 4_096];
        loop {
            match rustix::io::read(&self.source, &mut buffer) {
                Ok(count) => {
                    self.received
                        .extend_from_slice(buffer.get(..count).unwrap_or_default());
                    return Ok(count > 0);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(BenchError::io("reading commands")(error.into())),
            }
        }
    }

    /// Returns the next complete line.
    pub(crate) fn take(&mut self) -> Option<String> {
        let end = memchr::memchr(b'\n', &self.received)?;
        let line: Vec<u8> = self.received.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line).trim().to_owned())
    }

    /// Waits for the next line; `None` at the end of input.
    pub(crate) fn next(&mut self) -> Result<Option<String>, BenchError> {
        loop {
            if let Some(line) = self.take() {
                return Ok(Some(line));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }
}

/// Writes a value as one line of JSON.
pub(crate) fn write_line(out: &mut impl Write, value: &impl Serialize) -> Result<(), BenchError> {
    let failed = BenchError::io("writing a message");
    let mut line = match serde_json::to_vec(value) {
        Ok(line) => line,
        Err(error) => return Err(failed(std::io::Error::new(ErrorKind::InvalidData, error))),
    };
    line.push(b'\n');
    out.write_all(&line).and_then(|()| out.flush()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn reads_lines_at_any_split() {
        let (mut near, far) = UnixStream::pair().expect("a pair");
        let mut lines = LineReader::of(far);
        near.write_all(b"one\ntw").expect("written");
        assert_eq!(lines.next().expect("read"), Some("one".into()));
        assert_eq!(lines.take(), None);
        near.write_all(b"o\n\nlast without end").expect("written");
        drop(near);
        assert_eq!(lines.next().expect("read"), Some("two".into()));
        assert_eq!(lines.next().expect("read"), Some("".into()));
        assert_eq!(lines.next().expect("read"), None);
    }

    #[test]
    fn writes_a_value_as_one_line() {
        let mut out = Vec::new();
        write_line(&mut out, &"a\nb").expect("written");
        assert_eq!(out, b"\"a\\nb\"\n");
    }
}
