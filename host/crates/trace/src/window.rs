//! A bounded view into a file, moved from its beginning to its end.

use crate::error::TraceError;
use crate::store::{Store, unreadable};

/// Bytes read at once. Tests make it tiny, so that every boundary falls everywhere.
pub(crate) const CHUNK: usize = 1 << 20;

/// A view into a file of a trace. What has been read and not yet [consumed](Window::consume) is in [`Window::rest`].
pub(crate) struct Window<'s> {
    store: &'s Store,
    region: usize,
    chunk: usize,
    buffer: Vec<u8>,
    from: usize,
    to: usize,
    /// Where `buffer[to]` would stand in the file.
    next: u64,
    ended: bool,
}

impl<'s> Window<'s> {
    /// A view that begins at `at`.
    pub(crate) fn new(store: &'s Store, region: usize, at: u64, chunk: usize) -> Self {
        Window {
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

    /// What is there.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.buffer[self.from..self.to]
    }

    /// Where [`Window::rest`] begins in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.next - (self.to - self.from) as u64
    }

    /// Whether [`Window::rest`] reaches to the end of the file.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// Leaves the first bytes behind.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.from = (self.from + bytes).min(self.to);
    }

    /// Reads on; false at the end of the file. The buffer holds at most twice what is not consumed, and a chunk.
    pub(crate) fn more(&mut self) -> Result<bool, TraceError> {
        if self.ended {
            return Ok(false);
        }
        self.buffer.copy_within(self.from..self.to, 0);
        self.to -= self.from;
        self.from = 0;
        // A row longer than the window makes the window grow with it, so that scanning it again and again costs no more
        // than twice its length.
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
