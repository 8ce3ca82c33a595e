//! Iteration over the rows of a file of any format, in bounded memory.

mod beginning;
mod csv;
mod document;
mod format;
mod lines;

pub(crate) use beginning::check_beginning;
pub(crate) use csv::{Record, header_of, split};
pub(crate) use document::{keys_of, text_of};
pub(crate) use format::{Shape, detect, sniff_shape};

use std::ops::ControlFlow;

use crate::error::TraceError;
use crate::problem::RowProblem;
use crate::store::Store;
use crate::window::{CHUNK, Window};

/// Limits of reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes per read.
    pub(crate) chunk: usize,
    /// Maximum length of a row.
    pub(crate) row: usize,
}

impl Limits {
    /// Returns the limits for rows of up to `bytes`. An index entry holds 32 bits of length.
    pub(crate) fn rows_of(bytes: usize) -> Self {
        Limits {
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

/// Calls `each` with all rows of a file, in order. The header of a CSV file is not a row.
pub(crate) fn each_row(
    store: &Store,
    region: usize,
    shape: &Shape,
    limits: Limits,
    each: &mut impl RowVisitor,
) -> Result<(), TraceError> {
    let window = |at: u64| Window::new(store, region, at, limits.chunk);
    match shape {
        Shape::Empty => Ok(()),
        Shape::Lines { at } => lines::each(window(*at), limits.row, each),
        Shape::Array { at } => document::each_item(store, region, window(*at), limits.row, each),
        Shape::Member { at, name } => {
            document::each_item_of(store, region, window(*at), name, limits.row, each)
        }
        Shape::Object { at } => document::one(store, region, window(*at), limits.row, each),
        Shape::Csv { at } => csv::each(window(*at), limits.row, each),
    }
}
