//! Finds the rows of a file, of whatever format, one after the other, in bounded memory.

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

/// Bounds of reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes read at once.
    pub(crate) chunk: usize,
    /// The longest row.
    pub(crate) row: usize,
}

impl Limits {
    /// The bounds for rows of up to so many bytes. An index entry holds 32 bits of length.
    pub(crate) fn rows_of(bytes: usize) -> Self {
        Limits {
            chunk: CHUNK,
            row: bytes.min(u32::MAX as usize),
        }
    }
}

/// A row as it stands in its file.
pub(crate) struct RawRow<'a> {
    /// Where it begins in the file.
    pub(crate) offset: u64,
    /// The line on which it begins, from 1.
    pub(crate) line: u64,
    /// Its bytes, not yet looked at; or why there are none.
    pub(crate) bytes: Result<&'a [u8], RowProblem>,
    /// Whether the file ends with it, without an end of line.
    pub(crate) last: bool,
}

/// What is done with each row, and whether the next is wanted.
pub(crate) trait Each: FnMut(RawRow<'_>) -> Result<ControlFlow<()>, TraceError> {}

impl<F: FnMut(RawRow<'_>) -> Result<ControlFlow<()>, TraceError>> Each for F {}

/// Hands over all rows of a file, in order. The first record of a CSV file is its header, and no row.
pub(crate) fn each_row(
    store: &Store,
    region: usize,
    shape: &Shape,
    limits: Limits,
    each: &mut impl Each,
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
