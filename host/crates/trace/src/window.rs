//! A bounded view into a file, moved from its beginning to its end.

use crate::error::TraceError;
use crate::store::{Store, unreadable};

/// Bytes per read. Tests make it tiny, so that every boundary occurs everywhere.
pub(crate) const CHUNK: usize = 1 << 20;

/// A view into a file of a trace. [`FileWindow::rest`] contains what has been read but not
/// [consumed](FileWindow::consume).
pub(crate) struct FileWindow<'s> {
    store: &'s Store,
    region: usize,
    chunk: usize,
    buffer: Vec<u8>,
    from: usize,
    to: usize,
    /// File offset of `buffer[to]`.
    next: u64,
    ended: bool,
}

impl<'s> FileWindow<'s> {
    /// Creates a view that begins at `at`.
    pub(crate) fn new(store: &'s Store, region: usize, at: u64, chunk: usize) -> Self {
        FileWindow {
            store,
            region,
            chunk: chunk.max(1),
            buffer: Vec::new(),
            from: 0,
            to: 0,
            next: at,
            ended: false,
        }
    }

    /// Returns the available bytes.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.buffer[self.from..self.to]
    }

    /// Returns the file offset of [`FileWindow::rest`].
    pub(crate) fn offset(&self) -> u64 {
        self.next - (self.to - self.from) as u64
    }

    /// Returns true if [`FileWindow::rest`] reaches the end of the file.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// Discards the first bytes.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.from = (self.from + bytes).min(self.to);
    }

    /// Reads until the first line is complete, exceeds `limit`, or is the last one. Returns the
    /// position of its line feed; `None` without one.
    pub(crate) fn line_end(&mut self, limit: usize) -> Result<Option<usize>, TraceError> {
        let mut searched = 0;
        loop {
            let rest = self.rest();
            let end = memchr::memchr(b'\n', &rest[searched..]).map(|at| searched + at);
            if end.is_some() || rest.len() > limit.saturating_add(1) || self.ended {
                return Ok(end);
            }
            searched = rest.len();
            self.more()?;
        }
    }

    /// Reads more; returns false at the end of the file. The buffer holds at most twice what is not
    /// consumed, and a chunk.
    pub(crate) fn more(&mut self) -> Result<bool, TraceError> {
        if self.ended {
            return Ok(false);
        }
        self.buffer.copy_within(self.from..self.to, 0);
        self.to -= self.from;
        self.from = 0;
        // For a row longer than the window, the window grows with it, so that repeated scanning
        // costs no more than twice its length.
        let wanted = self.to + self.chunk.max(self.to);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        } else if self.buffer.len() > wanted.saturating_mul(4) {
            self.buffer.truncate(wanted);
            self.buffer.shrink_to_fit();
        }
        let read = self
            .store
            .read_at(self.region, self.next, &mut self.buffer[self.to..wanted])
            .map_err(|error| unreadable(&self.store.regions[self.region].path, &error))?;
        self.to += read;
        self.next += read as u64;
        self.ended = read == 0;
        Ok(read > 0)
    }
}
