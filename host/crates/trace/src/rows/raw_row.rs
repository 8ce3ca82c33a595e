//! A row as it is in its file, and the limits of reading it.

use std::ops::ControlFlow;

use crate::error::TraceError;
use crate::problem::RowProblem;
use crate::window::CHUNK;

/// Limits of reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadLimits {
    /// Bytes per read.
    pub(crate) chunk: usize,
    /// Maximum length of a row.
    pub(crate) row: usize,
}

impl ReadLimits {
    /// Returns the limits for rows of up to `bytes`. An index entry holds 32 bits of length.
    pub(crate) fn rows_of(bytes: usize) -> Self {
        ReadLimits {
            chunk: CHUNK,
            row: bytes.min(u32::MAX as usize),
        }
    }
}

/// A row as it is in its file.
pub(crate) struct RawRow<'a> {
    /// Offset in the file.
    pub(crate) offset: u64,
    /// Line on which it begins, from 1.
    pub(crate) line: u64,
    /// Its unchecked bytes, or the reason why they are missing.
    pub(crate) bytes: Result<&'a [u8], RowProblem>,
    /// True if the file ends with it, without a line end.
    pub(crate) last: bool,
}

/// Consumer of rows, which decides if the next one is wanted.
pub(crate) trait RowVisitor: FnMut(RawRow<'_>) -> Result<ControlFlow<()>, TraceError> {}

impl<F: FnMut(RawRow<'_>) -> Result<ControlFlow<()>, TraceError>> RowVisitor for F {}
