//! Lines of JSON between this program and its children.

use std::io::{ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use serde::Serialize;

use crate::BenchError;

/// Lines read from a file descriptor without ever waiting longer than one `read` does.
#[derive(Debug)]
pub(crate) struct Lines<F> {
    source: F,
    received: Vec<u8>,
}

impl<F: AsFd> AsFd for Lines<F> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }
}

impl<F: AsFd> Lines<F> {
    pub(crate) fn of(source: F) -> Self {
        Lines {
            source,
            received: Vec::new(),
        }
    }

    /// Reads once; false if the other side has ended.
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

    /// The next line that is complete.
    pub(crate) fn take(&mut self) -> Option<String> {
        let end = memchr::memchr(b'\n', &self.received)?;
        let line: Vec<u8> = self.received.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line).trim().to_owned())
    }

    /// Waits for the next line; `None` when the other side has ended.
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

/// Writes a value as one line.
pub(crate) fn tell(out: &mut impl Write, value: &impl Serialize) -> Result<(), BenchError> {
    let failed = BenchError::io("writing an answer");
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
    fn lines_come_whole_however_they_were_cut() {
        let (mut near, far) = UnixStream::pair().expect("a pair");
        let mut lines = Lines::of(far);
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
    fn a_value_is_one_line() {
        let mut out = Vec::new();
        tell(&mut out, &"a\nb").expect("written");
        assert_eq!(out, b"\"a\\nb\"\n");
    }
}
