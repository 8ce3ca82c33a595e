//! Reads a JSON document that may be larger than memory, value by value.

use crate::error::TraceError;
use crate::json::scan::{Fault, Kind, scan_value, skip_space};
use crate::problem::RowProblem;
use crate::text::shortened;
use crate::window::Window;

/// Why a document cannot be read on.
#[derive(Debug)]
pub(crate) enum StreamFault {
    /// The file cannot be read.
    Trace(TraceError),
    /// The document is broken at a line.
    Broken {
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        problem: RowProblem,
    },
}

impl From<TraceError> for StreamFault {
    fn from(error: TraceError) -> Self {
        StreamFault::Trace(error)
    }
}

/// A place in a JSON document.
pub(crate) struct Stream<'s> {
    window: Window<'s>,
    limit: usize,
    line: u64,
}

impl<'s> Stream<'s> {
    /// A stream over a window; values may have `limit` bytes.
    pub(crate) fn new(window: Window<'s>, limit: usize) -> Self {
        Stream {
            window,
            limit,
            line: 1,
        }
    }

    /// The line of the next byte, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// Where the next byte stands in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.window.offset()
    }

    /// Steps over space and shows the next byte; `None` at the end of the file.
    pub(crate) fn peek(&mut self) -> Result<Option<u8>, StreamFault> {
        loop {
            let space = skip_space(self.window.rest(), 0);
            self.step(space);
            if let Some(byte) = self.window.rest().first() {
                return Ok(Some(*byte));
            }
            if !self.window.more()? {
                return Ok(None);
            }
        }
    }

    /// Steps over `byte`, which must come next.
    pub(crate) fn expect(&mut self, byte: u8, why: &'static str) -> Result<(), StreamFault> {
        match self.peek()? {
            Some(found) if found == byte => {
                self.step(1);
                Ok(())
            }
            None => Err(self.cut_off()),
            Some(_) => Err(self.not_json(0, why)),
        }
    }

    /// The value that comes next, which the stream still stands before: what it is and its length. Its bytes are the
    /// beginning of [`Stream::rest`].
    pub(crate) fn value(&mut self) -> Result<(Kind, usize), StreamFault> {
        if self.peek()?.is_none() {
            return Err(self.cut_off());
        }
        loop {
            let rest = self.window.rest();
            match scan_value(rest, 0) {
                // A number at the edge of the window may go on behind it.
                Ok((kind, end)) if end < rest.len() || self.window.ended() => {
                    if end > self.limit {
                        return Err(self.broken(RowProblem::TooLong { limit: self.limit }));
                    }
                    return Ok((kind, end));
                }
                Err(Fault::At { at, why }) if at <= self.limit => return Err(self.not_json(at, why)),
                Err(Fault::At { .. }) => {
                    return Err(self.broken(RowProblem::TooLong { limit: self.limit }));
                }
                Err(Fault::Early) if self.window.ended() => return Err(self.cut_off()),
                Ok(_) | Err(Fault::Early) if rest.len() > self.limit => {
                    return Err(self.broken(RowProblem::TooLong { limit: self.limit }));
                }
                Ok(_) | Err(Fault::Early) => {
                    self.window.more()?;
                }
            }
        }
    }

    /// What has been read from here on.
    pub(crate) fn rest(&self) -> &[u8] {
        self.window.rest()
    }

    /// Steps forward.
    pub(crate) fn step(&mut self, bytes: usize) {
        let rest = self.window.rest();
        let bytes = bytes.min(rest.len());
        self.line += memchr::memchr_iter(b'\n', &rest[..bytes]).count() as u64;
        self.window.consume(bytes);
    }

    /// The end of the file, where none may be.
    fn cut_off(&self) -> StreamFault {
        let held = memchr::memchr_iter(b'\n', self.window.rest()).count() as u64;
        StreamFault::Broken {
            line: self.line + held,
            problem: RowProblem::CutOff,
        }
    }

    fn broken(&self, problem: RowProblem) -> StreamFault {
        StreamFault::Broken {
            line: self.line,
            problem,
        }
    }

    /// A syntax error at a place of [`Stream::rest`].
    pub(crate) fn not_json(&mut self, at: usize, why: &'static str) -> StreamFault {
        // What the message shows does not depend on where the window ends.
        while self.window.rest().len() < at + SHOWN_BEHIND {
            match self.window.more() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return error.into(),
            }
        }
        let rest = self.window.rest();
        let before = memchr::memchr_iter(b'\n', &rest[..at]).count() as u64;
        StreamFault::Broken {
            line: self.line + before,
            problem: not_json(rest, at, why),
        }
    }
}

/// Bytes around a syntax error that its message shows.
const SHOWN_BEFORE: usize = 12;
const SHOWN_BEHIND: usize = 20;

/// A syntax error, with the text around it.
pub(crate) fn not_json(bytes: &[u8], at: usize, why: &'static str) -> RowProblem {
    let from = at.saturating_sub(SHOWN_BEFORE);
    let to = (at + SHOWN_BEHIND).min(bytes.len());
    let near = String::from_utf8_lossy(&bytes[from..to]);
    RowProblem::NotJson {
        why,
        at,
        near: shortened(near.trim_matches(['\u{fffd}', '\n', ' '])),
    }
}
