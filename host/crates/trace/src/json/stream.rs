//! Reads a JSON document that may be larger than memory, value by value.

use crate::error::TraceError;
use crate::json::scan::{JsonKind, ScanFault, scan_value, skip_space};
use crate::problem::RowProblem;
use crate::text::shortened;
use crate::window::FileWindow;

/// A document that cannot be read further.
#[derive(Debug)]
pub(crate) enum StreamFault {
    /// The file cannot be read.
    Trace(Box<TraceError>),
    /// The document is malformed.
    Broken {
        /// Line, from 1.
        line: u64,
        /// The problem.
        problem: RowProblem,
    },
}

impl From<TraceError> for StreamFault {
    fn from(error: TraceError) -> Self {
        StreamFault::Trace(Box::new(error))
    }
}

/// A position in a JSON document.
pub(crate) struct JsonStream<'s> {
    window: FileWindow<'s>,
    limit: usize,
    line: u64,
}

impl<'s> JsonStream<'s> {
    /// Creates a stream over a window; a value may have up to `limit` bytes.
    pub(crate) fn new(window: FileWindow<'s>, limit: usize) -> Self {
        JsonStream {
            window,
            limit,
            line: 1,
        }
    }

    /// Returns the line of the next byte, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// Returns the offset of the next byte in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.window.offset()
    }

    /// Skips white space and returns the next byte; `None` at the end of the file.
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

    /// Consumes `byte`, which must be next.
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

    /// Returns type and length of the next value without consuming it. Its bytes are the beginning
    /// of [`JsonStream::rest`].
    pub(crate) fn value(&mut self) -> Result<(JsonKind, usize), StreamFault> {
        if self.peek()?.is_none() {
            return Err(self.cut_off());
        }
        loop {
            let rest = self.window.rest();
            match scan_value(rest, 0) {
                // A number at the end of the window may continue behind it.
                Ok((kind, end)) if end < rest.len() || self.window.ended() => {
                    if end > self.limit {
                        return Err(self.broken(RowProblem::TooLong { limit: self.limit }));
                    }
                    return Ok((kind, end));
                }
                Err(ScanFault::At { at, why }) if at <= self.limit => return Err(self.not_json(at, why)),
                Err(ScanFault::At { .. }) => {
                    return Err(self.broken(RowProblem::TooLong { limit: self.limit }));
                }
                Err(ScanFault::Early) if self.window.ended() => return Err(self.cut_off()),
                Ok(_) | Err(ScanFault::Early) if rest.len() > self.limit => {
                    return Err(self.broken(RowProblem::TooLong { limit: self.limit }));
                }
                Ok(_) | Err(ScanFault::Early) => {
                    self.window.more()?;
                }
            }
        }
    }

    /// Returns what has been read from here on.
    pub(crate) fn rest(&self) -> &[u8] {
        self.window.rest()
    }

    /// Consumes bytes.
    pub(crate) fn step(&mut self, bytes: usize) {
        let rest = self.window.rest();
        let bytes = bytes.min(rest.len());
        self.line += memchr::memchr_iter(b'\n', &rest[..bytes]).count() as u64;
        self.window.consume(bytes);
    }

    /// Returns the error for an unexpected end of the file.
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

    /// Returns the error for a syntax error at a position of [`JsonStream::rest`].
    pub(crate) fn not_json(&mut self, at: usize, why: &'static str) -> StreamFault {
        // The message must not depend on where the window ends.
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

/// Number of bytes around a syntax error in its message.
const SHOWN_BEFORE: usize = 12;
const SHOWN_BEHIND: usize = 20;

/// Returns a syntax error with the text around it.
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
