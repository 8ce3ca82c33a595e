//! Limit of the data that a session may pass to the host.
//!
//! The virtual machine's limit does not include the host's copies, and a script can reference one
//! string or table arbitrarily often.

use std::cell::Cell;

use crate::shape::{At, ShapeError};

/// Bytes of text, JSON and labels that one session, or one turn of an agent, may pass.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Minimum size of each piece in bytes, regardless of its contents.
const PIECE: usize = 64;

/// The remaining bytes.
pub(crate) struct Budget(Cell<usize>);

impl Budget {
    pub(crate) fn new() -> Self {
        Budget(Cell::new(MAX_BYTES))
    }

    /// Counts a piece of `bytes` bytes before it is copied.
    pub(crate) fn take(&self, at: &At<'_>, bytes: usize) -> Result<(), ShapeError> {
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
