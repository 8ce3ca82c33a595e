//! How much a session may hand to the host.
//!
//! The virtual machine's limit does not count what the host copies out of it, and a script can name one string, or one
//! table, as often as it likes.

use std::cell::Cell;

use crate::shape::{At, Shape};

/// Bytes of text, JSON and labels that one session, or one turn of an agent, may hand over.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// What each piece counts at least, whatever is in it.
const PIECE: usize = 64;

/// What is left.
pub(crate) struct Budget(Cell<usize>);

impl Budget {
    pub(crate) fn new() -> Self {
        Budget(Cell::new(MAX_BYTES))
    }

    /// Counts a piece of `bytes` bytes before it is copied.
    pub(crate) fn take(&self, at: &At<'_>, bytes: usize) -> Result<(), Shape> {
        match self.0.get().checked_sub(bytes.saturating_add(PIECE)) {
            Some(left) => {
                self.0.set(left);
                Ok(())
            }
            None => {
                let message = format!(
                    "the session is larger than {MAX_BYTES} bytes; use synthetic(tokens) for long text"
                );
                Err(at.shape(message))
            }
        }
    }
}
